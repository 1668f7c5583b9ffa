"""Every example runs as its first lines say."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cambist.core.domain.webhooks.signing import Signer, headers

EXAMPLES = Path(__file__).parents[2] / "examples"
SECRET = "a-secret-of-the-example"


@pytest.fixture
def receiver() -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The webhook receiver on a free port."""
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        port = finder.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "webhook_receiver.py"), str(port)],
        env={**os.environ, "WEBHOOK_SECRET": SECRET},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(200):
            with socket.socket() as edge:
                if edge.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/", process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_the_receiver_takes_a_genuine_event_once_and_refuses_any_other(
    receiver: tuple[str, "subprocess.Popen[str]"],
) -> None:
    url, process = receiver
    body = b'{"event":"payment.status_changed","payment_id":"pay_1","status":"paid"}'

    def signed(secret: str) -> dict[str, str]:
        now = int(time.time())
        signer = Signer(secret)
        return headers(signer, event_id="evt_1", event="e", sequence=1, attempt=1, timestamp=now, body=body)

    assert httpx.post(url, content=body, headers=signed("another-secret")).status_code == 400
    assert [httpx.post(url, content=body, headers=signed(SECRET)).status_code for _ in range(2)] == [200, 200]
    process.terminate()
    assert process.stdout is not None
    assert process.stdout.read().splitlines() == ["payment.status_changed pay_1 paid"]
