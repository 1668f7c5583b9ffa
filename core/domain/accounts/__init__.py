"""Accounts, their records, and their limits."""
