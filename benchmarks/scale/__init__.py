"""What an operation costs as the database grows (docs/scaling.md)."""
