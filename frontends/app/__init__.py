"""Composition root: it reads the settings, chooses the adapters and opens the app."""
