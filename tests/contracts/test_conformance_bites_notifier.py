"""Bugs of authors of notifiers: each fails the shipped suite, which names its rule. A notifier that knows repeats by
their id passes it."""

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from cambist.frontends.conformance import notifier as of_notifiers
from cambist.frontends.conformance.harnesses import NotifierHarness
from cambist.ports.notifier import RETRY_AFTER_MAX, Answer, DeliveryResult, WebhookRequest
from tests.contracts.biting import Planted, check_bite, named
from tests.tables import table

ELSEWHERE = "https://elsewhere.example/hook"


class Inbox:
    """A receiver in memory."""

    def __init__(self) -> None:
        self.arrived: list[tuple[Mapping[str, str], bytes]] = []
        self.status = 200
        self.pause: int | None = None
        self.fault: type[Exception] | None = None

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        if self.fault is not None:
            raise self.fault("no answer")
        self.arrived.append((headers, body))
        return 200 if url == ELSEWHERE else self.status


class InboxNotifier:
    """A notifier without a bug."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        try:
            status = self.inbox.post(webhook.url, webhook.headers, webhook.body)
        except ConnectionError as error:
            return DeliveryResult(answer=Answer.CONNECTION, note=str(error))
        except TimeoutError as error:
            return DeliveryResult(answer=Answer.TIMEOUT, note=str(error))
        pause = self.inbox.pause
        retry_after = None if pause is None else min(pause, RETRY_AFTER_MAX)
        return DeliveryResult(answer=Answer.RESPONDED, status=status, retry_after=retry_after)

    async def close(self) -> None:
        """Do nothing."""


class InboxHarness(NotifierHarness):
    def __init__(self, notifier: type[InboxNotifier] = InboxNotifier) -> None:
        self.inbox = Inbox()
        self.notifier = notifier(self.inbox)

    async def received(self) -> list[bytes]:
        return [body for _, body in self.inbox.arrived]

    async def received_headers(self) -> list[Mapping[str, str]]:
        return [headers for headers, _ in self.inbox.arrived]

    async def answer(self, status: int) -> None:
        self.inbox.status = status

    async def be_away(self) -> None:
        self.inbox.fault = ConnectionError

    async def be_silent(self) -> None:
        self.inbox.fault = TimeoutError

    async def redirect(self) -> None:
        self.inbox.status = 302

    async def ask_for_pause(self, seconds: int) -> None:
        self.inbox.status, self.inbox.pause = 503, seconds


class KnowsRepeatsById(InboxNotifier):
    """Not a bug: webhooks.md has receivers do the same."""

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        known: set[str] = self.__dict__.setdefault("known", set())
        webhook_id = webhook.headers["X-Webhook-Id"]
        if webhook_id in known:
            return DeliveryResult(answer=Answer.RESPONDED, status=200)
        result = await super().send(webhook)
        if result.status == 200:
            known.add(webhook_id)
        return result


class TestNotifierThatKnowsRepeatsById(of_notifiers.TestNotifier):
    @pytest.fixture
    def notifier_harness(self) -> NotifierHarness:
        return InboxHarness(KnowsRepeatsById)


class ChangesWebhooks(InboxNotifier):
    """Sends something else than the webhook."""

    def changed(self, webhook: WebhookRequest) -> WebhookRequest:
        raise NotImplementedError

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        return await super().send(self.changed(webhook))


class WritesTheJsonAnew(ChangesWebhooks):
    def changed(self, webhook: WebhookRequest) -> WebhookRequest:
        return msgspec.structs.replace(webhook, body=json.dumps(json.loads(webhook.body)).encode())


class StripsTheBody(ChangesWebhooks):
    def changed(self, webhook: WebhookRequest) -> WebhookRequest:
        return msgspec.structs.replace(webhook, body=webhook.body.strip())


class SendsNoHeaders(ChangesWebhooks):
    def changed(self, webhook: WebhookRequest) -> WebhookRequest:
        return msgspec.structs.replace(webhook, headers={"Content-Type": "application/json"})


class ShortensHeaders(ChangesWebhooks):
    def changed(self, webhook: WebhookRequest) -> WebhookRequest:
        return msgspec.structs.replace(webhook, headers={name: value[:16] for name, value in webhook.headers.items()})


class SharesABuffer(InboxNotifier):
    """Webhooks at once write into one buffer."""

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        self.body: bytes = getattr(self, "body", webhook.body)
        return await super().send(msgspec.structs.replace(webhook, body=self.body))


class ChangesResults(InboxNotifier):
    """Reports something else than what happened."""

    def changed(self, result: DeliveryResult) -> DeliveryResult:
        raise NotImplementedError

    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        return self.changed(await super().send(webhook))


class CallsBadAnswersConnection(ChangesResults):
    def changed(self, result: DeliveryResult) -> DeliveryResult:
        is_bad = (result.status or 0) >= 400
        return msgspec.structs.replace(result, answer=Answer.CONNECTION, status=None) if is_bad else result


class ReportsAllAs200(ChangesResults):
    def changed(self, result: DeliveryResult) -> DeliveryResult:
        return msgspec.structs.replace(result, status=200 if result.status else None)


class ReportsNoStatus(ChangesResults):
    def changed(self, result: DeliveryResult) -> DeliveryResult:
        return msgspec.structs.replace(result, status=None)


class CallsUnreachableReceiversRespondedWith503(ChangesResults):
    def changed(self, result: DeliveryResult) -> DeliveryResult:
        return result if result.status else msgspec.structs.replace(result, answer=Answer.RESPONDED, status=503)


class CallsTimeoutsConnection(ChangesResults):
    def changed(self, result: DeliveryResult) -> DeliveryResult:
        return result if result.status else msgspec.structs.replace(result, answer=Answer.CONNECTION)


class ReportsNoPause(ChangesResults):
    def changed(self, result: DeliveryResult) -> DeliveryResult:
        return msgspec.structs.replace(result, retry_after=None)


class ReportsMilliseconds(ChangesResults):
    def changed(self, result: DeliveryResult) -> DeliveryResult:
        return msgspec.structs.replace(result, retry_after=(result.retry_after or 0) * 1000)


class ReportsAnyPause(ChangesResults):
    def changed(self, result: DeliveryResult) -> DeliveryResult:
        return msgspec.structs.replace(result, retry_after=self.inbox.pause)


class WritesLongNotes(ChangesResults):
    def changed(self, result: DeliveryResult) -> DeliveryResult:
        return msgspec.structs.replace(result, note="Traceback " * 50)


class QuotesTheBodyInNotes(InboxNotifier):
    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        result = await super().send(webhook)
        return msgspec.structs.replace(result, note=f"cannot send {webhook.body!r}")


class RaisesWhenNobodyAnswers(InboxNotifier):
    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        status = self.inbox.post(webhook.url, webhook.headers, webhook.body)
        return DeliveryResult(answer=Answer.RESPONDED, status=status)


class RepeatsBadAnswersItself(InboxNotifier):
    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        result = await super().send(webhook)
        return result if result.status == 200 else await super().send(webhook)


class FollowsRedirects(InboxNotifier):
    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        result = await super().send(webhook)
        return result if result.status != 302 else await super().send(msgspec.structs.replace(webhook, url=ELSEWHERE))


class RemembersFailuresAsSent(InboxNotifier):
    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        known: dict[str, DeliveryResult] = self.__dict__.setdefault("known", {})
        webhook_id = webhook.headers["X-Webhook-Id"]
        if webhook_id not in known:
            known[webhook_id] = await super().send(webhook)
        return known[webhook_id]


class RefusesRepeats(InboxNotifier):
    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        known: set[str] = self.__dict__.setdefault("known", set())
        if webhook.headers["X-Webhook-Id"] in known:
            return DeliveryResult(answer=Answer.RESPONDED, status=409, note="duplicate")
        known.add(webhook.headers["X-Webhook-Id"])
        return await super().send(webhook)


class KnowsRepeatsByBody(InboxNotifier):
    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        known: set[bytes] = self.__dict__.setdefault("known", set())
        if webhook.body in known:
            return DeliveryResult(answer=Answer.RESPONDED, status=200)
        known.add(webhook.body)
        return await super().send(webhook)


class DropsWhatComesTooFast(InboxNotifier):
    async def send(self, webhook: WebhookRequest) -> DeliveryResult:
        self.count = getattr(self, "count", 0) + 1
        if self.count > 10:
            return DeliveryResult(answer=Answer.RESPONDED, status=202)
        return await super().send(webhook)


_SUITE = of_notifiers.TestNotifier
_BYTES = "with its very bytes"
_PAUSE = "must be the seconds that the receiver asks for"
_AWAY = "test_a_receiver_that_is_away"

BUGS = (
    Planted(WritesTheJsonAnew, _SUITE, "test_the_very_bytes", _BYTES),
    Planted(StripsTheBody, _SUITE, "test_the_very_bytes", _BYTES),
    Planted(SendsNoHeaders, _SUITE, "test_headers_arrive", "with its headers: X-Webhook-Signature"),
    Planted(ShortensHeaders, _SUITE, "test_headers_arrive", "with its headers: X-Webhook-Signature"),
    Planted(SharesABuffer, _SUITE, "test_many_webhooks", "with its own bytes"),
    Planted(DropsWhatComesTooFast, _SUITE, "test_many_webhooks", "must arrive, with its own bytes"),
    Planted(CallsBadAnswersConnection, _SUITE, "test_an_answer", "that answered must be RESPONDED", (500,)),
    Planted(ReportsAllAs200, _SUITE, "test_an_answer", "must be reported as it is", (500,)),
    Planted(ReportsNoStatus, _SUITE, "test_an_answer", "must have the receiver's status", (200,)),
    Planted(CallsUnreachableReceiversRespondedWith503, _SUITE, _AWAY, "must not be RESPONDED"),
    Planted(RaisesWhenNobodyAnswers, _SUITE, _AWAY, "must never raise"),
    Planted(WritesLongNotes, _SUITE, _AWAY, "at most 200 characters"),
    Planted(QuotesTheBodyInNotes, _SUITE, _AWAY, "must not quote the webhook"),
    Planted(CallsTimeoutsConnection, _SUITE, "test_receiver_without", "in time must be TIMEOUT"),
    Planted(ReportsNoPause, _SUITE, "test_pause", _PAUSE, (7,)),
    Planted(ReportsMilliseconds, _SUITE, "test_pause", _PAUSE, (7,)),
    Planted(ReportsAnyPause, _SUITE, "test_pause", f"at most {RETRY_AFTER_MAX}", (10 * RETRY_AFTER_MAX,)),
    Planted(RepeatsBadAnswersItself, _SUITE, "test_webhook_is_sent_once", "must be sent once"),
    Planted(FollowsRedirects, _SUITE, "test_redirect", "and not followed"),
    Planted(RemembersFailuresAsSent, _SUITE, "test_repeat_after", "must be sent anew"),
    Planted(RefusesRepeats, _SUITE, "test_repeat_of", "must succeed"),
    Planted(KnowsRepeatsByBody, _SUITE, "test_webhooks_of_two_ids", "also with equal bodies"),
)


async def opened(_: AsyncExitStack, adapter: type[Any] | None) -> InboxHarness:
    return InboxHarness(adapter or InboxNotifier)


@table("bug", BUGS, ids=named)
async def test_notifier_with_a_planted_bug_fails_by_its_rule(bug: Planted) -> None:
    await check_bite(bug, opened)
