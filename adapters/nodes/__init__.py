"""Nodes of the networks that carry USDT, over JSON-RPC: shared by the watchers of chains and deposits,
and by wallets.
"""
