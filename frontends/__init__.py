"""The doors of the house: HTTP, console, worker and command line, and the one place that wires them (compose)."""
