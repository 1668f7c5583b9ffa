"""Storage in memory, for one process."""
