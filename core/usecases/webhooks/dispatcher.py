"""Delivery of events to merchants' receivers (docs/webhooks.md "When you do not answer", "Webhooks").

Every endpoint has one job that exists while something is due there. The worker with its lease serves that endpoint
alone, so deliveries never compete for its breaker. Several webhooks are in flight at a time, and a slow or dead
receiver delays only itself. domain/webhooks/endpoint_state.py plans the next step of an endpoint, and
endpoint_worker.py performs it. domain/webhooks/delivery.py and domain/webhooks/breaker.py decide the result of a
webhook, and results.py commits it.
"""

from ....ports.bundle import Ports
from ....ports.jobs import Job
from ...domain.webhooks.limiter import SendLimiter
from .endpoint_worker import EndpointWorker
from .signing import Signers

WEBHOOKS = 1280
"""Maximum number of webhooks in flight. If a thousand receivers begin to hang at the same moment, each holds a permit
until its timeout, and enough permits are left for the others."""

_MANY = 128
"""Number of receivers served at once above which slow ones are polled less often, because each poll reads from the
storage."""
_LESS_OFTEN = 8
"""Slow receivers are then polled at every so many polls: every two seconds, at the worker's rate."""


class Dispatcher:
    """Serves many endpoints at the same time. `at_once`, `per_host` and `per_receiver` limit the webhooks in flight.

    `per_host` is higher than `per_receiver`, because merchants share hosts, but low enough for any host.
    """

    def __init__(self, ports: Ports, *, at_once: int = WEBHOOKS, per_receiver: int = 8, per_host: int = 64) -> None:
        self._ports = ports
        self._signers = Signers(ports.vault)
        self._limiter = SendLimiter(at_once, per_receiver, per_host, ports.clock.monotonic)
        self._workers: dict[EndpointWorker, None] = {}
        """In order of arrival. A set would have another order in each process."""
        self._polls = 0
        self._stopping = False

    async def run(self, job: Job) -> None:
        """Serve the receiver of a claimed job until nothing is due there. Raises: VaultError and exceptions of the
        ports; earlier results are committed."""
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
        """Let running workers look for newly due deliveries and renew their leases. Call it regularly."""
        self._limiter.look()
        self._polls += 1
        all_poll = len(self._workers) <= _MANY or self._polls % _LESS_OFTEN == 0
        for worker in self._workers:
            if all_poll or not worker.state.is_slow:
                worker.state.look_around()

    def stop(self) -> None:
        """Start no further webhooks. Workers end when the webhooks in flight are committed."""
        self._stopping = True
        for worker in self._workers:
            worker.state.release()
            worker.state.look_around()


async def deliver(ports: Ports, job: Job) -> None:
    """Serve one receiver without a worker, for `run_due`."""
    await Dispatcher(ports).run(job)
