"""Accounts, what belongs to one, and its limits."""
