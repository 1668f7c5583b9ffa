"""`cambist serve` from its operator's side (docs/cli.md "Serving"): start and stop, output, and the problems it
detects."""

import asyncio
import signal
import socket
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import aiohttp
import msgspec

from cambist.core.domain.webhooks.events import Delivery, DeliveryStatus
from cambist.core.usecases.operators.dashboard import read_dashboard
from tests.receivers import Receiver, Script, reply
from tests.servers import database
from tests.stories.merchant import merchant
from tests.stories.processes import WEBHOOK_SECRET, Installation, Outcome, eventually, installation


def port_of(base: str) -> int:
    return int(base.rpartition(":")[2])


async def no_longer_listens(port: int) -> bool:
    """Return whether the service has closed its socket after SIGTERM and only finishes running work."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it stopped listening just then
        return False
    writer.close()
    with suppress(ConnectionError):  # it stopped listening before it took this one
        await writer.wait_closed()
    return False


def held_until(release: asyncio.Event) -> Script:
    """An answer that a receiver keeps back."""

    async def script(receiver: Receiver, writer: asyncio.StreamWriter) -> bool:
        await release.wait()
        return await reply(200)(receiver, writer)

    return script


class TestStart:
    def test_says_in_one_line_where_it_serves_and_ends_well_on_sigint(self, sqlite_location: Installation) -> None:
        """It prints one line with its address when it accepts requests; logs go to stderr (docs/cli.md "Serving",
        "Answers")."""
        sqlite_location.loaded_anew = True
        service, base = sqlite_location.serve()
        with socket.create_connection(("127.0.0.1", port_of(base))):
            pass
        service.signal(signal.SIGINT)
        assert service.wait() in (0, 130)
        assert service.out == f"cambist serves at {base}\n"
        assert "no real money moves" in service.err
        assert "Traceback" not in service.err

    def test_a_port_in_use_is_a_message(self, tmp_path: Path) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as taken,
            installation(tmp_path, port=str(taken.getsockname()[1])) as place,
        ):
            refused(place.call("serve"), "Address already in use")

    def test_every_wrong_setting_is_named(self, tmp_path: Path) -> None:
        """Exit 1 and a message that says why; never the value, which may be a secret (docs/cli.md "Answers")."""
        wrong = {
            "port": "eighty",
            "database_url": "mysql://root:hush-hush@db/cambist",
            "base_url": "pay.example",
            "trusted_proxies": "10.0.0.0/99",
            "vault_key": "hush-hush",
            "log_level": "chatty",
        }
        with installation(tmp_path, **wrong) as place:
            outcome = place.call("serve")
        for name, value in wrong.items():
            refused(outcome, f"CAMBIST_{name.upper()}: ")
            assert value not in outcome.err

    def test_a_postgres_without_schema_is_a_message(self, tmp_path: Path, server: str) -> None:
        """The service creates the schema automatically on SQLite only (docs/cli.md "Serving")."""
        with database(server) as url, installation(tmp_path, database_url=url) as place:
            refused(place.call("serve"), "migrate")

    def test_a_database_that_does_not_answer_is_a_message_without_its_password(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        url = f"postgresql://cambist:hush-hush@127.0.0.1:{port}/cambist"
        with installation(tmp_path, database_url=url) as place:
            outcome = place.call("serve")
        refused(outcome, "Postgres did not answer")
        assert "hush-hush" not in outcome.err


def refused(outcome: Outcome, why: str) -> None:
    """Check for exit 1, the reason on stderr, nothing on stdout, and no traceback."""
    assert (outcome.status, outcome.out) == (1, ""), outcome.err
    assert why in outcome.err
    assert "Traceback" not in outcome.err


class TestStop:
    async def test_a_request_under_way_gets_its_answer(self, sqlite_location: Installation) -> None:
        """SIGTERM drains (docs/operations.md "Deployment"). The request's head was taken when the signal comes, its
        body comes after it."""
        account = await sqlite_location.account()
        service, base = sqlite_location.serve()
        body = b'{"amount_rub": "55.00"}'
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(base))
        head = {
            "Host": "127.0.0.1",
            "X-Api-Key": account.test.api_key,
            "X-Api-Secret": account.test.api_secret,
            "Idempotency-Key": str(uuid4()),
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Expect": "100-continue",
        }
        fields = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"POST /api/v1/payments HTTP/1.1\r\n{fields}\r\n".encode())
        # The interim answer says that the application has begun, and waits for the body.
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")

        service.signal(signal.SIGTERM)
        await eventually(lambda: no_longer_listens(port_of(base)))
        assert not service.ended
        writer.write(body)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        assert answer.startswith(b"HTTP/1.1 201 ")
        payment = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])

        assert await asyncio.to_thread(service.wait) == 0
        assert "Traceback" not in service.err
        _, base = sqlite_location.serve()
        async with merchant(base, account.test) as shop:
            assert (await shop.ask("GET", f"/payments/{payment['id']}")).json["amount_rub"] == "55.00"

    async def test_a_delivery_under_way_is_finished_and_entered(self, sqlite_location: Installation) -> None:
        """SIGTERM drains jobs too (docs/operations.md "Deployment"): a receiver that answers meanwhile gets no second
        webhook."""
        release = asyncio.Event()
        async with Receiver() as receiver:
            receiver.answer_with(held_until(release))
            account = await sqlite_location.account(receiver.url)
            service, base = sqlite_location.serve()
            async with merchant(base, account.test) as shop:
                await shop.paid()
            await receiver.arrived()
            service.signal(signal.SIGTERM)
            await eventually(lambda: no_longer_listens(port_of(base)))
            release.set()
            assert await asyncio.to_thread(service.wait) == 0
        async with sqlite_location.app() as ports, ports.storage.unit() as unit:
            [delivery] = await unit[Delivery].find(account_id=account.account_id)
        assert (delivery.status, delivery.attempts) == (DeliveryStatus.DELIVERED, 1)
        assert len(receiver.requests) == 1
        assert "Traceback" not in service.err

    async def test_limits_that_were_hit_are_written_before_the_end(self, sqlite_location: Installation) -> None:
        """A process writes its counters at its end at the latest (docs/operations.md "Metrics")."""
        account = await sqlite_location.account()
        service, base = sqlite_location.serve()
        async with merchant(base, account.test) as shop:
            # More than twice the limit: a minute may end on the way.
            asked = [(await shop.ask("GET", "/rates")).status for _ in range(121)]
        service.signal(signal.SIGTERM)
        assert await asyncio.to_thread(service.wait) == 0
        async with sqlite_location.app() as ports:
            assert sum((await read_dashboard(ports)).hits.hour) == asked.count(429) > 0

    async def test_an_open_stream_of_a_payer_window_does_not_hold_it_up(self, tmp_path: Path) -> None:
        """A page listens for half an hour; a service that may take long to stop does not wait for that."""
        with installation(tmp_path, shutdown_seconds="600") as place:
            account = await place.account()
            service, base = place.serve()
            async with merchant(base, account.test) as shop:
                payment = await shop.created()
                async with shop.client.get(f"{payment['payment_url']}/events") as stream:
                    assert stream.content_type == "text/event-stream"
                    assert b"event: state\n" in await stream.content.readuntil(b"\n\n") + await next_frame(stream)
                    service.signal(signal.SIGTERM)
                    assert await asyncio.to_thread(service.wait) == 0
            assert "Traceback" not in service.err

    async def test_a_service_whose_worker_died_ends_and_says_so_by_its_exit_status(
        self, sqlite_location: Installation
    ) -> None:
        """Half a service would take payments and deliver nothing. A supervisor restarts the process only after a
        failure."""
        account = await sqlite_location.account()
        service, base = sqlite_location.serve()
        async with merchant(base, account.test) as shop:
            await shop.created()
        # A bad row kills no worker; a missing file does.
        (sqlite_location.settings.data_dir / "cambist.db").unlink()
        assert await asyncio.to_thread(service.wait) == 1
        assert "the worker died" in service.err


async def next_frame(stream: aiohttp.ClientResponse) -> bytes:
    return await stream.content.readuntil(b"\n\n")


class TestOtherProcesses:
    """A process's cache is at most 2 seconds old for the others (docs/decisions.md "Storage"), and a process
    notifications another's new work within a second (ARCHITECTURE.md "Queues and counters")."""

    async def test_a_key_that_the_command_line_ends_is_dead_in_a_running_service(self, place: Installation) -> None:
        await place.migrate()
        account = await place.account()
        _, base = place.serve()
        async with merchant(base, account.test) as old:
            assert (await old.ask("GET", "/payments")).status == 200
            rotated = await asyncio.to_thread(
                place.call, "key", "rotate", account.account_id, "--mode", "test", "--json"
            )
            assert rotated.status == 0

            async def is_dead() -> bool:
                return (await old.ask("GET", "/payments")).status == 401

            # Not so often that the key's 60 a minute are used up.
            await eventually(is_dead, every=1)
            pair = msgspec.convert(
                {name: rotated.document[name] for name in ("api_key", "api_secret")}, type(account.test)
            )
        async with merchant(base, pair) as new:
            assert (await new.ask("GET", "/payments")).status == 200

    async def test_held_events_are_sent_once_the_command_line_sets_a_receiver(self, place: Installation) -> None:
        """Nothing is sent until both address and secret are set; then at once (docs/webhooks.md "Webhooks")."""
        await place.migrate()
        account = await place.account()
        _, base = place.serve()
        async with Receiver() as receiver:
            async with merchant(base, account.test) as shop:
                paid = [await shop.paid() for _ in range(3)]

            def set_to(*wishes: str) -> Outcome:
                return place.call("account", "set", account.account_id, *wishes, "--json")

            assert (await asyncio.to_thread(set_to, f"webhook_url={receiver.url}")).status == 0
            async with place.app() as ports, ports.storage.unit() as unit:
                held = await unit[Delivery].find(account_id=account.account_id)
            assert [each.status for each in held] == [DeliveryStatus.HELD] * 3
            assert receiver.requests == []

            assert (await asyncio.to_thread(set_to, f"webhook_secret={WEBHOOK_SECRET}")).status == 0
            requests = await receiver.arrived(3)
            events = [msgspec.json.decode(request.body) for request in requests]
            assert {event["payment_id"] for event in events} == {payment["id"] for payment in paid}
