"""Subscriptions, their periods and charges, and what reports of banks make of them."""
