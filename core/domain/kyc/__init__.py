"""Clients and how they are verified."""
