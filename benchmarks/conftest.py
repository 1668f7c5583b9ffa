"""What holds for all benchmarks."""

import os

# Processes that are measured may keep their bytecode, as installed ones do: else each compiles all of it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
