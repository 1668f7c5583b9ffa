"""Moves of accounts from one cell to another (docs/cells.md)."""
