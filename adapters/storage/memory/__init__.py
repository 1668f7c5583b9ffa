"""The storage in memory, of one process."""
