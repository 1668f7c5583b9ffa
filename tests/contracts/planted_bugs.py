"""Bugs that authors of bank adapters make, each planted alone into the bank of sunrise.py, with the shipped test that
must fail and the words of its rule. The first 35 are those of a review by somebody who wrote an adapter by the
documents alone."""

import hashlib
import hmac
import logging
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

import httpx2
import msgspec

from cambist.frontends.conformance.bank import bank as suites
from cambist.ports import (
    BankCapabilities,
    InboundNotification,
    Invoice,
    InvoiceRequest,
    InvoiceState,
    InvoiceStatus,
    Notification,
    OutcomeUnknown,
    Received,
    RefundRequest,
    RefundState,
    RefundStatus,
    Refused,
    Transfer,
    Unavailable,
)
from cambist.testing import ProviderFault
from tests.contracts.sunrise import SECRET, TOKEN, Bill, Came, SunriseBank, Told

T = TypeVar("T")


class Bug(msgspec.Struct, frozen=True):
    """An adapter with one bug, the shipped test that finds it, and words of the rule in the failure."""

    adapter: type[SunriseBank]
    suite: type
    test: str
    rule: str
    given: dict[str, Any] = {}


class RefundsWholeRoubles(SunriseBank):
    def back(self, request: RefundRequest, number: str) -> dict[str, Any]:
        return {**super().back(request, number), "rub": f"{request.amount_kopecks // 100}.00"}


class RefusesAfter5xx(SunriseBank):
    def failed(self, answer: httpx2.Response) -> Exception:
        return Refused(f"sunrise answered {answer.status_code}")


class CallsLostAnswersUnavailable(SunriseBank):
    def no_answer(self, error: Exception) -> Exception:
        return Unavailable("sunrise gave no answer")


class RefusesAtLimits(SunriseBank):
    def busy(self, answer: httpx2.Response) -> Exception:
        return Refused("sunrise is busy")


class ChecksSignatureOfBodyAlone(SunriseBank):
    def signature(self, notification: InboundNotification) -> bytes:
        return hmac.new(SECRET.encode(), notification.body, hashlib.sha256).hexdigest().encode()


class ChecksNoSignature(SunriseBank):
    def signature(self, notification: InboundNotification) -> bytes:
        return self.sent_signature(notification)


class HandsOnShortIds(SunriseBank):
    async def named(self, order: str) -> str | None:
        return order


class FindsByNoteAlone(SunriseBank):
    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        made = await super().create_invoice(request)
        await self.notes.remember(f"made:{request.operation}", Told(msgspec.json.encode(made).decode()))
        return made

    async def find_invoice(self, operation: str) -> Invoice | None:
        noted = await self.notes.read(f"made:{operation}")
        return None if noted is None else msgspec.json.decode(noted.order, type=Invoice)


class CountsInFloats(SunriseBank):
    def kopecks(self, rub: str) -> int:
        return int(float(rub) * 100)


class ShowsTokenInMessage(SunriseBank):
    def failed(self, answer: httpx2.Response) -> Exception:
        return OutcomeUnknown(f"sunrise answered {answer.status_code} to {answer.request.headers['Authorization']}")


class SendsRandomOrders(SunriseBank):
    """It notes the number that it sent."""

    def order(self, operation: str) -> str:
        return self.__dict__.setdefault("numbers", {}).setdefault(operation, uuid4().hex)  # type: ignore[no-any-return]


class CallsFailedReadsAbsent(SunriseBank):
    async def read(self, path: str, kind: type[T]) -> T | None:
        try:
            return await super().read(path, kind)
        except Unavailable:
            return None


class ReportsNoMoney(SunriseBank):
    def transfers(self, bill: Bill) -> tuple[Transfer, ...]:
        return ()


class CutsIds(SunriseBank):
    def order(self, operation: str) -> str:
        return operation[:36]


class SendsRandomRefundKeys(SunriseBank):
    def refund_number(self, operation: str) -> str:
        return uuid4().hex


class NotesNoOrders(SunriseBank):
    async def note(self, operation: str, order: str) -> None:
        pass


class ReadsNaiveMoments(SunriseBank):
    def transfer(self, came: Came, bill: Bill) -> Transfer:
        return msgspec.structs.replace(super().transfer(came, bill), at=came.at.replace(tzinfo=None))


class FollowsRedirects(SunriseBank):
    follows = True


class RefusesUnreadableAnswers(SunriseBank):
    def unreadable(self) -> Exception:
        return Refused("sunrise's answer cannot be read")


class LogsToken(SunriseBank):
    def failed(self, answer: httpx2.Response) -> Exception:
        logging.getLogger("sunrise").debug("asked with %s", TOKEN)
        return super().failed(answer)


class NeedsSignatureHeader(SunriseBank):
    def sent_signature(self, notification: InboundNotification) -> bytes:
        return notification.headers["x-signature"].encode()


class ForgetsThatItIsClosed(SunriseBank):
    def check_open(self) -> None:
        pass


class RefusesDuplicates(SunriseBank):
    async def after_duplicate(self, path: str, kind: type[T]) -> T:
        raise Refused("sunrise has such an order", reason="DUPLICATE")


class NumbersTransfersByInvoice(SunriseBank):
    def transfer(self, came: Came, bill: Bill) -> Transfer:
        return msgspec.structs.replace(super().transfer(came, bill), id=bill.id)


class CallsFailedRefundsDone(SunriseBank):
    def refund_status(self, word: str) -> RefundStatus:
        return RefundStatus.DONE if word == "failed" else super().refund_status(word)


class SendsKopecksAsRoubles(SunriseBank):
    def rub(self, kopecks: int) -> str:
        return f"{kopecks}.00"


class DropsZeroOfKopecks(SunriseBank):
    def rub(self, kopecks: int) -> str:
        return f"{kopecks // 100}.{kopecks % 100}"


class SendsNoDeadline(SunriseBank):
    def bill(self, request: InvoiceRequest, order: str) -> dict[str, Any]:
        return {name: value for name, value in super().bill(request, order).items() if name != "till"}


class SendsNoTransfer(SunriseBank):
    def back(self, request: RefundRequest, number: str) -> dict[str, Any]:
        return {**super().back(request, number), "payment": None}


class SendsNoPurpose(SunriseBank):
    def bill(self, request: InvoiceRequest, order: str) -> dict[str, Any]:
        return {name: value for name, value in super().bill(request, order).items() if name != "note"}


class _Remembers(SunriseBank):
    kept = InvoiceStatus.PAID

    async def invoice_state(self, reference: str) -> InvoiceState:
        states: dict[str, InvoiceState] = self.__dict__.setdefault("states", {})
        if reference not in states:
            state = await super().invoice_state(reference)
            if state.status is not self.kept:
                return state
            states[reference] = state
        return states[reference]


class RemembersPaid(_Remembers):
    pass


class KnowsRefundWordsAlone(SunriseBank):
    def refund_status(self, word: str) -> RefundStatus:
        return {"working": RefundStatus.PROCESSING, "done": RefundStatus.DONE, "failed": RefundStatus.FAILED}[word]


class HasNoTimeout(SunriseBank):
    timeout = None


class CallsDeclinedOpen(SunriseBank):
    def status(self, word: str) -> InvoiceStatus:
        return InvoiceStatus.OPEN if word == "declined" else super().status(word)


class CallsExpiredPaid(SunriseBank):
    def status(self, word: str) -> InvoiceStatus:
        return InvoiceStatus.PAID if word == "expired" else super().status(word)


class CallsWorkingRefundsDone(SunriseBank):
    def refund_status(self, word: str) -> RefundStatus:
        return RefundStatus.DONE if word == "working" else super().refund_status(word)


class CallsReturnedRefundsDone(SunriseBank):
    def refund_status(self, word: str) -> RefundStatus:
        return RefundStatus.DONE if word == "returned" else super().refund_status(word)


class DropsMoneyTakenBack(SunriseBank):
    def transfers(self, bill: Bill) -> tuple[Transfer, ...]:
        return tuple(each for each in super().transfers(bill) if not each.taken_back)


class OverlooksMoneyTakenBack(SunriseBank):
    def transfer(self, came: Came, bill: Bill) -> Transfer:
        return msgspec.structs.replace(super().transfer(came, bill), taken_back=False)


class RemembersOpen(_Remembers):
    kept = InvoiceStatus.OPEN


class RemembersStateOfAnother(SunriseBank):
    async def invoice_state(self, reference: str) -> InvoiceState:
        paid: list[InvoiceState] = self.__dict__.setdefault("paid", [])
        state = paid[0] if paid else await super().invoice_state(reference)
        if state.status is InvoiceStatus.PAID and not paid:
            paid.append(state)
        return msgspec.structs.replace(state, reference=reference)


class RemembersTransfersById(SunriseBank):
    def transfer(self, came: Came, bill: Bill) -> Transfer:
        seen: dict[str, Transfer] = self.__dict__.setdefault("seen", {})
        return seen.setdefault(came.no, super().transfer(came, bill))


class ReportsAmountAskedFor(SunriseBank):
    def transfer(self, came: Came, bill: Bill) -> Transfer:
        return msgspec.structs.replace(super().transfer(came, bill), amount_kopecks=self.kopecks(bill.rub))


class ReportsAmountWithoutFee(SunriseBank):
    def transfer(self, came: Came, bill: Bill) -> Transfer:
        transfer = super().transfer(came, bill)
        return msgspec.structs.replace(transfer, amount_kopecks=transfer.amount_kopecks - 1)


class ReadsMoscowTimeAsUtc(SunriseBank):
    def transfer(self, came: Came, bill: Bill) -> Transfer:
        transfer = super().transfer(came, bill)
        return msgspec.structs.replace(transfer, at=transfer.at + timedelta(hours=3))


class SendsDeadlineInAnotherZone(SunriseBank):
    def bill(self, request: InvoiceRequest, order: str) -> dict[str, Any]:
        till = request.expires_at + timedelta(hours=3)
        return {**super().bill(request, order), "till": till.isoformat()}


class ChangesTransferIds(SunriseBank):
    def transfer(self, came: Came, bill: Bill) -> Transfer:
        return msgspec.structs.replace(super().transfer(came, bill), id=uuid4().hex)


class TellsReasonOfProvider(SunriseBank):
    def failure(self, reason: str | None) -> str:
        return reason or ""


class CallsUnknownStatusExpired(SunriseBank):
    def status(self, word: str) -> InvoiceStatus:
        return InvoiceStatus.EXPIRED if word == "under_review" else super().status(word)


class CallsUnknownRefundFailed(SunriseBank):
    def refund_status(self, word: str) -> RefundStatus:
        return RefundStatus.FAILED if word == "under_review" else super().refund_status(word)


class CallsLapsedOpen(SunriseBank):
    def status(self, word: str) -> InvoiceStatus:
        return InvoiceStatus.OPEN if word == "expired" else super().status(word)


class KeepsRequestInItself(SunriseBank):
    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        self.request = request
        return await super().create_invoice(request)

    def bill(self, request: InvoiceRequest, order: str) -> dict[str, Any]:
        return {**super().bill(request, order), "rub": self.rub(self.request.amount_kopecks)}


class IgnoresTransferThatIsUnknown(SunriseBank):
    async def refund(self, request: RefundRequest) -> RefundState:
        try:
            return await super().refund(request)
        except Refused as refused:
            if request.transfer is None or refused.reason != "not_found":
                raise
            return await super().refund(msgspec.structs.replace(request, transfer=None))


class TakesRefundedForUnpaid(SunriseBank):
    async def refund(self, request: RefundRequest) -> RefundState:
        sent = await super().refund(request)
        self.__dict__.setdefault("gone", set()).add(request.reference)
        return sent

    async def invoice_state(self, reference: str) -> InvoiceState:
        state = await super().invoice_state(reference)
        gone = reference in self.__dict__.get("gone", set())
        return msgspec.structs.replace(state, status=InvoiceStatus.CANCELLED, transfers=()) if gone else state


class RefundsWholePayment(SunriseBank):
    def back(self, request: RefundRequest, number: str) -> dict[str, Any]:
        return {**super().back(request, number), "rub": "100.00"}


class StatesMoreThanItTakes(SunriseBank):
    capabilities = BankCapabilities(own_lifetime=True, max_kopecks=10_000_000_00)

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        if request.amount_kopecks > 600_000_00:
            raise Refused("above the limit of SBP", reason="amount")
        return await super().create_invoice(request)


class SendsLongPurposes(SunriseBank):
    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        if len(request.purpose) > 140:
            raise Refused("sunrise takes 140 characters", reason="purpose")
        return await super().create_invoice(request)


class ClosesOnce(SunriseBank):
    async def close(self) -> None:
        if self.http.is_closed:
            raise RuntimeError("it is closed already")
        await super().close()


class HearsOnce(SunriseBank):
    async def receive(self, notification: InboundNotification) -> Received:
        heard: set[bytes] = self.__dict__.setdefault("heard", set())
        received = await super().receive(notification)
        if notification.body in heard:
            return Received()
        heard.add(notification.body)
        return received


class BelievesUnsignedTest(SunriseBank):
    async def receive(self, notification: InboundNotification) -> Received:
        if "x-signature" not in notification.headers:
            return Received(notifications=(Notification(operation="pay_1"),))
        return await super().receive(notification)


class FindsNothingElsewhere(SunriseBank):
    """Searches the invoices that this process made."""

    async def create_invoice(self, request: InvoiceRequest) -> Invoice:
        made = await super().create_invoice(request)
        self.__dict__.setdefault("made", set()).add(request.operation)
        return made

    async def find_invoice(self, operation: str) -> Invoice | None:
        return await super().find_invoice(operation) if operation in self.__dict__.get("made", ()) else None


_CUT = {"fault": ProviderFault.CUT_IN_BODY}
_5XX = {"fault": ProviderFault.SERVER_ERROR}
_UNCLEAR = "test_a_write_without_a_clear_answer_is_unknown_and_once"
_UNKNOWN = "has an unknown outcome"
_MIXED = "are kopecks and roubles mixed up, or is 490.05 written as 490.5"
_NEW = "a status that the adapter does not know"
_CALLS = suites.TestFaults
_HEARS = suites.TestNotifications

REVIEWED = (
    Bug(RefundsWholeRoubles, suites.TestRefunds, "test_provider_is_asked_for", _MIXED),
    Bug(RefusesAfter5xx, _CALLS, _UNCLEAR, _UNKNOWN, _5XX),
    Bug(CallsLostAnswersUnavailable, suites.TestInvoices, "test_a_lost_answer_is", _UNKNOWN, {"done": True}),
    Bug(RefusesAtLimits, _CALLS, "test_a_limit_of_the_provider", "the provider's limit was certainly not executed"),
    Bug(ChecksSignatureOfBodyAlone, _HEARS, "test_a_genuine", "a genuine notification must be received"),
    Bug(ChecksNoSignature, _HEARS, "test_one_about_something_else", "a notification that was changed must be Forged"),
    Bug(HandsOnShortIds, _HEARS, "test_a_genuine", "must name the operation by our own id"),
    Bug(FindsByNoteAlone, suites.TestRefunds, "test_forgotten_refund", "without notes an invoice must be found"),
    Bug(CountsInFloats, suites.TestExtremes, "test_an_amount_is_told", "is it a float", {"kopecks": 4_35}),
    Bug(ShowsTokenInMessage, _CALLS, "test_no_credential_shows_in_faults_and_logs", "a credential", _5XX),
    Bug(CallsFailedReadsAbsent, _CALLS, "test_a_read_that_fails", "a read that failed", _CUT),
    Bug(ReportsNoMoney, suites.TestPayments, "test_money_that_came", "one payment must be one transfer"),
    Bug(CutsIds, suites.TestRequests, "test_each_operation_has_an_order", "is the operation id cut"),
    Bug(SendsRandomRefundKeys, suites.TestRefunds, "test_a_repeat_moves", "must move no second money"),
    Bug(NotesNoOrders, _HEARS, "test_a_genuine", "must name the operation by our own id"),
    Bug(ReadsNaiveMoments, suites.TestPayments, "test_money_that_came", "a transfer's moment has a time zone"),
    Bug(FollowsRedirects, _CALLS, _UNCLEAR, _UNKNOWN, {"fault": ProviderFault.REDIRECT}),
    Bug(RefusesUnreadableAnswers, _CALLS, _UNCLEAR, _UNKNOWN, {"fault": ProviderFault.HTML}),
    Bug(LogsToken, _CALLS, "test_no_credential_shows_in_faults_and_logs", "a credential", _5XX),
    Bug(NeedsSignatureHeader, _HEARS, "test_one_without_its_signature", "without a signature must be Forged"),
    Bug(ForgetsThatItIsClosed, suites.TestClosed, "test_it_is_closed_twice", "after `close`"),
    Bug(RefusesDuplicates, suites.TestInvoices, "test_a_repeat_is", "a repeat of an operation must return the invoice"),
    Bug(NumbersTransfersByInvoice, suites.TestPayments, "test_second_transfer", "must have two ids"),
    Bug(CallsFailedRefundsDone, suites.TestRefunds, "test_refund_that_failed", "did not go must be FAILED"),
    Bug(SendsKopecksAsRoubles, suites.TestRequests, "test_provider_is_asked_for", _MIXED, {"kopecks": 100_00}),
    Bug(DropsZeroOfKopecks, suites.TestRequests, "test_provider_is_asked_for", _MIXED, {"kopecks": 490_05}),
    Bug(SendsNoDeadline, suites.TestRequests, "test_provider_gets_the_deadline", "must send the deadline"),
    Bug(SendsNoTransfer, suites.TestRefunds, "test_refund_takes_the_transfer", "the transfer that a refund names"),
    Bug(SendsNoPurpose, suites.TestRequests, "test_provider_gets_the_purpose", "must get the purpose"),
    Bug(RemembersPaid, suites.TestPayments, "test_second_transfer", "after the invoice is paid must be reported"),
    Bug(KnowsRefundWordsAlone, suites.TestRefunds, "test_refund_status_that_nobody", _NEW),
    Bug(HasNoTimeout, suites.TestLimit, "test_call_without_an_answer", "must end by a timeout"),
    Bug(CallsDeclinedOpen, suites.TestPayments, "test_declined_payment", "declined for good must end the invoice"),
    Bug(CallsExpiredPaid, suites.TestPayments, "test_lapsed_invoice", "nobody paid must not be PAID"),
    Bug(CallsWorkingRefundsDone, suites.TestRefunds, "test_refund_in_processing", "until the payer has the money"),
)  # fmt: skip

OWN = (
    Bug(SendsRandomOrders, suites.TestRequests, "test_provider_gets_the_purpose", "or another one sent"),
    Bug(CallsReturnedRefundsDone, suites.TestRefunds, "test_refund_that_came_back", "must be REVERSED"),
    Bug(DropsMoneyTakenBack, suites.TestPayments, "test_money_that_was_taken_back", "must stay in the report"),
    Bug(OverlooksMoneyTakenBack, suites.TestPayments, "test_money_that_was_taken_back", "with `taken_back`"),
    Bug(RemembersOpen, suites.TestPayments, "test_payment_after_a_poll", "must ask the provider each time"),
    Bug(RemembersStateOfAnother, suites.TestPayments, "test_money_of_one_invoice", "must be no other's"),
    Bug(RemembersTransfersById, suites.TestPayments, "test_paid_invoices_report", "transfers of another invoice"),
    Bug(ReportsAmountAskedFor, suites.TestPayments, "test_another_amount", "the money that came", {"kopecks": 99_99}),
    Bug(ReportsAmountWithoutFee, suites.TestPayments, "test_money_that_came", "before any fee"),
    Bug(ReadsMoscowTimeAsUtc, suites.TestPayments, "test_money_that_came", "is the zone right"),
    Bug(SendsDeadlineInAnotherZone, suites.TestRequests, "test_provider_gets_the_deadline", "is the time zone right"),
    Bug(ChangesTransferIds, suites.TestPayments, "test_money_that_came", "must be the same in every report"),
    Bug(TellsReasonOfProvider, suites.TestPayments, "test_declined_payment", "must be a reason of docs/payments.md"),
    Bug(CallsUnknownStatusExpired, suites.TestPayments, "test_status_that_nobody", _NEW),
    Bug(CallsUnknownRefundFailed, suites.TestRefunds, "test_refund_status_that_nobody", _NEW),
    Bug(CallsLapsedOpen, suites.TestPayments, "test_lapsed_invoice", "ended unpaid must be over"),
    Bug(KeepsRequestInItself, suites.TestRequests, "test_invoices_made_at_once", "the provider was asked for"),
    Bug(IgnoresTransferThatIsUnknown, suites.TestRefunds, "test_refund_of_an_unknown", "that the invoice does not"),
    Bug(TakesRefundedForUnpaid, suites.TestRefunds, "test_a_refund_leaves", "whose money went back must stay PAID"),
    Bug(RefundsWholePayment, suites.TestRefunds, "test_parts_of_a_payment", "must still be refundable"),
    Bug(StatesMoreThanItTakes, suites.TestExtremes, "test_bounds", "must take an invoice of", {"bound": "max_kopecks"}),
    Bug(SendsLongPurposes, suites.TestExtremes, "test_a_purpose_that", "the adapter shortens", {"purpose": "Ж" * 255}),
    Bug(ClosesOnce, suites.TestClosed, "test_it_is_closed_twice", "may be called twice"),
    Bug(HearsOnce, _HEARS, "test_told_again", "posted again must be received again"),
    Bug(BelievesUnsignedTest, _HEARS, "test_one_without", "without a signature must be Forged"),
    Bug(FindsNothingElsewhere, suites.TestTwoOfOneName, "test_invoice_of_one_process", "also by another process"),
)  # fmt: skip
