"""Plan the deliveries to one endpoint (docs/webhooks.md "When you do not answer").

`EndpointState` is all that is known of an endpoint while it is served: receiver and breaker, what is due, what is under
way, what was answered, whether the job is still ours. `next` returns one step. Whoever performs it tells what came of
it, and asks again; so every race is an order of calls here, and nothing is awaited.
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
"""Queued deliveries below which more are read, while webhooks are under way."""
ENOUGH = 64
"""How many results are worth a commit while further webhooks are under way: a receiver that answers at once would else
cost a commit for every few. After a kill -9 at most so many webhooks, and those under way, are sent again."""
ACCOUNT_SECONDS = 1.0
"""How old what is known of the receiver may be, its address and its secrets (docs/decisions.md "Storage": two
seconds)."""
_READ_JOB, _SEND, _WAIT = ReadJob(), Send(), Wait()


class EndpointState:
    """What is known of one endpoint while its job is ours."""

    def __init__(self, endpoint: EndpointKey, limiter: SendLimiter, customer: Customer) -> None:
        """`customer` is stirred when `next` has something else to say."""
        self._unknown = new_breaker(endpoint.account_id, endpoint.mode, endpoint.further)
        self._limiter = limiter
        self._customer = customer
        self._begins = True
        self._read_at = 0.0
        self._receiver: Receiver | None = None
        self._address = ""
        """This endpoint at its present address: another one is another receiver."""
        self._host = ""
        self.due = DueQueue()
        self._under_way = 0
        """Webhooks under way, or about to be: permits taken."""
        self._beginning: list[Permit] = []
        """Those of them with which nobody has begun to send yet."""
        self._sent: list[Sent] = []
        self._urgent = False
        """What was answered is to be committed however little it is. A failure is: it sets timers and moves the
        breaker."""
        self._over: Leave | None = None
        """How the run ends, in which nothing more is begun."""
        self._found_open = False
        """The breaker was open before the run, and still is."""
        self._probe_due = self._probing = False
        self._in_vain = False
        """There was nothing to probe with."""
        self._saw_job = False
        """The job was read since the last wait."""
        self._take_breaker(None)

    @property
    def is_slow(self) -> bool:
        """Whether its receiver's last webhook was late."""
        return self._limiter.is_slow(self._address)

    @property
    def trust(self) -> Trust:
        """How far the limiter trusts the receiver: by what was late since this process began, and by a timeout that is
        stored, which is of earlier times and of other processes."""
        breaker = self.breaker
        if self.is_slow or (breaker.failures and breaker.last_answer == TIMEOUT):
            return Trust.SLOW
        good, reset = breaker.last_success_at, breaker.reset_at
        return Trust.NEW if good is None or (reset is not None and good < reset) else Trust.PROVEN

    def next(self, now: float) -> Step:
        """What is to be done next. `now`: seconds that only rise, so a clock that is set moves nothing here; due times
        are judged by the storage's clock, as reads bring it."""
        if self._over is None and (self._begins or now - self._read_at > ACCOUNT_SECONDS):
            return ReadEndpoint(self._begins)
        step = None if self._halted else self._read() or self._begin()
        if step is not None:
            return step
        if self._halted:
            self.due.keep_only(None)
            self._limiter.decline(self._customer)
        ended = not self._under_way and not self.due.ready and (self._halted or self._probing or self.due.complete)
        if self._has_enough:
            return self._commit(leaves=ended and not self._halted and not self._probing)
        if ended and self._probing:
            self._probing = self.due.complete = False
            return self.next(now)
        self._saw_job = False
        return (self._over or self._end()) if ended else _WAIT

    # What came of a step.

    def endpoint_read(
        self, receiver: Receiver | None, breaker: Breaker | None, now: float, at: datetime | None
    ) -> None:
        """Receiver and stored breaker as they are now. `at`: by the storage's clock, where serving begins."""
        self._read_at, self._receiver = now, receiver
        url = None if receiver is None else receiver.url
        address = f"{self._unknown.id} {url}"
        if address != self._address:
            self._address, self._host = address, host_of(url or "")
        self._take_breaker(breaker)
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
        """The job is still ours. `asked`: somebody has asked for it since it was last read."""
        self._saw_job = True
        if asked:
            self.due.complete = False

    def due_read(self, page: ReadDue, found: Sequence[Delivery], events: Mapping[str, OpenEvent], at: datetime) -> None:
        """Take a page of due deliveries, with the events that can be read and decrypted; `at` is the storage's time."""
        self.due.take(page, found, events, at)
        if self._probe_due:
            # The oldest, or the one after the last that failed, so that one bad event does not hold up all others.
            after = self.breaker.probed or ""
            later = (each for each in self.due.ready if each.delivery.id > after)
            chosen = next(later, None) or next(iter(self.due.ready), None)
            self.due.keep_only(chosen)
            self._probe_due, self._probing, self._in_vain = False, True, chosen is None

    def begun(self) -> tuple[Permit, Webhook | None]:
        """A `Send` has begun. Returns its permit and its first webhook, chosen here, so that they go out in the order
        of age; None where the permit is to be given back (`ended`)."""
        return self._beginning.pop(), self._following()

    def answered(self, permit: Permit, webhook: Webhook, outcome: Outcome) -> Webhook | None:
        """The result of a webhook. Returns the one that goes out next with the same permit; None where that is to be
        given back (`ended`), because others wait for it or nothing is left."""
        self._sent.append(Sent(webhook.delivery, outcome))
        self._urgent = self._urgent or not outcome.good
        self._note(webhook.delivery, outcome)
        # The run is woken only for what it would do.
        if self._has_enough or (not self.due.complete and len(self.due.ready) < LOW):
            self._customer.stir()
        return self._following() if self._limiter.goes_on(permit) else None

    def ended(self, permit: Permit, *, broke: bool = False) -> None:
        """No further webhook goes out with this permit. `broke`: sending the last one raised, so the run fails."""
        if broke:
            self.lose()
        self._under_way -= 1
        self._limiter.give(permit)
        self._customer.stir()

    def committed(self, commit: Commit, breaker: Breaker | None, *, asked: bool) -> None:
        """The storage has it, and this breaker now. `asked`: the job was asked for, and stands."""
        del self._sent[: len(commit.sent)]
        self.due.committed([*(each.delivery for each in commit.sent), *commit.unsent])
        self._take_breaker(breaker)
        if asked:
            # Where nothing may be sent, another breaker or account may let it.
            self.due.complete, self._begins = False, self._halted

    # What happens meanwhile.

    def look_around(self) -> None:
        """Some time has passed."""
        self._urgent = True
        self._customer.stir()

    def release(self, pause: float = 0.0) -> None:
        """Nothing more is to be begun, and the job is another run's, after so many seconds."""
        self._over = self._over or Leave(True, pause)

    def lose(self) -> None:
        """The job is another worker's, or the run failed. What was answered is committed all the same."""
        self._over = Leave(False)

    def close(self) -> None:
        """The run is over, however it ended: it holds no permit and waits for none."""
        self._limiter.decline(self._customer)
        for permit in self._beginning:
            self._limiter.give(permit)

    @property
    def _halted(self) -> bool:
        """No further webhook may be begun."""
        if self._over is not None or self._receiver is None:
            return True
        return self.breaker.is_open and not (self._probe_due or self._probing)

    @property
    def _has_enough(self) -> bool:
        """Whether to commit what there is."""
        answered = bool(self._sent) and (self._urgent or not self._under_way or len(self._sent) >= ENOUGH)
        return answered or bool(self.due.unsent)

    @property
    def _most(self) -> int:
        """How many webhooks may be under way."""
        return 1 if self._probing else self.room

    def _read(self) -> Read | None:
        if self._probing or len(self.due.ready) >= LOW:
            return None
        if self._probe_due or not self.due.complete:
            return self.due.page()
        # With nothing under way the run is about to end, and hears then whether it was asked for more.
        return _READ_JOB if self._under_way and not self._saw_job else None

    def _begin(self) -> Send | None:
        """One more webhook beside those under way, where there is room and a permit."""
        limiter, mine, trust = self._limiter, self._under_way, self.trust
        most = min(self._most, limiter.share(self._host, trust, mine))
        if mine >= most or len(self.due.ready) <= len(self._beginning):
            limiter.decline(self._customer)
            return None
        permit = limiter.take(self._customer, self._address, self._host, trust)
        if permit is not None:
            self._under_way += 1
            self._beginning.append(permit)
            return _SEND
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
        """All is committed, and nothing more may be sent."""
        if self._receiver is None:
            return Commit(aside=Aside.RECEIVER, leaves=True, unsure=True)
        if not self.breaker.is_open:
            return Commit(leaves=True, unsure=self.due.empty)
        return Commit(aside=Aside.BREAKER if self._found_open else None, leaves=True, unsure=self._in_vain)

    def _take_breaker(self, stored: Breaker | None) -> None:
        """Take over the breaker that the storage has now, None while there is none; results that are not committed
        count besides."""
        self.stored = stored
        self._expect(stored or self._unknown)
        for each in self._sent:
            self._note(each.delivery, each.outcome)

    def _note(self, delivery: Delivery, outcome: Outcome) -> None:
        # Of good ones in a row the next changes nothing.
        if not outcome.good or self.breaker.failures:
            self._expect(after_delivery(self.breaker, delivery, outcome)[0])

    def _expect(self, breaker: Breaker) -> None:
        self.breaker = breaker
        """As it will be with what is not committed."""
        self._found_open = breaker.is_open and self._found_open
        self.room = room_of(breaker, self._limiter.per_receiver)
