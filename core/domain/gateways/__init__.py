"""Banks as merchants see them."""
