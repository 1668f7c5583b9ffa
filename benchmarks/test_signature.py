"""What a webhook signature costs: ours beside the floor (OpenSSL's one-shot HMAC) and the Standard Webhooks library.

Compare the medians within one run; run with `pytest benchmarks --benchmark-only`.
"""

import hmac
from datetime import UTC, datetime

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from standardwebhooks import Webhook

from cambist.core.domain.signing import Signer, headers, standard_secret

SECRET = "merchant-webhook-secret, no base64"
EVENT_ID = "evt_0197c1d0-5b7e-7000-8000-000000000001"
NOW = 1_760_000_000
BODY = b'{"event":"payment.status_changed","filler":"'.ljust(598, b"x") + b'"}'
"""600 bytes: the size of a payment event."""


@pytest.mark.benchmark(group="signature")
def test_floor_hmac_digest(benchmark: BenchmarkFixture) -> None:
    key = SECRET.encode()

    def sign() -> str:
        return "sha256=" + hmac.digest(key, b"%d.%b" % (NOW, BODY), "sha256").hex()

    assert benchmark(sign) == Signer(SECRET).signature(NOW, BODY)


@pytest.mark.benchmark(group="signature")
def test_ours_x_webhook_signature(benchmark: BenchmarkFixture) -> None:
    signer = Signer(SECRET)
    assert benchmark(signer.signature, NOW, BODY).startswith("sha256=")


@pytest.mark.benchmark(group="signature")
def test_ours_standard(benchmark: BenchmarkFixture) -> None:
    signer = Signer(SECRET)
    assert benchmark(signer.standard_signature, EVENT_ID, NOW, BODY).startswith("v1,")


@pytest.mark.benchmark(group="signature")
def test_peer_standardwebhooks(benchmark: BenchmarkFixture) -> None:
    peer = Webhook(standard_secret(SECRET))
    moment = datetime.fromtimestamp(NOW, UTC)
    body = BODY.decode()

    def sign() -> str:
        return peer.sign(EVENT_ID, moment, body)

    assert benchmark(sign) == Signer(SECRET).standard_signature(EVENT_ID, NOW, BODY)


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
