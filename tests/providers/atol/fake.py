"""A fake of ATOL Online, as strict as its protocol: v4 (document 5.15) and v5. It registers a document once for an
external id, queues it, and writes it when the test says so."""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest

LOGIN, PASSWORD, GROUP = "v5-online-atol-ru", "atol-secret-pass", "v5-online-atol-ru_5179"
INN, EMAIL, SITE = "5544332219", "shop@example.com", "https://shop.example"
LIFETIME = timedelta(hours=24)
_JSON = "application/json; charset=utf-8"
_OPERATIONS = {"sell", "sell_refund", "buy", "buy_refund"}
_CORRECTIONS = {"v4": {"sell_correction", "buy_correction"}}
_CORRECTIONS["v5"] = _CORRECTIONS["v4"] | {"sell_refund_correction", "buy_refund_correction"}
_SNO = {"osn", "usn_income", "usn_income_outcome", "envd", "esn", "patent"}
_METHODS = {
    "full_prepayment", "prepayment", "advance", "full_payment", "partial_payment", "credit", "credit_payment",
}  # fmt: skip
_AGENTS = {
    "bank_paying_agent", "bank_paying_subagent", "paying_agent", "paying_subagent", "attorney", "commission_agent",
    "another",
}  # fmt: skip
_SUBJECTS_V4 = {
    "commodity", "excise", "job", "service", "gambling_bet", "gambling_prize", "lottery", "lottery_prize",
    "intellectual_activity", "payment", "agent_commission", "composite", "award", "another", "property_right",
    "non-operating_gain", "insurance_premium", "sales_tax", "resort_fee", "deposit", "expense",
}  # fmt: skip
_SUBJECTS_V5 = {*range(1, 28), *range(30, 34)}
_MEASURES = {0, 10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42, 50, 51, 70, 71, 72, 73, 80, 81, 82, 83, 255}
_MARKS = {"unknown", "ean8", "ean13", "itf14", "gs10", "gs1m", "short", "fur", "egais20", "egais30"}
_RATES = {
    "none": Decimal(0), "vat0": Decimal(0),
    **{f"vat{rate}": Decimal(rate) / (100 + rate) for rate in (5, 7, 10, 20, 22)},
    **{f"vat{100 + rate}": Decimal(rate) / (100 + rate) for rate in (5, 7, 10, 20, 22)},
}  # fmt: skip
_PHONE = re.compile(r"\+?[^\s\\]{1,17}\Z")
_INN = re.compile(r"([0-9]{10}|[0-9]{12})\Z")
_DAY = re.compile(r"[0-9]{2}\.[0-9]{2}\.[0-9]{4}\Z")
_MOMENT = re.compile(r"[0-9]{2}\.[0-9]{2}\.[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\Z")
_HUNDREDTH = Decimal("0.01")

TEXTS = {
    10: "Не распознан токен запроса",
    11: "Переданный токен не активен",
    12: "Неверный логин или пароль",
    14: "Пользователь заблокирован",
    20: "Код группы, указанный в запросе, не соответствует токену.",
    21: "Код группы не поддерживает данную версию протокола.",
    30: "Передан некорректный UUID",
    31: "Операция не поддерживается.",
    33: "В системе существует чек с таким external_id",
    41: "Некорректный Content-Type",
}


class Invalid(Exception):
    """The document is invalid at this place."""


class FakeAtol(FakeProvider):
    """The service with one login and one group of registers."""

    def __init__(self, now: Callable[[], datetime], *, version: str = "v5") -> None:
        super().__init__()
        self.now, self.version = now, version
        self.password, self.group_version = PASSWORD, version
        self.documents: dict[str, dict[str, Any]] = {}
        """By uuid."""
        self.tokens: dict[str, datetime] = {}
        self.accepts_tokens = True
        for each in ("v4", "v5"):
            self.on("POST", f"/{each}/getToken", self._get_token)
            self.on("GET", f"/{each}/{{group}}/report/{{uuid}}", partial(self._report, version=each))
            self.on("POST", f"/{each}/{{group}}/{{operation}}", partial(self._send, version=each))

    def denial(self, status: int) -> ProviderAnswer:
        return self._error({401: 12, 403: 14}[status], status)

    def named(self, operation: str) -> list[dict[str, Any]]:
        """Return the documents with this external id."""
        return [each for each in self.documents.values() if each["external_id"] == operation]

    def write(self, operation: str) -> None:
        """Let a register write the document."""
        self._end(operation, "done", None)

    def fail(self, operation: str, code: int = -3804, text: str = "Неверное количество", kind: str = "driver") -> None:
        """Let the register reject the document."""
        self._end(operation, "fail", {"error_id": "e", "code": code, "text": text, "type": kind})

    def _end(self, operation: str, status: str, error: dict[str, Any] | None) -> None:
        for each in self.named(operation):
            if each["status"] == "wait":
                each |= {"status": status, "error": error}

    def report_of(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document's report, which is also the body of its notification."""
        number = int(document["number"])
        payload = None
        if document["status"] == "done":
            payload = {
                "total": float(document["total"]),
                "fns_site": "www.nalog.gov.ru",
                "fn_number": "9999000000000001",
                "shift_number": 7,
                "receipt_datetime": "27.11.2026 10:00:20",
                "fiscal_receipt_number": number,
                "fiscal_document_number": 100 + number,
                "ecr_registration_number": "0000000000000001",
                "fiscal_document_attribute": 1234567890 + number,
                "ofd_receipt_url": f"https://ofd.example/{number}",
            }
        return {
            "uuid": document["uuid"],
            "error": document["error"],
            "status": document["status"],
            "payload": payload,
            "timestamp": "27.11.2026 10:00:21",
            "group_code": GROUP,
            "daemon_code": "prod-agent-1",
            "device_code": "KSR13.00-1-11",
            "external_id": document["external_id"],
            "callback_url": document["callback_url"],
        }

    def _get_token(self, request: ProviderRequest) -> ProviderAnswer:
        told = json.loads(request.body)
        if told.keys() != {"login", "pass"}:
            return self._error(32, 400)
        if (told["login"], told["pass"]) != (LOGIN, self.password):
            return self._error(12, 401)
        token = f"token-{len(self.tokens)}-secret"
        self.tokens[token] = self.now()
        return ProviderAnswer.of_json({"token": token, "error": None, "timestamp": "27.11.2026 10:00:00"})

    def _denied(self, request: ProviderRequest, version: str) -> ProviderAnswer | None:
        since = self.tokens.get(request.headers.get("token", ""))
        if since is None or not self.accepts_tokens:
            return self._error(10, 401)
        if self.now() - since >= LIFETIME:
            return self._error(11, 401)
        if request.parts["group"] != GROUP:
            return self._error(20, 401)
        return None if version == self.group_version else self._error(21, 401)

    def _report(self, request: ProviderRequest, version: str) -> ProviderAnswer:
        denied = self._denied(request, version)
        if denied is not None:
            return denied
        document = self.documents.get(request.parts["uuid"])
        if document is None:
            return self._error(30, 400, status="fail")
        if document["status"] == "wait":
            return self._error(34, 200, status="wait")
        return ProviderAnswer.of_json(self.report_of(document))

    def _send(self, request: ProviderRequest, version: str) -> ProviderAnswer:
        denied = self._denied(request, version)
        if denied is not None:
            return denied
        operation = request.parts["operation"]
        if operation not in _OPERATIONS | _CORRECTIONS[version]:
            return self._error(31, 400)
        if request.headers.get("content-type") != _JSON:
            return self._error(41, 415)
        body = json.loads(request.body, parse_float=Decimal)
        try:
            document = _Checks(version).document(body, is_correction=operation in _CORRECTIONS[version])
        except (Invalid, KeyError, TypeError, ValueError) as wrong:
            return self._error(32, 400, status="fail", text=f"Ошибка валидации входного чека. Ошибочные поля : {wrong}")
        before = self.named(body["external_id"])
        if before:
            return self._error(33, 400, status="wait", uuid=before[0]["uuid"])
        number = len(self.documents) + 1
        uuid = str(UUID(int=number, version=4))
        total = sum((each["sum"] for each in document["payments"]), Decimal(0))
        self.documents[uuid] = {
            "uuid": uuid,
            "number": number,
            "operation": operation,
            "external_id": body["external_id"],
            "callback_url": body.get("service", {}).get("callback_url", ""),
            "body": document,
            "total": total,
            "status": "wait",
            "error": None,
        }
        said = {"uuid": uuid, "status": "wait", "error": None, "timestamp": "27.11.2026 10:00:01"}
        return ProviderAnswer.of_json(said)

    def _error(self, code: int, http: int, *, text: str | None = None, **more: Any) -> ProviderAnswer:
        error = {"error_id": "475d6d8d", "code": code, "text": text or TEXTS.get(code, "?"), "type": "system"}
        return ProviderAnswer.of_json({**more, "error": error, "timestamp": "27.11.2026 10:00:02"}, http)


class _Checks:
    """Validation of a document by the schemas of its version."""

    def __init__(self, version: str) -> None:
        self.is_v5 = version == "v5"

    def document(self, body: Any, *, is_correction: bool) -> dict[str, Any]:
        part = "correction" if is_correction else "receipt"
        self.keys(body, "#", {"external_id", "timestamp", part}, {"service"})
        need(_MOMENT.match(body["timestamp"]) is not None, "#/timestamp")
        need(1 <= len(body["external_id"]) <= 128, "#/external_id")
        if "service" in body:
            self.keys(body["service"], "#/service", {"callback_url"})
            need(re.match(r"https?://[^:]{1,247}\Z", body["service"]["callback_url"]) is not None, "#/service")
        told: dict[str, Any] = body[part]
        if is_correction:
            self.correction(told)
        else:
            self.receipt(told, "#/receipt", {"client"})
        return told

    def correction(self, told: Any) -> None:
        info = told.pop("correction_info")
        number = set() if self.is_v5 and info["type"] == "self" else {"base_number"}
        self.keys(info, "#/correction/correction_info", {"type", "base_date", *number}, {"base_number"})
        need(info["type"] in ("self", "instruction"), "#/correction/correction_info/type")
        need(_DAY.match(info["base_date"]) is not None, "#/correction/correction_info/base_date")
        if self.is_v5:
            self.receipt(told, "#/correction", set())
        else:
            self.keys(told, "#/correction", {"company", "payments", "vats"})
            self.company(told["company"], set())
            need(1 <= len(told["vats"]) <= 6, "#/correction/vats")
            for each in told["vats"]:
                need(each["type"] in _RATES, "#/correction/vats/type")
                money(each["sum"], "#/correction/vats/sum")
            self.payments(told["payments"])
        told["correction_info"] = info

    def receipt(self, told: Any, place: str, needed: set[str]) -> None:
        more = {"client", "additional_user_props", *({"internet"} if self.is_v5 else set())}
        self.keys(told, place, {"company", "items", "payments", "total", *needed}, more)
        self.company(told["company"], {"email"})
        if "client" in told:
            self.client(told["client"])
        if "additional_user_props" in told:
            props = told["additional_user_props"]
            self.keys(props, f"{place}/additional_user_props", {"name", "value"})
            need(1 <= len(props["name"]) <= 64 and 1 <= len(props["value"]) <= 256, f"{place}/additional_user_props")
        need(1 <= len(told["items"]) <= 100, f"{place}/items")
        sums = [self.item(item, f"{place}/items/{number}") for number, item in enumerate(told["items"])]
        need(sum(sums) == money(told["total"], f"{place}/total"), f"{place}/total")
        need(self.payments(told["payments"]) == told["total"], f"{place}/payments")

    def company(self, told: Any, more: set[str]) -> None:
        self.keys(told, "#/company", {"sno", "inn", "payment_address", *more})
        need(told["sno"] in _SNO and told["inn"] == INN and 1 <= len(told["payment_address"]) <= 256, "#/company")
        need(1 <= len(told.get("email", EMAIL)) <= 64, "#/company/email")

    def client(self, told: Any) -> None:
        self.keys(told, "#/client", set(), {"email", "phone", "name", "inn"})
        need(bool(told.keys() & {"email", "phone"}), "#/client")
        need(len(told.get("email", "")) <= 64 and len(told.get("name", "")) <= 256, "#/client/email")
        need("phone" not in told or re.match(r"\+?[0-9]{5,18}\Z", told["phone"]) is not None, "#/client/phone")
        need("inn" not in told or _INN.match(told["inn"]) is not None, "#/client/inn")

    def payments(self, told: Any) -> Decimal:
        need(1 <= len(told) <= 10, "#/payments")
        for each in told:
            self.keys(each, "#/payments", {"type", "sum"})
            need(each["type"] in range(10), "#/payments/type")
        return sum((money(each["sum"], "#/payments/sum") for each in told), Decimal(0))

    def item(self, item: Any, place: str) -> Decimal:
        needed = {"name", "price", "quantity", "sum", "payment_method", "payment_object", "vat"}
        needed |= {"measure"} if self.is_v5 else {"measurement_unit"}
        more = {"agent_info", "supplier_info", "excise", "country_code", "declaration_number", "user_data"}
        more |= {"mark_code", "mark_processing_mode", "planned_status"} if self.is_v5 else {"nomenclature_code"}
        self.keys(item, place, needed, more)
        need(1 <= len(item["name"]) <= 128, f"{place}/name")
        price, total = money(item["price"], f"{place}/price"), money(item["sum"], f"{place}/sum")
        quantity = Decimal(item["quantity"])
        need(0 < quantity < 100_000 and quantity == round(quantity, 3), f"{place}/quantity")
        need(abs(price * quantity - total) <= _HUNDREDTH / 2, f"{place}/sum")
        need(item["payment_method"] in _METHODS, f"{place}/payment_method")
        need(item["payment_object"] in (_SUBJECTS_V5 if self.is_v5 else _SUBJECTS_V4), f"{place}/payment_object")
        if self.is_v5:
            need(item["measure"] in _MEASURES, f"{place}/measure")
        else:
            need(1 <= len(item["measurement_unit"]) <= 16, f"{place}/measurement_unit")
        self.keys(item["vat"], f"{place}/vat", {"type", "sum"})
        tax = money(item["vat"]["sum"], f"{place}/vat/sum")
        need(abs(total * _RATES[item["vat"]["type"]] - tax) <= _HUNDREDTH / 2, f"{place}/vat/sum")
        if "excise" in item:
            money(item["excise"], f"{place}/excise")
        need(re.match(r"[0-9]{3}\Z", item.get("country_code", "643")) is not None, f"{place}/country_code")
        need(1 <= len(item.get("declaration_number", "1")) <= 32, f"{place}/declaration_number")
        need(1 <= len(item.get("user_data", "1")) <= 64, f"{place}/user_data")
        need(("agent_info" in item) is ("supplier_info" in item), f"{place}/supplier_info")
        if "agent_info" in item:
            self.agent(item["agent_info"], item["supplier_info"], f"{place}/agent_info")
        self.mark(item, place)
        return total

    def mark(self, item: Any, place: str) -> None:
        need(len(item.get("nomenclature_code", "1" * 31)) in range(29, 151), f"{place}/nomenclature_code")
        if not self.is_v5:
            return
        need(("mark_code" in item) is (item["payment_object"] in (31, 33)), f"{place}/mark_code")
        if "mark_code" in item:
            [(form, value)] = item["mark_code"].items()
            need(form in _MARKS and 1 <= len(b64decode(value, validate=True)) <= 200, f"{place}/mark_code")
            need(item["mark_processing_mode"] == "0", f"{place}/mark_processing_mode")
            need(item["planned_status"] in range(1, 7), f"{place}/planned_status")

    def agent(self, told: Any, supplier: Any, place: str) -> None:
        parts = {
            "paying_agent": {"operation", "phones"},
            "receive_payments_operator": {"phones"},
            "money_transfer_operator": {"phones", "name", "address", "inn"},
        }
        self.keys(told, place, {"type"}, set(parts))
        need(told["type"] in _AGENTS, f"{place}/type")
        for name, fields in parts.items():
            part = told.get(name, {})
            self.keys(part, f"{place}/{name}", set(), fields)
            need(all(_PHONE.match(phone) for phone in part.get("phones", [])), f"{place}/{name}/phones")
            need(len(part.get("operation", "")) <= 24, f"{place}/{name}/operation")
            need(_INN.match(part.get("inn", INN)) is not None, f"{place}/{name}/inn")
        self.keys(supplier, f"{place}/supplier_info", {"name", "inn", "phones"})
        need(all(_PHONE.match(phone) for phone in supplier["phones"]), f"{place}/supplier_info/phones")
        need(_INN.match(supplier["inn"]) is not None, f"{place}/supplier_info/inn")

    def keys(self, told: Any, place: str, needed: set[str], more: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        lacking, unknown = needed - told.keys(), told.keys() - needed - more
        need(not lacking and not unknown, f"{place}/{min(lacking | unknown, default='')}")


def need(holds: bool, place: str) -> None:
    if not holds:
        raise Invalid(place)


def money(value: Any, place: str) -> Decimal:
    need(isinstance(value, (int, Decimal)) and not isinstance(value, bool), place)
    amount = Decimal(value)
    need(0 <= amount <= Decimal("42949672.95") and amount == round(amount, 2), place)
    return amount
