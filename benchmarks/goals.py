"""Goals of the hot paths relative to their floors and peers, and their computation from one run's results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec


class Result(msgspec.Struct, frozen=True):
    """Result of one benchmark."""

    median: float
    """Seconds of a median round."""
    least: float
    """Seconds of the fastest round. It suits work inside this process, where all other time is disturbance."""
    extra: Mapping[str, Any]


class Results:
    """All benchmarks of a run, by file, test and parameters: `test_start.py::test_service`."""

    def __init__(self, found: Mapping[str, Result]) -> None:
        self._found = found

    def median(self, name: str) -> float:
        """Return the median round in seconds. Raises: KeyError if the benchmark was not run."""
        return self._found[name].median

    def least(self, name: str) -> float:
        """Return the fastest round in seconds. Raises: KeyError if the benchmark was not run."""
        return self._found[name].least

    def extra(self, name: str, key: str) -> float:
        """Return a value of `extra_info`. Raises: KeyError if the benchmark was not run."""
        return float(self._found[name].extra[key])

    def sizes(self, test: str) -> list[tuple[int, Result]]:
        """Return a test's results by the number in its brackets, ascending. Raises: KeyError if there are none."""
        named = [(name, result) for name, result in self._found.items() if name.startswith(f"{test}")]
        if not named:
            raise KeyError(test)
        return sorted(
            ((int(name.rstrip("]").rsplit("-", 1)[-1].rsplit("[", 1)[-1]), each) for name, each in named), key=_size
        )


def _size(pair: tuple[int, Result]) -> int:
    return pair[0]


class Goal(msgspec.Struct, frozen=True):
    """A line of the table."""

    path: str
    beside: str
    goal: float
    ratio: Callable[[Results], float]
    at_least: bool = False
    """If true, the ratio must be at least the goal, otherwise at most."""
    by_cpu: Callable[[Results], float] | None = None
    """The same ratio in CPU time of the server's process, which other work on the machine does not affect."""

    def reached(self, ratio: float) -> bool:
        return ratio >= self.goal if self.at_least else ratio <= self.goal


_SERVICE, _LNBITS = "test_service.py", "test_peers.py::test_lnbits_invoice"
_LOOKUP, _LISTS = "test_idempotency.py", "test_lists.py"


def _medians(over: str, under: str) -> Callable[[Results], float]:
    return lambda results: results.median(over) / results.median(under)


def _leasts(over: str, under: str) -> Callable[[Results], float]:
    return lambda results: results.least(over) / results.least(under)


def _extras(key: str, over: str, under: str) -> Callable[[Results], float]:
    return lambda results: results.extra(over, key) / results.extra(under, key)


def _extra(test: str, key: str) -> Callable[[Results], float]:
    return lambda results: results.extra(test, key)


def _slower(test: str) -> Callable[[Results], float]:
    """Compute how many times as long as its floor the test took."""
    return lambda results: 1 / results.extra(test, "times_floor")


def _service(test: str, database: str) -> str:
    return f"{_SERVICE}::{test}[{database}]"


def _lookup_in_sqlite(results: Results) -> float:
    _, ours = results.sizes(f"{_LOOKUP}::TestSqlite::test_storage")[-1]
    _, bare = results.sizes(f"{_LOOKUP}::TestSqlite::test_floor_prepared_select")[-1]
    return ours.least / bare.least


def _lookup_in_postgres(results: Results) -> float:
    _, ours = results.sizes(f"{_LOOKUP}::TestPostgres::test_storage")[-1]
    return 1 / float(ours.extra["times_floor"])


def _growth(results: Results) -> float:
    sizes = results.sizes(f"{_LOOKUP}::TestSqlite::test_storage")
    if len(sizes) < 2:
        raise KeyError("one size only")
    return sizes[-1][1].least / sizes[0][1].least


def _settling(database: str, key: str) -> Callable[[Results], float]:
    return _extra(f"test_settlement.py::test_settling[{database}]", key)


def _limits(results: Results) -> float:
    ours = results.least("test_rate_limit.py::test_decision") * 1e6
    return results.extra("test_peers.py::test_limits_package", "us_per_1000") / ours


GOALS: Sequence[Goal] = (
    Goal(
        "webhook signature, 600 bytes",
        "`hmac.digest`",
        0.65,
        _slower("test_signature.py::test_beside_floor"),
    ),
    Goal(
        "the same: times faster",
        "`standardwebhooks`",
        2.5,
        _extra("test_signature.py::test_beside_standardwebhooks", "times_floor"),
        at_least=True,
    ),
    Goal(
        "signature of the wallet, with recovery id: time",
        "`coincurve`",
        150,
        _slower("test_signature.py::test_wallet_beside_coincurve"),
    ),
    Goal(
        "rate-limit decision in memory",
        "two dict counters, seven headers",
        1.5,
        _leasts("test_rate_limit.py::test_decision", "test_rate_limit.py::test_floor"),
    ),
    Goal("the same: times faster", "`limits`", 5, _limits, at_least=True),
    Goal(
        "rate-limit decision on Redis, 50 at once: rate",
        "one `EVALSHA` each",
        2,
        _medians("test_rate_limit.py::test_redis_evalsha_each", "test_rate_limit.py::test_redis_decision"),
        at_least=True,
    ),
    Goal(
        "idempotency lookup, SQLite, most keys",
        "prepared SELECT",
        4,
        _lookup_in_sqlite,
    ),
    Goal("the same", "itself at 10 000 keys", 2, _growth),
    Goal(
        "idempotency lookup, Postgres, most keys",
        "prepared fetchrow",
        2,
        _lookup_in_postgres,
    ),
    Goal(
        "commit of a creation, SQLite, 32 at once: rate",
        "a transaction each",
        2,
        _extra("test_commit.py::test_units", "times_floor"),
        at_least=True,
    ),
    Goal(
        "`POST /payments`, SQLite: rate",
        "bare handler",
        0.30,
        _extra(_service("test_create", "sqlite"), "rate_beside_floor"),
        at_least=True,
        by_cpu=_extra(_service("test_create", "sqlite"), "cpu_beside_floor"),
    ),
    Goal("the same: p99", "bare handler", 10, _extra(_service("test_create", "sqlite"), "p99_beside_floor")),
    Goal(
        "the same: times the rate",
        "LNbits on SQLite",
        60,
        _extra(f"{_LNBITS}[sqlite]", "times_peer"),
        at_least=True,
        by_cpu=_extra(f"{_LNBITS}[sqlite]", "times_peer_cpu"),
    ),
    Goal(
        "`POST /payments`, Postgres: times the rate",
        "LNbits on Postgres",
        30,
        _extra(f"{_LNBITS}[postgres]", "times_peer"),
        at_least=True,
        by_cpu=_extra(f"{_LNBITS}[postgres]", "times_peer_cpu"),
    ),
    Goal(
        "`GET /payments/{id}`, SQLite: rate",
        "bare handler",
        0.45,
        _extra(_service("test_read", "sqlite"), "rate_beside_floor"),
        at_least=True,
        by_cpu=_extra(_service("test_read", "sqlite"), "cpu_beside_floor"),
    ),
    Goal(
        "webhook deliveries, one worker: rate",
        "the bare client",
        0.6,
        _extra("test_deliveries.py::test_worker", "times_floor"),
        at_least=True,
    ),
    Goal("settlement, SQLite: dearest payment", "cheapest of the sizes", 1.2, _settling("sqlite", "dearest")),
    Goal("the same: most memory", "of the smallest size", 1.2, _settling("sqlite", "largest")),
    Goal("settlement, Postgres: dearest payment", "cheapest of the sizes", 1.2, _settling("postgres", "dearest")),
    Goal("the same: most memory", "of the smallest size", 1.2, _settling("postgres", "largest")),
    Goal(
        "list, first page of many, SQLite",
        "of few",
        3,
        _medians(f"{_LISTS}::test_first_page[sqlite-many]", f"{_LISTS}::test_first_page[sqlite-few]"),
    ),
    Goal(
        "list, last page of many, SQLite",
        "first page of few",
        20,
        _medians(f"{_LISTS}::test_far_page[sqlite-last-many]", f"{_LISTS}::test_first_page[sqlite-few]"),
    ),
    Goal(
        "dashboard's payments, first page of many, SQLite",
        "of few",
        3,
        _medians(f"{_LISTS}::test_dashboard_page[sqlite-all-many]", f"{_LISTS}::test_dashboard_page[sqlite-all-few]"),
    ),
    Goal(
        "log of requests, 1000 merchants who ask once: CPU",
        "bare inserts of their rows",
        10,
        _extra("test_request_log.py::test_written[1000]", "beside_floor"),
    ),
    Goal(
        "resident memory of `cambist serve` at rest",
        "bare application",
        1.6,
        _extras("mib", "test_memory.py::test_service_at_rest", "test_memory.py::test_floor_bare_application"),
    ),
    Goal(
        "the same after payments and their webhooks",
        "itself at rest",
        1.25,
        _extras("mib", "test_memory.py::test_service_after_payments", "test_memory.py::test_service_at_rest"),
    ),
    Goal(
        "start of `cambist serve` to the first answer",
        "`import litestar, sqlalchemy`",
        3,
        _slower("test_start.py::test_service"),
    ),
    Goal(
        "start of a merchant's test to its first paid payment",
        "`import litestar`",
        2.5,
        _slower("test_start.py::test_sandbox"),
    ),
)
