"""One folder per port, one file per way of filling it."""
