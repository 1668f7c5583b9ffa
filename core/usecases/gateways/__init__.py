"""Banks as merchants see them: which work, and which operations have no known outcome."""
