"""The storage in Postgres."""
