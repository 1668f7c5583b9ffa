"""Database of `benchmarks.console_screens`: a month of payments of several merchants, with their events, deliveries,
entries and refunds."""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from benchmarks.rows import rows_into
from cambist.adapters.storage.migrate import migrate
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Account, Mode
from cambist.core.domain.ledger import BalanceType, EntryKind, JournalEntry, Posting, entry_id
from cambist.core.domain.money import Rub
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.payments.payments import Opening, Payment, PaymentStatus
from cambist.core.domain.payments.tallies import Tally, tallies_of
from cambist.core.domain.refunds.refunds import Refund, RefundStatus
from cambist.core.domain.webhooks.delivery import attempt_id
from cambist.core.domain.webhooks.events import Attempt, Delivery, DeliveryStatus, Event, EventType
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.common.encrypted import event_body_aad
from cambist.ports.vault import Vault
from tests.console.seeds import everything_there_is
from tests.invariants import everything
from tests.refund_app import open_refund_app

START = datetime(2025, 12, 1, tzinfo=UTC)
SPREAD = timedelta(days=30)
BATCH = 20_000
MERCHANTS = 20
_S = PaymentStatus
_STATUSES, _WEIGHTS = (_S.PAID, _S.FAILED, _S.EXPIRED, _S.CANCELLED), (9_400, 300, 290, 10)
_RARE = 20_000
"""One in this many is of a rare kind: an event, a delivery, a payment in review."""


class _Rows:
    """Generator of rows for several merchants."""

    def __init__(self, vault: Vault, accounts: list[Account], count: int, chained: int) -> None:
        self.vault = vault
        self.chance = random.Random(1)
        self.accounts = accounts
        self.count = count
        self.chained = chained
        self.counts: Counter[Tally] = Counter()

    def rows(self, number: int) -> Iterator[Any]:
        """Yield a payment and its related records."""
        moment, rare = START + SPREAD * (number / self.count), number % _RARE == 7
        payment = self._payment(number, moment, rare=rare)
        self.counts.update(tallies_of(payment, 1))
        yield payment
        kind = EventType.REFUND_FAILED if rare else EventType.PAYMENT_STATUS_CHANGED
        ended = number % _RARE != 11
        event_id = self._id("evt_", moment)
        body = self.vault.encrypt(b'{"event":"payment.status_changed","data":{}}', event_body_aad(event_id))
        event = Event(
            id=event_id, account_id=payment.account_id, mode=payment.mode, type=kind,
            object_id=payment.id, sequence=1, body=body, created_at=moment,
        )  # fmt: skip
        yield event
        delivery = Delivery(
            id=event.id, account_id=payment.account_id, mode=payment.mode, type=kind, created_at=moment, attempts=1,
            status=DeliveryStatus.DELIVERED if ended else DeliveryStatus.FAILED,
        )  # fmt: skip
        yield delivery
        yield Attempt(
            id=attempt_id(delivery, 1), event_id=event.id, number=1, probe=False, sent_at=moment, answer="responded",
            status=200 if ended else 500, note="", took_ms=40,
        )  # fmt: skip
        yield self._entry(payment, moment)
        if number % 20 == 0:
            yield self._refund(payment, moment, number, rare=rare)
            yield AuditEntry(
                id=self._id("aud_", moment), at=moment, operator="ivan", action="refund.approve", object_id=payment.id,
                account_id=payment.account_id, reason="as agreed", before="status=pending", after="status=processing",
            )  # fmt: skip

    def _payment(self, number: int, moment: datetime, *, rare: bool) -> Payment:
        account = self.chance.choice(self.accounts)
        status = _S.AMOUNT_MISMATCH if rare else self.chance.choices(_STATUSES, _WEIGHTS)[0]
        amount, paid = Rub(self.chance.randrange(10_00, 99_999_99)), status is _S.PAID
        return Payment(
            id=self._id("pay_", moment), account_id=account.id, mode=Mode.TEST if number % 50 == 3 else Mode.LIVE,
            shop_id=account.default_shop_id, status=status, amount=amount, opening=Opening.OPEN,
            actual_amount=amount if paid else None, paid_at=moment if paid else None,
            payment_method="recurring" if number % 20 == 5 else "sbp", created_at=moment,
            expires_at=moment + timedelta(minutes=15), external_id=f"order-{number}", bank="simulator-live",
            payer_contact=f"***{number % 10_000:04}",
        )  # fmt: skip

    def _entry(self, payment: Payment, moment: datetime) -> JournalEntry:
        self.chained += 1
        moved = payment.amount.kopecks
        return JournalEntry(
            id=entry_id(EntryKind.RECEIPT, payment.id, 1), kind=EntryKind.RECEIPT, object_id=payment.id, revision=1,
            account_id=payment.account_id, mode=payment.mode, at=moment, number=self.chained, place=0, seal=b"x" * 64,
            postings=(
                Posting(balance_type=BalanceType.BANK, amount=-moved),
                Posting(balance_type=BalanceType.PENDING, amount=moved),
            ),
        )  # fmt: skip

    def _refund(self, payment: Payment, moment: datetime, number: int, *, rare: bool) -> Refund:
        return Refund(
            id=self._id("ref_", moment), payment_id=payment.id, account_id=payment.account_id, mode=payment.mode,
            shop_id=payment.shop_id, status=RefundStatus.REJECTED if rare else RefundStatus.COMPLETED,
            amount=payment.amount, reason="changed their mind", created_at=moment, external_id=f"back-{number}",
        )  # fmt: skip

    def _id(self, prefix: str, moment: datetime) -> str:
        stamp = int(moment.timestamp() * 1000)
        return f"{prefix}{UUID(int=stamp << 80 | 0x7 << 76 | 0b10 << 62 | self.chance.getrandbits(62))}"


async def fill(url: str, folder: Path, count: int) -> None:
    """Create one record of each kind, and `count` payments of several merchants with their related records."""
    await migrate(url)
    async with open_refund_app(made_up=True, database_url=url, data_dir=folder) as refunds:
        await everything_there_is(refunds)
        made = [(await create_account(refunds.ports, f"Merchant {each}")).account_id for each in range(MERCHANTS)]
        accounts = [each for each in await everything(refunds.ports, Account) if each.id in made]
        vault = refunds.ports.vault
        entries = await everything(refunds.ports, JournalEntry)
    world = _Rows(vault, accounts, count, max(each.number or 0 for each in entries) + 1000)
    maps, rows = keep(CATALOGUE), await rows_into(url)
    for first in range(0, count, BATCH):
        batch: dict[type[Any], list[Any]] = {}
        for number in range(first, min(first + BATCH, count)):
            for record in world.rows(number):
                batch.setdefault(type(record), []).append(maps[type(record)].codec.encode(record))
        for kind, made in batch.items():
            await rows.write(maps[kind], made)
    tallies = [msgspec.structs.replace(tally, count=number) for tally, number in world.counts.items()]
    await rows.write(maps[Tally], [maps[Tally].codec.encode(each) for each in tallies])
    await rows.close()
