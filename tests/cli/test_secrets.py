"""No secret has to stand on a command line, where histories keep it and every user of the machine sees it
(docs/webhooks.md); nothing prints the password of Redis."""

import logging
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.frontends.settings.sources import load
from cambist.ports.counters import Counter
from cambist.ports.jobs import Job
from tests.cli.conftest import PROGRAM, Call
from tests.patience import HANGS
from tests.redis_servers import own_redis

ROOT = Path(__file__).parents[2]
SECRET = "a-secret-that-nobody-shall-see"


@pytest.fixture
def account(call: Call) -> str:
    return str(call("account", "create", "Shop", "--json").document["account_id"])


def command(account: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, "account", "set", account, "webhook_secret=-"]


def test_a_secret_from_standard_input_is_in_no_table_of_processes(account: str) -> None:
    """As `ps` sees the process while it runs: arguments and environment."""
    with subprocess.Popen(
        command(account), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        table = Path(f"/proc/{process.pid}")
        while b"webhook_secret=-" not in (table / "cmdline").read_bytes():  # its own begin is not over yet
            assert process.poll() is None
        process.stdin.write(f"{SECRET}\n")
        process.stdin.flush()
        seen = [(table / name).read_bytes() for name in ("cmdline", "environ")]
        said, _ = process.communicate(timeout=HANGS)
    assert process.returncode == 0, said
    assert SECRET.encode() not in b"".join(seen)
    assert SECRET not in said
    assert re.search(r"webhook_secret +set", said)


def test_a_secret_on_the_command_line_is_taken_with_a_warning(call: Call, account: str) -> None:
    given = call("account", "set", account, f"webhook_secret={SECRET}", "--json")
    assert given.document["settings"]["webhook_secret_set"] is True
    assert given.err.startswith("warning: the secret stood on the command line")
    assert SECRET not in given.out + given.err
    for unseen in ("webhook_secret=", "webhook_url=https://shop.example/hooks"):
        assert call("account", "set", account, unseen).err == ""


def test_secret_is_prompted_for_at_a_terminal_and_not_shown(account: str) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(account), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        shown = b""
        while b"Webhook secret" not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, f"{SECRET}\n".encode())
        try:
            while some := os.read(ours, 4096):
                shown += some
        except OSError:  # the terminal's end, when the process is gone
            pass
    os.close(ours)
    assert process.returncode == 0, shown
    assert b"webhook_secret  set" in click.unstyle(shown.decode()).encode()
    assert SECRET.encode() not in shown


def test_generated_secret_is_shown_once(call: Call, account: str) -> None:
    made = call("account", "set", account, "--generate-secret", "--json").document
    assert re.fullmatch("[0-9a-f]{64}", made["webhook_secret"])
    assert made["settings"]["webhook_secret_set"] is True
    for words in (("show", account), ("list",), ("set", account, f"webhook_secret={made['webhook_secret']}")):
        assert made["webhook_secret"] not in call("account", *words, "--json").out
    again = call("account", "set", account, "webhook_url=https://a.example/", "--generate-secret")
    [secret] = re.findall(r"webhook_secret +([0-9a-f]{64})", again.out)
    assert secret != made["webhook_secret"]


@pytest.mark.parametrize(
    "given",
    [("webhook_secret=-",), ("webhook_secret=-", "--generate-secret"), ("webhook_secret=x", "--generate-secret")],
)
def test_no_secret_and_two_of_them_are_wrong_usage(call: Call, account: str, given: tuple[str, ...]) -> None:
    assert call("account", "set", account, *given).status == 2
    assert call("account", "show", account, "--json").document["settings"]["webhook_secret_set"] is False


def test_no_page_teaches_to_write_a_secret_on_a_command_line() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").rglob("*.py"))]
    assert len(pages) > 20
    for page in pages:
        for value in re.findall(r"\bwebhook_secret=([^\s`,)]+)", page.read_text("utf-8")):
            assert value == "-", page.name
        assert not re.search(r"^(export )?WEBHOOK_SECRET=\w{4}", page.read_text("utf-8"), re.MULTILINE), page.name


WORD = "a-word-that-nobody-shall-see"


@pytest.fixture(scope="module")
def redis_location() -> Iterator[str]:
    """The host and port of a Redis with that password."""
    with own_redis(["--requirepass", WORD]) as server:
        yield server.url.removeprefix("redis://").removesuffix("/0")


class TestRedisPassword:
    URLS = (
        "redis://:{word}@{place}/0",
        "redis://default:{word}@{place}/0",
        "redis://:{word}-wrong@{place}/0",
        "redis://{place}/0?password={word}",
        "redis://:{word}@127.0.0.1:1/0",
        "rediss://:{word}@{place}/0",
        "redis+sentinel://:{word}@{place}/cambist/0?sentinel_password={word}",
    )

    @pytest.mark.parametrize("form", URLS)
    def test_commands_do_not_show_it(self, call: Call, redis_location: str, form: str) -> None:
        url = form.format(word=WORD, place=redis_location)
        env = {"CAMBIST_REDIS_URL": url}
        told = [
            call(*words, *shape, env=env)
            for words in (("config", "check"), ("doctor",), ("account", "list"))
            for shape in ((), ("--json",))
        ]
        assert WORD not in "".join(each.out + each.err for each in told)
        settings = load(env, {}, Path()).settings
        assert WORD not in repr(settings) + str(settings) + repr(load(env, {}, Path()).explained)

    @pytest.mark.parametrize("form", URLS)
    async def test_redis_clients_do_not_log_the_password(
        self, redis_location: str, form: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        url = form.format(word=WORD, place=redis_location)
        async with open_app(Settings(database_url="memory://", redis_url=url)) as app:
            now = app.ports.clock.now()
            await app.ports.queue.wake_up([Job(id="job:1", kind="job", argument="", due=now, created_at=now)])
            reached = await app.ports.queue.works(), await app.ports.counters.works()
            await app.ports.counters.count(1, [Counter("canary", 5)])
        written = "".join(f"{each.getMessage()} {each.exc_text or ''} {each.args}" for each in caplog.records)
        assert WORD not in written
        assert reached == ((True, True) if form in self.URLS[:2] + self.URLS[3:4] else (False, False))
