"""Payments: orders, states, what reports of banks make of them, proofs of delivery, tallies."""
