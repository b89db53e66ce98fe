"""`make deploy` and `make destroy`: into and out of the account of the current AWS credentials."""
