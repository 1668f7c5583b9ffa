"""A client's moves in KYC: requests, results and events (docs/kyc.md "In live mode"; docs/exchanges.md "Finding
exchanges and clients")."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import FieldFault, Refusal
from cambist.core.domain.kyc.clients import (
    IN_PROGRESS,
    KYC_MOVES,
    Client,
    ClientStatus,
    DocumentState,
    KycStatus,
    KycTrigger,
    client_status,
    is_verified_for_tests,
    operation_of,
    read_operation,
    staged,
)
from cambist.core.domain.kyc.kyc import (
    Finding,
    RegisterOrder,
    check_register,
    found,
    is_announced,
    needs_check,
    registering,
    taken_back,
)
from tests.tables import table

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
_S = KycStatus
KEY = "0123456789abcdef" * 4


def client(**more: Any) -> Client:
    made: dict[str, Any] = {
        "id": "00000000-0000-4000-8000-00000000000c",
        "account_id": "a",
        "mode": Mode.LIVE,
        "phone": b"",
        "phone_digest": b"",
        "kyc": _S.REQUIRED,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Client(**(made | more))


def finding(status: KycStatus, **more: Any) -> Finding:
    return Finding(status=status, reference="r", **more)


FINDABLE = (_S.REQUIRED, _S.PROCESSING, _S.VERIFIED, _S.FAILED)
TABLE = {(row.before, row.after) for row in KYC_MOVES.rows}


@table(("before", "status"), list(product(_S, FINDABLE)))
def test_a_finding_moves_a_client_as_the_table_says(before: KycStatus, status: KycStatus) -> None:
    start = client(kyc=before, verified_at=NOW if before is _S.VERIFIED else None, was_refused=before is _S.FAILED)
    after = found(start, finding(status), LATER)
    if (before, status) in TABLE:
        assert (after.kyc, after.updated_at, after.check_reference, after.request) == (status, LATER, "r", None)
        assert (after.verified_at is not None) == (status is _S.VERIFIED)
    elif (before, status) == (_S.VERIFIED, _S.FAILED):
        assert after == start  # nothing of a document: nothing new was said
    else:
        assert after == start


@table(("before", "after"), sorted(TABLE))
def test_every_move_of_the_table_is_one_that_something_makes(before: KycStatus, after: KycStatus) -> None:
    start = client(kyc=before)
    triggers = (KycTrigger.REGISTERED, KycTrigger.REGISTERED_ANEW)
    ends = {registering(start, "v", LATER).kyc} if any(KYC_MOVES.allows(before, each) for each in triggers) else set()
    ends |= {found(start, finding(status), LATER).kyc for status in FINDABLE}
    ends |= {taken_back(msgspec.structs.replace(start, was_refused=refused), LATER).kyc for refused in (False, True)}
    assert after in ends


@table(
    ("before", "refused", "status", "told"),
    [
        (_S.PROCESSING, False, _S.VERIFIED, True),
        (_S.PROCESSING, False, _S.FAILED, True),
        (_S.PROCESSING, True, _S.FAILED, True),
        (_S.REGISTERING, False, _S.PROCESSING, False),
        (_S.REQUIRED, False, _S.PROCESSING, False),
        (_S.FAILED, True, _S.VERIFIED, True),
        (_S.FAILED, True, _S.FAILED, False),
    ],
)
def test_only_decisions_make_events(before: KycStatus, refused: bool, status: KycStatus, told: bool) -> None:
    start = client(kyc=before, was_refused=refused)
    after = found(start, finding(status), LATER)
    assert is_announced(start, after) is told
    assert after.sequence == told, "an object's events are numbered from 1"


steps = st.lists(st.one_of(st.sampled_from(FINDABLE), st.sampled_from(["register", "take back", "block"])), max_size=20)


@given(steps, st.sampled_from([None, *DocumentState]))
def test_client_stays_consistent_after_any_steps(taken: list[Any], passport: DocumentState | None) -> None:
    """A date exactly while verified; event numbers rise; a decision to verify remains; an operation id is never
    reused."""
    present, operations = client(), set()
    for step in taken:
        before = present
        if step == "register":
            if needs_check(present):
                present = registering(present, "v", LATER)
                assert operation_of(present) not in operations
                operations.add(operation_of(present))
        elif step == "take back":
            present = taken_back(present, LATER)
        elif step == "block":
            present = msgspec.structs.replace(present, blocked=True)
        else:
            present = found(present, finding(step, passport=passport), LATER)
        assert (present.verified_at is not None) == (present.kyc is _S.VERIFIED)
        assert present.sequence >= before.sequence
        assert before.kyc is not _S.VERIFIED or present.kyc is _S.VERIFIED
        assert before.kyc is present.kyc or (before.kyc, present.kyc) in TABLE
        assert present.form_url is None or present.kyc is _S.REQUIRED


@table(
    ("fields", "expected"),
    [
        *(({"kyc": status}, ClientStatus.PENDING) for status in IN_PROGRESS),
        ({"kyc": _S.VERIFIED, "verified_at": NOW}, ClientStatus.VERIFIED),
        ({"kyc": _S.FAILED}, ClientStatus.REJECTED),
        ({"kyc": _S.VERIFIED, "verified_at": NOW, "blocked": True}, ClientStatus.BLOCKED),
        ({"kyc": _S.FAILED, "blocked": True}, ClientStatus.BLOCKED),
        ({"blocked": True}, ClientStatus.BLOCKED),
    ],
)
def test_the_status_of_lists_is_derived(fields: dict[str, Any], expected: ClientStatus) -> None:
    assert client_status(client(**fields)) is expected


@table(
    ("fields", "expected"),
    [
        ({"kyc": _S.REQUIRED}, True),
        ({"kyc": _S.REQUIRED, "form_url": "https://a"}, False),
        ({"kyc": _S.REGISTERING}, False),
        ({"kyc": _S.PROCESSING}, False),
        ({"kyc": _S.VERIFIED, "verified_at": NOW}, False),
        ({"kyc": _S.FAILED}, True),
        ({"kyc": _S.FAILED, "blocked": True}, False),
        ({"kyc": _S.REQUIRED, "blocked": True}, False),
    ],
)
def test_a_check_begins_where_none_is_under_way_and_nobody_is_verified(fields: dict[str, Any], expected: bool) -> None:
    """Otherwise the stored result is the answer (docs/kyc.md "Answers and errors")."""
    assert needs_check(client(**fields)) is expected


@table(("refused", "after"), [(False, _S.REQUIRED), (True, _S.FAILED)])
def test_an_intent_that_is_taken_back_leaves_the_client_as_before(refused: bool, after: KycStatus) -> None:
    intent = registering(client(kyc=_S.FAILED if refused else _S.REQUIRED, was_refused=refused), "v", NOW)
    assert intent.checks == 1
    back = taken_back(msgspec.structs.replace(intent, request=b"sealed"), LATER)
    assert (back.kyc, back.was_refused, back.request, back.updated_at) == (after, refused, None, LATER)
    assert taken_back(back, LATER + timedelta(minutes=1)) == back


@table(
    ("before", "refused", "status", "after"),
    [
        (_S.REGISTERING, True, _S.PROCESSING, True),
        (_S.REGISTERING, False, _S.PROCESSING, False),
        (_S.REGISTERING, True, _S.REQUIRED, True),
        (_S.PROCESSING, True, _S.VERIFIED, False),
        (_S.PROCESSING, False, _S.FAILED, True),
    ],
)
def test_a_refusal_is_known_until_the_next_decision(
    before: KycStatus, refused: bool, status: KycStatus, after: bool
) -> None:
    """The event of that one says from which it came (docs/payloads.md "KYC")."""
    assert found(client(kyc=before, was_refused=refused), finding(status), LATER).was_refused is after


def test_verified_client_that_is_refused_is_blocked_once() -> None:
    verified = found(client(kyc=_S.PROCESSING), finding(_S.VERIFIED, level=1, passport=DocumentState.PASSED), NOW)
    refusal = finding(_S.FAILED, level=1, passport=DocumentState.FAILED)
    blocked = found(verified, refusal, LATER)
    assert (blocked.kyc, blocked.blocked, blocked.verified_at) == (_S.VERIFIED, True, NOW)
    assert (blocked.passport_state, blocked.updated_at) == (DocumentState.FAILED, LATER)
    unblocked = msgspec.structs.replace(blocked, blocked=False)
    assert found(unblocked, refusal, LATER) == unblocked, "what an operator has decided about is no news"
    assert found(verified, finding(_S.PROCESSING, passport=DocumentState.FAILED), LATER) == verified


def test_a_form_is_of_a_client_that_has_it_to_fill_in() -> None:
    form = finding(_S.REQUIRED, form_url="https://a")
    assert found(client(kyc=_S.REGISTERING), form, LATER).form_url == "https://a"
    assert found(client(form_url="https://a"), finding(_S.PROCESSING, form_url="https://a"), LATER).form_url is None
    refused = client(kyc=_S.FAILED, was_refused=True)
    assert found(refused, form, LATER) == refused


@table(
    ("before", "wanted", "kyc", "level", "passport", "told"),
    [
        (_S.REQUIRED, ClientStatus.VERIFIED, _S.VERIFIED, 1, DocumentState.PASSED, True),
        (_S.REQUIRED, ClientStatus.REJECTED, _S.FAILED, 0, DocumentState.FAILED, True),
        (_S.FAILED, ClientStatus.VERIFIED, _S.VERIFIED, 1, DocumentState.PASSED, True),
        (_S.FAILED, ClientStatus.PENDING, _S.REQUIRED, 0, None, False),
        (_S.VERIFIED, ClientStatus.REJECTED, _S.FAILED, 0, DocumentState.FAILED, False),
        (_S.VERIFIED, ClientStatus.PENDING, _S.REQUIRED, 0, None, False),
    ],
)
def test_a_test_client_is_put_into_any_state(
    before: KycStatus, wanted: ClientStatus, kyc: KycStatus, level: int, passport: DocumentState | None, told: bool
) -> None:
    """Losing a verification sends no event (docs/sandbox.md "The calls")."""
    start = client(kyc=before, verified_at=NOW if before is _S.VERIFIED else None, level=1)
    after = staged(start, wanted, LATER)
    assert (client_status(after), after.kyc, after.level, after.passport_state) == (wanted, kyc, level, passport)
    assert (after.verified_at, after.updated_at) == (LATER if kyc is _S.VERIFIED else None, LATER)
    assert is_announced(start, after) is told
    assert staged(after, wanted, NOW) == after


@table(
    ("fields", "field"),
    [
        ({"phone": "+1900123456"}, "phone"),
        ({"selfie_key": KEY[:-1]}, "selfie_key"),
        ({"selfie_key": KEY, "document_key": KEY.upper()}, "document_key"),
        ({"address_key": f"{KEY}\n"}, "address_key"),
        ({"document_key": KEY, "address_key": KEY}, "document_key"),
        ({"email": "not an address"}, "email"),
        ({"user_type": "person"}, "user_type"),
    ],
)
def test_a_registration_of_the_wrong_shape_is_refused_by_its_field(fields: dict[str, str], field: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_register(RegisterOrder(**{"phone": "+79001234567", **fields}))
    assert caught.value.code == "VALIDATION_ERROR"
    assert [fault.path for fault in caught.value.details or () if isinstance(fault, FieldFault)] == [field]


def test_the_form_may_move_to_another_address() -> None:
    start = client(form_url="https://a", check_reference="r")
    moved = found(start, finding(_S.REQUIRED, form_url="https://b"), LATER)
    assert (moved.form_url, moved.updated_at) == ("https://b", NOW), "else a form would be asked for without an end"
    assert found(start, finding(_S.REQUIRED, form_url="https://a"), LATER) == start


def test_account_number_is_the_clients_id_if_the_verifier_gives_none() -> None:
    start = client(kyc=_S.PROCESSING)
    assert found(start, finding(_S.VERIFIED), LATER).account_number == start.id
    assert found(start, finding(_S.VERIFIED, account_number="7"), LATER).account_number == "7"


@given(st.uuids().map(str), st.integers(0, 10**9 - 1))
def test_an_operation_id_is_read_back(record_id: str, checks: int) -> None:
    assert read_operation(operation_of(client(id=record_id, checks=checks))) == (record_id, checks)


@given(st.text())
def test_reading_an_operation_id_never_fails(text: str) -> None:
    read_operation(text)
    read_operation(f"kyc_{text}")


@table(
    ("mode", "phone", "expected"),
    [
        (Mode.TEST, "+70000000000", True),
        (Mode.TEST, "+70000000009", True),
        (Mode.LIVE, "+70000000009", False),
        (Mode.TEST, "+700000000010", False),
        (Mode.TEST, "+7000000000", False),
        (Mode.TEST, "+7000000000x", False),
        (Mode.TEST, "+7000000000٣", False),
    ],
)
def test_phones_that_are_verified_in_test_mode(mode: Mode, phone: str, expected: bool) -> None:
    assert is_verified_for_tests(mode, phone) is expected
