"""Figures about one account for its own people."""
