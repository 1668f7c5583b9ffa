"""Code shared by SQLite and Postgres: schema, revisions, statements and reads."""
