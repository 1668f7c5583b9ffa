"""Webhook signatures (docs/webhooks.md "The signature")."""

import ast
import base64
import hashlib
import hmac
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from cambist.core.domain.webhooks import signing
from cambist.core.domain.webhooks.signing import Flaw, NotVerified, Signer, headers, standard_secret, verify_signature
from tests.tables import table

HEX = "9f" * 32
"""A secret made by the service: 64 hex characters, which happen to be valid base64, too."""
TEXT = "Тайна: не base64!"
STANDARD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"""The secret, id, time, body and signature that the Standard Webhooks specification and its libraries use."""
EVENT_ID = "evt_0197c1d0-5b7e-7000-8000-000000000001"
BODY = b'{"event":"payment.status_changed","payer_name":"\xd0\x98\xd0\xb2\xd0\xb0\xd0\xbd"}'
NOW = 1_760_000_000


def sent(
    secret: str = HEX, *, previous: str | None = None, timestamp: int = NOW, event_id: str = EVENT_ID
) -> dict[str, str]:
    return headers(
        Signer(secret),
        previous=None if previous is None else Signer(previous),
        event_id=event_id,
        event="payment.status_changed",
        sequence=3,
        attempt=2,
        timestamp=timestamp,
        body=BODY,
    )


def flaw_of(given: dict[str, str], body: bytes = BODY, secrets: tuple[str, ...] = (HEX,), now: float = NOW) -> Flaw:
    with pytest.raises(NotVerified) as caught:
        verify_signature(given, body, secrets, now)
    return caught.value.flaw


# The signatures themselves


@table(
    ("key", "data", "expected"),
    [
        # RFC 4231, test cases 1, 2, 3 and 6 (a key longer than a block); the data is split where ours is joined.
        (b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (b"\xaa" * 20, b"\xdd" * 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
        (
            b"\xaa" * 131,
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ],
)
def test_the_prekeyed_hash_is_hmac_sha256_as_rfc_4231_has_it(key: bytes, data: bytes, expected: str) -> None:
    assert signing._Key(key).sign(data[:5], data[5:]).hexdigest() == expected


def test_signature_covers_timestamp_dot_body_keyed_with_the_secrets_text() -> None:
    """The value was computed with `openssl dgst -sha256 -hmac`."""
    signature = Signer("merchant-secret").signature(1760000000, b'{"event":"payment.status_changed"}')
    assert signature == "sha256=233435d9a30cb0832428f446aa85ca74856b71606b2850102d1ec97f4477fa60"


@given(st.text(min_size=1, max_size=200).filter(lambda text: text.isprintable()), st.integers(0, 10**11), st.binary())
@example("k" * 64, 0, b"")
@example("k" * 65, 1, b".")
def test_the_signature_equals_what_the_hmac_module_makes(secret: str, timestamp: int, body: bytes) -> None:
    expected = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert Signer(secret).signature(timestamp, body) == f"sha256={expected}"


def test_a_signer_signs_again_and_again() -> None:
    """The keyed states are copied, never used up."""
    signer = Signer(HEX)
    assert signer.signature(NOW, BODY) == signer.signature(NOW, BODY) != signer.signature(NOW + 1, BODY)


def test_an_empty_secret_is_refused_because_everybody_could_sign() -> None:
    with pytest.raises(ValueError, match="may not be empty"):
        Signer("")


def test_a_signer_does_not_show_its_secret() -> None:
    signer = Signer(HEX)
    assert HEX not in repr(signer)
    assert not hasattr(signer, "__dict__")


# Standard Webhooks


def test_the_standard_signature_is_the_one_of_the_standards_own_example() -> None:
    signature = Signer(STANDARD).standard_signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def accepts(library_secret: str | bytes, given: dict[str, str]) -> bool:
    try:
        Webhook(library_secret).verify(BODY, given, json_parse=False)
    except WebhookVerificationError:
        return False
    return True


@pytest.fixture
def fresh() -> int:
    """The library reads the real clock."""
    return int(datetime.now(UTC).timestamp())


@pytest.mark.parametrize(
    "secret",
    [HEX, TEXT, STANDARD, "short", "whsec_not base64", "c2VjcmV0", "c2VjcmV0cw", "c2VjcmV0czE", "c2VjcmV0czEyMw"],
)
def test_the_standardwebhooks_library_verifies_ours_with_standard_secret(secret: str, fresh: int) -> None:
    """Standard Webhooks libraries verify our signature unchanged (docs/webhooks.md "The signature"), for any secret."""
    given = sent(secret, timestamp=fresh)
    assert accepts(standard_secret(secret), given)
    assert not accepts(standard_secret("another"), given)


@pytest.mark.parametrize("secret", [HEX, STANDARD, "c2VjcmV0", "c2VjcmV0cw", "c2VjcmV0czE", "c2VjcmV0czEyMw"])
def test_standardwebhooks_library_verifies_ours_with_a_base64_secret(secret: str, fresh: int) -> None:
    assert accepts(secret, sent(secret, timestamp=fresh))


@pytest.mark.parametrize("secret", [HEX, TEXT])
def test_the_standardwebhooks_library_verifies_ours_with_the_secrets_bytes(secret: str, fresh: int) -> None:
    assert accepts(secret.encode(), sent(secret, timestamp=fresh))


def test_the_standardwebhooks_library_refuses_another_body_or_id(fresh: int) -> None:
    """The other half of the proof above: the library does reject a wrong signature."""
    given = sent(timestamp=fresh)
    assert not accepts(HEX, {**given, "webhook-id": "evt_2"})
    with pytest.raises(WebhookVerificationError):
        Webhook(HEX).verify(BODY + b" ", given, json_parse=False)


def test_standard_secret_is_the_secret_itself_or_whsec_of_its_utf8() -> None:
    assert standard_secret(STANDARD) == STANDARD
    for secret in (TEXT, "whsec_abcd!", "whsec_"):
        assert standard_secret(secret) == "whsec_" + base64.b64encode(secret.encode()).decode()


# The headers


def test_an_attempt_carries_all_headers_of_spec_and_decisions_7() -> None:
    given = sent()
    signer = Signer(HEX)
    assert given == {
        "Content-Type": "application/json",
        "User-Agent": "cambist/1",
        "X-Webhook-Id": EVENT_ID,
        "X-Webhook-Timestamp": str(NOW),
        "X-Webhook-Signature": signer.signature(NOW, BODY),
        "X-Webhook-Event": "payment.status_changed",
        "X-Webhook-Attempt": "2",
        "X-Webhook-Sequence": "3",
        "webhook-id": EVENT_ID,
        "webhook-timestamp": str(NOW),
        "webhook-signature": signer.standard_signature(EVENT_ID, NOW, BODY),
    }


def test_rotation_signs_our_header_with_the_old_secret_and_theirs_by_both(fresh: int) -> None:
    """For 24 hours `X-Webhook-Signature` uses the old secret, and `webhook-signature` carries both
    (docs/webhooks.md "Changing the secret")."""
    given = sent("new secret", previous="old secret", timestamp=fresh)
    assert given["X-Webhook-Signature"] == Signer("old secret").signature(fresh, BODY)
    assert len(given["webhook-signature"].split(" ")) == 2
    for secret in ("old secret", "new secret"):
        assert accepts(standard_secret(secret), given)


@given(st.text(min_size=1).filter(str.isprintable))
def test_headers_are_plain_ascii_without_line_breaks_whatever_the_secret(secret: str) -> None:
    for name, value in sent(secret).items():
        assert name.isascii()
        assert value.isascii()
        assert value.isprintable()


# Verifying


@table("secret", [HEX, TEXT, STANDARD])
def test_genuine_request_verifies_and_returns_the_event_id(secret: str) -> None:
    assert verify_signature(sent(secret), BODY, [secret], NOW) == EVENT_ID


def test_header_names_may_come_in_any_case() -> None:
    assert verify_signature({name.upper(): value for name, value in sent().items()}, BODY, [HEX], NOW) == EVENT_ID


@table("secrets", [("new", "old"), ("old", "new"), ("old",)])
def test_request_of_a_rotation_verifies_with_the_old_or_both_secrets(
    secrets: tuple[str, ...],
) -> None:
    assert verify_signature(sent("new", previous="old"), BODY, secrets, NOW) == EVENT_ID


def test_receiver_with_both_secrets_verifies_after_the_rotation() -> None:
    assert verify_signature(sent("new"), BODY, ["old", "new"], NOW) == EVENT_ID


@table("off", [-300, -1, 0, 1, 300])
def test_a_timestamp_within_the_tolerance_of_five_minutes_is_taken(off: int) -> None:
    assert verify_signature(sent(timestamp=NOW + off), BODY, [HEX], NOW) == EVENT_ID


def test_an_old_or_a_future_request_is_refused_though_its_signature_holds() -> None:
    assert flaw_of(sent(timestamp=NOW - 301)) is Flaw.TOO_OLD
    with pytest.raises(NotVerified, match=r"^sent more than 300 s ago, or a clock is wrong$"):
        verify_signature(sent(timestamp=NOW - 301), BODY, (HEX,), NOW)
    assert flaw_of(sent(timestamp=NOW + 301)) is Flaw.TOO_NEW
    assert verify_signature(sent(timestamp=NOW - 301), BODY, [HEX], NOW, tolerance=400) == EVENT_ID


def test_another_body_secret_or_timestamp_is_a_wrong_signature() -> None:
    assert flaw_of(sent(), body=BODY + b"\n") is Flaw.WRONG_SIGNATURE
    assert flaw_of(sent(), secrets=("another",)) is Flaw.WRONG_SIGNATURE
    assert flaw_of(sent(), secrets=()) is Flaw.WRONG_SIGNATURE
    assert flaw_of({**sent(), "X-Webhook-Timestamp": str(NOW + 1)}) is Flaw.WRONG_SIGNATURE
    assert flaw_of({**sent(), "X-Webhook-Signature": ""}) is Flaw.WRONG_SIGNATURE


def test_a_captured_request_sent_again_under_another_id_is_refused() -> None:
    """X-Webhook-Signature does not cover the id (docs/webhooks.md "The signature"); webhook-signature does."""
    assert flaw_of({**sent(), "X-Webhook-Id": "evt_other"}) is Flaw.WRONG_ID
    assert flaw_of({**sent(), "X-Webhook-Id": "evt_other", "webhook-id": "evt_other"}) is Flaw.WRONG_ID
    stripped = sent()
    del stripped["webhook-signature"]
    assert flaw_of({**stripped, "X-Webhook-Id": "evt_other"}) is Flaw.MISSING_HEADER


def test_the_standard_signature_alone_is_not_enough() -> None:
    assert flaw_of({**sent(), "X-Webhook-Signature": "sha256=" + "0" * 64}) is Flaw.WRONG_SIGNATURE


@table("name", ["X-Webhook-Id", "X-Webhook-Timestamp", "X-Webhook-Signature", "webhook-signature"])
def test_a_missing_header_is_named(name: str) -> None:
    given = sent()
    del given[name]
    with pytest.raises(NotVerified, match=name) as caught:
        verify_signature(given, BODY, [HEX], NOW)
    assert caught.value.flaw is Flaw.MISSING_HEADER


@table("odd", ["", " ", "now", "1e9", "-1", "+1760000000", "1760000000.0", "1_760_000_000", f"{NOW}\n", "9" * 5000])
def test_a_timestamp_that_is_no_plain_number_is_malformed(odd: str) -> None:
    assert flaw_of({**sent(), "X-Webhook-Timestamp": odd}) is Flaw.MALFORMED_HEADER


@given(
    st.sampled_from(["X-Webhook-Id", "X-Webhook-Timestamp", "X-Webhook-Signature", "webhook-signature"]),
    st.text() | st.none() | st.integers() | st.binary() | st.lists(st.text()) | st.text(alphabet="v1, =/+"),
)
@example("X-Webhook-Signature", "sha256=ключ")
@example("X-Webhook-Timestamp", "١٧٦٠٠٠٠٠٠٠")
@example("X-Webhook-Signature", "\udcff")
@example("webhook-signature", "v1,")
def test_odd_header_values_are_refused_with_a_reason(name: str, odd: object) -> None:
    """`hmac.compare_digest` raises TypeError for text outside ASCII; a forged header must not make a 500 of it."""
    given: dict[str, object] = {**sent(), name: odd}
    with pytest.raises(NotVerified) as caught:
        verify_signature(given, BODY, [HEX], NOW)  # type: ignore[arg-type] # a careless framework hands over such values
    assert isinstance(caught.value.flaw, Flaw)
    assert str(caught.value)


def test_a_refusal_shows_neither_secret_nor_signature() -> None:
    with pytest.raises(NotVerified) as caught:
        verify_signature(sent("another"), BODY, [HEX], NOW)
    assert HEX not in repr(caught.value)
    assert Signer(HEX).signature(NOW, BODY) not in str(caught.value)


def test_signing_module_needs_only_the_standard_library() -> None:
    tree = ast.parse(Path(signing.__file__).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    froms = {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    assert {name.partition(".")[0] for name in imported | froms} <= sys.stdlib_module_names
