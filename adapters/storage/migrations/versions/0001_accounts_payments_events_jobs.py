"""The first schema: accounts, payments, events, jobs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

# Compared by code points, as SQLite and Python do.
TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the first tables."""
    _accounts()
    _payments()
    _events()
    _jobs()


def _accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("default_shop_id", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("webhook_secret", sa.LargeBinary(), nullable=True),
        sa.Column("previous_secret", sa.LargeBinary(), nullable=True),
        sa.Column("previous_secret_until", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="accounts_id"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("secret_digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ends_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="api_keys_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("api_keys_account_id_ix", "api_keys", ["account_id"])
    op.create_table(
        "shops",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("name_folded", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("markup", TEXT, nullable=True),
        sa.Column("return_url", TEXT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="shops_id"),
    )
    op.create_index("shops_name", "shops", ["account_id", "name_folded"], unique=True)
    op.create_table(
        "terminals",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("label", TEXT, nullable=False),
        sa.Column("payment_method", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("required_fields", sa.Text(), nullable=False),
        sa.Column("own_lifetime", sa.Boolean(), nullable=False),
        sa.Column("direct_link", sa.Boolean(), nullable=False),
        sa.Column("credit_follows_receipt", sa.Boolean(), nullable=False),
        sa.Column("routes", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="terminals_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("terminals_account_id_created_at_id_ix", "terminals", ["account_id", "created_at", "id"])


def _payments() -> None:
    op.create_table(
        "payments",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("shop_id", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("payment_method", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("actual_amount", sa.BigInteger(), nullable=True),
        sa.Column("amount_usdt", sa.BigInteger(), nullable=True),
        sa.Column("external_id", TEXT, nullable=True),
        sa.Column("subscription_id", TEXT, nullable=True),
        sa.Column("period_ref", TEXT, nullable=True),
        sa.Column("description", TEXT, nullable=True),
        sa.Column("method_id", TEXT, nullable=True),
        sa.Column("ttl_minutes", sa.BigInteger(), nullable=True),
        sa.Column("metadata", sa.Text(), nullable=True),
        sa.Column("auto_return", sa.Boolean(), nullable=False),
        sa.Column("failure_reason", TEXT, nullable=True),
        sa.Column("refund_pending", sa.Boolean(), nullable=False),
        sa.Column("paid_at", sa.BigInteger(), nullable=True),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("private", sa.LargeBinary(), nullable=True),
        sa.Column("payer_contact", TEXT, nullable=True),
        sa.Column("payer_name", sa.LargeBinary(), nullable=True),
        sa.Column("key_id", TEXT, nullable=True),
        sa.Column("opening", TEXT, nullable=False),
        sa.Column("bank", TEXT, nullable=True),
        sa.Column("bank_reference", TEXT, nullable=True),
        sa.Column("qr_payload", TEXT, nullable=True),
        sa.Column("bank_link", TEXT, nullable=True),
        sa.Column("transfer_id", TEXT, nullable=True),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="payments_id"),
    )
    op.create_index(
        "payments_account_id_mode_created_at_id_ix",
        "payments",
        ["account_id", "mode", "created_at", "id"],
    )
    op.create_index(
        "payments_account_id_mode_shop_id_created_at_id_ix",
        "payments",
        ["account_id", "mode", "shop_id", "created_at", "id"],
    )
    op.create_index(
        "payments_account_id_mode_status_created_at_id_ix",
        "payments",
        ["account_id", "mode", "status", "created_at", "id"],
    )
    op.create_index(
        "payments_account_id_mode_external_id_created_at_id_ix",
        "payments",
        ["account_id", "mode", "external_id", "created_at", "id"],
    )
    op.create_index(
        "payments_account_id_mode_subscription_id_created_at_id_ix",
        "payments",
        ["account_id", "mode", "subscription_id", "created_at", "id"],
    )
    op.create_table(
        "tallies",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("period", TEXT, nullable=False),
        sa.Column("shop_id", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("payment_method", TEXT, nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="tallies_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "turnover",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("day", TEXT, nullable=False),
        sa.Column("shop_id", TEXT, nullable=False),
        sa.Column("payments", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="turnover_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "delivery_proofs",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("network", TEXT, nullable=False),
        sa.Column("tx_hash", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("status_at", sa.BigInteger(), nullable=False),
        sa.Column("submitted_at", sa.BigInteger(), nullable=False),
        sa.Column("submission", sa.BigInteger(), nullable=False),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("claim", TEXT, nullable=True),
        sa.Column("looks", sa.BigInteger(), nullable=False),
        sa.Column("final_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="delivery_proofs_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("delivery_proofs_claim", "delivery_proofs", ["claim"], unique=True)
    op.create_table(
        "suspense",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("payment_id", TEXT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("resolved_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="suspense_id"),
    )
    op.create_index("suspense_resolved_at_received_at_id_ix", "suspense", ["resolved_at", "received_at", "id"])
    op.create_index("suspense_account_id_resolved_at_ix", "suspense", ["account_id", "resolved_at"])
    op.create_table(
        "clients",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("phone", sa.LargeBinary(), nullable=False),
        sa.Column("phone_digest", sa.LargeBinary(), nullable=False),
        sa.Column("kyc", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("verifier", TEXT, nullable=True),
        sa.Column("check_reference", TEXT, nullable=True),
        sa.Column("verified_at", sa.BigInteger(), nullable=True),
        sa.Column("blocked", sa.Boolean(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="clients_id"),
    )
    op.create_index("clients_phone", "clients", ["phone_digest"], unique=True)
    op.create_table(
        "idempotency_keys",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("resource_id", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="idempotency_keys_id"),
        sqlite_with_rowid=False,
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("type", TEXT, nullable=False),
        sa.Column("object_id", TEXT, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="events_id"),
    )
    op.create_index("events_account_id_mode_created_at_id_ix", "events", ["account_id", "mode", "created_at", "id"])
    op.create_index(
        "events_account_id_mode_type_created_at_id_ix", "events", ["account_id", "mode", "type", "created_at", "id"]
    )
    op.create_index("events_object_id_ix", "events", ["object_id"])
    op.create_table(
        "deliveries",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("type", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=True),
        sa.Column("give_up_at", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("probes", sa.BigInteger(), nullable=False),
        sa.Column("ladder_start", sa.BigInteger(), nullable=False),
        sa.Column("first_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="deliveries_id"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "deliveries_account_id_mode_status_due_id_ix", "deliveries", ["account_id", "mode", "status", "due", "id"]
    )
    op.create_table(
        "attempts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("event_id", TEXT, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("probe", sa.Boolean(), nullable=False),
        sa.Column("sent_at", sa.BigInteger(), nullable=False),
        sa.Column("answer", TEXT, nullable=False),
        sa.Column("status", sa.BigInteger(), nullable=True),
        sa.Column("note", TEXT, nullable=False),
        sa.Column("took_ms", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="attempts_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "breakers",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("failed_events", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=True),
        sa.Column("next_probe_at", sa.BigInteger(), nullable=True),
        sa.Column("probes", sa.BigInteger(), nullable=False),
        sa.Column("probed", TEXT, nullable=True),
        sa.Column("reset_at", sa.BigInteger(), nullable=True),
        sa.Column("last_success_at", sa.BigInteger(), nullable=True),
        sa.Column("last_failure_at", sa.BigInteger(), nullable=True),
        sa.Column("last_failed_event", TEXT, nullable=True),
        sa.Column("last_answer", TEXT, nullable=True),
        sa.Column("last_status", sa.BigInteger(), nullable=True),
        sa.Column("last_note", TEXT, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="breakers_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "feed_entries",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("account_id", TEXT, nullable=False),
        sa.Column("event_id", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("resent", sa.Boolean(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="feed_entries_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("feed_entries_account_id_position_id_ix", "feed_entries", ["account_id", "position", "id"])
    op.create_table(
        "feeds",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="feeds_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "gateways",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("since", sa.BigInteger(), nullable=True),
        sa.Column("announced", TEXT, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="gateways_id"),
        sqlite_with_rowid=False,
    )


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("argument", TEXT, nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("leased_until", sa.BigInteger(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("asked", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="jobs_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("jobs_due_id_ix", "jobs", ["due", "id"])
    op.create_table(
        "provider_notes",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("provider", TEXT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="provider_notes_id"),
    )
    op.create_table(
        "heartbeat",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("beaten_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="heartbeat_id"),
    )
