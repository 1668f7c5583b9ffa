"""People of merchants: users, roles, sessions."""
