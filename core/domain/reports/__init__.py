"""Registers of an account's days and months."""
