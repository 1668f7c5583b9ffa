"""Records as rows: the catalogue of tables, how a type becomes a row, and a unit before it is committed."""
