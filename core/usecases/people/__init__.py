"""Sign-in, sessions and membership of merchants' people."""
