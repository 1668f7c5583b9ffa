"""Contract of a notifier (ports/notifier.py). Your conftest.py provides a fixture `notifier_harness`, a
NotifierHarness."""

import asyncio

import pytest

from ...ports.notifier import Answer, WebhookRequest
from .harnesses import NotifierHarness


def _webhook(harness: NotifierHarness, body: bytes = b'{"event":"x"}') -> WebhookRequest:
    headers = {"Content-Type": "application/json", "X-Webhook-Id": "evt_1"}
    return WebhookRequest(url=harness.url, headers=headers, body=body, open_network=True)


class TestNotifier:
    """A webhook arrives unchanged, or the result says that it did not. Failures of the receiver are never raised."""

    async def test_the_very_bytes_arrive(self, notifier_harness: NotifierHarness) -> None:
        body = b'{ "name" : "\xd0\x98\xd0\xb2\xd0\xb0\xd0\xbd",\n\t"x":1}\r\n\r\n'
        result = await notifier_harness.notifier.send(_webhook(notifier_harness, body))
        assert result.answer is Answer.RESPONDED
        assert result.status is not None
        assert 200 <= result.status < 300
        assert await notifier_harness.received() == [body]

    @pytest.mark.parametrize("status", [200, 500])
    async def test_an_answer_is_reported_and_not_judged(self, notifier_harness: NotifierHarness, status: int) -> None:
        await notifier_harness.answer(status)
        result = await notifier_harness.notifier.send(_webhook(notifier_harness))
        assert (result.answer, result.status) == (Answer.RESPONDED, status)

    async def test_a_receiver_that_is_away_is_a_receipt(self, notifier_harness: NotifierHarness) -> None:
        await notifier_harness.be_away()
        result = await notifier_harness.notifier.send(_webhook(notifier_harness))
        assert result.answer is not Answer.RESPONDED
        assert result.status is None
        assert len(result.note) <= 200

    async def test_many_letters_at_once_all_arrive(self, notifier_harness: NotifierHarness) -> None:
        bodies = [b'{"number":%d}' % number for number in range(20)]
        results = await asyncio.gather(
            *(notifier_harness.notifier.send(_webhook(notifier_harness, body)) for body in bodies)
        )
        assert {result.answer for result in results} == {Answer.RESPONDED}
        assert sorted(await notifier_harness.received()) == sorted(bodies)
