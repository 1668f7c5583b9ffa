"""Storage in memory and in SQL (SQLite, Postgres). table/catalogue.py declares every record."""
