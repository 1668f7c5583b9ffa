"""Content of a row of the audit log, and data that it must never contain (docs/console.md "The audit log")."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import ApiKey, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import SAFE, OperatorAction, changes, checked
from cambist.core.domain.refunds.refunds import RefundStatus
from tests.domain import exchange_kit
from tests.domain.refund_kit import NOW, payment, refund
from tests.tables import table

replaced = msgspec.structs.replace


@table(
    ("given", "kept"),
    [
        ({"operator": " olga "}, ("olga", "")),
        ({"operator": "o"}, ("o", "")),
        ({"operator": "x" * 64}, ("x" * 64, "")),
        ({"reason": " the payer called "}, ("olga", "the payer called")),
        ({"reason": "x" * 255}, ("olga", "x" * 255)),
        ({"operator": " "}, None),
        ({"operator": "x" * 65}, None),
        ({"operator": "a\nb"}, None),
        ({"reason": "x" * 256}, None),
        ({"reason": "a\tb"}, None),
    ],
)
def test_a_name_and_a_reason_are_short_and_printable(given: dict[str, str], kept: tuple[str, str] | None) -> None:
    action = replaced(OperatorAction(operator="olga", name="x"), **given)
    if kept is None:
        with pytest.raises(Refusal):
            checked(action)
    else:
        assert (checked(action).operator, checked(action).reason) == kept


@table("kind", SAFE, ids=lambda kind: kind.__name__)
def test_rows_show_no_encrypted_field(kind: type[Any]) -> None:
    types = {field.name: str(field.type) for field in msgspec.structs.fields(kind)}
    assert all("bytes" not in types[name] for name in SAFE[kind])
    assert not {"phone", "wallet", "metadata", "reason_text", "payer_contact"} & set(SAFE[kind])


KEY = ApiKey(id="pk_1", account_id="acc_1", mode=Mode.LIVE, secret_digest=b"d", created_at=NOW)
WAITS = refund(RefundStatus.PENDING)


@table(
    ("before", "after", "was", "becomes"),
    [
        (WAITS, replaced(WAITS, status=RefundStatus.REJECTED), "status=pending", "status=rejected"),
        (WAITS, WAITS, "", ""),
        # A field that was empty is left out of the state before, unless it is the only one that changed.
        (
            WAITS,
            replaced(WAITS, status=RefundStatus.PROCESSING, approved_at=datetime(2026, 11, 26, 12, tzinfo=UTC)),
            "status=pending",
            "status=processing approved_at=2026-11-26T12:00:00.000Z",
        ),
        (KEY, replaced(KEY, name="till"), "name=-", "name=till"),
        (KEY, replaced(KEY, rights=("payments", "refunds")), "rights=-", "rights=payments,refunds"),
        # A new record has no before.
        (None, KEY, "", "mode=live"),
        (payment(), payment(refund_pending=True), "refund_pending=false", "refund_pending=true"),
        # Unsafe values are not logged: a secret only as set or unset, an unknown kind not at all.
        (
            exchange_kit.account(),
            replaced(exchange_kit.account(refunds=True), webhook_secret=b"sealed"),
            "refunds=false webhook_secret_set=false",
            "refunds=true webhook_secret_set=true",
        ),
        (exchange_kit.account(), replaced(exchange_kit.account(), settings_tag=b"tag"), "", ""),
        (None, object(), "", ""),
        # And not at length.
        (KEY, replaced(KEY, name="x" * 495), "name=-", f"name={'x' * 495}"),
        (KEY, replaced(KEY, name="x" * 496), "name=-", f"name={'x' * 494}…"),
    ],
)
def test_a_row_says_what_changed_in_safe_words(before: Any, after: Any, was: str, becomes: str) -> None:
    assert changes(before, after) == (was, becomes)
