"""What people and programs see of the record; every face uses the same verbs and the same documents."""
