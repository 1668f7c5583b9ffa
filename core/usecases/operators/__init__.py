"""What operators do, each act with its audit row, and what tells them how the service does."""
