"""Accounts, their keys and limits, shops and terminals."""
