"""The ways to exchanges and their transfers by transaction hashes, and to settlement batches by when they started."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
SPARSE = (("exchanges", "tx_hash"), ("exchange_transfers", "came_by"), ("exchange_transfers", "went_by"))


def upgrade() -> None:
    """Take the hashes out of where transfers have them already, and make the indexes."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    # SQLite alone cannot say where a column goes, so its table is written anew.
    with op.batch_alter_table(
        "exchange_transfers", recreate="always" if sqlite else "never", table_kwargs={"sqlite_with_rowid": False}
    ) as transfers:
        transfers.add_column(sa.Column("came_by", TEXT, nullable=True), insert_after="sent_back" if sqlite else None)
        transfers.add_column(sa.Column("went_by", TEXT, nullable=True), insert_after="came_by" if sqlite else None)
    # An id is the exchange's, a colon, and the source: the hash, and perhaps a colon and which of its transfers it is.
    source = "substr(id, length(exchange_id) + 2)"
    came = f"substr({source}, 1, instr({source} || ':', ':') - 1)" if sqlite else f"split_part({source}, ':', 1)"
    back = "json_extract(sent_back, '$.tx_hash')" if sqlite else "(CAST(sent_back AS json) ->> 'tx_hash')"
    op.execute(f"UPDATE exchange_transfers SET came_by = {came} WHERE currency = 'USDT'")  # noqa: S608
    op.execute(f"UPDATE exchange_transfers SET went_by = {back} WHERE sent_back IS NOT NULL")  # noqa: S608
    for table, field in SPARSE:
        some = sa.text(f"{field} IS NOT NULL")
        op.create_index(f"{table}_{field}_id_ix", table, [field, "id"], postgresql_where=some, sqlite_where=some)
    op.create_index("settlement_batches_started_at_id_ix", "settlement_batches", ["started_at", "id"])
