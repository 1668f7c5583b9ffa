"""Money that goes back to payers: refunds, and returns from suspense."""
