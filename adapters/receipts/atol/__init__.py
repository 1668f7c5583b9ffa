"""ATOL Online, a cloud cash register (docs/providers/atol.md)."""
