"""Refunds, and money in suspense that is sent back."""
