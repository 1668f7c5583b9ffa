"""Entry points of the app: HTTP, console, worker and command line, and the composition root that wires them
(compose)."""
