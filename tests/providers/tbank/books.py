"""T-Bank's records in the fake: payments, bound accounts, and their changes (docs/providers/tbank.md "Tested and
untested")."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from cambist.ports.clock import Clock

PAID = ("CONFIRMED", "PARTIAL_REFUNDED", "ASYNC_REFUNDING", "REFUNDED")


class No(Exception):
    """Raised for a refusal by T-Bank, with its code."""

    def __init__(self, code: str, details: str = "") -> None:
        super().__init__(f"{code}: {details}")
        self.code, self.details = code, details


@dataclass
class Payment:
    id: str
    terminal: str
    order_id: str
    amount: int
    due: datetime
    recurrent: bool
    description: str
    status: str = "NEW"
    qr: str | None = None
    request_key: int | None = None
    error: str = "0"
    left: int = 0
    refunding: int = 0
    """Amount of the refund in progress."""
    refunds: list[int] = field(default_factory=list)
    """Amounts of the completed refunds."""
    cancel_code: str | None = None
    charged: bool = False

    @property
    def sbp_id(self) -> str:
        return f"A{int(self.id):031d}"


@dataclass
class Account:
    """A binding, by its RequestKey."""

    key: int
    terminal: str
    link: str
    status: str = "PROCESSING"
    token: str | None = None


class Books:
    """State of all terminals."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.payments: dict[str, Payment] = {}
        self.accounts: dict[int, Account] = {}
        self.takes_orders_twice = False
        """As on some terminals: a second Init of one OrderId is a second payment."""
        self.lowers_amount = True
        """Whether GetState shows the remainder after a partial refund, or else the paid amount."""
        self.refunds_later = False
        """A refund is under way until `finish_refunds`."""
        self.refuses_refunds: list[str] = []
        """Codes that the next calls of Cancel get."""
        self.fails_refunds: list[str] = []
        """Codes of the payment system by which the next refunds fail after they were taken."""
        self.fails_charges: list[str] = []
        self.charges_at_once = False
        self.debited: list[tuple[str, int]] = []
        """Every debit of a charge: PaymentId and kopecks."""
        self.sent_back: list[tuple[str, int]] = []
        """Every refund that money moved for."""
        self.moved: list[Payment] = []
        """Payments in the order of their status changes; T-Bank posts each change."""
        self.binds = True
        """Whether the terminal may bind accounts."""
        self._numbers: Iterator[int] = count(3_093_639_567)

    def of_order(self, terminal: str, order_id: str) -> list[Payment]:
        return [each for each in self.payments.values() if (each.terminal, each.order_id) == (terminal, order_id)]

    def of_id(self, terminal: str, payment_id: str) -> Payment:
        found = self.payments.get(payment_id)
        if found is None or found.terminal != terminal:
            raise No("255", "Платеж не найден.")
        if found.status in ("NEW", "FORM_SHOWED") and self.clock.now() > found.due and not found.charged:
            found.status = "DEADLINE_EXPIRED"
        return found

    def open(self, terminal: str, order_id: str, amount: int, due: datetime, *, recurrent: bool, text: str) -> Payment:
        if not self.takes_orders_twice and self.of_order(terminal, order_id):
            raise No("8", f"Заказ с таким order_id уже существует. {order_id}")
        made = Payment(str(next(self._numbers)), terminal, order_id, amount, due, recurrent, text, left=amount)
        self.payments[made.id] = made
        return made

    def show(self, payment: Payment) -> Payment:
        if payment.status not in ("NEW", "FORM_SHOWED"):
            raise No("8", "Неверный статус транзакции.")
        if not 10_00 <= payment.amount <= 1_000_000_00:
            raise No("3016")
        if payment.recurrent and not payment.description:
            raise No("201", "Description")
        if payment.qr is None:
            payment.status, payment.qr = (
                "FORM_SHOWED",
                f"https://qr.nspk.ru/AD{payment.id}?type=02&sum={payment.amount}&cur=RUB",
            )
            if payment.recurrent and self.binds:
                payment.request_key = self.bind(payment.terminal, payment.qr).key
        return payment

    def bind(self, terminal: str, link: str | None = None) -> Account:
        key = next(self._numbers)
        self.accounts[key] = Account(key, terminal, link or f"https://sub.nspk.ru/BD{key}")
        return self.accounts[key]

    def account(self, terminal: str, key: int) -> Account:
        found = self.accounts.get(key)
        if found is None or found.terminal != terminal:
            raise No("3012")
        return found

    def confirm(self, key: int) -> None:
        account = self.accounts[key]
        account.status, account.token = "ACTIVE", f"token{key:027d}"

    def pay(self, payment: Payment, amount: int | None = None) -> None:
        assert payment.status in ("FORM_SHOWED", "REJECTED"), payment.status  # a payer may try again, says nobody
        payment.status = "CONFIRMED"
        payment.amount = payment.left = payment.amount if amount is None else amount
        self.moved.append(payment)

    def reject(self, payment: Payment, code: str = "1051") -> None:
        payment.status, payment.error = "REJECTED", code
        self.moved.append(payment)

    def cancel(self, payment: Payment, amount: int | None) -> int:
        """The amount before."""
        before = payment.left
        if self.refuses_refunds:
            raise No(self.refuses_refunds.pop(0))
        if payment.status in ("NEW", "FORM_SHOWED"):
            payment.status = "CANCELED"
            return before
        if payment.status not in ("CONFIRMED", "PARTIAL_REFUNDED"):
            raise No("8", "Неверный статус транзакции.")
        sum_of = before if amount is None else amount
        if sum_of < 1_00:
            raise No("251", "100 копеек")
        if sum_of > before:
            raise No("330")
        payment.cancel_code, payment.refunding = None, sum_of
        payment.status = "ASYNC_REFUNDING"
        if not self.refunds_later:
            self.finish_refund(payment)
        return before

    def finish_refund(self, payment: Payment) -> None:
        if not payment.refunding:
            return
        back, payment.refunding = payment.refunding, 0
        if self.fails_refunds:
            payment.cancel_code = self.fails_refunds.pop(0)
        else:
            payment.left -= back
            payment.refunds.append(back)
            self.sent_back.append((payment.id, back))
        gone = payment.left < payment.amount
        payment.status = "REFUNDED" if not payment.left else "PARTIAL_REFUNDED" if gone else "CONFIRMED"
        self.moved.append(payment)

    def charge(self, payment: Payment, token: str) -> None:
        if payment.charged or payment.status != "NEW":
            raise No("3037")
        if not payment.recurrent:
            raise No("8", "Неверный статус транзакции.")
        account = next((each for each in self.accounts.values() if each.token == token), None)
        if account is None or account.terminal != payment.terminal:
            raise No("3014")
        payment.charged = True
        if account.status != "ACTIVE":
            self.reject(payment, "3015")
            raise No("3015")
        payment.status = "FORM_SHOWED"
        if self.charges_at_once:
            self.finish_charge(payment)

    def finish_charge(self, payment: Payment) -> None:
        if not payment.charged or payment.status != "FORM_SHOWED":
            return
        if self.fails_charges:
            self.reject(payment, self.fails_charges.pop(0))
            return
        payment.status = "CONFIRMED"
        self.debited.append((payment.id, payment.amount))
        self.moved.append(payment)
