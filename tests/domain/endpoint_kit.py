"""An endpoint that is served without a port: perform the planner's steps on records in memory and record them as words.
A test of a race then is a line of events beside a line of expected steps."""

from datetime import UTC, datetime, timedelta

import msgspec

from cambist.core.domain.accounts.accounts import Account, Mode, Settings
from cambist.core.domain.webhooks.breaker import Breaker, after_delivery, closed, new_breaker
from cambist.core.domain.webhooks.delivery import AT_ONCE, Outcome, sent_anew
from cambist.core.domain.webhooks.endpoint_state import EndpointState
from cambist.core.domain.webhooks.endpoints import EndpointKey, own_receiver
from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus, EventType, OpenEvent
from cambist.core.domain.webhooks.limiter import Permit, SendLimiter
from cambist.core.domain.webhooks.steps import (
    Commit,
    Leave,
    ReadDue,
    ReadEndpoint,
    ReadJob,
    Send,
    Sent,
    Step,
    Wait,
    Webhook,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SILENT = "silent"
"""A receiver that does not answer in time."""


class Time:
    """Seconds that only rise, and the storage's clock, which may be set besides."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.set_by = timedelta(0)

    def monotonic(self) -> float:
        return self.seconds

    @property
    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds) + self.set_by


class PlayedEndpoint:
    """One endpoint, its records, and its sender."""

    def __init__(
        self, time: Time | None = None, limiter: SendLimiter | None = None, *, name: str = "acc_1", host: str = ""
    ) -> None:
        self.time = time or Time()
        self.limiter = limiter or SendLimiter(40, 8, 40, self.time.monotonic)
        url = f"https://{host or name}.example/{name}"
        self.account: Account | None = Account(
            id=name,
            name=name,
            default_shop_id="shop",
            created_at=NOW,
            settings=Settings(webhook_url=url),
            webhook_secret=b"1",
        )
        self.breaker: Breaker | None = None
        self.deliveries: dict[str, Delivery] = {}
        self.unreadable: set[str] = set()
        self.is_ours = True
        self.asked = False
        self.commits_fail = 0
        self.stirred = False
        self.under_way: dict[str, tuple[Permit, Webhook]] = {}
        self.told: list[str] = []
        self.over = False
        self.began()

    def began(self) -> None:
        """A new run."""
        assert self.account is not None
        self.state = EndpointState(EndpointKey(self.account.id, Mode.TEST), self.limiter, self)
        self.over = self.asked = False

    def stir(self) -> None:
        self.stirred = True

    def add(self, *names: str, status: DeliveryStatus = DeliveryStatus.HELD) -> None:
        """Add events that are due at once, and request the job. An existing event is sent again."""
        for name in names:
            known = self.deliveries.get(name) or Delivery(
                id=name,
                account_id="acc_1",
                mode=Mode.TEST,
                type=EventType.PAYMENT_STATUS_CHANGED,
                status=status,
                created_at=self.time.now,
            )
            self.deliveries[name] = sent_anew(known, receives=True, now=self.time.now)
        self.asked = True

    def serve(self) -> None:
        """Perform steps until the planner says to wait or the run is over."""
        while not self.over:
            step = self.state.next(self.time.seconds)
            self._tell(step)
            if isinstance(step, Wait):
                self.stirred = False
                return
            self.perform(step)

    def answer(self, name: str, status: int | None) -> None:
        """Answer a webhook under way as the receiver. If the sender keeps its permit, it continues with the next
        webhook."""
        permit, webhook = self.under_way.pop(name)
        outcome = Outcome(
            answer="timeout" if status is None else "responded",
            status=status,
            note="",
            sent_at=self.time.now,
            ended_at=self.time.now,
            probe=webhook.probe,
        )
        self._goes_on(permit, self.state.answered(permit, webhook, outcome))

    def fail(self, name: str) -> None:
        """Sending it raised."""
        permit, _ = self.under_way.pop(name)
        self.state.ended(permit, broke=True)

    def _goes_on(self, permit: Permit, webhook: Webhook | None) -> None:
        if webhook is None:
            self.state.ended(permit)
        else:
            self.told.append(f"{'probe' if webhook.probe else 'send'} {webhook.delivery.id}")
            self.under_way[webhook.delivery.id] = permit, webhook

    def _tell(self, step: Step) -> None:
        match step:
            case Wait():
                self.told.append("wait")
            case Leave(release=False):
                self.told.append("lost")
            case Leave(pause=pause):
                self.told.append(f"release {pause:g} s" if pause else "release")
            case Commit():
                told = [f"{each.delivery.id} {each.outcome.status or SILENT}" for each in step.sent]
                told += [f"{'put off' if each.due else 'give up'} {each.id}" for each in step.unsent]
                told += [f"wait for {step.aside.value}"] if step.aside else []
                told += ["unsure"] if step.unsure else []
                told += ["leave"] if step.leaves else []
                self.told.append("commit " + ", ".join(told))
            case ReadEndpoint():
                self.told.append("look")
            case ReadJob():
                self.told.append("job?")
            case ReadDue():
                self.told.append("due?")
            case Send():
                pass  # reported with the webhook

    def perform(self, step: Step) -> None:
        """Perform the planner's step."""
        match step:
            case Send():
                self._goes_on(*self.state.begun())
            case ReadEndpoint():
                if self._hears():
                    at = self.time.now if step.begins else None
                    self.state.endpoint_read(own_receiver(self.account), self.breaker, self.time.seconds, at)
            case ReadJob():
                self._hears()
            case ReadDue():
                self._read(step)
            case Commit():
                self._commit(step)
            case Leave():
                self._ends()
            case Wait():
                pass

    def _hears(self) -> bool:
        if self.is_ours:
            self.state.job_read(asked=self.asked)
            self.asked = False
        else:
            self.state.lose()
        return self.is_ours

    def _read(self, page: ReadDue) -> None:
        if not self._hears():
            return
        pending = (each for each in self.deliveries.values() if each.status is DeliveryStatus.PENDING)
        due = [each for each in pending if each.due is not None and each.due <= self.time.now]
        if page.after is not None:
            due = [each for each in due if each.due == AT_ONCE and each.id > page.after]
        found = sorted(due, key=lambda each: (each.due, each.id))[: page.limit]
        events = {each.id: event(each) for each in found if each.id not in self.unreadable}
        self.state.due_read(page, found, events, self.time.now)

    def _commit(self, step: Commit) -> None:
        if self.commits_fail:
            self.commits_fail -= 1
            return
        for sent in step.sent:
            self._enter(sent)
        self.deliveries.update({each.id: each for each in step.unsent})
        left = step.leaves and self.is_ours and not self.asked
        self.state.committed(step, self.breaker, asked=step.leaves and not left)
        if left:
            self._ends()

    def _ends(self) -> None:
        self.over = True
        self.state.close()

    def _enter(self, sent: Sent) -> None:
        breaker = self.breaker or new_breaker("acc_1", Mode.TEST)
        self.breaker, self.deliveries[sent.delivery.id] = after_delivery(
            breaker, self.deliveries[sent.delivery.id], sent.outcome
        )


def is_idle(limiter: SendLimiter) -> bool:
    """Whether nobody has a permit, or waits for one."""
    return limiter._all.empty and not limiter._hosts and not limiter._asked


def event(delivery: Delivery) -> OpenEvent:
    """Return the event of a delivery."""
    return OpenEvent(id=delivery.id, type=delivery.type, sequence=1, body=b"{}")


def play(endpoint: PlayedEndpoint, story: str) -> list[str]:
    """Play the events of a story, a few words each between slashes, and return the steps performed. Sending begins with
    the word `serve`, and continues after each event for which the planner wakes the sender."""
    endpoint.told.clear()
    begun = False
    for happening in story.split(" / "):
        begun = begun or happening == "serve"
        _happen(endpoint, *happening.split())
        if begun and endpoint.stirred:
            endpoint.serve()
    return endpoint.told


def _happen(endpoint: PlayedEndpoint, what: str, *words: str) -> None:
    match what:
        case "serve":
            endpoint.stir()
        case "due":
            endpoint.add(*words)
            endpoint.asked = bool(endpoint.told)  # before the run nobody notices
        case "answer":
            *names, status = words
            for name in names:
                endpoint.answer(name, None if status == SILENT else int(status))
        case "raise":
            endpoint.fail(*words)
        case "after":
            endpoint.time.seconds += float(words[0])
            endpoint.limiter.look()
            endpoint.state.look_around()
        case "clock":
            endpoint.time.set_by += timedelta(seconds=float(words[0]))
        case "lose":
            endpoint.is_ours = False
        case "stop":
            endpoint.state.release()
            endpoint.state.look_around()
        case "commits-fail":
            endpoint.commits_fail = int(words[0])
        case "unreadable":
            endpoint.unreadable.update(words)
        case "open":
            opened = msgspec.structs.replace(
                new_breaker("acc_1", Mode.TEST),
                failures=10,
                opened_at=endpoint.time.now,
                next_probe_at=endpoint.time.now + timedelta(seconds=float(words[0])),
                probed=words[1] if len(words) > 1 else None,
            )
            endpoint.breaker = opened
        case "address":
            assert endpoint.account is not None
            url = None if words == ("none",) else f"https://{words[0]}/hook"
            settings = msgspec.structs.replace(endpoint.account.settings, webhook_url=url)
            endpoint.account = msgspec.structs.replace(endpoint.account, settings=settings)
            if endpoint.breaker is not None:
                endpoint.breaker = closed(endpoint.breaker, by_hand_at=endpoint.time.now)
        case "secret":
            assert endpoint.account is not None
            endpoint.account = msgspec.structs.replace(endpoint.account, webhook_secret=words[0].encode())
        case _:
            raise ValueError(what)
