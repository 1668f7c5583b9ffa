"""What a provider may say: the port's own types, and amounts, ids, moments and statuses that can be true.

Checked once, here, so that nothing behind it asks whether money is above zero. What is wrong is told by its place and
never by its value, which may name a payer.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from ...ports.bank import Bank, Invoice, InvoiceState, InvoiceStatus, ListingBank, Transfer
from ...ports.chain import ChainWatcher
from ...ports.deposits import DepositWatcher
from ...ports.kyc import Check, DocumentState, KycVerifier
from ...ports.mandates import ChargeState, ChargeStatus, MandateBank, MandateState
from ...ports.payouts import FindingSender, ListingSender, SignedTransfer, UsdtSender
from ...ports.rates import RateSource
from ...ports.remittances import RemittanceBank

_PROTOCOLS: Mapping[str, tuple[type, ...]] = {
    "bank": (Bank, MandateBank, RemittanceBank, ListingBank),
    "chain": (ChainWatcher,),
    "deposits": (DepositWatcher,),
    "kyc": (KycVerifier,),
    "payouts": (UsdtSender, FindingSender, ListingSender),
    "rates": (RateSource,),
}
"""Where an operation's type of answer stands."""

_MOST_KOPECKS = 10**13
"""A hundred billion roubles: ten times what a request may ask for."""
_MOST_UNITS = 10**18
"""Ten billion USDT."""
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
_LAST = datetime(2200, 1, 1, tzinfo=UTC)
_LONGEST_PAUSE = 10**9
_TEXT = 4096
_ID = 512
_ADDRESS = 128
_MANY = 1_000_000
"""Elements of a list: above what a restored copy may hear of a day."""
_WHOLE = 2**63
_HEX = frozenset("0123456789abcdef")
_RUNS_CODE = ("javascript:", "data:", "vbscript:", "file:")

Question = tuple[tuple[Any, ...], Mapping[str, Any]]
"""What an operation was given."""

_Checks = Callable[[Any, str], None]
"""Checks a value that stands at a place. Raises: Nonsense."""


class Nonsense(ValueError):
    """What a provider said cannot be true: the cause of the fault that the caller sees."""


def check_answer(port: str, operation: str, answer: Any, question: Question) -> None:
    """Raises: Nonsense."""
    _of_operation(port, operation)(answer, "answer")
    rule = _OF_OPERATIONS.get(operation)
    if rule is not None and answer is not None:
        given, named = question
        rule(answer, given[0] if given else next(iter(named.values()), None))


def check_drawn(invoice: Any) -> None:
    """An invoice that was drawn without asking anybody, or None. Raises: Nonsense."""
    _of_type(Invoice | None)(invoice, "invoice")


@cache
def _of_operation(port: str, operation: str) -> _Checks:
    for protocol in _PROTOCOLS[port]:
        method = getattr(protocol, operation, None)
        if method is not None:
            return _of_type(get_type_hints(method)["return"])
    raise LookupError(f"no port {port} has an operation {operation}")


@cache
def _of_type(hint: Any) -> _Checks:
    """What checks a value of this type, as an annotation of the ports has it."""
    origin, within = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _one_of([_of_type(each) for each in within])
    if origin in (tuple, Sequence):
        return _each(_of_type(within[0]))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _instance(hint)
    return _PLAIN[hint]


def _one_of(checks: Sequence[_Checks]) -> _Checks:
    def check(value: Any, place: str) -> None:
        wrong: Nonsense | None = None
        for each in checks:
            try:
                return each(value, place)
            except Nonsense as fault:
                # What is right but for one of its fields is told by that field.
                wrong = fault if wrong is None or len(str(fault)) > len(str(wrong)) else wrong
        raise wrong or Nonsense(place)

    return check


def _each(check: _Checks) -> _Checks:
    def check_all(value: Any, place: str) -> None:
        if not isinstance(value, (tuple, list)):
            raise _wrong_type(value, place)
        if len(value) > _MANY:
            raise Nonsense(f"{place}: has more than {_MANY} elements")
        for number, element in enumerate(value):
            check(element, f"{place}[{number}]")

    return check_all


def _struct(kind: type[msgspec.Struct]) -> _Checks:
    hints = get_type_hints(kind)
    fields = [(name, _field(name, hints[name])) for name in kind.__struct_fields__]
    rule = _RULES.get(kind)

    def check(value: Any, place: str) -> None:
        if not isinstance(value, kind):
            raise _wrong_type(value, place)
        for name, check_field in fields:
            check_field(getattr(value, name), f"{place}.{name}")
        if rule is not None:
            rule(value, place)

    return check


def _field(name: str, hint: Any) -> _Checks:
    """By its type, and by its name, which means the same in all records."""
    by_type, by_name = _of_type(hint), None if hint == DocumentState | None else _NAMED.get(name)
    if by_name is None:
        return by_type

    def check(value: Any, place: str) -> None:
        by_type(value, place)
        if value is not None:
            by_name(value, place)

    return check


def _instance(kind: type) -> _Checks:
    def check(value: Any, place: str) -> None:
        if not isinstance(value, kind):
            raise _wrong_type(value, place)

    return check


def _wrong_type(value: Any, place: str) -> Nonsense:
    return Nonsense(f"{place}: is of type {type(value).__name__}")


def _whole(value: Any, place: str) -> None:
    if type(value) is not int:
        raise _wrong_type(value, place)
    if not -_WHOLE <= value < _WHOLE:
        raise Nonsense(f"{place}: is out of range")


def _text(value: Any, place: str) -> None:
    if not isinstance(value, str):
        raise _wrong_type(value, place)
    if len(value) > _TEXT:
        raise Nonsense(f"{place}: is longer than {_TEXT} characters")
    # No database takes the one, and no encoding the other; a line break would be a line of a log.
    if not value.isprintable() and any(ord(each) < 32 or 0xD800 <= ord(each) < 0xE000 for each in value):
        raise Nonsense(f"{place}: has characters that no text has")


def _pause(value: Any, place: str) -> None:
    if type(value) not in (int, float):
        raise _wrong_type(value, place)
    if not isfinite(value) or not 0 <= value <= _LONGEST_PAUSE:
        raise Nonsense(f"{place}: is no number of seconds")


def _moment(value: Any, place: str) -> None:
    if not isinstance(value, datetime):
        raise _wrong_type(value, place)
    if value.tzinfo is None:
        raise Nonsense(f"{place}: has no time zone")
    try:
        is_sane = _FIRST <= value < _LAST
    except OverflowError:
        is_sane = False
    if not is_sane:
        raise Nonsense(f"{place}: is not of this age")


def _decimal(value: Any, place: str) -> None:
    if not isinstance(value, Decimal):
        raise _wrong_type(value, place)
    if not value.is_finite() or abs(value.adjusted()) > 30:
        raise Nonsense(f"{place}: is no number of this world")


_PLAIN: Mapping[Any, _Checks] = {
    int: _whole,
    float: _pause,
    str: _text,
    datetime: _moment,
    Decimal: _decimal,
    bool: _instance(bool),
    bytes: _instance(bytes),
    NoneType: _instance(NoneType),
}


def _between(least: int, most: int) -> _Checks:
    def check(value: int, place: str) -> None:
        if not least <= value <= most:
            raise Nonsense(f"{place}: is {'below ' if value < least else 'above '}{least if value < least else most}")

    return check


def _id(value: str, place: str) -> None:
    if not value or len(value) > _ID or value != value.strip():
        raise Nonsense(f"{place}: is no id")


def _address(value: str, place: str) -> None:
    if not value.isascii() or not value.isprintable() or " " in value or not 1 <= len(value) <= _ADDRESS:
        raise Nonsense(f"{place}: is no address")


def _same(value: Any, asked: Any, place: str) -> None:
    if value != asked:
        raise Nonsense(f"{place}: is of something else than was asked about")


def _signed(answer: SignedTransfer, asked: Any) -> None:
    _same(answer.operation, asked, "answer.operation")
    _filled(answer.blob, "answer.blob")


def _about(answer: InvoiceState | MandateState | Check, asked: Any) -> None:
    _same(answer.reference, asked, "answer.reference")


def _hash(value: str, place: str) -> None:
    if len(value) != 64 or not _HEX.issuperset(value):
        raise Nonsense(f"{place}: is not 64 hex digits in lower case")


def _filled(value: Any, place: str) -> None:
    if not value:
        raise Nonsense(f"{place}: is empty")


def _link(value: str, place: str) -> None:
    if " " in value or value.lower().startswith(_RUNS_CODE):
        raise Nonsense(f"{place}: is no link")


_NAMED: Mapping[str, _Checks] = {
    "id": _id,
    "reference": _id,
    "operation": _id,
    "token": _filled,
    "payload": _filled,
    "amount_kopecks": _between(1, _MOST_KOPECKS),
    "units": _between(1, _MOST_UNITS),
    "index": _between(0, _WHOLE),
    "level": _between(0, 100),
    "tx_hash": _hash,
    "address": _address,
    "link": _link,
    "form_url": _link,
}
"""What a field of this name is, in whichever record it stands."""

_OF_OPERATIONS: Mapping[str, Callable[[Any, Any], None]] = {
    "invoice_state": _about,
    "mandate_state": _about,
    "check_state": _about,
    "sign": _signed,
    "find": lambda sent, asked: _same(sent.signed.operation, asked, "answer.signed.operation"),
    "address": lambda address, _: _address(address, "answer"),
}
"""What an answer has to do with the question: each gets it, and the first thing that was given."""


def _invoice_state(state: InvoiceState, place: str) -> None:
    if state.status is InvoiceStatus.PAID and not state.transfers:
        raise Nonsense(f"{place}.transfers: is empty, although it is paid")
    _named_once(state.transfers, f"{place}.transfers")


def _mandate_state(state: MandateState, place: str) -> None:
    _named_once(state.transfers, f"{place}.transfers")


def _named_once(transfers: Sequence[Transfer], place: str) -> None:
    if len({transfer.id for transfer in transfers}) != len(transfers):
        raise Nonsense(f"{place}: has two of one id")


def _charge_state(state: ChargeState, place: str) -> None:
    if state.status is ChargeStatus.PAID and state.transfer is None:
        raise Nonsense(f"{place}.transfer: is missing, although it is paid")


_RULES: Mapping[type, Callable[[Any, str], None]] = {
    InvoiceState: _invoice_state,
    MandateState: _mandate_state,
    ChargeState: _charge_state,
}
"""What the fields of a record say together."""
