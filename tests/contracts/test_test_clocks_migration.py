"""Jobs of test mode that were written before accounts had clocks: migration 0009 says whose they are, so that they
follow a clock that is moved later (docs/sandbox.md "The clock")."""

from typing import Any

import sqlalchemy as sa
from alembic import command

from tests.contracts.migration_kit import done_on, old_url, steps_on

__all__ = ["old_url"]


PAYMENT: dict[str, Any] = {
    "account_id": "acc_1",
    "shop_id": "s",
    "status": "pending",
    "amount": 100_00,
    "payment_method": "sbp",
    "created_at": 1,
    "expires_at": 2,
    "auto_return": True,
    "refund_pending": False,
    "refund_taken": 0,
    "opening": "open",
    "sequence": 0,
    "version": 0,
}
JOBS = {
    "payment.watch:pay_test": "pay_test",
    "payment.watch:pay_live": "pay_live",
    "webhook.deliver:acc_1:test": "acc_1:test",
    "webhook.deliver:acc_1:live": "acc_1:live",
    "ledger.seal": "",
}


def upgraded(connection: sa.Connection) -> dict[str, tuple[str | None, int | None]]:
    """World and moment of each job."""
    config = steps_on(connection)
    command.upgrade(config, "0008")
    known = sa.MetaData()
    payments = sa.Table("payments", known, autoload_with=connection)
    connection.execute(payments.insert(), [{**PAYMENT, "id": f"pay_{mode}", "mode": mode} for mode in ("test", "live")])
    jobs = sa.Table("jobs", known, autoload_with=connection)
    usual = {"due": 7, "created_at": 1, "attempts": 0, "asked": 0, "version": 0}
    rows = [
        {**usual, "id": job_id, "kind": job_id.partition(":")[0], "argument": argument}
        for job_id, argument in JOBS.items()
    ]
    connection.execute(jobs.insert(), rows)
    command.upgrade(config, "0009")
    found = connection.execute(sa.text("SELECT id, world, moment FROM jobs"))
    return {row.id: (row.world, row.moment) for row in found}


async def test_jobs_of_test_mode_are_stamped_and_no_others(old_url: str) -> None:
    found = await done_on(old_url, upgraded)
    assert found == {
        "payment.watch:pay_test": ("acc_1", 7),
        "payment.watch:pay_live": (None, None),
        "webhook.deliver:acc_1:test": ("acc_1", 7),
        "webhook.deliver:acc_1:live": (None, None),
        "ledger.seal": (None, None),
    }
