"""What no use case writes, written by tests that try what becomes of it: beneath the storage that refuses it."""

from cambist.core.usecases.assertions import AssertingStorage
from cambist.ports.bundle import Ports
from cambist.ports.forwarding import ForwardingStorage
from cambist.ports.storage import Storage


def beneath(ports: Ports) -> Storage:
    """The storage that takes whatever it is given."""
    storage = ports.storage
    while isinstance(storage, ForwardingStorage):
        storage = storage.inner
        if isinstance(storage, AssertingStorage):
            return storage.inner
    return storage
