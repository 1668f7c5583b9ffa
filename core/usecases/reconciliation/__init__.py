"""Comparison of a bank's bookings with our records."""
