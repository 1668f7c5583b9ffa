"""An attacker who knows a bank's notification address, or floods it, can make the service poll the bank and nothing
else."""

import asyncio
import hashlib
import hmac

from cambist.core.domain.notifications import MOST
from cambist.frontends.http.notifications import LIMIT
from cambist.ports import InboundNotification, Notification, Received
from tests.notification_kit import TOKEN, Hearing, hearing, watched
from tests.tables import table

HOSTILE = (
    b"",
    b"\0" * LIMIT,
    b"[" * (LIMIT // 2),
    b'{"key": 1}',
    b'{"key": null}',
    b'{"key": "' + b"a" * (LIMIT - 100) + b'"}',
    b'{"key": "pay_\\u0000"}',
    b'{"key": "\\ud800"}',
    b"\xff\xfe\xfd",
    b"<xml/>",
    b"key=pay_1",
)


class Gullible(Hearing):
    """It believes whatever is posted."""

    async def receive(self, notification: InboundNotification) -> Received:
        return Received(
            notifications=tuple(
                Notification(operation=each.decode("latin-1")) for each in notification.body.split(b"\n")
            )
        )


async def test_sender_who_knows_the_address_moves_no_money() -> None:
    """Even if the adapter believes it: the service polls the bank, which reports that nobody paid."""
    async with hearing() as world:
        world.bank.__class__ = Gullible
        payment = await world.merchant.create_payment("490.00")
        assert (await world.post(f"{payment.id}\n{payment.id}".encode())).status_code == 200
        assert len(await world.jobs()) == 1
        await world.service.run_due()
        assert await world.status(payment) == "pending"
        assert (await world.merchant.balance()).pending_rub == 0


@table("body", HOSTILE, ids=lambda body: f"{body[:12]!r}")
async def test_no_bytes_are_our_fault_signed_or_not(body: bytes) -> None:
    async with hearing() as world:
        signature = hmac.new(TOKEN.encode(), body, hashlib.sha256).hexdigest()
        assert (await world.post(body)).status_code == 403
        signed = await world.post(body, {"X-Signature": signature})
        assert signed.status_code in (200, 403, 503)
        await world.service.run_due()
        assert await world.jobs() == []


@table("name", ["X-Signature", "X-Forwarded-For", "Content-Type", "Host"])
async def test_no_header_is_our_fault(name: str) -> None:
    async with hearing() as world:
        for value in (b"\xff" * 100, b"", b"a" * 5000, b"';--"):
            answer = await world.post(b"{}", [(name.encode(), value)])
            assert answer.status_code in (400, 403)


async def test_flood_of_genuine_notifications_makes_one_job_an_operation() -> None:
    async with hearing() as world:
        world.bank.__class__ = Gullible
        body = b"\n".join(b"pay_%d" % number for number in range(2 * MOST))
        for _ in range(4):  # each has ten seconds of the real clock, at load 16, too
            answers = await asyncio.gather(*(world.post(body) for _ in range(5)))
            assert {answer.status_code for answer in answers} == {200}
        assert len(await world.jobs()) == MOST
        assert await world.service.run_due() >= MOST
        assert await world.jobs() == []


@table("spelling", ["/api/v1/notices/{0}", "/api//v1/notices//{0}/", "/api/v1/notices/{0}?a=b"])
async def test_a_notification_is_counted_as_one_however_its_path_is_spelt(spelling: str) -> None:
    async with watched(notifications_per_minute=60) as app:
        base, rest = app.address.split("/api/v1/notices/")
        for _ in range(60):
            answer = await app.http.post(base + spelling.format(rest), content=b"{}")
            assert (answer.status_code, "x-ratelimit-limit" in answer.headers) == (403, False)
        assert (await app.http.post(app.address, content=b"{}")).status_code == 429


@table(
    ("method", "path"),
    [
        ("POST", "/api/v1/notices/{0}/more"),
        ("POST", "/api/v1/notices"),
        ("POST", "/api/v1/notices/one"),
        ("POST", "/api/v1/noticesx/{0}"),
        ("GET", "/api/v1/notices/{0}"),
        ("HEAD", "/api/v1/notices/{0}"),
    ],
)
async def test_other_requests_under_the_path_count_in_the_common_limit(method: str, path: str) -> None:
    """Otherwise requests to such paths would not be counted."""
    async with watched() as app:
        base, rest = app.address.split("/api/v1/notices/")
        answer = await app.http.request(method, base + path.format(rest))
        assert answer.status_code in (404, 405)
        assert answer.headers["x-ratelimit-limit"] == "300"
