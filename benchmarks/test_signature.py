"""Cost of a webhook signature, beside the floor (OpenSSL's one-shot HMAC) and the Standard Webhooks library, and of the
wallet's signature beside libsecp256k1.

Comparisons with floor and peer alternate, a thousand calls each. For the other results compare the medians within one
run. Run with `pytest benchmarks --benchmark-only`.
"""

import hmac
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from coincurve import PrivateKey as CoincurveKey
from pytest_benchmark.fixture import BenchmarkFixture
from standardwebhooks import Webhook

from benchmarks.turns import in_turns
from cambist.adapters.nodes.secp256k1 import PrivateKey
from cambist.core.domain.webhooks.signing import Signer, headers, standard_secret

SECRET = "merchant-webhook-secret, no base64"
EVENT_ID = "evt_0197c1d0-5b7e-7000-8000-000000000001"
KEY = SECRET.encode()
NOW = 1_760_000_000
BODY = b'{"event":"payment.status_changed","filler":"'.ljust(598, b"x") + b'"}'
"""600 bytes, the size of a payment event."""
CALLS = 1000
ROUNDS = 100


def floor() -> str:
    """Floor: OpenSSL's HMAC and formatting of the message."""
    return "sha256=" + hmac.digest(KEY, b"%d.%b" % (NOW, BODY), "sha256").hex()


def many(sign: Callable[[], str]) -> Callable[[], None]:
    """Build a round of calls."""

    def calls() -> None:
        for _ in range(CALLS):
            sign()

    return calls


@pytest.mark.benchmark(group="1000 signatures beside others")
def test_beside_floor(benchmark: BenchmarkFixture) -> None:
    signer = Signer(SECRET)
    assert floor() == signer.signature(NOW, BODY)
    in_turns(benchmark, many(lambda: signer.signature(NOW, BODY)), many(floor), rounds=ROUNDS)


@pytest.mark.benchmark(group="1000 signatures beside others")
def test_beside_standardwebhooks(benchmark: BenchmarkFixture) -> None:
    signer, peer = Signer(SECRET), Webhook(standard_secret(SECRET))
    moment, body = datetime.fromtimestamp(NOW, UTC), BODY.decode()
    assert peer.sign(EVENT_ID, moment, body) == signer.standard_signature(EVENT_ID, NOW, BODY)
    in_turns(
        benchmark,
        many(lambda: signer.signature(NOW, BODY)),
        many(lambda: peer.sign(EVENT_ID, moment, body)),
        rounds=ROUNDS,
    )


@pytest.mark.benchmark(group="100 signatures of the wallet")
def test_wallet_beside_coincurve(benchmark: BenchmarkFixture) -> None:
    raw, digests = b"\x17" * 32, [number.to_bytes(32) for number in range(100)]
    ours, peer = PrivateKey(raw), CoincurveKey(raw)

    def by_peer() -> list[bytes]:
        return [peer.sign_recoverable(digest, hasher=None) for digest in digests]

    assert by_peer() == [ours.sign(digest) for digest in digests]
    in_turns(benchmark, lambda: [ours.sign(digest) for digest in digests], by_peer, rounds=20)


@pytest.mark.benchmark(group="signature")
def test_ours_standard(benchmark: BenchmarkFixture) -> None:
    signer = Signer(SECRET)
    assert benchmark(signer.standard_signature, EVENT_ID, NOW, BODY).startswith("v1,")


@pytest.mark.benchmark(group="signature")
def test_ours_all_headers_of_an_attempt(benchmark: BenchmarkFixture) -> None:
    signer = Signer(SECRET)

    def build() -> dict[str, str]:
        return headers(
            signer,
            event_id=EVENT_ID,
            event="payment.status_changed",
            sequence=1,
            attempt=1,
            timestamp=NOW,
            body=BODY,
        )

    assert len(benchmark(build)) == 11
