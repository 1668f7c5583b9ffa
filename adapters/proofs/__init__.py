"""Signatures that strangers can check."""
