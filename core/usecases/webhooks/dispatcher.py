"""Sending events to merchants' receivers (docs/webhooks.md "When you do not answer", "Webhooks").

Every endpoint (an account's, in one mode) has one job that stands while something is due there. Whoever holds its
lease serves that endpoint alone, so its deliveries never compete for its breaker; several webhooks are under way at a
time, and a slow or dead receiver holds up nobody but itself. What is done next at an endpoint is planned in
domain/webhooks/endpoint_state.py, and performed in endpoint_worker.py; what comes after a webhook is decided in
domain/webhooks/delivery.py and domain/webhooks/breaker.py, and committed in results.py.
"""

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ...domain.webhooks.limiter import SendLimiter
from .endpoint_worker import EndpointWorker
from .signing import Signers

WEBHOOKS = 1280
"""Webhooks under way at once, at most: of a thousand receivers that begin to hang at one moment each holds a permit for
as long as it may take to answer, and there are some left for the others."""

_MANY = 128
"""Receivers served at once, above which slow ones are looked at less often: each look reads."""
_LESS_OFTEN = 8
"""Looks, of which they take part in one: every two seconds, as the worker looks."""


class Dispatcher:
    """Serves many endpoints side by side. `at_once`, `per_host` and `per_receiver` bound the webhooks under way.

    `per_host` is more than `per_receiver`, because merchants share hosts, and no more than anybody's host can bear.
    """

    def __init__(self, ports: Ports, *, at_once: int = WEBHOOKS, per_receiver: int = 8, per_host: int = 64) -> None:
        self._ports = ports
        self._signers = Signers(ports.vault)
        self._limiter = SendLimiter(at_once, per_receiver, per_host, ports.clock.monotonic)
        self._workers: dict[EndpointWorker, None] = {}
        """In the order in which they came: that of a set would be another one in each process."""
        self._looks = 0
        self._stopping = False

    async def run(self, job: Job) -> None:
        """Serve the receiver of a claimed job until nothing more is due there. Raises: VaultError and what a port
        raises; what was answered before is committed."""
        worker = EndpointWorker(self._ports, self._signers, self._limiter, job)
        self._workers[worker] = None
        if self._stopping:
            worker.state.release()
        try:
            await worker.run()
        finally:
            del self._workers[worker]
            worker.state.close()

    def look(self) -> None:
        """To be called now and then while workers run: they look for what became due meanwhile, and keep their
        leases."""
        self._limiter.look()
        self._looks += 1
        all_look = len(self._workers) <= _MANY or self._looks % _LESS_OFTEN == 0
        for worker in self._workers:
            if all_look or not worker.state.is_slow:
                worker.state.look_around()

    def stop(self) -> None:
        """Begin no further webhook: workers end when those under way are committed."""
        self._stopping = True
        for worker in self._workers:
            worker.state.release()
            worker.state.look_around()


async def deliver(ports: Ports, job: Job) -> None:
    """Serve a receiver by itself, for whoever has no worker (`run_due`)."""
    await Dispatcher(ports).run(job)
