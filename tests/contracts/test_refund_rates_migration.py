"""Refunds that took USDT before their rate was kept: migration 0028 gives them that of their payment's settlement
(docs/refunds.md "The money")."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import command

from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.payments.payments import PaymentStatus
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from cambist.core.domain.settlement.settlement import Settlement
from tests.contracts.migration_kit import done_on, old_url, steps_on
from tests.domain.refund_kit import payment

__all__ = ["old_url"]

NOW = datetime(2026, 11, 21, tzinfo=UTC)
STATEMENT = Settlement(
    id="stl_1", batch_id="b", account_id="acc_1", mode=Mode.LIVE, cutoff=NOW, rate_market="92.501", started_at=NOW
)
PAYMENTS = [
    msgspec.structs.replace(payment(PaymentStatus.SETTLED), id="pay_settled", settlement_id=STATEMENT.id),
    msgspec.structs.replace(payment(PaymentStatus.PAID), id="pay_paid"),
]


def refund(name: str, **fields: Any) -> Refund:
    return Refund(
        id=f"ref_{name}",
        account_id="acc_1",
        mode=Mode.LIVE,
        shop_id="shop",
        status=RefundStatus.COMPLETED,
        amount=Rub(100),
        created_at=NOW,
        **fields,
    )


REFUNDS = [
    refund("of_usdt", payment_id="pay_settled", taken_usdt=Usdt(7)),
    refund("of_rub", payment_id="pay_settled", taken_rub=Rub(100)),
    refund("of_a_paid_one", payment_id="pay_paid", taken_rub=Rub(100)),
    refund("of_nothing", payment_id="pay_settled"),
]


def upgraded(connection: sa.Connection) -> dict[str, str | None]:
    """The rate of each, as the program reads it."""
    config = steps_on(connection)
    command.upgrade(config, "0027")
    for kind, records in ((Settlement, [STATEMENT]), (type(PAYMENTS[0]), PAYMENTS), (Refund, REFUNDS)):
        kept = keep(CATALOGUE)[kind]
        table = sa.Table(kept.name, sa.MetaData(), autoload_with=connection)
        rows = [dict(zip(kept.codec.names, kept.codec.encode(each), strict=True)) for each in records]
        connection.execute(table.insert(), [{name: row[name] for name in row if name in table.c} for row in rows])
    command.upgrade(config, "0028")
    codec = keep(CATALOGUE)[Refund].codec
    found = connection.execute(sa.text(f"SELECT {', '.join(codec.names)} FROM refunds"))
    return {each.id: each.rate_market for each in (codec.decode(tuple(row)) for row in found)}


async def test_the_rate_of_the_settlement_is_given_to_who_took_usdt(old_url: str) -> None:
    expected = dict.fromkeys((each.id for each in REFUNDS), None) | {"ref_of_usdt": "92.501"}
    assert await done_on(old_url, upgraded) == expected
