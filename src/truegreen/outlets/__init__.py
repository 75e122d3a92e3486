"""What leaves the house: receipts. All of it reads the ledger, and none of it changes a task."""
