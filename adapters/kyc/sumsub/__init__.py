"""Sumsub as the identity verifier, by documents or by its own form (docs/providers/sumsub.md)."""
