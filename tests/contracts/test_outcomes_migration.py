"""Operations of unknown outcome that a database has already: migration 0014 writes their rows
(ARCHITECTURE.md "Three ends")."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import command

from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.outcomes import UnknownOutcome, is_outcome_unknown, unknown_outcome
from cambist.core.domain.payments.payments import BindingCharge, Opening, Payment, PaymentStatus
from tests.contracts.migration_kit import done_on, old_url, steps_on

__all__ = ["old_url"]

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def payment(name: str, **fields: Any) -> Payment:
    usual: dict[str, Any] = {"mode": Mode.LIVE, "status": PaymentStatus.PENDING, "opening": Opening.UNKNOWN}
    return Payment(
        id=f"pay_{name}", account_id="acc_1", shop_id="s", amount=Rub(1), payment_method="sbp", created_at=NOW,
        expires_at=NOW, **{**usual, **fields},
    )  # fmt: skip


PAYMENTS = [
    payment("pending"),
    payment("expired", status=PaymentStatus.EXPIRED, mode=Mode.TEST),
    payment("charge", subscription_id="sub_1"),
    payment("binding", subscription_id="sub_1", binding=BindingCharge.FIRST),
    payment("symbolic", subscription_id="sub_1", binding=BindingCharge.NONE),
    payment("found", bank_reference="r"),
    payment("failed", status=PaymentStatus.FAILED),
    payment("asking", opening=Opening.ASKING),
    payment("open", opening=Opening.OPEN, bank_reference="r"),
]


def upgraded(connection: sa.Connection) -> list[UnknownOutcome]:
    """The rows that the migration makes."""
    config = steps_on(connection)
    command.upgrade(config, "0013")
    payments = sa.Table("payments", sa.MetaData(), autoload_with=connection)
    codec = keep(CATALOGUE)[Payment].codec
    connection.execute(
        payments.insert(), [dict(zip(codec.names, codec.encode(each), strict=True)) for each in PAYMENTS]
    )
    command.upgrade(config, "0014")
    made = keep(CATALOGUE)[UnknownOutcome].codec
    names = ", ".join(made.names)
    return [
        made.decode(tuple(row))
        for row in connection.execute(sa.text(f"SELECT {names} FROM unknown_outcomes ORDER BY id"))
    ]


async def test_each_operation_of_unknown_outcome_gets_the_row_that_the_domain_would_write(old_url: str) -> None:
    found = await done_on(old_url, upgraded)
    expected = sorted((unknown_outcome(each) for each in PAYMENTS if is_outcome_unknown(each)), key=lambda row: row.id)
    assert found == expected
    assert len(found) == 5
