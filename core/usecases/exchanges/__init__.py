"""Exchanges of RUB and USDT: order, payment, payout and returns."""
