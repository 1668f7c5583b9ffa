"""Payments by the ten thousand, which no list shall read as a whole."""

import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

from benchmarks.rows import rows_into
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from tests.invariants import everything
from tests.refund_app import RefundApp

START = datetime(2025, 12, 1, tzinfo=UTC)
SPREAD = timedelta(days=30)


async def fill(refunds: RefundApp, url: str, count: int) -> None:
    """Write so many of the app's merchant into its database, of both modes, that are over."""
    [account] = await everything(refunds.ports, Account)
    assert isinstance(account, Account)
    chance = random.Random(1)
    payments = keep(CATALOGUE)[Payment]
    made = []
    for number in range(count):
        moment = START + SPREAD * (number / count)
        stamp = int(moment.timestamp() * 1000)
        made.append(
            Payment(
                id=f"pay_{UUID(int=stamp << 80 | 0x7 << 76 | 0b10 << 62 | chance.getrandbits(62))}",
                account_id=account.id,
                mode=chance.choice(tuple(Mode)),
                shop_id=account.default_shop_id,
                status=chance.choice((PaymentStatus.FAILED, PaymentStatus.EXPIRED, PaymentStatus.CANCELLED)),
                amount=Rub(chance.randrange(10_00, 9_999_99)),
                payment_method="sbp",
                created_at=moment,
                expires_at=moment + timedelta(minutes=15),
                external_id=f"bulk-{number}",
            )
        )
    rows = await rows_into(url)
    await rows.write(payments, [payments.codec.encode(each) for each in made])
    await rows.close()
