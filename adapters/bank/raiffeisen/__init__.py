"""Raiffeisenbank's SBP: payments by QR, refunds, subscriptions and payouts (docs/providers/raiffeisen.md)."""
