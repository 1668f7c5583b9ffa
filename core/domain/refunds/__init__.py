"""Refunds, and returns of money in suspense."""
