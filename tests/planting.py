"""Write records that no use case writes, below the storage that would reject them, for tests of how the service handles
them."""

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
