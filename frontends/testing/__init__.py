"""An in-memory sandbox for merchants' tests, the pytest plugin that provides it (`plugin.py`), and the fake provider
for tests of adapters.

Heavy modules are imported on first use, because pytest loads the plugin in every run. The fake provider imports none of
the sandbox.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..fake_provider.faults import ProviderAnswer, ProviderFault
    from ..fake_provider.provider import FakeProvider, HeldCall
    from ..fake_provider.requests import ProviderRequest, is_read, is_write
    from .receivers import Delivery, Receiver
    from .sandbox import Sandbox, SandboxOptions
    from .stage import Stage, open_stage

__all__ = [
    "Delivery",
    "FakeProvider",
    "HeldCall",
    "ProviderAnswer",
    "ProviderFault",
    "ProviderRequest",
    "Receiver",
    "Sandbox",
    "SandboxOptions",
    "Stage",
    "is_read",
    "is_write",
    "open_stage",
]

_FAKE = {
    "FakeProvider": "provider",
    "HeldCall": "provider",
    "ProviderAnswer": "faults",
    "ProviderFault": "faults",
    "ProviderRequest": "requests",
    "is_read": "requests",
    "is_write": "requests",
}
_ROOMS = {
    "Delivery": "receivers",
    "Receiver": "receivers",
    "Sandbox": "sandbox",
    "SandboxOptions": "sandbox",
    "Stage": "stage",
    "open_stage": "stage",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _FAKE:
        return getattr(import_module(f"..fake_provider.{_FAKE[name]}", __name__), name)
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    from ..process.gc_pause import gc_paused

    with gc_paused():
        import_module(".sandbox", __name__)  # every name needs this module
    return getattr(import_module(f".{_ROOMS[name]}", __name__), name)
