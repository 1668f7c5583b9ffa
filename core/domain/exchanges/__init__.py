"""Exchanges between RUB and USDT: orders, states, incoming and outgoing money, and journal entries."""
