"""Contract of a notifier (ports/notifier.py). Your conftest.py provides a fixture `notifier_harness`, a
NotifierHarness."""

import asyncio

import pytest

from ...ports.notifier import RETRY_AFTER_MAX, Answer, DeliveryResult, WebhookRequest
from .expectations import must_answer
from .harnesses import NotifierHarness

BODY = b'{"event":"x","payer":"Ivan Petrovich"}'
HEADERS = {"Content-Type": "application/json", "X-Webhook-Signature": "t=1,v1=0123456789abcdef"}


async def sent(harness: NotifierHarness, body: bytes = BODY, webhook_id: str = "evt_1") -> DeliveryResult:
    """Send a webhook and return its result. An id names one webhook: a notifier may tell repeats by it."""
    headers = {**HEADERS, "X-Webhook-Id": webhook_id}
    with must_answer("`send` must never raise for the receiver or the network: the result says what happened"):
        return await harness.notifier.send(
            WebhookRequest(url=harness.url, headers=headers, body=body, open_network=True)
        )


def _responded(result: DeliveryResult) -> None:
    assert result.answer is Answer.RESPONDED, "a receiver that answered must be RESPONDED"
    assert result.status is not None, "a result that is RESPONDED must have the receiver's status"


def _failed(result: DeliveryResult) -> None:
    assert result.answer is not Answer.RESPONDED, "a receiver that did not answer must not be RESPONDED"
    assert result.status is None, "a result without an answer must have no status"
    assert len(result.note) <= 200, "a result's note must be short: at most 200 characters"
    assert "Ivan" not in result.note, "a result's note must not quote the webhook: it has a payer's data"


class TestNotifier:
    """A webhook arrives unchanged, or the result says that it did not. Failures of the receiver are never raised."""

    async def test_the_very_bytes_arrive(self, notifier_harness: NotifierHarness) -> None:
        body = b'{ "name" : "\xd0\x98\xd0\xb2\xd0\xb0\xd0\xbd",\n\t"x":1}\r\n\r\n'
        result = await sent(notifier_harness, body)
        _responded(result)
        assert 200 <= (result.status or 0) < 300, "a webhook that arrived must have a status of success"
        assert await notifier_harness.received() == [body], "a webhook must arrive once, with its very bytes"

    async def test_headers_arrive(self, notifier_harness: NotifierHarness) -> None:
        """The receiver checks the signature, and tells duplicates by the id."""
        await sent(notifier_harness)
        [found] = await notifier_harness.received_headers()
        arrived = {name.lower(): value for name, value in found.items()}
        for name, value in {**HEADERS, "X-Webhook-Id": "evt_1"}.items():
            assert arrived.get(name.lower()) == value, f"a webhook must arrive with its headers: {name}"

    @pytest.mark.parametrize("status", [200, 500])
    async def test_an_answer_is_reported_and_not_judged(self, notifier_harness: NotifierHarness, status: int) -> None:
        await notifier_harness.answer(status)
        result = await sent(notifier_harness)
        _responded(result)
        assert result.status == status, "the receiver's status must be reported as it is: the core judges it"

    async def test_webhook_is_sent_once(self, notifier_harness: NotifierHarness) -> None:
        """The core repeats it by its schedule."""
        await notifier_harness.answer(500)
        await sent(notifier_harness)
        assert len(await notifier_harness.received()) <= 1, "a webhook must be sent once, also when the answer is bad"

    async def test_repeat_after_a_bad_answer_is_sent_anew(self, notifier_harness: NotifierHarness) -> None:
        await notifier_harness.answer(500)
        await sent(notifier_harness)
        await notifier_harness.answer(200)
        result = await sent(notifier_harness)
        assert result.status == 200, "a webhook that failed must be sent anew when it is repeated"
        assert BODY in await notifier_harness.received(), "a webhook that failed must be sent anew when it is repeated"

    async def test_repeat_of_a_webhook_that_arrived_succeeds(self, notifier_harness: NotifierHarness) -> None:
        """Our crash may hide the first result. The notifier may send it again, or know it by its id."""
        for _ in range(2):
            result = await sent(notifier_harness)
            _responded(result)
            assert 200 <= (result.status or 0) < 300, "a repeat of a webhook that arrived must succeed"
        assert set(await notifier_harness.received()) == {BODY}, "a webhook must arrive with its very bytes"

    async def test_webhooks_of_two_ids_both_arrive(self, notifier_harness: NotifierHarness) -> None:
        """Two events may have equal bodies."""
        for webhook_id in ("evt_1", "evt_2"):
            await sent(notifier_harness, webhook_id=webhook_id)
        assert await notifier_harness.received() == [BODY, BODY], "webhooks of two ids are two, also with equal bodies"

    async def test_redirect_is_reported_and_not_followed(self, notifier_harness: NotifierHarness) -> None:
        await notifier_harness.redirect()
        result = await sent(notifier_harness)
        _responded(result)
        assert 300 <= (result.status or 0) < 400, "a redirect must be reported, and not followed"

    @pytest.mark.parametrize("seconds", [7, 10 * RETRY_AFTER_MAX])
    async def test_pause_of_the_receiver_is_reported(self, notifier_harness: NotifierHarness, seconds: int) -> None:
        await notifier_harness.ask_for_pause(seconds)
        result = await sent(notifier_harness)
        assert result.retry_after == min(seconds, RETRY_AFTER_MAX), (
            f"`retry_after` must be the seconds that the receiver asks for, at most {RETRY_AFTER_MAX}"
        )

    async def test_a_receiver_that_is_away_is_a_receipt(self, notifier_harness: NotifierHarness) -> None:
        await notifier_harness.be_away()
        _failed(await sent(notifier_harness))

    async def test_receiver_without_an_answer_is_a_timeout(self, notifier_harness: NotifierHarness) -> None:
        await notifier_harness.be_silent()
        result = await sent(notifier_harness)
        _failed(result)
        assert result.answer is Answer.TIMEOUT, "a receiver that does not answer in time must be TIMEOUT"

    async def test_many_webhooks_at_once_all_arrive(self, notifier_harness: NotifierHarness) -> None:
        bodies = [b'{"number":%d}' % number for number in range(20)]
        results = await asyncio.gather(
            *(sent(notifier_harness, body, f"evt_{number}") for number, body in enumerate(bodies))
        )
        for result in results:
            _responded(result)
        assert sorted(await notifier_harness.received()) == sorted(bodies), (
            "each of many webhooks at once must arrive, with its own bytes"
        )
