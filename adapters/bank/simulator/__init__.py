"""Simulated bank: payments, mandates and refunds with outcomes that a script or the amount chooses."""
