"""YooKassa's books: its objects as its API shows them, and what payers, banks and time do to them."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from .checks import Wrong, kopecks, money

Thing = dict[str, Any]

BANKS = {"100000000111": "Сбербанк", "100000000004": "Т-Банк", "100000000007": "Райффайзен Банк"}
LIFETIME = timedelta(hours=1)
_FEE = (4, 1000)
"""0.4 %, as a fraction; and 22 % of VAT on it, which `income_amount` lacks, too."""


def spelt(moment: datetime) -> str:
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


class Repository:
    """All objects of one kind and shop, in the order in which they were made."""

    def __init__(self) -> None:
        self._made: list[datetime] = []
        self._things: list[Thing] = []

    def add(self, moment: datetime, thing: Thing) -> None:
        at = bisect_left(self._made, moment)
        while at < len(self._made) and self._made[at] == moment:
            at += 1
        self._made.insert(at, moment)
        self._things.insert(at, thing)

    def between(self, begin: datetime | None, end: datetime | None) -> list[Thing]:
        """The newest first."""
        low = 0 if begin is None else bisect_left(self._made, begin)
        high = len(self._made) if end is None else bisect_left(self._made, end)
        return self._things[low:high][::-1]


class Books:
    """Records of all shops and gateways. `notify` is called with every event that YooKassa would post."""

    def __init__(self, now: Callable[[], datetime], notify: Callable[[str, Thing], None]) -> None:
        self.now = now
        self._notify = notify
        self._count = 0
        self.things: dict[str, Thing] = {}
        self.owners: dict[str, str] = {}
        self._repositories: dict[tuple[str, str], Repository] = {}
        self._made: list[Thing] = []
        self._by_operation: dict[str, Thing] = {}
        self.declines: list[str] = []
        """Why the next charges fail, in turn."""
        self.charges_wait = False
        """Charges stay pending, as where a receipt comes first."""
        self.refunds_fail = 0
        self.receipts_fail = 0
        self.receipts_wait = False
        self.balance: dict[str, int] = {}
        """Kopecks, by gateway."""
        self.payouts_wait = True
        self.payouts_fail = 0
        self._pending: dict[str, None] = {}
        """Refunds in processing."""

    def repository(self, kind: str, owner: str) -> Repository:
        return self._repositories.setdefault((kind, owner), Repository())

    def _new(self, kind: str, owner: str, prefix: str = "") -> Thing:
        self._count += 1
        made = self.now()
        made = made.replace(microsecond=made.microsecond // 1000 * 1000)
        number = UUID(int=(int(made.timestamp()) << 96) | (0xF5000_8000 << 48) | self._count)
        thing = {"id": f"{prefix}{number}", "created_at": spelt(made)}
        self.things[thing["id"]] = thing
        self.owners[thing["id"]] = owner
        self.repository(kind, owner).add(made, thing)
        self._made.append(thing)
        return thing

    def _marked(self, thing: Thing) -> None:
        """Index the object by our operation as well."""
        operation = thing["metadata"].get("operation")
        if operation is not None:
            self._by_operation[operation] = thing

    def find(self, owner: str, thing_id: str, kind: str) -> Thing:
        """Raises: Wrong, 404."""
        thing = self.things.get(thing_id)
        if thing is None or self.owners[thing_id] != owner or kind_of(thing) != kind:
            raise Wrong(f"{kind}_id", "it doesn't exist or access denied", status=404, code="not_found")
        self._grow_old(thing)
        return thing

    def shown(self, thing: Thing) -> Thing:
        self._grow_old(thing)
        return {name: value for name, value in thing.items() if not name.startswith("_")}

    def _grow_old(self, thing: Thing) -> None:
        """Cancel a payment that nobody confirmed within the hour."""
        is_waiting = thing["status"] == "pending" and "confirmation" in thing
        if is_waiting and self.now() >= datetime.fromisoformat(thing["created_at"]) + LIFETIME:
            self.cancel(thing["id"], "expired_on_confirmation")

    def payment(self, owner: str, body: Mapping[str, Any], amount: int) -> Thing:
        saved = None
        if "payment_method_id" in body:
            saved = self._chargeable(owner, body["payment_method_id"])
        made = self._new("payment", owner)
        made |= {
            "status": "pending",
            "paid": False,
            "amount": money(amount),
            "recipient": {"account_id": owner, "gateway_id": "1"},
            "refundable": False,
            "test": False,
            "metadata": dict(body.get("metadata", {})),
            "payment_method": {"type": "sbp", "id": made["id"], "saved": False, "status": "inactive"},
            "_kind": "payment",
            "_left": amount,
            "_receipt": body.get("receipt"),
        }
        self._marked(made)
        if "description" in body:
            made["description"] = body["description"]
        if saved is not None:
            made["payment_method"] = {"type": "sbp", "id": saved["id"], "saved": True, "status": saved["status"]}
            self._charge(made, saved)
            return made
        made["confirmation"] = confirmation(body, made["id"])
        if body.get("save_payment_method"):
            made["payment_method"]["status"] = "pending"
        return made

    def _chargeable(self, owner: str, method_id: str) -> Thing:
        method = self.things.get(method_id)
        if method is None or self.owners[method_id] != owner or not method.get("_was_saved"):
            raise Wrong("payment_method_id", "there is no such saved method")
        return method

    def _charge(self, made: Thing, method: Thing) -> None:
        if not method["_can_be_charged"]:
            self.cancel(made["id"], "permission_revoked")
        elif self.declines:
            self.cancel(made["id"], self.declines.pop(0))
        elif not self.charges_wait:
            self.pay(made["id"])

    def pay(self, payment_id: str, *, bind: bool = True) -> None:
        """Let the payer pay, and grant the requested mandate or not."""
        payment = self.things[payment_id]
        self._grow_old(payment)
        if payment["status"] != "pending":
            raise AssertionError("nobody can pay what is over")
        amount = payment["_left"]
        fee = -(-amount * _FEE[0] // _FEE[1])
        payment |= {
            "status": "succeeded",
            "paid": True,
            "refundable": True,
            "captured_at": spelt(self.now()),
            "income_amount": money(amount - fee - fee * 22 // 100),
        }
        payment.pop("confirmation", None)
        method = payment["payment_method"]
        method["sbp_operation_id"] = f"{UUID(payment_id).int:032X}"[-32:]
        method["payer_bank_details"] = {"bank_id": "100000000111", "bic": "044525225"}
        if method["status"] == "pending":
            self._saved(payment, is_given=bind)
        if payment["_receipt"] is not None:
            self.receipt(self.owners[payment_id], {"type": "payment", "payment_id": payment_id, "settlements": []})
        self._notify("payment.succeeded", payment)

    def receipt(self, owner: str, body: Mapping[str, Any]) -> Thing:
        """Write a receipt, in or apart from a payment or refund. The register rejects as many as `receipts_fail`."""
        made = self._new("receipt", owner, "rt-")
        made |= {name: body[name] for name in ("type", "payment_id", "refund_id", "settlements") if name in body}
        made |= {"status": "pending" if self.receipts_wait else "succeeded", "items": [], "_kind": "receipt"}
        if self.receipts_fail:
            self.receipts_fail -= 1
            made["status"] = "canceled"
        elif not self.receipts_wait:
            made |= {
                "fiscal_document_number": str(self._count),
                "fiscal_storage_number": "9999078902004339",
                "fiscal_attribute": "2589796189",
                "registered_at": made["created_at"],
            }
        return made

    def _saved(self, payment: Thing, *, is_given: bool) -> None:
        status = "active" if is_given else "inactive"
        payment["payment_method"] |= {"saved": is_given, "status": status}
        number = f"{UUID(payment['id']).int:032x}"
        method_id = payment["payment_method"]["id"] = str(UUID(f"a{number[1:]}"))
        self.things[method_id] = method = {
            "type": "sbp",
            "id": method_id,
            "saved": is_given,
            "status": status,
            "holder": {"account_id": self.owners[payment["id"]], "gateway_id": "1"},
            "_kind": "payment_method",
            "_was_saved": is_given,
            "_can_be_charged": is_given,
        }
        self.owners[method_id] = self.owners[payment["id"]]
        if is_given:
            self._notify("payment_method.active", method)

    def cancel(self, thing_id: str, reason: str) -> None:
        """A payment, refund or payout is cancelled; a method is not saved."""
        thing = self.things[thing_id]
        thing.pop("confirmation", None)
        if thing["_kind"] == "payment_method":
            thing["status"] = "inactive"
            return
        thing |= {"status": "canceled", "cancellation_details": {"party": "yoo_money", "reason": reason}}
        if thing["_kind"] != "refund":
            self._notify(f"{thing['_kind']}.canceled", thing)

    def method(self, owner: str, body: Mapping[str, Any]) -> Thing:
        made = self._new("payment_method", owner)
        made |= {
            "type": "sbp",
            "saved": False,
            "status": "pending",
            "holder": {"account_id": owner, "gateway_id": "1"},
            "confirmation": confirmation(body, made["id"]),
            "metadata": dict(body.get("metadata", {})),
            "_kind": "payment_method",
            "_was_saved": False,
            "_can_be_charged": False,
        }
        self._marked(made)
        return made

    def confirm(self, method_id: str) -> None:
        method = self.things[method_id]
        method |= {"saved": True, "status": "active", "_was_saved": True, "_can_be_charged": True}
        method.pop("confirmation", None)
        self._notify("payment_method.active", method)

    def lose(self, method_id: str, *, lost: bool = True) -> None:
        """Let the payer revoke the mandate in the bank's application, or grant it again."""
        self.things[method_id] |= {
            "saved": not lost,
            "status": "inactive" if lost else "active",
            "_can_be_charged": not lost,
        }

    def refund(self, owner: str, body: Mapping[str, Any], amount: int) -> Thing:
        payment = self.things.get(str(body.get("payment_id")))
        if payment is None or self.owners[payment["id"]] != owner or kind_of(payment) != "payment":
            raise Wrong("payment_id", "Payment doesn't exist or access denied")
        if payment["status"] != "succeeded":
            raise Wrong("payment_id", "Payment is not succeeded")
        if amount > payment["_left"]:
            raise Wrong("amount", "more than is left")
        payment["_left"] -= amount
        made = self._new("refund", owner)
        made |= {
            "status": "pending",
            "amount": money(amount),
            "payment_id": payment["id"],
            "metadata": dict(body.get("metadata", {})),
            "_kind": "refund",
        }
        self._marked(made)
        if "receipt" in body:
            self.receipt(owner, {"type": "refund", "refund_id": made["id"], "settlements": []})
        self._pending[made["id"]] = None
        self.repository(f"refund of {payment['id']}", owner).add(datetime.fromisoformat(made["created_at"]), made)
        if "description" in body:
            made["description"] = body["description"]
        return made

    def finish_refund(self, refund_id: str) -> None:
        refund = self.things[refund_id]
        payment, amount = self.things[refund["payment_id"]], kopecks(refund["amount"], least=1)
        if refund["status"] != "pending":
            return
        self._pending.pop(refund_id)
        if self.refunds_fail:
            self.refunds_fail -= 1
            payment["_left"] += amount
            self.cancel(refund_id, "rejected_by_payee")
            return
        refund["status"] = "succeeded"
        gone = kopecks(payment.get("refunded_amount", money(0)), least=0) + amount
        payment |= {"refunded_amount": money(gone), "refundable": payment["_left"] > 0}
        self._notify("refund.succeeded", refund)

    def payout(self, owner: str, body: Mapping[str, Any], amount: int) -> Thing:
        made = self._new("payout", owner, "po-")
        person = body["payout_destination_data"]
        made |= {
            "status": "pending",
            "amount": money(amount),
            "payout_destination": {**person, "recipient_checked": False},
            "metadata": dict(body.get("metadata", {})),
            "test": False,
            "_kind": "payout",
        }
        self._marked(made)
        if amount > self.balance[owner]:
            self.cancel(made["id"], "insufficient_funds")
            return made
        self.balance[owner] -= amount
        if not self.payouts_wait:
            self.finish_payout(made["id"])
        return made

    def finish_payout(self, payout_id: str) -> None:
        payout = self.things[payout_id]
        if payout["status"] != "pending":
            return
        if self.payouts_fail:
            self.payouts_fail -= 1
            self.balance[self.owners[payout_id]] += kopecks(payout["amount"], least=1)
            self.cancel(payout_id, "general_decline")
        else:
            payout |= {"status": "succeeded", "succeeded_at": spelt(self.now())}
            self._notify("payout.succeeded", payout)

    def since(self, count: int) -> list[Thing]:
        """Return everything made after the first `count` objects."""
        return self._made[count:]

    def pending_refunds(self) -> list[Thing]:
        """Return the refunds in processing."""
        return [self.things[refund_id] for refund_id in self._pending]

    def of_kind(self, kind: str) -> list[Thing]:
        """Return all objects of the kind, of every shop."""
        return [thing for thing in self.things.values() if kind_of(thing) == kind]

    def of_operation(self, operation: str) -> Thing:
        """The newest object whose metadata name it."""
        return self._by_operation[operation]


def kind_of(thing: Thing) -> str:
    return str(thing["_kind"])


def confirmation(body: Mapping[str, Any], thing_id: str) -> Thing:
    if body["confirmation"]["type"] == "qr":
        return {"type": "qr", "confirmation_data": f"https://qr.nspk.ru/{UUID(thing_id).int:032X}"}
    page = f"https://yoomoney.ru/checkout/payments/v2/contract?orderId={thing_id}"
    return {**body["confirmation"], "confirmation_url": page}
