"""The receivers of docs/webhooks.md, each as a program: genuine webhooks once, in order, and no others."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from cambist.core.domain.webhooks.signing import Signer, headers
from tests.docs.test_blocks import runnable
from tests.patience import HANGS

SECRET = "a-secret-of-the-receivers"
NEXT_SECRET = "the-secret-that-comes-after-it"
LANGUAGES = {
    "python": ("receiver.py", [sys.executable, "receiver.py"]),
    "js": ("receiver.mjs", ["node", "receiver.mjs"]),
    "php": ("receiver.php", ["php", "-S", "127.0.0.1:{port}", "receiver.php"]),
}


class Receiver:
    """A running receiver and the events it has handled."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder

    def handled(self) -> list[str]:
        """The lines that `handle` wrote: on standard output, or where a page of a site writes."""
        written = self._folder / "memory/log"
        return (written if written.exists() else self._folder / "out").read_text("utf-8").splitlines()

    def post(
        self, event_id: str, status: str, sequence: int, *, secret: str = SECRET, age: int = 0, more: bytes = b""
    ) -> int:
        """Send a webhook about a payment; the status of the answer. `more` is added after signing."""
        # Not ASCII, and oddly spaced: only a signature over the raw body matches.
        body = f'{{"event": "payment.status_changed",  "payment_id": "pay_1", "status": "{status}", "n": "ё"}}'
        return self.post_body(event_id, body, sequence, secret=secret, age=age, more=more)

    def post_body(
        self, event_id: str, text: str, sequence: int, *, secret: str = SECRET, age: int = 0, more: bytes = b""
    ) -> int:
        """Send any webhook; the status of the answer."""
        body = text.encode()
        signed = headers(
            Signer(secret),
            event_id=event_id,
            event=msgspec.json.decode(body)["event"],
            sequence=sequence,
            attempt=1,
            timestamp=int(time.time()) - age,
            body=body,
        )
        return httpx.post(self._url, content=body + more, headers=signed, timeout=HANGS).status_code


@contextmanager
def running(language: str, folder: Path) -> Iterator[Receiver]:
    name, command = LANGUAGES[language]
    program = shutil.which(command[0])
    if program is None:
        reason = f"{command[0]} is not installed (Debian: apt install {'php-cli' if language == 'php' else 'nodejs'})"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    blocks = [block for block in runnable("webhooks.md", language) if "WEBHOOK_SECRET" in block.text]
    assert len(blocks) == 1
    (folder / name).write_text(blocks[0].text, "utf-8")
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        port = finder.getsockname()[1]
    environ = {
        **os.environ,
        "WEBHOOK_SECRET": f"{NEXT_SECRET} {SECRET}",
        "PORT": str(port),
        "WEBHOOK_MEMORY": str(folder / "memory"),
    }
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [program, *(word.format(port=port) for word in command[1:])],
            cwd=folder,
            env=environ,
            stdout=out,
            stderr=err,
        )
    try:
        deadline = time.monotonic() + HANGS
        while True:
            with socket.socket() as edge:
                if edge.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "err").read_text("utf-8")
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield Receiver(f"http://127.0.0.1:{port}/hooks", folder)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("language", LANGUAGES)
def test_receiver_takes_genuine_webhooks_once_and_in_order(language: str, tmp_path: Path) -> None:
    with running(language, tmp_path) as receiver:
        assert receiver.post("evt_0", "paid", 1, secret="another-secret") == 400, "a forged signature"
        assert receiver.post("evt_0", "paid", 1, more=b" ") == 400, "a body that was changed"
        assert receiver.post("evt_0", "paid", 1, age=400) == 400, "a letter of six minutes ago"
        assert receiver.post("evt_0", "paid", 1, age=-400) == 400, "a letter from the future"
        assert receiver.handled() == []
        assert receiver.post("evt_2", "paid", 2) == 200
        assert receiver.post("evt_2", "paid", 2) == 200, "a duplicate is answered as the first"
        assert receiver.post("evt_1", "processing", 1) == 200, "old news is taken, so that it does not come again"
        assert receiver.post("evt_3", "settled", 3, age=100, secret=NEXT_SECRET) == 200, "while the secret is changed"
        assert receiver.handled() == [
            "payment.status_changed pay_1 paid",
            "payment.status_changed pay_1 settled",
        ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_receiver_takes_webhooks_about_other_objects_and_about_none(language: str, tmp_path: Path) -> None:
    """Sequences are per object, and a refund's event names its payment, too. `webhook.test` is about nothing."""
    with running(language, tmp_path) as receiver:
        assert receiver.post("evt_1", "paid", 3) == 200
        refund = '{"event": "refund.completed", "payment_id": "pay_1", "refund_id": "ref_1", "status": "completed"}'
        assert receiver.post_body("evt_2", refund, 1) == 200
        webhook = {"event": "webhook.test", "message": "This is a test", "timestamp": "2026-01-01T00:00:00.000Z"}
        assert receiver.post_body("evt_3", msgspec.json.encode(webhook).decode(), 1) == 200
        assert receiver.post("evt_4", "refunded", 4) == 200, "it still runs"
        handled = receiver.handled()
        assert handled[:2] == ["payment.status_changed pay_1 paid", "refund.completed pay_1 completed"]
        assert [line.split()[0] for line in handled[2:]] == ["webhook.test", "payment.status_changed"]
