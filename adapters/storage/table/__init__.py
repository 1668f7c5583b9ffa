"""Records as rows: the catalogue of tables, the conversion of a type to a row, and a unit before its commit."""
