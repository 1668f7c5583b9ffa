"""Subscriptions, their periods and charges, and the effects of the banks' reports."""
