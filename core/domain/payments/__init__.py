"""Payments: orders, states, effects of the banks' reports, delivery proofs, tallies."""
