"""What people and programs see of the record; all faces share verbs and documents."""
