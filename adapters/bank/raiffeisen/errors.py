"""Meaning of Raiffeisenbank's error answers. The code in the body counts before the HTTP status
(docs/providers/raiffeisen.md "Errors").

The functions are pure. A fault contains only the code, never the bank's message.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ...provider_http import Answer

ALREADY_PAID = "ERROR.ORDER_NUMBER_ALREADY_REGISTERED"
WRONG_STATUS = "ERROR.WRONG_QR_STATUS"
RECEIPT_CONFLICT = "RECEIPT_STATUS_CONFLICT"

_REASONS: Mapping[str, str] = {
    "ERROR.INVALID_REQUEST": "invalid",
    "ERROR.INVALID_ORDER": "invalid",
    "ERROR.QR_EXPIRATION_DATE_NOT_VALID": "lifetime",
    "ERROR.DYNAMIC_QR_WITHOUT_AMOUNT": "amount",
    "ERROR.INVALID_PAYMENT_AMOUNT": "amount",
    "ERROR.INVALID_REFUND_AMOUNT": "amount",
    "ERROR.REFUND_INSUFFICIENT_FUNDS": "amount",
    "ERROR.NOT_FOUND": "not_found",
    "ERROR.REFUND_NOT_FOUND": "not_found",
    "ORDER_NOT_FOUND": "not_found",
    "ORDER_HAS_FINAL_STATUS": "state",
    WRONG_STATUS: "state",
    ALREADY_PAID: "state",
    "RECEIPT_VALIDATION_FAILED": "receipt",
    "RECEIPT_TYPE_NOT_SUPPORTED": "receipt",
    RECEIPT_CONFLICT: "state",
}
"""Codes for which certainly nothing was done, with the port's reason."""
_NOT_CONFIGURED: Mapping[str, str] = {
    "ERROR.MERCHANT_NOT_REGISTERED": "it knows no such merchant id",
    "ERROR.SBP_MERCHANT_ID_IS_MISSING": "it was given no merchant id",
    "ERROR.ACCOUNT_IS_NOT_REGISTERED": "the account is not registered there",
    "FISCAL_CLIENT_NOT_FOUND": "it writes no receipts for us",
    "MERCHANT_NOT_FOUND": "it writes no receipts for this merchant",
    "CREDENTIALS_NOT_FOUND": "it has no access to the cash register",
}
_WAITING = ("INSUFFICIENT_FUNDS", "LIMIT")
"""Parts of the code of a payout that was not made because our balance or the receiver's daily limit is exhausted. It is
retried later."""
_DENIED = ("ACCESS", "AUTH", "FORBIDDEN", "TOKEN")
"""Parts of the code of a 401 or 403 about the key itself. Payouts also answer 403 for a wrong account."""
_CODE = re.compile(r"[A-Z][A-Z0-9_.]{0,79}\Z")


class BankRefused(Refused):
    """A definite refusal by the bank, with its code."""

    def __init__(self, name: str, code: str, reason: str) -> None:
        super().__init__(f"{name}: refused with {code}", reason=reason)
        self.code = code


class _Coded(msgspec.Struct):
    code: str | None = None


class _Denial(msgspec.Struct):
    status: int
    error: str


def code_of(answer: Answer) -> str | None:
    """Return the error code in the answer's body. Return None for SUCCESS or a body without a code."""
    try:
        code = msgspec.json.decode(answer.body, type=_Coded).code
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return code if code != "SUCCESS" and code is not None and _CODE.match(code) else None


def is_good(answer: Answer, code: str | None) -> bool:
    return code is None and 200 <= answer.status < 300


def is_absence(code: str | None) -> bool:
    """Report whether the code says that the object does not exist. A 404 without a code says nothing about the
    object."""
    is_told = code is not None and code.endswith("NOT_FOUND")
    return is_told and code not in _NOT_CONFIGURED and "MERCHANT" not in (code or "")


def of_question(answer: Answer, code: str | None) -> Fault:
    """Convert the failed answer to a read into a fault."""
    return _of_both(answer, code) or Unavailable(f"{answer.name}: no answer to a question ({_shown(answer, code)})")


def of_write(answer: Answer, code: str | None, *, payout: bool = False) -> Fault:
    """Convert the failed answer to a write into a fault."""
    clear = _of_both(answer, code)
    if clear is not None:
        return clear
    if code is not None and payout and any(word in code for word in _WAITING):
        return Unavailable(f"{answer.name}: not now ({code})", retry_after=3600)
    if code is not None and (code in _REASONS or 400 <= answer.status < 500):
        return BankRefused(answer.name, code, _REASONS.get(code, "unknown"))
    return OutcomeUnknown(f"{answer.name}: no clear answer ({_shown(answer, code)})")


def _of_both(answer: Answer, code: str | None) -> Fault | None:
    if code is not None and code in _NOT_CONFIGURED:
        return NotConfigured(f"{answer.name}: {_NOT_CONFIGURED[code]}")
    if answer.status == 429:
        return Unavailable(f"{answer.name}: too many requests", retry_after=answer.retry_after())
    if answer.status not in (401, 403):
        return None
    if code is None and not _is_own_denial(answer):
        return Unavailable(f"{answer.name}: {answer.status} without an answer of the bank's: a proxy's answer")
    if code is None or any(word in code for word in _DENIED):
        return NotConfigured(f"{answer.name}: the secret key is not taken")
    return None


def _is_own_denial(answer: Answer) -> bool:
    """Report whether the bank's own gateway denied access. Its answer has no code but repeats the HTTP status in the
    body."""
    try:
        return msgspec.json.decode(answer.body, type=_Denial).status == answer.status
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _shown(answer: Answer, code: str | None) -> Any:
    return answer.status if code is None else f"{answer.status} {code}"
