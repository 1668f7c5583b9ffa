"""The storage, two ways: in memory, and SQL (SQLite, Postgres). catalogue.py declares every record it keeps."""
