"""Test mode: what a bank would do is asked for, the clock is advanced, and test data is forgotten."""
