"""The number of webhooks in flight is the documented one (docs/operations.md "Running several machines")."""

from cambist.core.domain.webhooks.limiter_pool import Trust
from cambist.core.usecases.webhooks.dispatcher import Dispatcher
from tests.apps import open_test_app
from tests.tables import table


class _Receiver:
    def stir(self) -> None:
        """Never called: nothing is given back in these tests."""


@table(
    ("receivers", "hosts", "under_way"),
    [(1281, 1281, 1280), (65, 1, 64)],
    ids=["in all", "to one host and port"],
)
async def test_a_worker_has_so_many_under_way(receivers: int, hosts: int, under_way: int) -> None:
    async with open_test_app() as app:
        limiter = Dispatcher(app.ports)._limiter
        permits = [
            limiter.take(_Receiver(), f"r{number}", f"h{number % hosts}.example:443", Trust.PROVEN)
            for number in range(receivers)
        ]
        assert sum(each is not None for each in permits) == under_way


async def test_one_receiver_has_eight() -> None:
    async with open_test_app() as app:
        limiter = Dispatcher(app.ports)._limiter
        assert limiter.share("a.example:443", Trust.PROVEN, mine=0) == 8
