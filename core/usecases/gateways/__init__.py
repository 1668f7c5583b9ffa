"""Banks as merchants see them: their status, and operations whose outcome is unknown."""
