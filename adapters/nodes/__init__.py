"""Nodes of the networks that USDT moves on, by JSON-RPC: what watchers of chains and deposits share, and wallets."""
