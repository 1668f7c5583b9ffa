"""Registries of the processes of one installation (ports/registry.py)."""
