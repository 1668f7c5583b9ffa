"""Test mode: simulate providers, advance the clock, and delete test data."""
