"""Plan the deliveries to one endpoint (docs/webhooks.md "When you do not answer").

`EndpointState` holds everything known about an endpoint while it is served: receiver and breaker, due deliveries,
webhooks in flight, answers, and whether this worker still owns the job. `next` returns one step. The caller performs
it, reports the result, and calls `next` again. So every race is an order of calls here, and nothing is awaited.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from .breaker import Breaker, after_delivery, new_breaker
from .breaker import room as room_of
from .delivery import TIMEOUT, Outcome
from .due_queue import DueQueue
from .endpoints import EndpointKey, Receiver
from .events import Delivery, OpenEvent
from .limiter import Permit, SendLimiter, host_of
from .limiter_pool import Customer, Trust
from .steps import Aside, Commit, Leave, Read, ReadDue, ReadEndpoint, ReadJob, Send, Sent, Step, Wait, Webhook

LOW = 16
"""While webhooks are in flight, more deliveries are read when fewer than this are queued."""
ENOUGH = 64
"""Number of results that justify a commit while further webhooks are in flight: otherwise a receiver that answers fast
would cause a commit for every few. After a kill -9 at most this many webhooks, and those in flight, are sent again."""
ACCOUNT_SECONDS = 1.0
"""Largest age of the known address and secrets of the receiver (docs/decisions.md "Storage": two seconds)."""
_READ_JOB, _SEND, _WAIT = ReadJob(), Send(), Wait()


class EndpointState:
    """State of one endpoint while this worker owns its job."""

    def __init__(self, endpoint: EndpointKey, limiter: SendLimiter, customer: Customer) -> None:
        """`customer` is woken when `next` may return something else."""
        self._unknown = new_breaker(endpoint.account_id, endpoint.mode, endpoint.further)
        self._limiter = limiter
        self._customer = customer
        self._begins = True
        self._read_at = 0.0
        self._receiver: Receiver | None = None
        self._address = ""
        """The endpoint together with its present address: a new address is a new receiver."""
        self._host = ""
        self.due = DueQueue()
        self._under_way = 0
        """Webhooks in flight or about to start: permits taken."""
        self._beginning: list[Permit] = []
        """Permits whose sending has not started yet."""
        self._sent: list[Sent] = []
        self._urgent = False
        """Commit the answers, however few they are. A failure is urgent: it sets timers and changes the breaker."""
        self._over: Leave | None = None
        """How the run ends; once set, nothing new starts."""
        self._found_open = False
        """The breaker was open before the run, and still is."""
        self._probe_due = self._probing = False
        self._in_vain = False
        """There was no delivery for the probe."""
        self._saw_job = False
        """The job was read since the last wait."""
        self._take_breaker(None)

    @property
    def is_slow(self) -> bool:
        """Whether its receiver's last webhook was late."""
        return self._limiter.is_slow(self._address)

    @property
    def trust(self) -> Trust:
        """How far the limiter trusts the receiver. Based on late webhooks since this process started, and on a stored
        timeout, which may come from earlier times or other processes."""
        breaker = self.breaker
        if self.is_slow or (breaker.failures and breaker.last_answer == TIMEOUT):
            return Trust.SLOW
        good, reset = breaker.last_success_at, breaker.reset_at
        return Trust.NEW if good is None or (reset is not None and good < reset) else Trust.PROVEN

    def next(self, now: float) -> Step:
        """Return the next step. `now`: monotonic seconds, so a changed clock has no effect here; due times are judged
        by the storage's clock, as the reads bring it."""
        if self._over is None and (self._begins or now - self._read_at > ACCOUNT_SECONDS):
            return ReadEndpoint(self._begins)
        # First keep the permits busy: read more deliveries, or start a webhook.
        step = None if self._halted else self._read() or self._begin()
        if step is not None:
            return step
        # Nothing may start: drop the queue and leave the limiter's queues.
        if self._halted:
            self.due.keep_only(None)
            self._limiter.decline(self._customer)
        # All due deliveries are done, or nothing may start, and nothing is in flight.
        ended = not self._under_way and not self.due.ready and (self._halted or self._probing or self.due.complete)
        if self._has_enough:
            return self._commit(leaves=ended and not self._halted and not self._probing)
        # The probe is over: read all that is due, now that its result is committed.
        if ended and self._probing:
            self._probing = self.due.complete = False
            return self.next(now)
        self._saw_job = False
        return (self._over or self._end()) if ended else _WAIT

    # Results of steps.

    def endpoint_read(
        self, receiver: Receiver | None, breaker: Breaker | None, now: float, at: datetime | None
    ) -> None:
        """Set receiver and stored breaker as read now. `at`: the storage's time, set when serving begins."""
        self._read_at, self._receiver = now, receiver
        url = None if receiver is None else receiver.url
        address = f"{self._unknown.id} {url}"
        if address != self._address:
            self._address, self._host = address, host_of(url or "")
        self._take_breaker(breaker)
        # The rest is done only when serving begins.
        if at is None:
            return
        self._begins = self._in_vain = False
        probe_at = self.breaker.next_probe_at
        self._found_open = probe_at is not None
        self._probe_due = probe_at is not None and at >= probe_at
        pause = self._limiter.turned_away(self.trust) if receiver is not None else None
        if pause is not None:
            self.release(pause)

    def job_read(self, *, asked: bool) -> None:
        """Note that this worker still owns the job. `asked`: it was requested again since the last read."""
        self._saw_job = True
        if asked:
            self.due.complete = False

    def due_read(self, page: ReadDue, found: Sequence[Delivery], events: Mapping[str, OpenEvent], at: datetime) -> None:
        """Add a page of due deliveries, with the events that can be read and decrypted; `at` is the storage's time."""
        self.due.take(page, found, events, at)
        if self._probe_due:
            # Probe with the oldest, or the one after the last failed probe, so that one bad event does not block all
            # others.
            after = self.breaker.probed or ""
            later = (each for each in self.due.ready if each.delivery.id > after)
            chosen = next(later, None) or next(iter(self.due.ready), None)
            self.due.keep_only(chosen)
            self._probe_due, self._probing, self._in_vain = False, True, chosen is None

    def begun(self) -> tuple[Permit, Webhook | None]:
        """Start a `Send`. Returns its permit and its first webhook. The webhook is chosen here, so that webhooks go out
        in the order of age; None: the caller must give the permit back (`ended`)."""
        return self._beginning.pop(), self._following()

    def answered(self, permit: Permit, webhook: Webhook, outcome: Outcome) -> Webhook | None:
        """Apply the result of a webhook. Returns the next webhook for the same permit; None: the caller must give the
        permit back (`ended`), because others wait for it or nothing is left."""
        self._sent.append(Sent(webhook.delivery, outcome))
        self._urgent = self._urgent or not outcome.good
        self._note(webhook.delivery, outcome)
        # Wake the run only if it has something to do.
        if self._has_enough or (not self.due.complete and len(self.due.ready) < LOW):
            self._customer.stir()
        return self._following() if self._limiter.goes_on(permit) else None

    def ended(self, permit: Permit, *, broke: bool = False) -> None:
        """End the use of a permit. `broke`: sending the last webhook raised, so the run fails."""
        if broke:
            self.lose()
        self._under_way -= 1
        self._limiter.give(permit)
        self._customer.stir()

    def committed(self, commit: Commit, breaker: Breaker | None, *, asked: bool) -> None:
        """Note that the storage has these results, and this breaker now. `asked`: the job was requested again, and
        stays."""
        del self._sent[: len(commit.sent)]
        self.due.committed([*(each.delivery for each in commit.sent), *commit.unsent])
        self._take_breaker(breaker)
        if asked:
            # If nothing could be sent, a changed breaker or account may now allow it.
            self.due.complete, self._begins = False, self._halted

    # Events from outside.

    def look_around(self) -> None:
        """Note that some time has passed."""
        self._urgent = True
        self._customer.stir()

    def release(self, pause: float = 0.0) -> None:
        """Start nothing new, and leave the job to another run after `pause` seconds."""
        self._over = self._over or Leave(True, pause)

    def lose(self) -> None:
        """Stop, because another worker owns the job or the run failed. Answers are still committed."""
        self._over = Leave(False)

    def close(self) -> None:
        """End the run in any case: it keeps no permit and waits for none."""
        self._limiter.decline(self._customer)
        for permit in self._beginning:
            self._limiter.give(permit)

    @property
    def _halted(self) -> bool:
        """Whether no further webhook may start."""
        if self._over is not None or self._receiver is None:
            return True
        return self.breaker.is_open and not (self._probe_due or self._probing)

    @property
    def _has_enough(self) -> bool:
        """Whether there is enough to commit."""
        answered = bool(self._sent) and (self._urgent or not self._under_way or len(self._sent) >= ENOUGH)
        return answered or bool(self.due.unsent)

    @property
    def _most(self) -> int:
        """Largest number of webhooks in flight."""
        return 1 if self._probing else self.room

    def _read(self) -> Read | None:
        if self._probing or len(self.due.ready) >= LOW:
            return None
        if self._probe_due or not self.due.complete:
            return self.due.page()
        # With nothing in flight the run is about to end, and the commit then reports whether it was requested again.
        return _READ_JOB if self._under_way and not self._saw_job else None

    def _begin(self) -> Send | None:
        """Start one more webhook besides those in flight, if limits and permits allow it."""
        limiter, mine, trust = self._limiter, self._under_way, self.trust
        # The breaker limits the receiver, the limiter its share of all permits and of its host's.
        most = min(self._most, limiter.share(self._host, trust, mine))
        if mine >= most or len(self.due.ready) <= len(self._beginning):
            limiter.decline(self._customer)
            return None
        permit = limiter.take(self._customer, self._address, self._host, trust)
        if permit is not None:
            self._under_way += 1
            self._beginning.append(permit)
            return _SEND
        # Without a webhook in flight the run would only wait; the limiter may send it away.
        pause = None if mine else limiter.sent_off(self._customer)
        if pause is not None:
            self.release(pause)
        return None

    def _following(self) -> Webhook | None:
        receiver = self._receiver
        if receiver is None or not self.due.ready or self._halted or self._under_way > self._most:
            return None
        ready = self.due.ready.popleft()
        return Webhook(receiver, ready.delivery, ready.event, self._probing)

    def _commit(self, *, leaves: bool) -> Commit:
        self._urgent = False
        return Commit(tuple(self._sent), tuple(self.due.unsent), leaves=leaves)

    def _end(self) -> Commit:
        """Everything is committed, and nothing more may be sent."""
        if self._receiver is None:
            return Commit(aside=Aside.RECEIVER, leaves=True, unsure=True)
        if not self.breaker.is_open:
            return Commit(leaves=True, unsure=self.due.empty)
        return Commit(aside=Aside.BREAKER if self._found_open else None, leaves=True, unsure=self._in_vain)

    def _take_breaker(self, stored: Breaker | None) -> None:
        """Use the breaker that the storage has now, or None while there is none, plus the results that are not
        committed yet."""
        self.stored = stored
        self._expect(stored or self._unknown)
        for each in self._sent:
            self._note(each.delivery, each.outcome)

    def _note(self, delivery: Delivery, outcome: Outcome) -> None:
        # Among consecutive good results, only the first changes the breaker.
        if not outcome.good or self.breaker.failures:
            self._expect(after_delivery(self.breaker, delivery, outcome)[0])

    def _expect(self, breaker: Breaker) -> None:
        self.breaker = breaker
        """The breaker including results that are not committed."""
        self._found_open = breaker.is_open and self._found_open
        self.room = room_of(breaker, self._limiter.per_receiver)
