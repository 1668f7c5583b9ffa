"""Events on their way to merchants: written, signed, sent, sent again, followed."""
