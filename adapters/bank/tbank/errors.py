"""Meaning of T-Bank's error codes: the fault of a call, and the failure reason of a payment (docs/providers/tbank.md
"Errors").

HTTP status is nearly always 200, so only the code counts. A code in no table leaves the outcome of a write unknown.
"""

from collections.abc import Mapping

from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ....ports.mandates import MANDATE_REVOKED
from .wire import Said

HOUR, DAY = 3600.0, 86400.0

NOT_CONFIGURED: Mapping[str, str] = {
    "191": "the contract is not in force",
    "202": "the terminal is blocked",
    "204": "it does not take the pair of terminal key and password",
    "205": "it does not take the pair of terminal key and password",
    "331": "it does not know the terminal",
    "501": "it does not know the terminal",
    "648": "the shop is blocked, or not active yet",
    "2015": "it does not take the pair of terminal key and password",
    "3001": "payments by SBP are off in the shop's settings",
    "3019": "SBP is off in the cabinet",
}
"""Codes that an operator must fix, because nothing works at all, with the text of the fault."""

AGAIN_AFTER: Mapping[str, float] = {
    "10": HOUR,
    "1204": HOUR,
    "1502": HOUR,
    "3002": HOUR,
    "3013": HOUR,
    "3029": HOUR,
    "3030": DAY,
    "3032": HOUR,
    "3033": DAY,
    "3038": HOUR,
    "3041": DAY,
    "3042": HOUR,
}
"""Codes for which certainly nothing was done, with the seconds until a retry. Examples are the payment system's limits
for a payer, the shop's daily limit, too little money on our own account, and charges or refunds that are disabled while
payments work."""

DUPLICATE = frozenset({"8", "20"})
"""Init: an order with this OrderId already exists. From other calls 8 means a wrong status."""

NOT_FOUND = frozenset({"63", "255", "325", "335", "407", "502", "914"})
"""The payment, order or request does not exist."""

_PARAMETERS = {str(code) for code in (1, 2, 9, 12, 17, 64, *range(201, 263), *range(308, 341))}
_REFUSALS: Mapping[str, str] = {
    "4": "status",
    "8": "status",
    "20": "duplicate",
    "53": "declined",
    "251": "amount",
    "323": "amount",
    "324": "status",
    "326": "amount",
    "330": "amount",
    "334": "receipt",
    "620": "amount",
    "632": "amount",
    "1202": "amount",
    "1203": "amount",
    "3003": "fraud",
    "3008": "recipient",
    "3009": "declined_by_bank",
    "3010": "recipient",
    "3016": "amount",
    "3017": "deadline",
    "3028": "declined_by_bank",
    "3031": "declined_by_bank",
    "3034": "declined_by_bank",
    "3035": "declined_by_bank",
    "3044": "recipient",
    "5032": "declined_by_bank",
    "5036": "fraud",
    "5038": "law",
    "5043": "declined_by_bank",
}
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(_PARAMETERS - NOT_CONFIGURED.keys(), "parameters"),
    **dict.fromkeys(NOT_FOUND - NOT_CONFIGURED.keys(), "not_found"),
    **_REFUSALS,
}
"""Definite refusals, with the port's reason."""

_PARAMETER_TEXT = "Неверные параметры"
"""9999 is an internal error, but with this text it refuses the form of the request."""

FAILURES: Mapping[str, str] = {
    "116": "insufficient_funds",
    "1051": "insufficient_funds",
    "3012": MANDATE_REVOKED,
    "3014": MANDATE_REVOKED,
    "3015": MANDATE_REVOKED,
    "5031": MANDATE_REVOKED,
    "5036": "cancelled_by_bank",
    "5060": "insufficient_funds",
    "5063": "cancelled_by_bank",
    "5066": MANDATE_REVOKED,
    "5067": "cancelled_by_bank",
    "3009": "declined_by_bank",
    "5032": "declined_by_bank",
    "5043": "declined_by_bank",
    "5061": "declined_by_bank",
    "5062": "declined_by_bank",
    "5064": "declined_by_bank",
    "5065": "declined_by_bank",
}
"""Failure reasons of a REJECTED payment or a refused charge (docs/payments.md "What you get")."""


def failure_of(code: str | None) -> str:
    """Return the failure reason of a REJECTED payment. An unknown or missing code means that the bank declined it."""
    return FAILURES.get(code or "", "declined_by_bank")


def fault_of(said: Said, *, writes: bool) -> Fault:
    """Convert an answer that is not `is_done` to a fault. T-Bank's messages are not quoted, because they may contain a
    payer's name."""
    code = said.code
    named = f"tbank: error {code}" if code.isascii() and code.isalnum() and len(code) <= 8 else "tbank: an error"
    if code in NOT_CONFIGURED:
        return NotConfigured(f"{named}: {NOT_CONFIGURED[code]}")
    if code in AGAIN_AFTER:
        return Unavailable(f"{named}: not now", retry_after=AGAIN_AFTER[code])
    reason = REFUSED.get(code)
    if code == "9999" and (said.message or "").startswith(_PARAMETER_TEXT):
        reason = "parameters"
    if reason is not None:
        return Refused(f"{named}: {reason}", reason=reason)
    return OutcomeUnknown(named) if writes else Unavailable(named)
