"""Statements, withdrawals and rates."""
