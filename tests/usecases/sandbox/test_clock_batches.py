"""Jobs due within a second of an advanced clock run at once, except beside jobs of the whole account
(sandbox/clock_batches.py; docs/sandbox.md "The clock")."""

from datetime import UTC, datetime, timedelta
from typing import Any

from cambist.core.usecases.sandbox.clock_batches import batch_of, worth_reading
from cambist.ports.jobs import Job
from tests.apps import TestApp
from tests.clock_kit import advance
from tests.tables import table


def job(moment: float, argument: str = "", kind: str = "payment.watch", **more: Any) -> Job:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=moment)
    argument = argument or f"pay_{moment}"
    return Job(id=f"{kind}:{argument}", kind=kind, argument=argument, due=at, moment=at, created_at=at, **more)


@table(
    ("others", "taken"),
    [
        ([], 1),
        ([(0.5, {}), (1.0, {})], 3),
        ([(1.1, {})], 1),
        ([(0.5, {}), (0.6, {"argument": "pay_0"}), (0.7, {})], 2),
        ([(0.5, {}), (0.6, {"kind": "webhook.deliver"}), (0.7, {})], 2),
        ([(0.5, {}), (0.6, {"kind": "settlement.own"})], 2),
        ([(0.5, {"leased_until": datetime(2027, 1, 1, tzinfo=UTC)}), (0.6, {})], 1),
    ],
    ids=["one", "a second", "later", "one object", "letters", "settlement", "in hand"],
)
def test_a_batch(others: list[tuple[float, dict[str, Any]]], taken: int) -> None:
    due = [job(0, "pay_0"), *(job(at, **more) for at, more in others)]
    assert batch_of(due) == due[:taken]


@table("kind", ["settlement.own", "settlement.run", "webhook.deliver", "webhook.timer"])
def test_work_on_the_whole_account_is_done_alone(kind: str) -> None:
    assert len(batch_of([job(0, kind=kind), job(0.1)])) == 1


@table(("last", "read"), [(None, 32), (1, 6), (3, 6), (4, 8), (16, 32), (32, 32)])
def test_read_matches_the_last_batch_and_exceeds_the_skipped_jobs(last: int | None, read: int) -> None:
    """A receiver's two jobs may be left out, and the daily settlement be postponed. The read must still reach the jobs
    behind them."""
    assert worth_reading(last) == read


async def test_each_is_done_at_its_own_moment(app: TestApp) -> None:
    made = []
    for _ in range(5):
        made.append(await app.created())
        await app.clock.advance(0.2)
    await advance(app, timedelta(hours=1))
    for payment in made:
        [event] = await app.events(payment["id"])
        assert event["timestamp"] == payment["expires_at"]
