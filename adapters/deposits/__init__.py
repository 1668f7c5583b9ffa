"""Implementations of the port DepositWatcher."""
