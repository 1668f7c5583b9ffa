"""Events on their way to merchants: writing, signing, sending, resending, and the feed."""
