"""Signatures of notifications: known vectors, and the algorithms that we allow (docs/providers/sumsub.md
"Notifications")."""

from datetime import UTC, datetime

import msgspec
import pytest

from cambist.adapters.kyc.sumsub.signing import is_genuine, signed
from cambist.ports.notifications import InboundNotification
from tests.providers.sumsub.fake import NOTIFICATION_SECRET, FakeSumsub

NOW = datetime(2026, 11, 23, 6, tzinfo=UTC)
EXTERNAL = "kyc_0c7b2c44-93f4-4c58-9d3e-0f5a0b0f0001_1"


def test_a_request_is_signed_as_in_the_worked_example() -> None:
    headers = signed(
        "sbx:token",
        "Hej2ch71kG2kTd1iIUDZFNsO5C1lh5Gq",
        datetime.fromtimestamp(1607551635.9, UTC),
        "POST",
        "/resources/applicants?levelName=basic-kyc-level",
        b'{"externalUserId":"u1"}',
    )
    assert headers == {
        "X-App-Token": "sbx:token",
        "X-App-Access-Ts": "1607551635",
        "X-App-Access-Sig": "0f826d45114ca04eaed6e9933347a486ed972e4eacdac9cc5cc313c3422cb95a",
    }


@pytest.fixture
def fake() -> FakeSumsub:
    made = FakeSumsub(lambda: NOW)
    made.world.create("basic-kyc-level", {"externalUserId": EXTERNAL})
    return made


@pytest.mark.parametrize("algorithm", ["HMAC_SHA256_HEX", "HMAC_SHA512_HEX"])
def test_a_notification_is_genuine_by_an_algorithm_that_we_allow(fake: FakeSumsub, algorithm: str) -> None:
    assert is_genuine(NOTIFICATION_SECRET, fake.notification(EXTERNAL, algorithm=algorithm))


def other(notification: InboundNotification, **headers: str) -> InboundNotification:
    changed = {name.replace("_", "-"): value for name, value in headers.items()}
    return msgspec.structs.replace(notification, headers={**notification.headers, **changed})


def test_sha_1_is_never_taken_because_the_header_says_so(fake: FakeSumsub) -> None:
    """It is right by its own measure, and yet no digest of ours."""
    assert not is_genuine(NOTIFICATION_SECRET, fake.notification(EXTERNAL, algorithm="HMAC_SHA1_HEX"))


@pytest.mark.parametrize("named", ["", "HMAC_SHA512_HEX", "HMAC_MD5_HEX", "none", "hmac_sha256_hex", "🙂"])
def test_another_algorithm_than_the_digest_s_is_none(fake: FakeSumsub, named: str) -> None:
    assert not is_genuine(NOTIFICATION_SECRET, other(fake.notification(EXTERNAL), x_payload_digest_alg=named))


@pytest.mark.parametrize("digest", ["", "0" * 64, "é" * 64, "0" * 10_000])
def test_another_digest_is_none(fake: FakeSumsub, digest: str) -> None:
    assert not is_genuine(NOTIFICATION_SECRET, other(fake.notification(EXTERNAL), x_payload_digest=digest))


def test_another_secret_or_body_is_none(fake: FakeSumsub) -> None:
    notification = fake.notification(EXTERNAL)
    assert not is_genuine("another", notification)
    assert not is_genuine(NOTIFICATION_SECRET, msgspec.structs.replace(notification, body=notification.body + b" "))
