"""Counters of rate limits (ports/counters.py)."""
