"""Verification of passkeys."""
