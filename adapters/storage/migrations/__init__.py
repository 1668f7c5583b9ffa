"""The history of the schema: one line of Alembic revisions for SQLite and Postgres."""
