"""The storage in a SQLite file."""
