"""What every notifier must do (ports/notifier.py). Your conftest.py gives a fixture
`notifier_bench`, a NotifierBench."""

import asyncio

import pytest

from ...ports.notifier import Answer, Letter
from .benches import NotifierBench


def _letter(bench: NotifierBench, body: bytes = b'{"event":"x"}') -> Letter:
    headers = {"Content-Type": "application/json", "X-Webhook-Id": "evt_1"}
    return Letter(url=bench.url, headers=headers, body=body, open_network=True)


class TestNotifier:
    """A letter arrives as it is, or the receipt says that it did not. What the receiver does is never raised."""

    async def test_the_very_bytes_arrive(self, notifier_bench: NotifierBench) -> None:
        body = b'{ "name" : "\xd0\x98\xd0\xb2\xd0\xb0\xd0\xbd",\n\t"x":1}\r\n\r\n'
        receipt = await notifier_bench.notifier.post(_letter(notifier_bench, body))
        assert receipt.answer is Answer.RESPONDED
        assert receipt.status is not None
        assert 200 <= receipt.status < 300
        assert await notifier_bench.received() == [body]

    @pytest.mark.parametrize("status", [200, 500])
    async def test_an_answer_is_reported_and_not_judged(self, notifier_bench: NotifierBench, status: int) -> None:
        await notifier_bench.answer(status)
        receipt = await notifier_bench.notifier.post(_letter(notifier_bench))
        assert (receipt.answer, receipt.status) == (Answer.RESPONDED, status)

    async def test_a_receiver_that_is_away_is_a_receipt(self, notifier_bench: NotifierBench) -> None:
        await notifier_bench.be_away()
        receipt = await notifier_bench.notifier.post(_letter(notifier_bench))
        assert receipt.answer is not Answer.RESPONDED
        assert receipt.status is None
        assert len(receipt.note) <= 200

    async def test_many_letters_at_once_all_arrive(self, notifier_bench: NotifierBench) -> None:
        bodies = [b'{"number":%d}' % number for number in range(20)]
        receipts = await asyncio.gather(
            *(notifier_bench.notifier.post(_letter(notifier_bench, body)) for body in bodies)
        )
        assert {receipt.answer for receipt in receipts} == {Answer.RESPONDED}
        assert sorted(await notifier_bench.received()) == sorted(bodies)
