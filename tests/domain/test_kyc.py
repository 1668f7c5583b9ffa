"""A client's moves: what is asked, what is found, what is told (docs/kyc.md "In live mode";
docs/exchanges.md "Finding exchanges and clients")."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Mode
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
)
from cambist.core.domain.kyc.kyc import Finding, found, is_announced, needs_check, registering, taken_back
from tests.tables import table

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
_S = KycStatus


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
def test_decisions_are_told_and_nothing_else(before: KycStatus, refused: bool, status: KycStatus, told: bool) -> None:
    start = client(kyc=before, was_refused=refused)
    assert is_announced(start, found(start, finding(status), LATER)) is told


steps = st.lists(st.one_of(st.sampled_from(FINDABLE), st.sampled_from(["register", "take back", "block"])), max_size=20)


@given(steps, st.sampled_from([None, *DocumentState]))
def test_whatever_happens_a_client_makes_sense(taken: list[Any], passport: DocumentState | None) -> None:
    """A date exactly while verified; events rise; a decision to verify stands; the operation id never comes again."""
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


def test_the_form_may_move_to_another_address() -> None:
    start = client(form_url="https://a", check_reference="r")
    moved = found(start, finding(_S.REQUIRED, form_url="https://b"), LATER)
    assert (moved.form_url, moved.updated_at) == ("https://b", NOW), "else a form would be asked for without an end"
    assert found(start, finding(_S.REQUIRED, form_url="https://a"), LATER) == start


def test_without_a_number_of_the_verifier_the_client_s_id_is_the_account_number() -> None:
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
