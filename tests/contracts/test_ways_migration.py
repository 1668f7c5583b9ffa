"""Transfers of exchanges that a database has already: migration 0015 takes their hashes out of where they are, so that
the console finds them by an index."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import command

from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.exchanges.funds import ExchangeTransfer, deposit_source, transfer_id
from cambist.core.domain.exchanges.returns import MoneyReturn
from cambist.core.domain.ledger import Currency
from tests.contracts.migration_kit import done_on, old_url, steps_on

__all__ = ["old_url"]

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TRON, OTHER, BACK = "a" * 64, "0x" + "b" * 64, "c" * 64
NEW = ("came_by", "went_by")


def transfer(source: str, currency: Currency, back: str | None = None) -> ExchangeTransfer:
    sent = MoneyReturn(operation="op", number=1, amount=1, created_at=NOW, tx_hash=back)
    return ExchangeTransfer(
        id=transfer_id("exch_1", source), exchange_id="exch_1", account_id="acc_1", mode=Mode.LIVE, currency=currency,
        amount=1, received_at=NOW, sent_back=sent if back else None,
    )  # fmt: skip


TRANSFERS = [
    transfer(deposit_source(TRON, 0), Currency.USDT),
    transfer(deposit_source(OTHER, 12), Currency.USDT, BACK),
    transfer("the bank's id", Currency.RUB),
]


def upgraded(connection: sa.Connection) -> set[tuple[str, str | None, str | None]]:
    config = steps_on(connection)
    command.upgrade(config, "0014")
    table = sa.Table("exchange_transfers", sa.MetaData(), autoload_with=connection)
    codec = keep(CATALOGUE)[ExchangeTransfer].codec
    rows: list[dict[str, Any]] = [dict(zip(codec.names, codec.encode(each), strict=True)) for each in TRANSFERS]
    connection.execute(table.insert(), [{k: v for k, v in row.items() if k not in NEW} for row in rows])
    command.upgrade(config, "0015")
    return {tuple(row) for row in connection.execute(sa.text("SELECT id, came_by, went_by FROM exchange_transfers"))}


async def test_hashes_are_taken_out_of_where_they_are(old_url: str) -> None:
    assert await done_on(old_url, upgraded) == {
        (TRANSFERS[0].id, TRON, None),
        (TRANSFERS[1].id, OTHER, BACK),
        (TRANSFERS[2].id, None, None),
    }
