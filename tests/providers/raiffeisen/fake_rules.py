"""Field rules of Raiffeisenbank's fake, and the spelling of its answers."""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from cambist.testing import ProviderAnswer, ProviderRequest

MERCHANT, SECRET = "MA0000000552", "secret-of-the-shop-that-must-not-show"
ACCOUNT, PAYOUT_SECRET = "40702810000000000001", "secret-of-payouts-that-must-not-show"
MOSCOW = timezone(timedelta(hours=3))
BANKS = {"RAIFFEISEN": "Райффайзенбанк", "TINKOFF": "Тинькофф", "VTB": "ВТБ"}

_NUMBER = re.compile(r"[A-Za-z0-9_.-]{1,40}\Z")
_TEXT = re.compile(r"[ -~А-я№]*\Z")


class Rejected(Exception):
    """The bank says no: a code, and the status of versions that have one."""

    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__(code)
        self.code = code
        self.status = status


def bank_list() -> list[dict[str, str]]:
    return [{"alias": alias, "name": name} for alias, name in BANKS.items()]


def json_of(request: ProviderRequest) -> dict[str, Any]:
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise Rejected("ERROR.INVALID_REQUEST", 415)
    try:
        body = json.loads(request.body, parse_float=Decimal)
    except ValueError:
        raise Rejected("ERROR.INVALID_REQUEST") from None
    if not isinstance(body, dict) or None in body.values():
        raise Rejected("ERROR.INVALID_REQUEST")
    return body


def plain(said: Any) -> ProviderAnswer:
    """Return an answer whose amounts are numbers as the bank writes them: without trailing zeros."""
    text = json.dumps(said, ensure_ascii=False, default=lambda amount: f"<{amount.normalize():f}>")
    body = re.sub(r'"<(-?[0-9.]+)>"', r"\1", text).encode()
    return ProviderAnswer(body=body, headers={"Content-Type": "application/json;charset=UTF-8"})


def found_in(books: Mapping[Any, dict[str, Any]], key: Any, code: str = "ERROR.NOT_FOUND", status: int = 404) -> Any:
    try:
        return books[key]
    except KeyError:
        raise Rejected(code, status) from None


def number_in(body: Mapping[str, Any], field: str, code: str = "ERROR.INVALID_REQUEST") -> str:
    said = body.get(field)
    if not isinstance(said, str) or not _NUMBER.match(said):
        raise Rejected(code)
    return said


def amount_in(body: Mapping[str, Any], code: str) -> Decimal:
    """A JSON number above zero, of whole kopecks."""
    said = body.get("amount")
    if isinstance(said, bool) or not isinstance(said, (int, Decimal)):
        raise Rejected(code)
    amount = Decimal(said)
    if amount <= 0 or amount != amount.quantize(Decimal("0.01")):
        raise Rejected(code)
    return amount


def check_texts(body: Mapping[str, Any], **most: int) -> None:
    for field, length in most.items():
        said = body.get(field, "-")
        if not isinstance(said, str) or not 1 <= len(said) <= length or not _TEXT.match(said):
            raise Rejected("ERROR.INVALID_REQUEST")


def shown_qr(qr: Mapping[str, Any]) -> dict[str, Any]:
    return {"qrId": qr["qrId"], "qrStatus": "NEW", "payload": qr["payload"], "qrUrl": qr["qrUrl"]}


def spelt_moment(moment: datetime) -> str:
    return moment.astimezone(MOSCOW).isoformat()


def posted(body: dict[str, Any], spelt: str, signed: str, secret: str) -> tuple[bytes, dict[str, str]]:
    text = json.dumps(body, ensure_ascii=False).replace('"AMOUNT"', spelt)
    signature = hmac.new(secret.encode(), signed.encode(), hashlib.sha256).hexdigest()
    return text.encode(), {"Content-Type": "application/json", "X-Api-Signature-SHA256": signature}
