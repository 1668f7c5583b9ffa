"""T-Bank's internet acquiring: payments, refunds and mandates by SBP (docs/providers/tbank.md)."""
