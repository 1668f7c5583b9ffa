"""Contract of a notifier (ports/notifier.py). Your conftest.py provides a fixture `notifier_bench`, a NotifierBench."""

import asyncio

import pytest

from ...ports.notifier import Answer, WebhookRequest
from .benches import NotifierBench


def _webhook(bench: NotifierBench, body: bytes = b'{"event":"x"}') -> WebhookRequest:
    headers = {"Content-Type": "application/json", "X-Webhook-Id": "evt_1"}
    return WebhookRequest(url=bench.url, headers=headers, body=body, open_network=True)


class TestNotifier:
    """A webhook arrives unchanged, or the result says that it did not. Failures of the receiver are never raised."""

    async def test_the_very_bytes_arrive(self, notifier_bench: NotifierBench) -> None:
        body = b'{ "name" : "\xd0\x98\xd0\xb2\xd0\xb0\xd0\xbd",\n\t"x":1}\r\n\r\n'
        result = await notifier_bench.notifier.send(_webhook(notifier_bench, body))
        assert result.answer is Answer.RESPONDED
        assert result.status is not None
        assert 200 <= result.status < 300
        assert await notifier_bench.received() == [body]

    @pytest.mark.parametrize("status", [200, 500])
    async def test_an_answer_is_reported_and_not_judged(self, notifier_bench: NotifierBench, status: int) -> None:
        await notifier_bench.answer(status)
        result = await notifier_bench.notifier.send(_webhook(notifier_bench))
        assert (result.answer, result.status) == (Answer.RESPONDED, status)

    async def test_a_receiver_that_is_away_is_a_receipt(self, notifier_bench: NotifierBench) -> None:
        await notifier_bench.be_away()
        result = await notifier_bench.notifier.send(_webhook(notifier_bench))
        assert result.answer is not Answer.RESPONDED
        assert result.status is None
        assert len(result.note) <= 200

    async def test_many_letters_at_once_all_arrive(self, notifier_bench: NotifierBench) -> None:
        bodies = [b'{"number":%d}' % number for number in range(20)]
        results = await asyncio.gather(
            *(notifier_bench.notifier.send(_webhook(notifier_bench, body)) for body in bodies)
        )
        assert {result.answer for result in results} == {Answer.RESPONDED}
        assert sorted(await notifier_bench.received()) == sorted(bodies)
