"""Clients and their verification."""
