"""Permits for webhooks: the bounds in all, per receiver and per host, and the order in which receivers get them."""

import random

import pytest

from cambist.core.domain.webhooks import limiter as rules
from cambist.core.domain.webhooks.limiter import LATE, Permit, SendLimiter, host_of
from cambist.core.domain.webhooks.limiter_pool import Trust
from tests.tables import table

HOST = "a.example:443"


class Receiver:
    """A customer that counts its wake-ups."""

    def __init__(self, name: str, host: str = HOST) -> None:
        self.name = name
        self.host = host
        self.told = 0
        self.permits: list[Permit] = []

    def stir(self) -> None:
        self.told += 1


class Hall:
    """SendLimiter under a clock of the test."""

    def __init__(self, total: int, per_receiver: int = 8, per_host: int = 1000) -> None:
        self.time = 0.0
        self.limiter = SendLimiter(total, per_receiver, per_host, lambda: self.time)

    def take(self, receiver: Receiver, trust: Trust) -> bool:
        permit = self.limiter.take(receiver, receiver.name, receiver.host, trust)
        if permit is not None:
            receiver.permits.append(permit)
        return permit is not None

    def give(self, receiver: Receiver) -> None:
        self.limiter.give(receiver.permits.pop())


def many(count: int, host: str | None = None) -> list[Receiver]:
    return [Receiver(f"r{number}", host or f"r{number}.example:443") for number in range(count)]


@table(
    ("trust", "permits"),
    [(Trust.SLOW, 8), (Trust.NEW, 16), (Trust.PROVEN, 20)],
    ids=["slow", "new", "proven"],
)
def test_each_kind_of_receiver_takes_its_part_of_twenty_permits(trust: Trust, permits: int) -> None:
    hall = Hall(20)
    assert sum(hall.take(each, trust) for each in many(30)) == permits


@table(
    ("comers", "permits"),
    [((Trust.SLOW, Trust.NEW), [8, 8]), ((Trust.NEW, Trust.SLOW), [16, 0])],
    ids=["slow ones first", "new ones first"],
)
def test_slow_and_new_receivers_together_leave_a_fifth_to_proven_ones(
    comers: tuple[Trust, Trust], permits: list[int]
) -> None:
    hall = Hall(20)
    assert [sum(hall.take(each, trust) for each in many(30)) for trust in comers] == permits
    assert sum(hall.take(each, Trust.PROVEN) for each in many(30)) == 4


def test_receiver_gets_one_permit_if_others_hold_a_quarter() -> None:
    hall = Hall(40)
    first, second = many(2)
    for _ in range(8):
        assert hall.limiter.share(first.host, Trust.PROVEN, len(first.permits)) == 8
        assert hall.take(first, Trust.PROVEN)
    for mine in range(2):
        assert hall.limiter.share(second.host, Trust.PROVEN, mine) == 8
        assert hall.take(second, Trust.PROVEN)
    third = Receiver("r3")
    assert hall.limiter.share(third.host, Trust.PROVEN, 0) == 1


def test_a_slow_receivers_share_goes_by_what_other_slow_ones_have() -> None:
    hall = Hall(40)
    proven, slow = many(2)
    for _ in range(8):
        hall.take(proven, Trust.PROVEN)
    assert hall.limiter.share(slow.host, Trust.SLOW, 0) == 8
    for _ in range(4):
        hall.take(slow, Trust.SLOW)
    assert hall.limiter.share("r3:443", Trust.SLOW, 0) == 1


def test_turns_come_in_the_order_of_the_requests() -> None:
    hall = Hall(5)  # two for slow ones
    holder, slow, proven, other = many(4)
    for _ in range(5):
        hall.take(holder, Trust.PROVEN)
    for each, trust in ((slow, Trust.SLOW), (proven, Trust.PROVEN), (other, Trust.PROVEN)):
        assert not hall.take(each, trust)
    for each, trust in ((slow, Trust.SLOW), (proven, Trust.PROVEN), (other, Trust.PROVEN)):
        assert each.told == 0
        hall.give(holder)
        assert each.told == 1
        assert hall.take(each, trust)


def test_waiting_slow_receivers_do_not_block_eligible_ones() -> None:
    hall = Hall(5)
    slow, proven = many(4), many(9)[4:]
    assert [hall.take(each, Trust.SLOW) for each in slow] == [True, True, False, False]
    assert all(hall.take(each, Trust.PROVEN) for each in proven[:3])
    assert not hall.take(proven[3], Trust.PROVEN)
    hall.give(proven[0])
    assert (proven[3].told, slow[2].told) == (1, 0)
    hall.give(slow[0])
    assert slow[2].told == 1


def test_a_turn_that_is_declined_is_the_next_ones() -> None:
    hall = Hall(1)
    holder, first, second = many(3)
    hall.take(holder, Trust.PROVEN)
    assert not hall.take(first, Trust.PROVEN)
    assert not hall.take(second, Trust.PROVEN)
    hall.give(holder)
    hall.limiter.decline(first)
    assert second.told == 1
    assert hall.take(second, Trust.PROVEN)
    assert not hall.take(first, Trust.PROVEN)


def test_late_webhook_makes_its_receiver_slow_while_in_flight() -> None:
    hall = Hall(20)
    hanging = many(20)
    assert all(hall.take(each, Trust.PROVEN) for each in hanging)
    hall.time = LATE - 0.01
    hall.limiter.look()
    assert not hall.limiter.is_slow("r0")
    hall.time = LATE
    hall.limiter.look()
    assert all(hall.limiter.is_slow(each.name) for each in hanging)
    other = Receiver("other")
    hall.give(hanging[0])
    assert not hall.take(other, Trust.SLOW), "nineteen are more than the eight that slow ones may begin"
    proven = Receiver("proven")
    assert hall.take(proven, Trust.PROVEN)
    for each in hanging[1:12]:
        hall.give(each)
    assert other.told == 0
    hall.give(hanging[12])
    assert other.told == 1


def test_receiver_that_answers_in_time_again_is_no_longer_slow() -> None:
    hall = Hall(20)
    [receiver] = many(1)
    hall.take(receiver, Trust.PROVEN)
    hall.time = LATE
    assert not hall.limiter.goes_on(receiver.permits[0]), "a slow one asks as such"
    assert hall.limiter.is_slow(receiver.name)
    hall.give(receiver)
    hall.take(receiver, Trust.SLOW)
    hall.limiter.goes_on(receiver.permits[0])
    assert not hall.limiter.is_slow(receiver.name)


def test_permit_is_kept_between_webhooks_while_no_eligible_receiver_waits() -> None:
    hall = Hall(5)
    proven, *others = many(6)
    hall.take(proven, Trust.PROVEN)
    for each in others:
        hall.take(each, Trust.SLOW)
    assert hall.limiter.goes_on(proven.permits[0]), "the three slow ones could not have it"
    for _ in range(2):
        hall.take(proven, Trust.PROVEN)
    assert not hall.take(Receiver("waits"), Trust.PROVEN)
    assert not hall.limiter.goes_on(proven.permits[0])


def test_each_webhook_on_a_permit_has_a_second_of_its_own() -> None:
    hall = Hall(5)
    [receiver] = many(1)
    hall.take(receiver, Trust.PROVEN)
    for _ in range(9):
        hall.time += LATE / 2
        hall.limiter.look()
        assert hall.limiter.goes_on(receiver.permits[0])
    hall.time += LATE
    hall.limiter.look()
    assert hall.limiter.is_slow(receiver.name)


def test_hanging_receiver_is_noticed_behind_one_that_keeps_answering() -> None:
    hall = Hall(5)
    answers, hangs = many(2)
    for each in (answers, hangs):
        assert hall.take(each, Trust.PROVEN)
    hall.time = LATE / 2
    assert hall.limiter.goes_on(answers.permits[0])
    hall.time = LATE
    hall.limiter.look()
    assert (hall.limiter.is_slow(answers.name), hall.limiter.is_slow(hangs.name)) == (False, True)


def test_permit_is_kept_if_no_waiting_receiver_could_use_it() -> None:
    """One new receiver beside four that hang: without its place they would still have all that is not for proven
    ones."""
    hall = Hall(5)
    *hanging, new, waits = many(6)
    assert all(hall.take(each, Trust.PROVEN) for each in hanging)
    hall.time = LATE / 2
    assert hall.take(new, Trust.NEW)
    assert not hall.take(waits, Trust.NEW)
    hall.time = LATE
    hall.limiter.look()
    assert hall.limiter.goes_on(new.permits[0])
    hall.give(hanging[0])
    assert not hall.limiter.goes_on(new.permits[0])


def test_host_never_gets_more_webhooks_than_its_bound() -> None:
    hall = Hall(1000, per_host=64)
    theirs = many(500, host=HOST)
    for each in theirs:
        while hall.limiter.share(HOST, Trust.PROVEN, len(each.permits)) > len(each.permits):
            if not hall.take(each, Trust.PROVEN):
                break
    assert sum(len(each.permits) for each in theirs) == 64
    assert hall.take(Receiver("elsewhere", "b.example:443"), Trust.PROVEN), "who waits there takes no place in all"


def test_on_a_shared_host_ten_that_hang_leave_permits_for_the_eleventh() -> None:
    hall = Hall(1000, per_host=64)
    hanging = many(10, host=HOST)
    for each in hanging:
        while hall.limiter.share(HOST, Trust.NEW, len(each.permits)) > len(each.permits):
            assert hall.take(each, Trust.NEW)
    assert hall.take(Receiver("eleventh"), Trust.NEW)


def test_waiting_receiver_keeps_its_host_place_until_it_declines() -> None:
    hall = Hall(1, per_host=1)
    elsewhere, first, second = Receiver("e", "b.example:443"), Receiver("1"), Receiver("2")
    assert hall.take(elsewhere, Trust.PROVEN)
    assert not hall.take(first, Trust.PROVEN)
    assert not hall.take(second, Trust.PROVEN)
    hall.limiter.decline(first)
    assert second.told == 1
    hall.give(elsewhere)
    assert hall.take(second, Trust.PROVEN)
    assert not hall.take(elsewhere, Trust.PROVEN)
    hall.limiter.decline(elsewhere)
    assert elsewhere.host not in hall.limiter._hosts, "nothing is kept of a host that nobody sends to"


def test_receiver_found_slow_while_it_waits_joins_the_slow_ones() -> None:
    hall = Hall(5)
    slow, [waits] = many(3), many(4)[3:]
    holder = Receiver("holder")
    assert [hall.take(each, Trust.SLOW) for each in slow] == [True, True, False]
    for _ in range(3):
        assert hall.take(holder, Trust.PROVEN)
    assert not hall.take(waits, Trust.PROVEN)
    assert not hall.take(waits, Trust.SLOW)
    hall.give(holder)
    assert not waits.told
    hall.give(slow[0])
    assert (slow[2].told, waits.told) == (1, 0)


def test_slow_receivers_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_REMEMBERED", 3)
    hall = Hall(100)
    for number, each in enumerate(many(5)):
        hall.take(each, Trust.PROVEN)
        hall.time = 10.0 * (number + 1)
        hall.limiter.goes_on(each.permits[0])
        hall.give(each)
    assert [hall.limiter.is_slow(f"r{number}") for number in range(5)] == [False, False, True, True, True]


def test_longest_unseen_slow_receivers_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_REMEMBERED", 3)
    hall = Hall(100)
    first, second, third, fourth = receivers = many(4)
    for each in (first, second, first, third, fourth):
        hall.take(each, Trust.SLOW)
        hall.time += 10.0
        hall.limiter.goes_on(each.permits[0])
        hall.give(each)
    assert [hall.limiter.is_slow(each.name) for each in receivers] == [True, False, True, True]


@table(
    ("total", "per_host", "trust", "away"),
    [
        pytest.param(50, 1000, Trust.SLOW, [10.0, 10.5, 11.0], id="two of twenty that hang end in a second"),
        pytest.param(3, 1000, Trust.SLOW, [10.0, 20.0, 30.0], id="the one that slow ones have"),
        pytest.param(1, 1000, Trust.NEW, [10.0, 20.0, 30.0], id="the only one"),
        pytest.param(50, 2, Trust.PROVEN, [1.0, 1.5, 2.0], id="two at its host, each of a second at most"),
        pytest.param(1, 1000, Trust.PROVEN, [None] * 3, id="proven ones wait for a place in all, however many"),
    ],
)
def test_receiver_without_room_to_wait_is_rescheduled_to_a_free_permit(
    total: int, per_host: int, trust: Trust, away: list[float | None]
) -> None:
    hall = Hall(total, per_host=per_host)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rules, "MOST_WAIT", 1)
        holder = Receiver("holder")
        while hall.take(holder, trust):
            pass
        waiting = many(4, host=HOST)
        for each in waiting:
            assert not hall.take(each, trust)
        assert [hall.limiter.sent_off(each) for each in waiting[:3]] == away


def test_receivers_beyond_the_queue_return_as_fast_as_permits_get_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "MOST_WAIT", 3)
    hall = Hall(50)  # twenty for slow ones, two of which end in a second
    slow = many(30)
    assert sum(hall.take(each, Trust.SLOW) for each in slow) == 20
    away = [hall.limiter.sent_off(each) for each in slow[20:]]
    assert away[:7] == [10.0, 10.5, 11.0, 11.5, 12.0, 12.5, 13.0]
    assert away[7:] == [None] * 3
    assert hall.limiter.turned_away(Trust.SLOW) == 13.5
    assert hall.limiter.turned_away(Trust.PROVEN) is None
    hall.time = 100.0
    assert hall.limiter.turned_away(Trust.SLOW) == 10.0
    later = [hall.limiter.turned_away(Trust.SLOW) for _ in range(200)]
    assert later[-1] == 60.0, "and not for ever"


@table("seed", range(20))
def test_bounds_hold_in_any_order_and_every_waiting_receiver_is_served(seed: int) -> None:
    """Take, return, delay and decline permits in any order. The bounds always hold, every receiver that still waits is
    notified, and after the last permit is returned the limiter remembers slow receivers only."""
    chance = random.Random(seed)
    hall = Hall(10, per_receiver=3, per_host=4)
    receivers = [Receiver(f"r{number}", f"h{number % 4}:443") for number in range(20)]
    waiting: dict[Receiver, int] = {}
    for _ in range(2000):
        hall.time += chance.random() / 4
        hall.limiter.look()
        each = chance.choice(receivers)
        match chance.randrange(4):
            case 0 | 1:
                known = Trust.SLOW if hall.limiter.is_slow(each.name) else chance.choice(list(Trust)[:2])
                if hall.take(each, known):
                    waiting.pop(each, None)
                else:
                    waiting[each] = each.told
            case 2:
                hall.limiter.decline(each)
                waiting.pop(each, None)
            case _:
                if each.permits and not hall.limiter.goes_on(each.permits[-1]):
                    hall.give(each)
        assert sum(len(receiver.permits) for receiver in receivers) <= 10
        for host in range(4):
            assert sum(len(receiver.permits) for receiver in receivers[host::4]) <= 4
    for each in receivers:
        while each.permits:
            hall.give(each)
    for _ in range(50):  # a notified receiver takes its permit and returns it
        for each in [each for each, told in waiting.items() if each.told > told]:
            known = Trust.SLOW if hall.limiter.is_slow(each.name) else Trust.PROVEN
            waiting[each] = each.told
            if hall.take(each, known):
                del waiting[each]
                hall.give(each)
    assert not waiting
    assert not hall.limiter._hosts
    assert not hall.limiter._asked
    assert not hall.limiter._young
    assert not any(hall.limiter._waits.values())
    assert hall.limiter._all.empty


@table(
    ("url", "host"),
    [
        ("https://A.example/x", "a.example:443"),
        ("https://a.example:443/y?z", "a.example:443"),
        ("http://a.example", "a.example:80"),
        ("http://127.0.0.1:8000/", "127.0.0.1:8000"),
        ("https://[::1]:9/", "::1:9"),
        ("https://a.example:port/", ""),
        ("", "None:443"),
    ],
)
def test_host_is_identified_by_name_and_port(url: str, host: str) -> None:
    assert host_of(url) == host
