"""Payments from creation to their end: ledger entries, tallies, receipts and delivery proofs."""
