"""The plan of deliveries (docs/webhooks.md "When you do not answer"): a race is a row, of what happens and is done."""

from dataclasses import dataclass
from datetime import timedelta

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.webhooks import limiter as limiter_rules
from cambist.core.domain.webhooks.breaker import FROM_EVENTS, OPENS_AFTER, Breaker, after_outcome, new_breaker
from cambist.core.domain.webhooks.delivery import LIFETIME, TIMEOUT, Outcome
from cambist.core.domain.webhooks.due_queue import BATCH
from cambist.core.domain.webhooks.endpoint_state import ENOUGH, LOW
from cambist.core.domain.webhooks.events import DeliveryStatus
from cambist.core.domain.webhooks.limiter import SendLimiter
from cambist.core.domain.webhooks.limiter_pool import Trust
from cambist.core.domain.webhooks.steps import Commit, Send
from cambist.ports.notifier import Answer
from tests.domain.endpoint_kit import NOW, PlayedEndpoint, Time, is_idle, play
from tests.tables import table


@dataclass(frozen=True)
class Row:
    """A race: its rule, the events, and the expected steps."""

    rule: str
    happens: str
    done: str


BEGIN = "look / due? / "
ROWS = [
    Row(
        "all that is due leaves, and the job with the last result",
        "due a b / serve / answer a 200 / answer b 200",
        BEGIN + "send a / send b / wait / job? / wait / commit a 200, b 200, leave",
    ),
    Row("nothing is due: the storage is asked what is due next", "serve", BEGIN + "commit unsure, leave"),
    Row(
        "a failure is committed while others are under way",
        "due a b / serve / answer a 500 / answer b 200",
        BEGIN + "send a / send b / wait / job? / commit a 500 / wait / commit b 200, leave",
    ),
    Row(
        "an event that comes while others are under way is sent beside them",
        "due a / serve / due b / after 0.25 / answer a b 200",
        BEGIN + "send a / wait / job? / due? / send b / wait / commit a 200, b 200, leave",
    ),
    Row(
        "an event that comes with the last answer keeps the job",
        "due a / serve / due b / answer a 200 / answer b 200",
        BEGIN + "send a / wait / commit a 200, leave / due? / send b / wait / commit b 200, leave",
    ),
    # the lease
    Row(
        "a result that comes while the lease is lost is committed, and the job is left alone",
        "due a b / serve / lose / after 0.25 / answer a 200 / answer b 500",
        BEGIN + "send a / send b / wait / job? / wait / commit a 200 / wait / commit b 500 / lost",
    ),
    Row(
        "a lease that is lost when the job would go: it is another's, and nothing more is begun",
        "due a / serve / lose / answer a 200",
        BEGIN + "send a / wait / commit a 200, leave / due? / lost",
    ),
    Row(
        "a lost lease is noticed within a second, however long the queue",
        "due a b c d e f g h i j k l m n o p q r s t u v w x / serve / lose / after 1.25 / answer a b c d e f g h 200",
        BEGIN
        + " / ".join(f"send {name}" for name in "abcdefgh")
        + " / wait / look / wait / commit a 200, b 200, c 200, d 200, e 200, f 200, g 200, h 200 / lost",
    ),
    # resends
    Row(
        "an event that is resent while it is under way is not sent beside itself, and once more if that failed",
        "due a b / serve / due a / after 0.25 / answer a 500 / answer b 200",
        BEGIN + "send a / send b / wait / job? / due? / wait / job? / commit a 500 / wait / commit b 200, leave",
    ),
    Row(
        "an event that is resent after its answer and before the commit is delivered by that answer",
        "due a b / serve / answer a 200 / due a / answer b 200",
        BEGIN + "send a / send b / wait / job? / wait / commit a 200, b 200, leave / due? / commit unsure, leave",
    ),
    Row(
        "an event that is resent after its commit is sent again by the same run",
        "due a b / serve / answer a 500 / due a / after 0.25 / answer a b 200",
        BEGIN + "send a / send b / wait / job? / commit a 500 / wait / job? / due? / send a / wait"
        " / commit a 200, b 200, leave",
    ),
    # secret, address
    Row(
        "a new secret signs what leaves a second later, and stops nothing",
        "due a / serve / secret 2 / due b / after 1.25 / answer a b 200",
        BEGIN + "send a / wait / look / due? / send b / wait / commit a 200, b 200, leave",
    ),
    Row(
        "an address that is taken away: what is under way is committed, what is pending is held",
        "due a b c d e f g h i j / serve / address none / after 1.25 / answer a b c d e f g h 200",
        BEGIN
        + " / ".join(f"send {name}" for name in "abcdefgh")
        + " / wait / look / wait / commit a 200, b 200, c 200, d 200, e 200, f 200, g 200, h 200"
        + " / commit wait for receiver, unsure, leave",
    ),
    Row(
        "an account without a receiver has nothing sent",
        "address none / due a / serve",
        "look / commit wait for receiver, unsure, leave",
    ),
    # the breaker
    Row(
        "a breaker that opens while webhooks are in flight: they end, no other begins",
        "due a b c d e f g h i j k l / serve / answer a b c d e f g h 500 / answer i j 503",
        BEGIN
        + " / ".join(f"send {name}" for name in "abcdefgh")
        + " / wait / send i / send j / job? / commit a 500, b 500, c 500, d 500, e 500, f 500, g 500, h 500 / wait"
        + " / commit i 503, j 503 / commit leave",
    ),
    Row(
        "behind an open breaker all waits for it", "due a b / open 30 / serve", "look / commit wait for breaker, leave"
    ),
    Row(
        "a probe that fails leaves the others waiting",
        "due a b / open 0 / serve / answer a 500",
        BEGIN + "probe a / wait / commit a 500 / commit wait for breaker, leave",
    ),
    Row(
        "a probe that succeeds lets all go, the oldest first",
        "due a b c / open 0 / serve / answer a 200 / answer b c 200",
        BEGIN + "probe a / wait / commit a 200 / due? / send b / send c / wait / commit b 200, c 200, leave",
    ),
    Row(
        "a probe takes another event than the one that was last sent in vain",
        "due a b / open 0 a / serve / answer b 200 / answer a 200",
        BEGIN + "probe b / wait / commit b 200 / due? / send a / wait / commit a 200, leave",
    ),
    Row(
        "a probe is due and nothing waits: nothing is probed",
        "open 0 / serve",
        BEGIN + "commit wait for breaker, unsure, leave",
    ),
    Row(
        "a probe that hangs is one, however often it is looked",
        "due a b / open 0 / serve / after 1.25 / after 1.25 / answer a silent",
        BEGIN + "probe a / wait / look / wait / look / wait / commit a silent / commit wait for breaker, leave",
    ),
    Row(
        "while a probe is under way nothing more is read, whoever asks: the rest goes once it was answered",
        "due a / open 0 / serve / due b / after 1.25 / answer a 200 / answer b 200",
        BEGIN + "probe a / wait / look / wait / commit a 200 / due? / send b / wait / commit b 200, leave",
    ),
    Row(
        "a breaker that a probe closes and that opens again: who opened it has set all aside that waits",
        "due a b c d e f g h i j k l / open 0 / serve / answer a 200 / answer b c d e f g h i 503 / answer j k 503",
        BEGIN
        + "probe a / wait / commit a 200 / due? / "
        + " / ".join(f"send {name}" for name in "bcdefghi")
        + " / wait / send j / send k / job? / commit b 503, c 503, d 503, e 503, f 503, g 503, h 503, i 503 / wait"
        + " / commit j 503, k 503 / commit leave",
    ),
    # the end of a process
    Row(
        "a stop with answers under way: they are committed, and the job is the next worker's at once",
        "due a b c d e f g h i j / serve / stop / answer a b c d e f g 200 / answer h 500",
        BEGIN
        + " / ".join(f"send {name}" for name in "abcdefgh")
        + " / wait / wait / commit a 200, b 200, c 200, d 200, e 200, f 200, g 200 / wait / commit h 500 / release",
    ),
    Row("a stop before anything was read", "stop / serve", "release"),
    Row(
        "a webhook that raises: the others are committed, nothing more is begun, and the run fails",
        "due a b c d e f g h i j / serve / raise a / answer b c d e f g h 200",
        BEGIN
        + " / ".join(f"send {name}" for name in "abcdefgh")
        + " / wait / wait / commit b 200, c 200, d 200, e 200, f 200, g 200, h 200 / lost",
    ),
    # the storage
    Row(
        "a commit that the storage did not take is made again, with all that it had and what came since",
        "due a b / serve / commits-fail 1 / answer a 500 / answer b 200",
        BEGIN + "send a / send b / wait / job? / commit a 500 / wait / commit a 500, b 200, leave",
    ),
    Row(
        "an event that cannot be read is put off, and holds up no other",
        "unreadable a / due a b / serve / answer b 200",
        BEGIN + "send b / commit put off a / wait / commit b 200, leave",
    ),
    # the clock
    Row(
        "a clock that is set back hides what is due, and the storage is asked for it",
        "clock -3600 / serve",
        BEGIN + "commit unsure, leave",
    ),
    Row(
        "a clock that jumps while webhooks are under way ends none and begins none",
        "due a / serve / clock 86400 / after 0.25 / clock -86400 / after 0.25 / answer a 200",
        BEGIN + "send a / wait / job? / wait / job? / wait / commit a 200, leave",
    ),
    Row(
        "a clock that jumps does not keep the account from being read anew",
        "due a / serve / clock -3600 / after 1.25 / answer a 200",
        BEGIN + "send a / wait / look / wait / commit a 200, leave",
    ),
    # events that may not be sent
    Row(
        "an event that is too old is given up",
        f"due a b / after {LIFETIME.total_seconds()} / serve",
        BEGIN + "commit give up a, give up b, leave",
    ),
]


@table("row", ROWS, ids=lambda row: row.rule)
def test_a_race_is_a_row(row: Row) -> None:
    endpoint = PlayedEndpoint()
    assert " / ".join(play(endpoint, row.happens)) == row.done
    assert is_idle(endpoint.limiter) or not endpoint.over, "a run that is over holds nothing"


def test_results_are_committed_in_batches_and_pages_read_when_low() -> None:
    endpoint = PlayedEndpoint()
    endpoint.add(*(f"{number:03}" for number in range(300)))
    play(endpoint, "serve")
    while not endpoint.over:
        endpoint.answer(next(iter(endpoint.under_way)), 200)
        if endpoint.stirred:
            endpoint.serve()
    steps = [step for step in endpoint.told if not step.startswith("send")]
    sizes = [step.count("200") - step.count("200 200") for step in steps if step.startswith("commit")]
    assert max(sizes) <= ENOUGH + 8
    assert len(sizes) <= 300 // ENOUGH + 2
    assert steps.count("due?") <= 5, "nothing is read for each webhook"
    assert [step for step in endpoint.told if step.startswith("send")] == [f"send {number:03}" for number in range(300)]
    assert {each.status for each in endpoint.deliveries.values()} == {DeliveryStatus.DELIVERED}


def test_server_is_woken_by_enough_results_and_by_a_low_queue() -> None:
    endpoint = PlayedEndpoint()
    endpoint.add(*(f"{number:03}" for number in range(BATCH + 1)))
    play(endpoint, "serve")
    woken = []
    for answer in range(1, BATCH - LOW):
        endpoint.answer(next(iter(endpoint.under_way)), 200)
        if endpoint.stirred:
            woken.append(answer)
            endpoint.serve()
    low = BATCH - 8 - LOW + 2  # eight left at once; the queue is checked before the next one leaves
    assert woken == [ENOUGH, low]
    assert endpoint.told.count("due?") == 3, "the first, the next, and what timers brought behind them"


def test_endpoint_reads_no_more_while_enough_deliveries_wait() -> None:
    endpoint = PlayedEndpoint()
    endpoint.add(*(f"{number:03}" for number in range(8 + LOW)))
    play(endpoint, "serve / due 999 / after 0.25")
    assert endpoint.told[-2:] == ["wait", "wait"]
    play(endpoint, "serve / answer 000 200 / after 0.25")
    assert endpoint.told[:3] == ["wait", f"send {8:03}", "job?"]


STORED = msgspec.structs.replace(new_breaker("acc_1", Mode.TEST), last_success_at=NOW)
TIMED_OUT = msgspec.structs.replace(STORED, failures=1, last_answer=TIMEOUT)


@table(
    ("stored", "trust"),
    [
        pytest.param(None, Trust.NEW, id="it was never posted to"),
        pytest.param(new_breaker("acc_1", Mode.TEST), Trust.NEW, id="it never answered well"),
        pytest.param(STORED, Trust.PROVEN, id="it answered well"),
        pytest.param(
            msgspec.structs.replace(STORED, reset_at=NOW + timedelta(seconds=1)), Trust.NEW, id="another one did"
        ),
        pytest.param(msgspec.structs.replace(STORED, reset_at=NOW), Trust.PROVEN, id="at the moment it came"),
        pytest.param(TIMED_OUT, Trust.SLOW, id="another process saw a timeout"),
        pytest.param(msgspec.structs.replace(TIMED_OUT, failures=0), Trust.PROVEN, id="and a good answer after that"),
        pytest.param(msgspec.structs.replace(TIMED_OUT, last_answer="responded"), Trust.PROVEN, id="it fails at once"),
    ],
)
def test_a_receiver_is_trusted_by_what_is_stored(stored: Breaker | None, trust: Trust) -> None:
    endpoint = PlayedEndpoint()
    endpoint.breaker = stored
    play(endpoint, "serve")
    assert endpoint.state.trust is trust


def test_the_secret_that_signs_is_the_account_as_it_was_read_last() -> None:
    endpoint = PlayedEndpoint()
    play(endpoint, "due a / serve / secret 2 / due b / after 1.25")
    signed = {name: webhook.receiver.secret for name, (_, webhook) in endpoint.under_way.items()}
    assert signed == {"a": b"1", "b": b"2"}


def test_the_planners_word_for_a_timeout_is_the_notifiers() -> None:
    assert Answer.TIMEOUT == TIMEOUT


class TestBreaker:
    """The breaker as expected after results that are not committed yet."""

    def test_an_endpoint_that_was_never_posted_to_gets_all_there_is_room_for(self) -> None:
        endpoint = PlayedEndpoint()
        state = endpoint.state
        assert (state.stored, state.breaker, state.room) == (None, new_breaker("acc_1", Mode.TEST), 8)

    def test_failures_that_are_not_committed_leave_less_room_and_open_it(self) -> None:
        """A receiver that is away gets ten webhooks, not a swarm."""
        endpoint = PlayedEndpoint()
        endpoint.add(*(f"{number:02}" for number in range(20)))
        play(endpoint, "serve")
        rooms = []
        for _ in range(OPENS_AFTER):
            rooms.append(endpoint.state.room)
            endpoint.answer(next(iter(endpoint.under_way)), 503)
        assert rooms == [8, 8, 8, 7, 6, 5, 4, 3, 2, 1]
        assert (endpoint.state.breaker.is_open, endpoint.state.room, endpoint.under_way) == (True, 0, {})
        assert len(endpoint.told) - 3 == OPENS_AFTER, "look, due? and wait beside them"

    def test_a_good_answer_makes_room_again(self) -> None:
        endpoint = PlayedEndpoint()
        play(endpoint, "due a b c d e f / serve")
        for name in "abcde":
            endpoint.answer(name, None)
        endpoint.answer("f", 200)
        assert (endpoint.state.breaker.failures, endpoint.state.room) == (0, 8)

    @table("failures", [0, FROM_EVENTS])
    def test_result_that_arrives_during_a_commit_counts_once(self, failures: int) -> None:
        """Whether or not the committed results created a breaker: deliveries that are too old create none."""
        endpoint = PlayedEndpoint()
        play(endpoint, "due a b / serve")
        endpoint.answer("a", 503)
        stored = new_breaker("acc_1", Mode.TEST) if failures else None
        for number in range(failures):
            outcome = Outcome(answer="responded", status=503, note="", sent_at=NOW, ended_at=NOW)
            assert stored is not None
            stored = after_outcome(stored, f"evt_{number}", outcome)
        endpoint.state.committed(Commit(), stored, asked=False)
        assert endpoint.state.stored == stored
        assert endpoint.state.breaker.failures == failures + 1


class Market:
    """Many endpoints that share one limiter. A receiver answers after its merchant's delay, with 200 unless scripted
    otherwise."""

    def __init__(self, limiter: SendLimiter, time: Time) -> None:
        self.limiter, self.time = limiter, time
        self.endpoints: list[PlayedEndpoint] = []
        self.pauses: dict[str, float] = {}
        self.sent_at: dict[tuple[PlayedEndpoint, str], float] = {}

    def add(self, name: str, *, proven: bool, pause: float = 0.0, host: str = "") -> PlayedEndpoint:
        endpoint = PlayedEndpoint(self.time, self.limiter, name=name, host=host)
        if proven:
            breaker = new_breaker(name, Mode.TEST)
            endpoint.breaker = msgspec.structs.replace(breaker, last_success_at=NOW - timedelta(days=1))
        self.pauses[name] = pause
        self.endpoints.append(endpoint)
        return endpoint

    def passes(self, seconds: float) -> None:
        """Let time pass, let receivers answer, and serve every endpoint that has something to do. An endpoint that is
        over and has due webhooks begins anew."""
        self.time.seconds += seconds
        self.limiter.look()
        moved = True
        while moved:
            moved = False
            for endpoint in self.endpoints:
                moved = self._serve(endpoint) or moved

    def _serve(self, endpoint: PlayedEndpoint) -> bool:
        assert endpoint.account is not None
        pause = self.pauses[endpoint.account.id]
        for name in list(endpoint.under_way):
            began = self.sent_at.setdefault((endpoint, name), self.time.seconds)
            if self.time.seconds - began >= pause:
                del self.sent_at[endpoint, name]
                endpoint.answer(name, 200 if pause < 10 else None)
                endpoint.stirred = True
        pending = [each for each in endpoint.deliveries.values() if each.status is DeliveryStatus.PENDING]
        if endpoint.over and any(each.due is not None and each.due <= self.time.now for each in pending):
            endpoint.began()
            endpoint.stirred = True
        moves = endpoint.stirred and not endpoint.over
        if moves:
            endpoint.serve()
        return moves


class TestFairness:
    """Order of service when many endpoints share the permits (docs/decisions.md "Slow receivers")."""

    @table(("proven", "places"), [(False, 40), (True, 128)], ids=["new", "proven"])
    def test_clean_endpoint_keeps_its_permits_when_99_of_100_hang(self, proven: bool, places: int) -> None:
        """If the hanging endpoints never answered well, a few permits are enough; otherwise it takes as many permits as
        webhooks that begin to hang at one moment."""
        time = Time()
        market = Market(SendLimiter(places, 8, 40, time.monotonic), time)
        for number in range(99):
            market.add(f"hangs{number}", proven=proven, pause=10.0).add("a", "b", "c")
        well = market.add("well", proven=True)
        for each in market.endpoints:
            each.stirred = True
        for number in range(200):
            well.add(f"{number:03}")
            well.stirred = True
            market.passes(0.25)
            assert well.deliveries[f"{number:03}"].status is DeliveryStatus.DELIVERED, time.seconds
        assert sum(len(each.under_way) for each in market.endpoints) <= places

    def test_a_host_that_many_merchants_share_is_served_in_turn(self) -> None:
        """Ten merchants share a host with four permits. Each merchant gets one with at least every third of the
        answers, even if it came when the first merchant had all four."""
        time = Time()
        market = Market(SendLimiter(1000, 8, 4, time.monotonic), time)
        shared = [market.add(f"m{number}", proven=True, pause=0.2, host="shared") for number in range(10)]
        elsewhere = market.add("elsewhere", proven=True)
        for each in shared:
            each.add(*(f"{number:02}" for number in range(12)))
            each.stirred = True
        turns = dict.fromkeys(shared, 0)
        for tick in range(1, 40):
            elsewhere.add(f"{tick}")
            elsewhere.stirred = True
            before = [len(each.told) for each in shared]
            market.passes(0.25)
            assert sum(len(each.under_way) for each in shared) <= 4
            assert len(elsewhere.under_way) == 0, "other hosts do not wait"
            for each, told in zip(shared, before, strict=True):
                if each.over or any(step.startswith("send") for step in each.told[told:]):
                    turns[each] = tick
            assert tick - min(turns.values()) <= 3
        assert all(each.over for each in shared)

    def test_a_small_merchants_webhook_survives_an_outage_of_minutes(self) -> None:
        """Its one event comes to the end of the backoff, which opens the breaker; it waits there, and goes out with the
        first probe that is answered."""
        endpoint = PlayedEndpoint()
        endpoint.add("a")
        told = []
        status = 503
        while endpoint.deliveries["a"].status is DeliveryStatus.PENDING:
            breaker, due = endpoint.breaker, endpoint.deliveries["a"].due
            assert due is not None
            at = (breaker and breaker.next_probe_at) or due
            endpoint.time.seconds += max((at - endpoint.time.now).total_seconds(), 0)
            endpoint.began()
            play(endpoint, "serve")
            [sent] = (step for step in endpoint.told if step.endswith(" a"))
            told.append((endpoint.time.seconds, sent))
            status = 200 if endpoint.time.seconds > 1200 else 503
            endpoint.answer("a", status)
            endpoint.serve()
            assert endpoint.over
        attempts = [0, 1, 3, 7, 15, 31, 63, 127, 255, 511]
        probes = [541, 601, 721, 1021, 1621]
        assert told == [(at, "send a") for at in attempts] + [(at, "probe a") for at in probes]
        assert endpoint.breaker is not None
        assert not endpoint.breaker.is_open

    def test_stopped_endpoint_gives_its_turn_to_the_next(self) -> None:
        """The endpoint was stopped while it waited, and has answers under way."""
        time = Time()
        limiter = SendLimiter(2, 8, 40, time.monotonic)
        first, second = PlayedEndpoint(time, limiter, name="first"), PlayedEndpoint(time, limiter, name="second")
        first.add("a", "b", "c")
        second.add("x")
        for each in (first, second):
            play(each, "serve")
        play(first, "serve / stop / answer a 200")
        assert second.stirred
        assert play(second, "serve")[0] == "send x"

    def test_endpoint_with_its_share_waits_for_no_more_permits(self) -> None:
        """While others use a quarter of the total, its share is one, even for a receiver that requested more."""
        time = Time()
        limiter = SendLimiter(5, 8, 40, time.monotonic)
        first, *others = (PlayedEndpoint(time, limiter, name=name) for name in ("first", "second", "third", "fourth"))
        for each in others:
            each.add("x")
        first.add(*"abcdefgh")
        play(first, "serve")
        for each in others[:2]:
            play(each, "serve")
        play(first, "serve / answer a 200")
        play(others[2], "serve")
        for each, name in zip(others, "bcd", strict=True):
            play(first, f"serve / answer {name} 200")
            assert play(each, "serve")[0] == "send x"

    def test_aborted_run_returns_its_permits_and_waits_for_nothing(self) -> None:
        """Between two steps, also between a permit and its first webhook."""
        time = Time()
        limiter = SendLimiter(1, 8, 40, time.monotonic)
        begins, waits = PlayedEndpoint(time, limiter, name="first"), PlayedEndpoint(time, limiter, name="second")
        for each in (begins, waits):
            each.add("a")
        while not isinstance(step := begins.state.next(0.0), Send):
            begins.perform(step)
        play(waits, "serve")
        for each in (waits, begins):
            each.state.close()
        assert not waits.stirred
        assert is_idle(limiter)

    def test_slow_endpoint_that_may_not_wait_is_rescheduled_without_reading(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limiter_rules, "MOST_WAIT", 1)
        time = Time()
        market = Market(SendLimiter(5, 8, 40, time.monotonic), time)
        told = []
        for number in range(5):
            endpoint = market.add(f"hangs{number}", proven=False)
            endpoint.breaker = TIMED_OUT
            told.append(play(endpoint, f"{'address none / ' if number == 4 else ''}due a / serve"))
        served = ["look", "due?", "send a", "wait"]
        assert told[:3] == [served, served, ["look", "due?", "wait"]]
        assert told[3:] == [["look", "release 10 s"], ["look", "commit wait for receiver, unsure, leave"]]

    def test_more_slow_endpoints_than_may_wait_give_their_jobs_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limiter_rules, "MOST_WAIT", 1)
        time = Time()
        market = Market(SendLimiter(5, 8, 40, time.monotonic), time)
        for number in range(8):
            endpoint = market.add(f"hangs{number}", proven=False, pause=10.0)
            endpoint.add("a")
            play(endpoint, "serve")
        assert [each.told[-1] for each in market.endpoints] == ["wait"] * 5 + [
            "release 10 s",
            "release 15 s",
            "release 20 s",
        ]
