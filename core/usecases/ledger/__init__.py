"""The ledger: booking, chains of entries, checks and balances."""
