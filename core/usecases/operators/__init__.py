"""Use cases of operators, each with its audit row, and the sources of what operators see of the service."""
