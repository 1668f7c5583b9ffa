"""Settings of the service: their names, sources, readers and values, and the adapters that they may name."""
