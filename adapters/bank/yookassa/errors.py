"""Meaning of an answer other than 200: the table of docs/providers/yookassa.md "Errors"."""

import re
from collections.abc import Mapping
from datetime import datetime

import msgspec

from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ...provider_http import Answer

_HOUR = 3600.0
_PLAIN = re.compile(r"[a-zA-Z0-9_.\[\]-]{1,64}\Z")

_KEY = "Idempotence-Key"
_REASONS: Mapping[str, str] = {
    "amount": "amount",
    "amount.value": "amount",
    "payment_id": "not_found",
    "payment_method_id": "not_found",
    "payout_destination_data.phone": "recipient",
    "payout_destination_data.bank_id": "recipient",
    "phone": "recipient",
    "bank_id": "recipient",
}
"""Reason of the ports by the parameter at fault. For any other parameter the reason is YooKassa's own code."""
_METHOD = "payment_method_data"
"""Parameter at fault when the shop may not use SBP at all."""


class _Error(msgspec.Struct, frozen=True):
    """Error body. Its `description` is not read, because it may quote our request."""

    code: str
    parameter: str | None = None
    retry_after: int | None = None
    """Milliseconds."""


class KeyReused(OutcomeUnknown):
    """The idempotence key was used for a different request. An operation of this id exists and can be found."""


class Forbidden(NotConfigured):
    """The key is valid but lacks a right: the shop may not save methods, or not use SBP."""


def fault_of(answer: Answer, *, owner: str | None, now: datetime) -> Fault:
    """Convert the answer to a fault. `owner`: the merchant whose credentials were used; None: the installation's. Only
    rejected installation credentials take the whole gateway down."""
    error = _read(answer)
    if answer.status in (401, 403):
        if error is None:
            return Unavailable(f"yookassa: {answer.status} without an error of YooKassa's: a proxy's answer")
        if owner is not None:
            return Unavailable(f"yookassa: the credentials of {owner} are not taken ({answer.status})")
        if answer.status == 403:
            return Forbidden("yookassa: the shop has no right to do this")
        return NotConfigured(f"yookassa does not take the shop's key ({answer.status})")
    if answer.status == 429:
        return Unavailable("yookassa: too many requests", retry_after=_retry_after(answer, error, now))
    if error is None or not 400 <= answer.status < 500 or answer.status in (408, 409, 425):
        return answer.unreadable(f"yookassa answered {answer.status}")
    parameter = error.parameter if error.parameter and _PLAIN.match(error.parameter) else None
    if parameter == _KEY and answer.unreadable is OutcomeUnknown:
        return KeyReused("yookassa: the key was used for another request")
    if parameter is not None and parameter.startswith(_METHOD) and owner is None:
        return NotConfigured("yookassa: the shop may not take SBP")
    code = error.code if _PLAIN.match(error.code) else "unknown"
    said = f"yookassa refused: {answer.status} {code}, {parameter or 'no parameter named'}"
    return Refused(said, reason="not_found" if answer.status == 404 else _REASONS.get(parameter or "", code))


def _read(answer: Answer) -> _Error | None:
    try:
        return msgspec.json.decode(answer.body, type=_Error)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _retry_after(answer: Answer, error: _Error | None, now: datetime) -> float | None:
    if error is not None and error.retry_after is not None and error.retry_after >= 0:
        return min(error.retry_after / 1000, _HOUR)
    return answer.retry_after(now)
