"""A database and its copies: recognised, compared with what providers sent, and let go."""
