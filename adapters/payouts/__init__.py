"""Wallets: ways of filling the port UsdtSender."""
