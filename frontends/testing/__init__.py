"""A whole sandbox in memory for merchants' tests, and the pytest plugin that hands it out (`plugin.py`).

Nothing heavy is imported before something of it is used: pytest loads the plugin in every run.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .receivers import Delivery, Receiver
    from .sandbox import Sandbox, SandboxOptions
    from .stage import Stage, open_stage

__all__ = ["Delivery", "Receiver", "Sandbox", "SandboxOptions", "Stage", "open_stage"]

_ROOMS = {
    "Delivery": "receivers",
    "Receiver": "receivers",
    "Sandbox": "sandbox",
    "SandboxOptions": "sandbox",
    "Stage": "stage",
    "open_stage": "stage",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from ..gc_pause import gc_paused

    with gc_paused():
        import_module(".sandbox", __name__)  # all of them lead there
    return getattr(import_module(f".{_ROOMS[name]}", __name__), name)
