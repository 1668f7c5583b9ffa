"""Money in suspense that is on its way back when the database is upgraded: migration 0022 marks what the bank may have
(docs/payments.md "Money that cannot count"; ARCHITECTURE.md "Three ends")."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import command

from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.suspense import RETURN_FAILED, RETURNED_ANEW, Suspense
from cambist.core.usecases.refunds.suspense_takeover import FORMER_RETURN
from cambist.ports.jobs import Job
from tests.contracts.migration_kit import done_on, old_url, steps_on

__all__ = ["old_url"]

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PLANNED = datetime(2026, 11, 22, tzinfo=UTC)


def money(name: str, **fields: Any) -> Suspense:
    usual: dict[str, Any] = {"reason": "second_transfer"}
    return Suspense(
        id=f"sus_{name}", account_id="acc_1", mode=Mode.LIVE, payment_id="pay_1", amount=Rub(1), received_at=NOW,
        **{**usual, **fields},
    )  # fmt: skip


WAITS = [money("decided_by_nobody"), money("planned"), money("failed", reason=RETURN_FAILED)]
SENT = [money("asked"), money("asked_anew", reason=RETURNED_ANEW, attempt=2)]
WENT = [money("went", resolved_at=NOW)]


def job(suspense: Suspense, attempts: int) -> Job:
    return Job(
        id=FORMER_RETURN.id_of(suspense.id), kind=FORMER_RETURN.kind, argument=suspense.id, due=NOW, attempts=attempts,
        created_at=PLANNED,
    )  # fmt: skip


JOBS = [job(money("planned"), 0), job(money("went"), 3), *(job(each, 1) for each in SENT)]


def upgraded(connection: sa.Connection) -> dict[str, datetime | None]:
    """Since when the bank may have each, as the program reads it."""
    config = steps_on(connection)
    command.upgrade(config, "0021")
    for kind, records in ((Suspense, [*WAITS, *SENT, *WENT]), (Job, JOBS)):
        kept = keep(CATALOGUE)[kind]
        table = sa.Table(kept.name, sa.MetaData(), autoload_with=connection)
        rows = [dict(zip(kept.codec.names, kept.codec.encode(each), strict=True)) for each in records]
        connection.execute(table.insert(), [{name: row[name] for name in row if name in table.c} for row in rows])
    command.upgrade(config, "head")
    codec = keep(CATALOGUE)[Suspense].codec
    found = connection.execute(sa.text(f"SELECT {', '.join(codec.names)} FROM suspense"))
    read = [codec.decode(tuple(row)) for row in found]
    return {each.id: each.sending_since for each in read}


async def test_what_its_job_may_have_sent_is_marked_and_nothing_else(old_url: str) -> None:
    expected = {each.id: None for each in (*WAITS, *WENT)} | {each.id: PLANNED for each in SENT}
    assert await done_on(old_url, upgraded) == expected
