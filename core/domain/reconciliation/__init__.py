"""Comparison of a bank's records with ours."""
