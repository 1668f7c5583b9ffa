"""The providers' edge: POST /api/v1/notices/{adapter}/{secret} (docs/adapters.md "Notifications")."""

import asyncio
import logging
from ipaddress import ip_network
from pathlib import Path

import msgspec
import pytest

import cambist
from cambist.core.domain.notifications import MOST, NotificationAddress
from cambist.core.domain.sandbox_clock import ClockWish
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.browse.gateways import known_gateways
from cambist.core.usecases.jobs import do
from cambist.core.usecases.notification_addresses import make_addresses, rotate_address
from cambist.core.usecases.sandbox.clock import advance
from cambist.frontends.http.notifications import LIMIT, WITHIN
from cambist.ports import InboundNotification, Notification, Received, Unavailable
from examples.own_bank.bank import NAME
from examples.own_bank.provider import Provider
from tests.notification_kit import PROVIDER_AT, TOKEN, Hearing, hearing, watched
from tests.tables import table

ANYTHING = b"{}"


async def test_notification_is_stored_answered_by_the_adapter_and_processed() -> None:
    async with hearing() as world:
        payment = await world.merchant.create_payment("490.00")
        world.pay(payment.id)
        answer = await world.tell(payment.id)
        assert (answer.status_code, answer.content) == (200, b"OK"), "some providers want exactly this"
        assert answer.headers["content-type"] == "text/plain"
        [job] = await world.jobs()
        assert job.argument == payment.id, "it is durable before it is answered"
        assert await world.status(payment) == "pending", "the state is asked for by a job, and not while the bank waits"
        await world.service.run_due()
        assert await world.status(payment) == "paid"
        assert await world.jobs() == []


async def test_repeated_notification_makes_one_poll() -> None:
    async with hearing() as world:
        payment = await world.merchant.create_payment("490.00")
        world.pay(payment.id)
        assert {(await world.tell(payment.id)).status_code for _ in range(3)} == {200}
        assert len(await world.jobs()) == 1
        await world.service.run_due()
        await world.tell(payment.id)
        await world.service.run_due()
        assert await world.status(payment) == "paid"
        assert (await world.merchant.balance()).pending_rub == payment.amount_rub, "money counts once"


async def test_a_notification_about_nothing_of_ours_is_answered_and_ends_at_once() -> None:
    async with hearing() as world:
        for operation in ("pay_another-shop-s", "ref_0", "nothing", "sub_1:2", "kyc_1_1", "exch_/0"):
            assert (await world.tell(operation)).status_code == 200
        await world.service.run_due()
        assert await world.jobs() == []


async def test_premature_notification_changes_nothing_and_the_next_one_does() -> None:
    async with hearing() as world:
        payment = await world.merchant.create_payment("490.00")
        await world.tell(payment.id)
        await world.service.run_due()
        assert await world.status(payment) == "pending"
        world.pay(payment.id)
        await world.tell(payment.id)
        await world.service.run_due()
        assert await world.status(payment) == "paid"


async def test_a_provider_that_does_not_answer_our_question_is_asked_again() -> None:
    async with hearing() as world:
        payment = await world.merchant.create_payment("490.00")
        world.pay(payment.id)
        await world.tell(payment.id)
        world.provider.be_away()
        await world.service.run_due()
        [job] = await world.jobs()
        assert 5 < (job.due - world.service.ports.clock.now()).total_seconds() <= 10, "by the backoff of such questions"


async def test_a_forged_one_is_403_and_keeps_nothing() -> None:
    async with hearing() as world:
        payment = await world.merchant.create_payment("490.00")
        body, headers = world.provider.notification(payment.id, "another token")
        assert (await world.post(body, headers)).status_code == 403
        assert await world.jobs() == []
        assert (await world.address()).received_at is None


@table(
    "path",
    [
        f"/api/v1/notices/{NAME}/{'0' * 64}",
        f"/api/v1/notices/{NAME}/é",
        f"/api/v1/notices/nobody/{'0' * 64}",
        f"/api/v1/notices/simulator-test/{'0' * 64}",
    ],
)
async def test_a_wrong_secret_and_an_unknown_adapter_are_one_404(path: str) -> None:
    async with hearing() as world:
        refused = await world.tell("pay_1", path=path)
        unknown = await world.tell("pay_1", path="/api/v1/no-such-path")
        assert (refused.status_code, refused.content) == (404, unknown.content)


@table("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_notification_address_takes_only_post(method: str) -> None:
    async with hearing() as world:
        assert (await world.post(b"", method=method)).status_code == 405


async def test_body_of_64_kb_is_received_and_a_longer_one_is_413() -> None:
    async with hearing() as world:
        assert (await world.post(b"x" * LIMIT)).status_code == 403
        assert (await world.post(b"x" * (LIMIT + 1))).status_code == 413


async def test_the_adapter_gets_the_raw_bytes_and_all_that_came_with_them() -> None:
    seen: list[InboundNotification] = []

    async def receive(notification: InboundNotification) -> Received:
        seen.append(notification)
        return Received(status=202, body=b"\xff\x00", content_type="application/octet-stream")

    async with hearing() as world:
        world.bank.receive = receive  # type: ignore[method-assign]
        path = f"{await world.path()}?shop=%D0%AF&empty="
        answer = await world.post(b"\xff\xfe raw", {"X-Sign": "s", "Content-Type": "text/weird"}, path=path)
    [notification] = seen
    assert (notification.body, notification.address) == (b"\xff\xfe raw", PROVIDER_AT)
    assert (notification.headers["x-sign"], notification.headers["content-type"]) == ("s", "text/weird")
    assert notification.query == {"shop": "Я", "empty": ""}
    assert (answer.status_code, answer.content) == (202, b"\xff\x00")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "raw" not in repr(notification)
    assert "x-sign" not in repr(notification)


async def test_notification_names_at_most_a_hundred_valid_operations() -> None:
    named = [*(f"pay_{number}" for number in range(150)), "with a space", "line\u2028break", "x" * 513, "pay_1"]

    async def receive(notification: InboundNotification) -> Received:
        return Received(notifications=tuple(Notification(operation=each[:512]) for each in named))

    async with hearing() as world:
        world.bank.receive = receive  # type: ignore[method-assign]
        assert (await world.post(ANYTHING)).status_code == 200
        assert len(await world.jobs()) == MOST


@table(
    "garbage",
    [
        Received(status=99),
        Received(status=204, body=b"x"),
        Received(body=b"x" * 65_537),
        Received(content_type="a\r\nb"),
        None,
    ],
)
async def test_an_answer_that_cannot_be_sent_is_503(garbage: Received) -> None:
    async def receive(notification: InboundNotification) -> Received:
        return garbage

    async with hearing() as world:
        world.bank.receive = receive  # type: ignore[method-assign]
        assert (await world.post(ANYTHING)).status_code == 503


@pytest.mark.parametrize("raised", [Unavailable("not known yet"), ValueError(TOKEN), RecursionError()])
async def test_fault_of_the_adapter_is_503_so_that_it_is_posted_again(
    raised: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def receive(notification: InboundNotification) -> Received:
        raise raised

    async with hearing() as world:
        world.bank.receive = receive  # type: ignore[method-assign]
        with caplog.at_level(logging.DEBUG):
            assert (await world.post(ANYTHING)).status_code == 503
    assert TOKEN not in caplog.text


async def test_a_storage_that_cannot_write_is_503_so_that_it_is_posted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hearing() as world:
        payment = await world.merchant.create_payment("490.00")
        storage = world.service.ports.storage
        path, unit = await world.path(), type(storage).unit

        def refused(_: object) -> object:
            raise Unavailable("the disk is full")

        monkeypatch.setattr(type(storage), "unit", refused)
        assert (await world.tell(payment.id, path=path)).status_code == 503
        monkeypatch.setattr(type(storage), "unit", unit)
        assert (await world.tell(payment.id)).status_code == 200


class TestNetworks:
    """Sources of notifications: the adapter's list, or the operator's."""

    async def test_outside_of_them_it_is_403(self) -> None:
        async with hearing(networks=("203.0.113.0/28", "2001:db8::/48")) as world:
            assert (await world.tell("pay_1")).status_code == 200
            assert (await world.tell("pay_1", peer="2001:db8:0:7::1")).status_code == 200
            for stranger in ("203.0.113.16", "2001:db8:1::1", "::ffff:198.51.100.1"):
                assert (await world.tell("pay_1", peer=stranger)).status_code == 403
            assert (await world.tell("pay_1", peer="::ffff:203.0.113.5")).status_code == 200

    async def test_an_operator_names_others(self) -> None:
        others = {NAME: (ip_network("198.51.100.7/32"),)}
        async with hearing(networks=("203.0.113.0/28",), notification_networks=others) as world:
            assert (await world.tell("pay_1")).status_code == 403
            assert (await world.tell("pay_1", peer="198.51.100.7")).status_code == 200

    async def test_behind_a_trusted_proxy_the_hop_before_it_counts(self) -> None:
        trusted = (ip_network("10.0.0.0/8"),)
        async with hearing(networks=("203.0.113.0/28",), trusted_proxies=trusted) as world:
            body, headers = world.provider.notification("pay_1", TOKEN)

            async def told(forwarded: str, peer: str) -> int:
                answer = await world.post(body, {**headers, "X-Forwarded-For": forwarded}, peer=peer)
                return answer.status_code

            assert await told("203.0.113.5", "10.0.0.1") == 200
            assert await told("198.51.100.1, 203.0.113.5", "10.0.0.1") == 200
            assert await told("203.0.113.5, 198.51.100.1", "10.0.0.1") == 403, "he wrote the first hop himself"
            assert await told("203.0.113.5", "198.51.100.1") == 403, "a stranger's header is not believed"


class TestSecrets:
    """The address is a secret that outlives restarts, and is said to operators alone."""

    async def test_a_new_one_counts_at_once_and_the_former_one_for_a_day(self) -> None:
        async with hearing() as world:
            former = await world.path()
            await rotate_address(world.service.ports, NAME)
            assert await world.path() != former
            assert (await world.tell("pay_1", path=former)).status_code == 200
            assert (await world.tell("pay_1")).status_code == 200
            address = await world.address()
            async with world.service.ports.storage.unit() as unit:
                now = world.service.ports.clock.now()
                unit[type(address)].save(msgspec.structs.replace(address, former_until=now))
                await unit.commit()
            assert (await world.tell("pay_1", path=former)).status_code == 404
            assert (await world.tell("pay_1")).status_code == 200

    async def test_secret_is_in_no_line_of_the_log_whatever_is_posted(self, caplog: pytest.LogCaptureFixture) -> None:
        async with hearing(networks=("203.0.113.0/28",), access_log="all") as world:
            secret = (await world.path()).rpartition("/")[2]
            with caplog.at_level(logging.DEBUG):
                await world.tell("pay_1")
                await world.post(ANYTHING)
                await world.post(b"x" * (LIMIT + 1))
                await world.tell("pay_1", peer="198.51.100.1")
                await world.service.run_due()
            ours = [record.getMessage() for record in caplog.records if record.name != "httpx"]
            assert any("wrong_network" in line for line in ours)
            assert not [line for line in ours if secret in line]
            assert secret not in repr(await world.address())

    async def test_secret_of_an_address_is_stored_encrypted(self) -> None:
        async with hearing() as world:
            secret = (await world.path()).rpartition("/")[2]
            assert len(secret) == 64
            assert secret.encode() not in (await world.address()).secret


async def test_address_has_a_minute_limit_apart_from_merchants_limits() -> None:
    async with watched(notifications_per_minute=60) as app:
        answers = [await app.http.post(app.address, content=ANYTHING) for _ in range(61)]
        assert [answer.status_code for answer in answers] == [403] * 60 + [429]
        assert answers[-1].headers["retry-after"] == "60"
        assert "x-ratelimit-limit" not in answers[0].headers
        assert app.told() == {(NAME, "forged"): 60, (NAME, "limited"): 1}
        assert app.telemetry.counters.limit_hits.read() == [(("notifications:ip",), 1)]
        await app.clock.advance(60)
        assert (await app.http.post(app.address, content=ANYTHING)).status_code == 403


async def test_results_of_notifications_are_counted_and_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async with watched() as app:
        body, headers = Provider.notification("pay_1", TOKEN)
        for _ in range(2):
            await app.http.post(app.address, content=body, headers=headers)
            await app.http.post(app.address, content=ANYTHING)
            await app.http.post(f"{app.address}0", content=ANYTHING)
            await app.http.post(app.address.replace(NAME, "nobody"), content=ANYTHING)
        outcomes = (NAME, "heard"), (NAME, "forged"), (NAME, "wrong_secret"), ("none", "wrong_secret")
        assert app.told() == dict.fromkeys(outcomes, 2)
        assert [line.count("forged") for line in caplog.messages].count(1) == 1
        await app.clock.advance(60)
        await app.http.post(app.address, content=ANYTHING)
        assert [line.count("forged") for line in caplog.messages].count(1) == 2
        routes = {route for (_, route, _), _ in app.telemetry.counters.requests.read()}
        assert routes == {"/api/v1/notices/{adapter}/{secret}"}, "the path itself holds a secret"


async def test_last_notification_is_recorded_once_a_minute() -> None:
    async with hearing() as world:
        await world.tell("pay_1")
        first = await world.address()
        await world.tell("pay_2")
        assert first.received_at is not None
        assert (await world.address()).version == first.version
        [shown] = await known_gateways(world.service.ports, cambist.Mode.LIVE)
        assert (shown.id, shown.last_notification) == (NAME, first.received_at), "the console tells it"


async def test_notification_slower_than_eight_seconds_is_503() -> None:
    class Slow(Hearing):
        async def receive(self, notification: InboundNotification) -> Received:
            await asyncio.Event().wait()
            return Received()

    async with watched(Slow) as app:
        posting = asyncio.create_task(app.http.post(app.address, content=ANYTHING))
        while app.clock.next_wake() is None:
            await asyncio.sleep(0)
        await app.clock.advance(WITHIN)
        assert (await posting).status_code == 503
        assert sum(app.told().values()) == 1


async def test_processes_of_a_database_share_one_address_across_restarts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    async with hearing(url, data_dir=tmp_path) as first:
        path = await first.path()
    async with hearing(url, data_dir=tmp_path) as again:
        assert await again.path() == path


async def test_simultaneous_starts_make_one_address() -> None:
    async with hearing() as world:
        ports = world.service.ports
        async with ports.storage.unit() as unit:
            unit[NotificationAddress].remove(await world.address())
            await unit.commit()
        await asyncio.gather(*(make_addresses(ports) for _ in range(10)))
        made = await world.address()
        await make_addresses(ports)
        assert await world.address() == made


async def test_test_mode_notification_is_polled_on_the_payments_own_clock() -> None:
    async with hearing(mode="test") as world:
        await world.merchant.do(advance, ClockWish(seconds=3600), do)
        payment = await world.merchant.create_payment("490.00")
        world.pay(payment.id)
        await world.tell(payment.id)
        await world.service.run_due()
        assert await world.status(payment) == "paid"
        async with world.service.ports.storage.unit() as unit:
            [told] = await unit[Event].find(object_id=payment.id)
        assert told.created_at >= payment.created_at > world.service.ports.clock.now()
