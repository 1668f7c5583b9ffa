"""Payments from creation to their end, and all that moves with one: books, tallies, proofs."""
