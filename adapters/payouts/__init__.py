"""Wallets: implementations of the port UsdtSender."""
