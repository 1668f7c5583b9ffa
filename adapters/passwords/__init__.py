"""Hashing of passwords."""
