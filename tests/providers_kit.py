"""Looking inside the layers that stand around adapters."""

from typing import Any


def inside(adapter: Any) -> Any:
    """The adapter within its layers."""
    while "_adapter" in vars(adapter):
        adapter = adapter._adapter
    return adapter
