"""T-Bank's interface on a local port, as strict as the real one: terminal and Token, forms and lengths, the calls that
each status allows, and unique OrderIds. FakeProvider supplies the faults of the wire."""

import hashlib
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from cambist.ports.clock import Clock
from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest
from tests.providers.tbank.books import Books, No, Payment
from tests.providers.tbank.forms import CLOSING, SHAPES, Body, check, check_receipt, due_of, read_body

TERMINAL, PASSWORD = "1690000000000DEMO", "a-password-that-must-not-show"
_KINDS = {"Electronic", "AdvancePayment", "Credit", "Provision", "Cash"}
READS = ("GetState", "CheckOrder", "GetQrState", "GetAddAccountQrState")

_MESSAGES = {
    "1": "Параметры не сопоставлены.",
    "204": "Неверный токен. Проверьте пару TerminalKey/SecretKey.",
    "205": "Неверный токен. Проверьте пару TerminalKey/SecretKey.",
    "8": "Неверный статус транзакции.",
}


def sign(fields: Mapping[str, Any], password: str) -> str:
    """The Token, written from T-Bank's own words once more, so that adapter and fake are not wrong alike."""
    pairs = {"Password": password}
    for name, value in fields.items():
        if name == "Token" or value is None or isinstance(value, dict | list):
            continue
        pairs[name] = json.dumps(value) if isinstance(value, bool) else str(value)
    return hashlib.sha256("".join(value for _, value in sorted(pairs.items())).encode()).hexdigest()


class TBankFake(FakeProvider):
    """Use as an asynchronous context."""

    def __init__(self, clock: Clock, passwords: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.books = Books(clock)
        self.passwords = dict(passwords or {TERMINAL: PASSWORD})
        self.numbers_as_text = False
        """Some ids that the OpenAPI calls numbers are texts, as the client `tbank` wants them."""
        self.calls: Counter[str] = Counter()
        """Number of executed calls, by method."""
        self.exchanged: deque[tuple[str, Body, Body]] = deque(maxlen=100)
        """Path, request and answer of the last calls that could be read."""
        self.wants_receipts = False
        """A cash register is connected."""
        self.closed: list[tuple[str, Body]] = []
        """PaymentIds and receipts of second receipts, in order."""
        for method in SHAPES:
            name = method.rpartition("/")[2]
            handler: Callable[[str, Body], Body] = getattr(self, re.sub("([A-Z])", r"_\1", name).lower())
            path = method if method == CLOSING else f"/v2/{method}"
            self.on("POST", path, self._method(method, handler))

    def payment(self, order_id: str) -> Payment:
        """The only payment of an order."""
        [found] = [each for each in self.books.payments.values() if each.order_id == order_id]
        return found

    def denial(self, status: int) -> ProviderAnswer:
        return ProviderAnswer.of_json({"Success": False, "ErrorCode": "204", "Message": _MESSAGES["204"]}, status)

    def notification(self, payment: Payment, **other: Any) -> bytes:
        """Return the notification about a payment's status."""
        told = {
            "TerminalKey": payment.terminal,
            "OrderId": payment.order_id,
            "Success": payment.status != "REJECTED",
            "Status": payment.status,
            "PaymentId": int(payment.id),
            "ErrorCode": payment.error,
            "Amount": payment.amount,
            "Data": {"Source": "qrsbp"},
            **other,
        }
        return json.dumps({**told, "Token": sign(told, self.passwords[payment.terminal])}).encode()

    def receipt_notification(self, payment: Payment, kopecks: int, number: int, **other: Any) -> bytes:
        """Return the notification about a receipt of a payment, as the register wrote it."""
        fiscal = {
            "FnNumber": "9999000000000001",
            "FiscalDocumentNumber": number,
            "FiscalDocumentAttribute": 1234567890,
            "EcrRegNumber": "0000000000000001",
            "ReceiptDatetime": "2026-11-27T10:00:20+03:00",
            "Url": "https://ofd.example/1",
            "Receipt": {"Items": []},
        }
        told = {"Success": True, "ErrorCode": "0", "Type": "Income", **fiscal, **other}
        return self.notification(payment, Status="RECEIPT", Amount=kopecks, **told)

    def binding_notification(self, key: int) -> bytes:
        """Return the notification about an account that was bound, or whose binding was refused. It has no OrderId."""
        account = self.books.accounts[key]
        told = {
            "TerminalKey": account.terminal,
            "RequestKey": str(key),
            "AccountToken": account.token,
            "BankMemberId": "5555",
            "BankMemberName": "T-Банк",
            "NotificationType": "LINKACCOUNT",
            "Success": account.status == "ACTIVE",
            "ErrorCode": "0",
            "Message": "OK",
            "Status": account.status,
        }
        return json.dumps({**told, "Token": sign(told, self.passwords[account.terminal])}).encode()

    def _method(self, method: str, handler: Callable[[str, Body], Body]) -> Callable[[ProviderRequest], ProviderAnswer]:
        def answer(request: ProviderRequest) -> ProviderAnswer:
            self.calls[method] += 1
            terminal, body = "", {}
            try:
                body = read_body(request)
                terminal = str(body.get("TerminalKey"))
                self._check_token(terminal, body)
                given = {name: value for name, value in body.items() if name not in ("TerminalKey", "Token")}
                if self.numbers_as_text and "RequestKey" in given:
                    given["RequestKey"] = int(given["RequestKey"])
                check(method, given)
                said = handler(terminal, given)
            except No as no:
                message = _MESSAGES.get(no.code, "Неверные параметры.")
                said = {"Success": False, "ErrorCode": no.code, "Message": message, "Details": no.details}
            said = {"TerminalKey": terminal, "Success": True, "ErrorCode": "0", **said}
            self.exchanged.append((request.path, body, said))
            return ProviderAnswer.of_json(said)

        return answer

    def _check_token(self, terminal: str, body: Body) -> None:
        password = self.passwords.get(terminal)
        if password is None:
            raise No("205", "Указанный терминал не найден.")
        if body.get("Token") != sign(body, password):
            raise No("204")

    def _send_closing_receipt(self, terminal: str, body: Body) -> Body:
        payment, receipt = self.books.of_id(terminal, str(body["PaymentId"])), body["Receipt"]
        sums = [sum(each["Amount"] for each in receipt["Items"]), sum(receipt["Payments"].values())]
        check_receipt(receipt, payment.amount)
        if payment.status != "CONFIRMED" or sums[0] != sums[1] or receipt["Payments"].keys() - _KINDS:
            raise No("308", "Payments")
        self.closed.append((payment.id, receipt))
        return {}

    def _init(self, terminal: str, body: Body) -> Body:
        now = self.books.clock.now()
        due = due_of(body.get("RedirectDueDate"), now)
        if body["Amount"] < 1_00:
            raise No("251", "100 копеек")
        self._check_receipt(body, body["Amount"])
        recurrent = body.get("Recurrent") == "Y" and body.get("DATA", {}).get("QR") == "true"
        made = self.books.open(
            terminal, body["OrderId"], body["Amount"], due, recurrent=recurrent, text=body.get("Description", "")
        )
        return {**_shown(made), "PaymentURL": f"https://securepay.tinkoff.ru/new/{made.id}"}

    def _get_qr(self, terminal: str, body: Body) -> Body:
        payment = self.books.show(self.books.of_id(terminal, str(body["PaymentId"])))
        told = {"OrderId": payment.order_id, "Data": payment.qr, "PaymentId": self._number(int(payment.id))}
        return told if payment.request_key is None else {**told, "RequestKey": self._number(payment.request_key)}

    def _get_state(self, terminal: str, body: Body) -> Body:
        payment = self.books.of_id(terminal, body["PaymentId"])
        params = [{"Key": "Route", "Value": "ACQ"}, {"Key": "Source", "Value": "qrsbp"}]
        return {**_shown(payment), "Amount": self._amount(payment), "Message": "OK", "Params": params}

    def _check_order(self, terminal: str, body: Body) -> Body:
        found = self.books.of_order(terminal, body["OrderId"])
        if not found:
            raise No("335", f"OrderId {body['OrderId']} не найден для TerminalKey {terminal}")
        return {"OrderId": body["OrderId"], "Message": "OK", "Payments": [self._of_order(each) for each in found]}

    def _cancel(self, terminal: str, body: Body) -> Body:
        payment = self.books.of_id(terminal, body["PaymentId"])
        self._check_receipt(body, body.get("Amount"), is_needed=body.get("Amount", payment.left) < payment.left)
        before = self.books.cancel(payment, body.get("Amount"))
        return {**_shown(payment), "OriginalAmount": before, "NewAmount": payment.left - payment.refunding}

    def _get_qr_state(self, terminal: str, body: Body) -> Body:
        payment = self.books.of_id(terminal, body["PaymentId"])
        last = payment.refunding or (payment.refunds[-1] if payment.refunds else None)
        told: Body = {"Status": payment.status, "OrderId": payment.order_id, "Message": "OK"}
        if last is not None:
            told["Amount"] = last
        if payment.cancel_code is not None:
            told |= {"QrCancelCode": payment.cancel_code, "QrCancelMessage": "Попробуйте вернуть деньги иначе"}
        return told

    def _add_account_qr(self, terminal: str, body: Body) -> Body:
        due_of(body.get("RedirectDueDate"), self.books.clock.now())
        account = self.books.bind(terminal)
        return {"Data": account.link, "RequestKey": self._number(account.key), "Message": "OK"}

    def _get_add_account_qr_state(self, terminal: str, body: Body) -> Body:
        account = self.books.account(terminal, body["RequestKey"])
        told: Body = {"RequestKey": self._number(account.key), "Status": account.status, "Message": "OK"}
        if account.status == "ACTIVE":
            told |= {"AccountToken": account.token, "BankMemberId": "5555", "BankMemberName": "T-Банк"}
        return told

    def _charge_qr(self, terminal: str, body: Body) -> Body:
        payment = self.books.of_id(terminal, body["PaymentId"])
        self.books.charge(payment, body["AccountToken"])
        return {**_shown(payment), "Currency": 643}

    def _sbp_pay_test(self, terminal: str, body: Body) -> Body:
        payment = self.books.of_id(terminal, body["PaymentId"])
        if payment.status != "FORM_SHOWED":
            raise No("8", "Неверный статус транзакции.")
        if body.get("IsRejected"):
            self.books.reject(payment)
        elif body.get("IsDeadlineExpired"):
            payment.status = "DEADLINE_EXPIRED"
        else:
            self.books.pay(payment)
        return {"Message": "OK", "Details": "0"}

    def _check_receipt(self, body: Body, amount: int | None, *, is_needed: bool = True) -> None:
        receipt = body.get("Receipt")
        if receipt is None:
            if self.wants_receipts and is_needed:
                raise No("309", "Поле Receipt не должно быть пустым.")
            return
        if not self.wants_receipts:
            raise No("315", "Касса не найдена.")
        check_receipt(receipt, amount)

    def _amount(self, payment: Payment) -> int:
        return payment.left or payment.amount if self.books.lowers_amount else payment.amount

    def _of_order(self, payment: Payment) -> Body:
        told = {
            "PaymentId": payment.id,
            "Amount": self._amount(payment),
            "Status": payment.status,
            "Success": payment.error == "0" if self.numbers_as_text else str(payment.error == "0").lower(),
            "ErrorCode": payment.error if self.numbers_as_text else int(payment.error),
            "Message": "None",
        }
        if payment.status not in ("CONFIRMED", "PARTIAL_REFUNDED", "ASYNC_REFUNDING", "REFUNDED"):
            return told
        return {**told, "RRN": "12345678", "SbpPaymentId": payment.sbp_id, "SbpCustomerId": "c4494ca1c0888b3f"}

    def _number(self, number: int) -> int | str:
        return str(number) if self.numbers_as_text else number


def _shown(payment: Payment) -> Body:
    return {
        "OrderId": payment.order_id,
        "PaymentId": payment.id,
        "Status": payment.status,
        "Amount": payment.amount,
    }
