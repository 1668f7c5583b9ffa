"""The core: use cases over a pure domain. It needs msgspec and the standard library, nothing else."""
