"""Rolls of the processes of one installation (ports/presence.py)."""
