"""Accounts with their keys, limits, shops and terminals."""
