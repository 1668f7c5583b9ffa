"""Layers between the core and a provider: time limits and bulkheads, quarantine and traces."""
