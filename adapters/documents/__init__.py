"""Documents to print and to sign."""
