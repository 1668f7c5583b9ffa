"""Synchronous programs: docs/embedding.md "Synchronous programs"."""

import asyncio
import os
import subprocess
import sys
import threading
import wsgiref.util
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import cambist
from cambist.frontends.embedding import running
from cambist.frontends.worker.loop import Worker
from tests.patience import HANGS

PEPPER = "ab" * 32


@pytest.fixture
def heard() -> list[cambist.Event]:
    return []


@pytest.fixture
def service(heard: list[cambist.Event]) -> Iterable[cambist.SyncService]:
    with cambist.open_sync(on_event=heard.append, base_url="http://127.0.0.1:8000/pay", works=False) as made:
        yield made


@pytest.fixture
def merchant(service: cambist.SyncService) -> cambist.SyncMerchant:
    return service.merchant(service.account("Shop", create=True, refunds=True))


def get(application: Any, path: str) -> tuple[str, bytes]:
    """Request a page from a WSGI application, and return the status and the body."""
    environ: dict[str, Any] = {"PATH_INFO": path, "SERVER_NAME": "127.0.0.1", "HTTP_HOST": "127.0.0.1:8000"}
    wsgiref.util.setup_testing_defaults(environ)
    told: list[str] = []
    body = b"".join(application(environ, lambda status, *_: told.append(status)))
    return told[0], body


def test_payment_is_taken_refunded_and_heard_without_an_event_loop(
    service: cambist.SyncService, merchant: cambist.SyncMerchant, heard: list[cambist.Event]
) -> None:
    payment = merchant.create_payment("490.00", external_id="order-1")
    assert merchant.simulate(payment.id, "paid").status is cambist.PaymentStatus.PAID
    service.run_due()
    merchant.refund(payment.id, "90.00")
    assert [(event.type.value, event.sequence) for event in heard] == [("payment.status_changed", 1)]
    assert [each.id for each in merchant.payments(external_id="order-1")] == [payment.id]
    assert [each.amount_rub for each in merchant.refunds(payment_id=payment.id)] == [90]
    assert [each.id for each in merchant.events()] == [event.id for event in heard]
    assert [each.object_id for each in merchant.movements()] == [payment.id]
    assert list(merchant.settlements()) == []
    assert merchant.balance().pending_rub == 490
    assert payment.payment_url.startswith("http://127.0.0.1:8000/pay/p/")


def test_account_is_created_once_and_found_by_name_afterwards(service: cambist.SyncService) -> None:
    first = service.account("Shop", create=True)
    assert service.account("Shop", create=True) == service.account("Shop") == first
    assert [(each.account_id, each.name) for each in service.accounts()] == [(first, "Shop")]
    with pytest.raises(cambist.Refusal, match="No account of this name"):
        service.account("Other")


def test_list_yields_more_than_a_batch_and_may_be_left_early(merchant: cambist.SyncMerchant) -> None:
    made = [merchant.create_payment(100 + number).id for number in range(3)]
    assert [each.id for each in merchant.payments()] == made[::-1]
    assert next(iter(merchant.payments())).id == made[-1]


def test_handler_may_block_because_it_runs_in_a_thread() -> None:
    names: list[str] = []
    with cambist.open_sync(on_event=lambda _: names.append(threading.current_thread().name), works=False) as service:
        merchant = service.merchant(service.account("Shop", create=True))
        merchant.simulate(merchant.create_payment("490.00").id, "paid")
        service.run_due()
    assert len(names) == 1
    assert names[0].startswith("cambist-events")


def test_many_threads_share_one_service(merchant: cambist.SyncMerchant) -> None:
    with ThreadPoolExecutor(8) as threads:
        keys = [f"6f1c6f0e-8f0b-4a57-9d0e-0f0a5f3c2b{number % 4:02}" for number in range(16)]
        made = list(threads.map(lambda key: merchant.create_payment("490.00", idempotency_key=key).id, keys))
    assert len(set(made)) == 4


def test_closed_service_opens_again_at_its_next_use(service: cambist.SyncService) -> None:
    service.account("Shop", create=True)
    service.close()
    service.close()
    assert service.accounts() == [], "memory:// starts empty"


def test_call_under_way_at_the_close_ends_with_a_fault(service: cambist.SyncService) -> None:
    begun = threading.Event()

    async def lasts(_: cambist.Service) -> None:
        begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(service.run, lasts)
        begun.wait(30)
        service.close()
        with pytest.raises(cambist.Unavailable, match="closed meanwhile"):
            call.result(30)


async def test_service_asked_for_while_it_closes_is_another_one() -> None:
    kept = running.RunningService(cambist.open, works=False)
    first = await kept.service()
    closing = asyncio.create_task(kept.close())
    await asyncio.sleep(0)
    second = await kept.service()
    await closing
    assert second is not first
    assert await second.accounts() == []
    await kept.close()


async def test_blocking_call_is_refused_inside_an_event_loop(service: cambist.SyncService) -> None:
    with pytest.raises(RuntimeError, match=r"use cambist\.open here"):
        service.accounts()


async def test_service_of_another_event_loop_is_refused_by_name() -> None:
    async with cambist.open() as service:
        account = await service.create_account("Shop")
        merchant, app = await service.merchant(account.account_id), service.asgi()

        async def asked() -> None:
            for call in (service.accounts(), merchant.balance(), app({"type": "http"}, None, None)):  # type: ignore[arg-type]
                with pytest.raises(RuntimeError, match=r"use cambist\.open_sync"):
                    await call

        await asyncio.to_thread(asyncio.run, asked())


def test_first_use_raises_what_opening_raises() -> None:
    service = cambist.open_sync("sqlite:////proc/nothing/shop.db")
    for _ in range(2):
        with pytest.raises((cambist.Unavailable, OSError)):
            service.accounts()
    service.close()


async def test_service_is_opened_anew_after_its_worker_died(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: Worker) -> None:
        raise cambist.Unavailable("the storage is lost")

    kept = running.RunningService(cambist.open, works=True)
    with monkeypatch.context() as broken:
        broken.setattr(Worker, "_poll_once", fails)
        first = await kept.service()
        assert kept._task is not None
        await asyncio.wait([kept._task])
    await asyncio.wait([kept._task])
    assert await kept.service() is not first
    await kept.close()
    assert "is opened again at its next use" in caplog.text


class TestWsgi:
    """The payer window below a path of a WSGI application."""

    def test_window_answers_below_the_prefix_and_the_program_elsewhere(
        self, service: cambist.SyncService, merchant: cambist.SyncMerchant
    ) -> None:
        def shop(environ: dict[str, Any], start_response: Any) -> list[bytes]:
            start_response("200 OK", [])
            return [b"shop " + environ["PATH_INFO"].encode()]

        application = service.wsgi(prefix="/pay", then=shop)
        payment = merchant.create_payment("490.00")
        status, page = get(application, f"/pay/p/{payment.id}")
        assert (status, "490,00" in page.decode()) == ("200 OK", True)
        assert b'"/pay/' in page, "links stay below the prefix"
        assert get(application, "/payx") == ("200 OK", b"shop /payx")
        assert get(application, "/pay/p/pay_unknown")[0] == "404 Not Found"

    def test_client_that_leaves_an_open_window_ends_its_task(
        self, service: cambist.SyncService, merchant: cambist.SyncMerchant
    ) -> None:
        environ: dict[str, Any] = {"PATH_INFO": f"/p/{merchant.create_payment('490.00').id}/events"}
        wsgiref.util.setup_testing_defaults(environ)

        async def of_requests(_: cambist.Service) -> list[asyncio.Task[Any]]:
            return [task for task in asyncio.all_tasks() if "answer" in repr(task.get_coro())]

        window: Any = service.wsgi()(environ, lambda *_: None)
        assert next(window).startswith(b"retry: 3000\n")
        [task] = service.run(of_requests)
        window.close()

        async def ended(_: cambist.Service) -> None:
            await asyncio.wait([task], timeout=HANGS)

        service.run(ended)
        assert task.cancelled()

    def test_other_paths_are_not_found_without_a_program(self, service: cambist.SyncService) -> None:
        assert get(service.wsgi(prefix="/pay"), "/") == ("404 Not Found", b"Not found\n")


SCRIPT = """
import os, sys
import cambist

service = cambist.open_sync({database!r}, on_event=print, vault_key={key!r}, vault_pepper={pepper!r})
if {used!r}:
    service.account("Shop", create=True)
child = os.fork()
merchant = service.merchant(service.account("Shop", create=True))
merchant.create_payment("490.00")
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def ended(script: str) -> tuple[int, str]:
    """Run a program, and return its exit status and the last line of what it wrote on stderr."""
    program = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", script]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, (done.stderr.splitlines() or [""])[-1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
class TestFork:
    """Programs that fork, such as gunicorn, and their quiet end."""

    def test_each_process_has_a_service_of_its_own(self, tmp_path: Path) -> None:
        database = f"sqlite:///{tmp_path}/shop.db"
        script = SCRIPT.format(database=database, key="cd" * 32, pepper=PEPPER, used=False)
        assert ended(script) == (0, "")
        with cambist.open_sync(database, vault_key="cd" * 32, vault_pepper=PEPPER) as service:
            assert len(list(service.merchant(service.account("Shop")).payments())) == 2
        assert not (tmp_path / "vault.key").exists()

    def test_used_service_opens_anew_in_the_child(self) -> None:
        script = SCRIPT.format(database="memory://", key="cd" * 32, pepper=PEPPER, used=True)
        assert ended(script) == (0, "")

    def test_sqlite_file_that_was_open_at_the_fork_is_refused(self, tmp_path: Path) -> None:
        database = f"sqlite:///{tmp_path}/shop.db"
        script = SCRIPT.format(database=database, key="cd" * 32, pepper=PEPPER, used=True)
        status, said = ended(script)
        assert (status, said) == (1, "AssertionError")


class TestVault:
    """Keys of the vault as an embedding program gives them."""

    @pytest.mark.parametrize(("key", "pepper"), [("xy", PEPPER), ("cd" * 32, ""), ("", PEPPER)])
    def test_wrong_text_of_a_key_is_refused_without_showing_it(self, key: str, pepper: str) -> None:
        with pytest.raises(ValueError, match="vault_key and vault_pepper: ") as refused:
            cambist.open(vault_key=key, vault_pepper=pepper)
        assert PEPPER not in str(refused.value)

    async def test_new_key_file_is_logged_with_its_path(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        for _ in range(2):
            async with cambist.open(f"sqlite:///{tmp_path}/shop.db"):
                pass
        assert [line for line in caplog.messages if "vault.key" in line] == [
            f"the vault's keys are created in {tmp_path}/vault.key: back the file up, apart from the database"
        ]


def test_settings_are_those_of_the_environment_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "cambist.toml").write_text('workers = 3\nport = 9000\ndatabase_url = "memory://"\n')
    settings = cambist.Settings.load(environ={"CAMBIST_PORT": "9001"}, folder=tmp_path, log_level="debug")
    assert (settings.workers, settings.port, settings.log_level) == (3, 9001, "debug")
    with pytest.raises(TypeError, match="prot"):
        cambist.Settings.load(environ={}, folder=tmp_path, prot=1)
    with pytest.raises(cambist.SettingsError, match="CAMBIST_PORT"):
        cambist.Settings.load(environ={"CAMBIST_PORT": "x"}, folder=tmp_path)
