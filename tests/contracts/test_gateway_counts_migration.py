"""Events about gateways that accounts were told before they were counted: migration 0036 goes on from their numbers
(docs/decisions.md "Numbers of a gateway's events")."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import command

from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.storage.table.table_map import keep
from cambist.core.domain.accounts.accounts import Account
from cambist.core.domain.gateways.gateways import Gateway, GatewayCount, own_id
from tests.contracts.migration_kit import done_on, old_url, steps_on

__all__ = ["old_url"]

NOW = datetime(2026, 11, 23, tzinfo=UTC)
ACCOUNTS = [Account(id=each, name=each, default_shop_id="shop", created_at=NOW) for each in ("acc_1", "acc_2")]
GATEWAYS = [
    Gateway(id="bank", sequence=7),
    Gateway(id="never_told"),
    Gateway(id=own_id("acc_1", "bank"), sequence=3),
    Gateway(id=own_id("acc_1", "only_simulated"), sequence=2),
    Gateway(id=own_id("acc_2", "never_told")),
]


def upgraded(connection: sa.Connection) -> dict[str, int]:
    """The counts, as the program reads them."""
    config = steps_on(connection)
    command.upgrade(config, "0035")
    for kind, records in ((Account, ACCOUNTS), (Gateway, GATEWAYS)):
        kept = keep(CATALOGUE)[kind]
        table = sa.Table(kept.name, sa.MetaData(), autoload_with=connection)
        rows = [dict(zip(kept.codec.names, kept.codec.encode(each), strict=True)) for each in records]
        connection.execute(table.insert(), [{name: row[name] for name in row if name in table.c} for row in rows])
    command.upgrade(config, "0036")
    codec = keep(CATALOGUE)[GatewayCount].codec
    found = connection.execute(sa.text(f"SELECT {', '.join(codec.names)} FROM gateway_counts"))
    return {each.id: each.told for each in (codec.decode(tuple(row)) for row in found)}


async def test_accounts_of_before_go_on_from_the_last_number_that_they_can_have_been_told(old_url: str) -> None:
    expected = {"acc_1/bank": 10, "acc_2/bank": 7, "acc_1/only_simulated": 2}
    assert await done_on(old_url, upgraded) == expected
