"""An in-memory sandbox for merchants' tests, the pytest plugin that provides it (`plugin.py`), an embedded service for
tests (`embedded.py`), and the fake provider for tests of adapters.

Heavy modules are imported on first use, because pytest loads the plugin in every run. The fake provider imports none of
the sandbox, and neither does the embedded service, which needs fewer libraries.
"""

from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..fake_provider.faults import ProviderAnswer, ProviderFault
    from ..fake_provider.provider import FakeProvider, HeldCall
    from ..fake_provider.requests import ProviderRequest, is_read, is_write
    from .clock import AsyncClock, Clock
    from .embedded import ServiceSandbox, SyncServiceSandbox, open_service, open_sync_service
    from .receivers import Delivery, Receiver
    from .sandbox import Sandbox, SandboxOptions
    from .stage import Stage, open_stage

__all__ = [
    "AsyncClock",
    "Clock",
    "Delivery",
    "FakeProvider",
    "HeldCall",
    "ProviderAnswer",
    "ProviderFault",
    "ProviderRequest",
    "Receiver",
    "Sandbox",
    "SandboxOptions",
    "ServiceSandbox",
    "Stage",
    "SyncServiceSandbox",
    "is_read",
    "is_write",
    "open_service",
    "open_stage",
    "open_sync_service",
]

_LIGHT = {
    "AsyncClock": ".clock",
    "Clock": ".clock",
    "FakeProvider": "..fake_provider.provider",
    "HeldCall": "..fake_provider.provider",
    "ProviderAnswer": "..fake_provider.faults",
    "ProviderFault": "..fake_provider.faults",
    "ProviderRequest": "..fake_provider.requests",
    "ServiceSandbox": ".embedded",
    "SyncServiceSandbox": ".embedded",
    "is_read": "..fake_provider.requests",
    "is_write": "..fake_provider.requests",
    "open_service": ".embedded",
    "open_sync_service": ".embedded",
}
"""Modules that need no extra."""
_SANDBOX = {
    "Delivery": ".receivers",
    "Receiver": ".receivers",
    "Sandbox": ".sandbox",
    "SandboxOptions": ".sandbox",
    "Stage": ".stage",
    "open_stage": ".stage",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    found = _LIGHT.get(name) or _SANDBOX.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _SANDBOX:
        from ..process.gc_pause import gc_paused

        with gc_paused():
            import_module(".sandbox", __name__)  # every name needs this module
    module = import_module(found, __name__)
    # Tracebacks and reprs name the public module, which stays when a class moves.
    for each in (_LIGHT | _SANDBOX).items():
        if each[1] == found and isinstance(value := getattr(module, each[0]), type | FunctionType):
            value.__module__ = "cambist.testing"
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
