"""A merchant's receiver cannot block the event loop with its answer (docs/webhooks.md)."""

from collections.abc import AsyncIterator

import pytest

from cambist.ports.notifier import Answer
from tests.contracts.webhooks import post, webhook
from tests.receivers import Receiver, raw

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as entered:
        yield entered


async def test_eight_interim_answers_are_read(receiver: Receiver) -> None:
    receiver.answer_with(raw(INTERIM * 8 + FINAL))
    result = await post(webhook(receiver.url))
    assert (result.answer, result.status) == (Answer.RESPONDED, 200)


@pytest.mark.parametrize("more", [1, 10_000])
async def test_more_interim_answers_are_no_answer_whatever_follows(receiver: Receiver, more: int) -> None:
    receiver.answer_with(raw(INTERIM * (8 + more) + FINAL))
    result = await post(webhook(receiver.url))
    assert (result.answer, result.status) == (Answer.CONNECTION, None)
    assert result.note == "interim answers, and no final one"
