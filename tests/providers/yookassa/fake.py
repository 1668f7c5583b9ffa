"""A fake of YooKassa's API v3 on a local port. It is as strict as the real one about credentials, keys and fields, has
its own clock, which may be wrong, and forgets keys after a day of that clock. `test_sdk.py` has YooKassa's own SDK
speak to it. FakeProvider supplies the faults of the wire."""

import json
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest

from .books import BANKS, Books, Thing
from .checks import (
    Wrong,
    check_apart,
    check_fields,
    check_key,
    check_method,
    check_payment,
    check_payout,
    check_refund,
    money,
)

SHOP, KEY = "100500", "live_a-key-that-must-not-show"
GATEWAY, PAYOUT_KEY = "507000", "live_a-payout-key-that-must-not-show"
_WINDOW = timedelta(hours=24)
"""For how long it knows its keys."""
_LISTS = {
    "payments": ("payment", {"status", "payment_method"}),
    "refunds": ("refund", {"status", "payment_id"}),
    "payouts": ("payout", {"status"}),
    "receipts": ("receipt", {"status", "payment_id", "refund_id"}),
}
_DATES = ("created_at.gte", "created_at.gt", "created_at.lte", "created_at.lt")


class YooKassaFake(FakeProvider):
    """YooKassa with one shop and one gateway of payouts; more by `add_shop`."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._clock = now
        self.skew = timedelta(0)
        """How far its clock is ahead."""
        self.page: int = 100
        """Number of entries per page of a list, whatever the request says."""
        self.needs_receipts = False
        self.has_sbp = True
        self.told: list[dict[str, Any]] = []
        """The notifications that it would post, in order."""
        self.calls: dict[str, int] = {}
        """How many requests came, by method and path."""
        self.exchanged: deque[tuple[str, str, ProviderRequest, Thing]] = deque(maxlen=100)
        """The last requests that were carried out, by method and path, and their answers."""
        self.books = Books(self.now, lambda event, thing: self.told.append(self.notification(event, thing)))
        self._shops = {SHOP: KEY}
        self._gateways = {GATEWAY: PAYOUT_KEY}
        self.books.balance[GATEWAY] = 10_000_000_00
        self._keys: dict[tuple[str, str, str], tuple[datetime, str, str]] = {}
        self._routes_on()

    @property
    def api(self) -> str:
        """The base address."""
        return f"{self.url}/v3"

    def now(self) -> datetime:
        return self._clock() + self.skew

    def add_shop(self, shop: str, key: str) -> None:
        self._shops[shop] = key

    def denial(self, status: int) -> ProviderAnswer:
        return _error(Wrong(None, "no access", status=401, code="invalid_credentials"))

    def notification(self, event: str, thing: Thing) -> dict[str, Any]:
        """Return the notification about an object in its present state."""
        return {"type": "notification", "event": event, "object": json.loads(json.dumps(self.books.shown(thing)))}

    def _routes_on(self) -> None:
        shop, gateway = self._shops, self._gateways
        for path, kind in (
            ("payments", "payment"),
            ("payment_methods", "payment_method"),
            ("refunds", "refund"),
            ("receipts", "receipt"),
        ):
            self._route("POST", f"/v3/{path}", shop, getattr(self, f"_make_{kind}"))
            self._route("GET", f"/v3/{path}/{{id}}", shop, self._showing(kind))
        self._route("POST", "/v3/payouts", gateway, self._make_payout)
        self._route("GET", "/v3/payouts/{id}", gateway, self._showing("payout"))
        for path, whose in (("payments", shop), ("refunds", shop), ("receipts", shop), ("payouts", gateway)):
            self._route("GET", f"/v3/{path}", whose, self._list(path))
        self._route("GET", "/v3/sbp_banks", gateway, self._banks)
        self._route("GET", "/v3/me", {}, self._me)

    def _route(
        self, method: str, path: str, allowed: Mapping[str, str], action: Callable[[str, ProviderRequest], Thing]
    ) -> None:
        """Check the caller's credentials before anything else."""

        def handle(request: ProviderRequest) -> ProviderAnswer:
            self.calls[f"{method} {path}"] = self.calls.get(f"{method} {path}", 0) + 1
            try:
                owner = self._owner(request, allowed or {**self._shops, **self._gateways})
                said = action(owner, request)
                self.exchanged.append((method, path.removeprefix("/v3"), request, said))
                return ProviderAnswer.of_json(said)
            except Wrong as wrong:
                return _error(wrong)

        self.on(method, path, handle)

    def _owner(self, request: ProviderRequest, allowed: Mapping[str, str]) -> str:
        said = request.headers.get("authorization", "")
        for owner, key in {**self._shops, **self._gateways}.items():
            if said == "Basic " + b64encode(f"{owner}:{key}".encode()).decode():
                if owner not in allowed:
                    raise Wrong(None, "no right to do this", status=403, code="forbidden")
                return owner
        raise Wrong(None, "Basic authentication failed", status=401, code="invalid_credentials")

    def _once(self, owner: str, request: ProviderRequest, make: Callable[[dict[str, Any]], Thing]) -> Thing:
        """A key makes one object, for a day; then it is as good as new."""
        key = check_key(request.headers.get("idempotence-key"))
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise Wrong("Content-Type")
        try:
            body = json.loads(request.body)
        except ValueError:
            raise Wrong(None, "Syntax error: this request contains malformed JSON") from None
        if not isinstance(body, dict):
            raise Wrong(None, "a JSON object is wanted")
        seen = self._keys.get((owner, request.path, key))
        told = json.dumps(body, sort_keys=True)
        if seen is not None and self.now() < seen[0] + _WINDOW:
            if seen[1] != told:
                raise Wrong("Idempotence-Key", "Idempotence key duplicated")
            return self.books.shown(self.books.things[seen[2]])
        made = make(body)
        self._keys[owner, request.path, key] = (self.now(), told, made["id"])
        return self.books.shown(made)

    def _make_payment(self, owner: str, request: ProviderRequest) -> Thing:
        def make(body: dict[str, Any]) -> Thing:
            amount = check_payment(body, receipts=self.needs_receipts)
            if not self.has_sbp:
                raise Wrong("payment_method_data.type", "Payment method is not available")
            return self.books.payment(owner, body, amount)

        return self._once(owner, request, make)

    def _make_payment_method(self, owner: str, request: ProviderRequest) -> Thing:
        def make(body: dict[str, Any]) -> Thing:
            check_method(body)
            return self.books.method(owner, body)

        return self._once(owner, request, make)

    def _make_refund(self, owner: str, request: ProviderRequest) -> Thing:
        def make(body: dict[str, Any]) -> Thing:
            return self.books.refund(owner, body, check_refund(body, receipts=self.needs_receipts))

        return self._once(owner, request, make)

    def _make_receipt(self, owner: str, request: ProviderRequest) -> Thing:
        def make(body: dict[str, Any]) -> Thing:
            check_apart(body)
            self.books.find(owner, body.get("refund_id") or body["payment_id"], body["type"])
            return self.books.receipt(owner, body)

        return self._once(owner, request, make)

    def _make_payout(self, owner: str, request: ProviderRequest) -> Thing:
        return self._once(owner, request, lambda body: self.books.payout(owner, body, check_payout(body, BANKS)))

    def _showing(self, kind: str) -> Callable[[str, ProviderRequest], Thing]:
        def show(owner: str, request: ProviderRequest) -> Thing:
            return self.books.shown(self.books.find(owner, request.parts["id"], kind))

        return show

    def _list(self, path: str) -> Callable[[str, ProviderRequest], Thing]:
        kind, filters = _LISTS[path]

        def show(owner: str, request: ProviderRequest) -> Thing:
            asked = dict(request.query)
            check_fields(asked, "limit", "cursor", *_DATES, *filters)
            limit = asked.get("limit", "10")
            if not limit.isdigit() or not 1 <= int(limit) <= 100:
                raise Wrong("limit")
            begin, end = _span(asked)
            whose = kind if "payment_id" not in asked or kind == "receipt" else f"{kind} of {asked['payment_id']}"
            found = [
                thing
                for thing in self.books.repository(whose, owner).between(begin, end)
                if all(thing.get(name) == asked[name] for name in filters if name in asked)
            ]
            first = _after(found, asked.get("cursor"))
            last = first + min(int(limit), self.page)
            page: Thing = {"type": "list", "items": [self.books.shown(thing) for thing in found[first:last]]}
            return page if last >= len(found) else {**page, "next_cursor": found[last - 1]["id"]}

        return show

    def _banks(self, _: str, __: ProviderRequest) -> Thing:
        return {"type": "list", "items": [{"bank_id": b, "name": n, "bic": "044525225"} for b, n in BANKS.items()]}

    def _me(self, owner: str, _: ProviderRequest) -> Thing:
        me: Thing = {"account_id": owner, "status": "enabled", "test": False}
        if owner in self._gateways:
            return {**me, "name": "Payouts", "payout_balance": money(self.books.balance[owner])}
        return {**me, "fiscalization_enabled": self.needs_receipts, "payment_methods": ["sbp"]}


def _after(found: list[Thing], cursor: str | None) -> int:
    if cursor is None:
        return 0
    for place, thing in enumerate(found):
        if thing["id"] == cursor:
            return place + 1
    raise Wrong("cursor")


def _span(asked: Mapping[str, str]) -> tuple[datetime | None, datetime | None]:
    """Return the requested period; its moments have milliseconds."""
    begins = [_moment(asked, "created_at.gte"), _next(_moment(asked, "created_at.gt"))]
    ends = [_moment(asked, "created_at.lt"), _next(_moment(asked, "created_at.lte"))]
    begin = max((each for each in begins if each is not None), default=None)
    end = min((each for each in ends if each is not None), default=None)
    if begin is not None and end is not None and end < begin:
        raise Wrong("created_at.lt", "the interval ends before it begins")
    return begin, end


def _next(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment + timedelta(milliseconds=1)


def _moment(asked: Mapping[str, str], name: str) -> datetime | None:
    if name not in asked:
        return None
    try:
        moment = datetime.fromisoformat(asked[name])
    except ValueError:
        raise Wrong(name) from None
    if moment.tzinfo is None:
        raise Wrong(name)
    return moment


def _error(wrong: Wrong) -> ProviderAnswer:
    told = {"type": "error", "id": str(uuid4()), "code": wrong.code, "description": wrong.why}
    if wrong.parameter is not None:
        told["parameter"] = wrong.parameter
    return ProviderAnswer.of_json(told, wrong.status)


def too_many(milliseconds: int) -> ProviderAnswer:
    """Return a 429 with YooKassa's own field for the delay."""
    told = {"type": "error", "id": str(uuid4()), "code": "too_many_requests", "description": "later"}
    return ProviderAnswer.of_json({**told, "retry_after": milliseconds}, 429)
