"""Validates whole answers of providers, so that code behind the guard need not check that an amount is positive.

`check_answer` compiles a check for each operation once, from the return annotation of its port (`ports/`): types by
annotation, values by type and field name (values.py), the fields of a record against each other (`_RULES`), and the
answer against the request (`_OF_OPERATIONS`). New records and operations of a port are checked by their annotations
without a change here; a new protocol must be added to `_PROTOCOLS`.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from ....ports.alarms import Alarms, TellsMerchants
from ....ports.bank import (
    Bank,
    CancellingBank,
    Invoice,
    InvoiceKind,
    InvoiceState,
    InvoiceStatus,
    ListingBank,
    Transfer,
)
from ....ports.chain import ChainWatcher, OwnsAddresses
from ....ports.checking import Checkable, CountsSources
from ....ports.deposits import DepositWatcher
from ....ports.files import FileStore, StoredFile
from ....ports.kyc import Check, DocumentState, KycVerifier
from ....ports.mandates import Binding, ChargeState, ChargeStatus, MandateBank, MandateState
from ....ports.members import BankListing
from ....ports.notifications import Notifications, Received
from ....ports.payouts import FindingSender, ListingSender, ReplacingSender, SignedTransfer, UsdtSender
from ....ports.rates import RateSource
from ....ports.receipts import ReceiptBank, ReceiptFinder
from ....ports.remittances import RemittanceBank
from ....ports.reporting import ReportingBank
from ....ports.searching import (
    SearchesBindings,
    SearchesCharges,
    SearchesChecks,
    SearchesInvoices,
    SearchesRefunds,
    SearchesRemittances,
)
from .shown import Clean, cleaner
from .values import NAMED, PLAIN, Checks, InvalidAnswer, address, instance, wrong_type

_PROTOCOLS: Mapping[str, tuple[type, ...]] = {
    "bank": (
        Bank,
        CancellingBank,
        MandateBank,
        RemittanceBank,
        ReceiptBank,
        ReceiptFinder,
        ListingBank,
        BankListing,
        ReportingBank,
        Notifications,
        SearchesInvoices,
        SearchesRefunds,
        SearchesBindings,
        SearchesCharges,
        SearchesRemittances,
        Checkable,
    ),
    "chain": (ChainWatcher, Checkable, CountsSources),
    "files": (FileStore, Checkable),
    "deposits": (DepositWatcher, OwnsAddresses, Checkable, CountsSources),
    "kyc": (KycVerifier, SearchesChecks, Notifications, Checkable),
    "payouts": (UsdtSender, FindingSender, ListingSender, ReplacingSender, OwnsAddresses, Checkable, CountsSources),
    "rates": (RateSource, Checkable),
    "receipts": (ReceiptBank, Notifications, Checkable),
    "alarms": (Alarms, TellsMerchants, Checkable),
}
"""Protocols of each port. The annotation of an operation is taken from their methods."""

_MANY = 1_000_000
"""Maximum elements of a list: more than a provider lists for one day when a restored copy is compared with it."""

Question = tuple[tuple[Any, ...], Mapping[str, Any]]
"""Arguments of an operation, positional and by keyword."""


def check_answer(port: str, operation: str, answer: Any, question: Question) -> None:
    """Check the result of `operation` of `port` for `question`. Raises: Garbage."""
    try:
        _of_operation(port, operation)(answer)
        rule = _OF_OPERATIONS.get(operation)
        if rule is not None and answer is not None:
            given, named = question
            rule(answer, given[0] if given else next(iter(named.values()), None))
    except InvalidAnswer as wrong:
        wrong.within("answer")
        raise


def clean_answer(port: str, operation: str, answer: Any) -> tuple[Any, list[str]]:
    """Return the answer with its display texts cleaned, and the names of the fields that needed it."""
    odd: list[str] = []
    clean = _cleaner_of(port, operation)
    return (answer if clean is None else clean(answer, odd)), odd


def check_drawn(invoice: Any) -> None:
    """Check an invoice created locally (`DrawingBank`), or None. Raises: Garbage."""
    try:
        if invoice is not None:
            _of_type(Invoice)(invoice)
    except InvalidAnswer as wrong:
        wrong.within("invoice")
        raise


@cache
def _of_operation(port: str, operation: str) -> Checks:
    return _of_type(_returned(port, operation))


@cache
def _cleaner_of(port: str, operation: str) -> Clean | None:
    return cleaner(_returned(port, operation))


def _returned(port: str, operation: str) -> Any:
    for protocol in _PROTOCOLS[port]:
        method = getattr(protocol, operation, None)
        if method is not None:
            return get_type_hints(method)["return"]
    raise LookupError(f"no port {port} has an operation {operation}")


@cache
def _of_type(hint: Any) -> Checks:
    """Compile the check of an annotation. Raises: KeyError for a type that no port uses yet; see `PLAIN`."""
    origin, within = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        is_nullable, check = _null_or(hint)
        return _or_null(check) if is_nullable else check
    if origin in (tuple, Sequence):
        return _each(_of_type(within[0]))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return instance(hint)
    return PLAIN[hint]


def _null_or(hint: Any) -> tuple[bool, Checks]:
    """Return whether an annotation allows null, and the check of its other types."""
    if get_origin(hint) not in (Union, UnionType):
        return hint is NoneType, _of_type(hint)
    within = get_args(hint)
    checks = [_of_type(each) for each in within if each is not NoneType]
    return NoneType in within, checks[0] if len(checks) == 1 else _one_of(checks)


def _or_null(check: Checks) -> Checks:
    def check_unless_null(value: Any) -> None:
        if value is not None:
            check(value)

    return check_unless_null


def _one_of(checks: Sequence[Checks]) -> Checks:
    def check(value: Any) -> None:
        found: list[InvalidAnswer] = []
        for each in checks:
            try:
                return each(value)
            except InvalidAnswer as wrong:
                found.append(wrong)
        # The type that fits best fails at the deepest place, and its finding says most.
        raise max(found, key=lambda wrong: len(str(wrong)))

    return check


def _each(check: Checks) -> Checks:
    def check_all(value: Any) -> None:
        if not isinstance(value, (tuple, list)):
            raise wrong_type(value)
        if len(value) > _MANY:
            raise InvalidAnswer(f"has more than {_MANY} elements")
        number = 0
        try:
            for number, element in enumerate(value):  # noqa: B007 - told where one is wrong
                check(element)
        except InvalidAnswer as wrong:
            wrong.within(f"[{number}]")
            raise

    return check_all


def _struct(kind: type[msgspec.Struct]) -> Checks:
    hints = get_type_hints(kind)
    fields = [(name, *_field(name, hints[name])) for name in kind.__struct_fields__]
    rule = _RULES.get(kind)

    def check(value: Any) -> None:
        if not isinstance(value, kind):
            raise wrong_type(value)
        name = ""
        try:
            for name, is_nullable, check_field in fields:
                found = getattr(value, name)
                if found is not None or not is_nullable:
                    check_field(found)
        except InvalidAnswer as wrong:
            wrong.within(f".{name}")
            raise
        if rule is not None:
            rule(value)

    return check


def _field(name: str, hint: Any) -> tuple[bool, Checks]:
    """Return whether a field may be null, and the check of other values: by type, then by name."""
    is_nullable, by_type = _null_or(hint)
    by_name = None if hint == DocumentState | None else NAMED.get(name)
    if by_name is None:
        return is_nullable, by_type

    def check(value: Any) -> None:
        by_type(value)
        by_name(value)

    return is_nullable, check


def _same(value: Any, asked: Any, place: str) -> None:
    if value != asked:
        raise InvalidAnswer("is of something else than was asked about", place)


def _signed(answer: SignedTransfer, asked: Any) -> None:
    _same(answer.operation, asked, ".operation")
    if not answer.blob:
        raise InvalidAnswer("is empty", ".blob")


def _in_place(answer: SignedTransfer, asked: SignedTransfer) -> None:
    _same(answer.operation, asked.operation, ".operation")


def _stored(answer: StoredFile, asked: Any) -> None:
    _same(answer.key, asked, ".key")


def _about(answer: InvoiceState | MandateState | Check, asked: Any) -> None:
    _same(answer.reference, asked, ".reference")


_OF_OPERATIONS: Mapping[str, Callable[[Any, Any], None]] = {
    "invoice_state": _about,
    "mandate_state": _about,
    "check_state": _about,
    "stat": _stored,
    "sign": _signed,
    "in_place": _in_place,
    "find": lambda sent, asked: _same(sent.signed.operation, asked, ".signed.operation"),
    "address": lambda answer, _: address(answer),
}
"""Rules between an answer and its request. Each gets the answer and the operation's first argument."""


def _invoice(invoice: Invoice) -> None:
    if (invoice.payload is not None) is not (invoice.kind is InvoiceKind.QR):
        is_there = "missing" if invoice.payload is None else "there"
        raise InvalidAnswer(f"is {is_there}, although it is {invoice.kind}", ".payload")


def _invoice_state(state: InvoiceState) -> None:
    if state.status is InvoiceStatus.PAID and not state.transfers:
        raise InvalidAnswer("is empty, although it is paid", ".transfers")
    _named_once(state.transfers)


def _binding(binding: Binding) -> None:
    if binding.payload is not None and binding.kind is not InvoiceKind.QR:
        raise InvalidAnswer(f"is there, although it is {binding.kind}", ".payload")


def _mandate_state(state: MandateState) -> None:
    if state.payload is not None and state.kind is not InvoiceKind.QR:
        raise InvalidAnswer(f"is there, although it is {state.kind}", ".payload")
    _named_once(state.transfers)


def _named_once(transfers: Sequence[Transfer]) -> None:
    if len({transfer.id for transfer in transfers}) != len(transfers):
        raise InvalidAnswer("has two of one id", ".transfers")


def _charge_state(state: ChargeState) -> None:
    if state.status is ChargeStatus.PAID and state.transfer is None:
        raise InvalidAnswer("is missing, although it is paid", ".transfer")


_BODILESS = (204, 205, 304)
_LONGEST_BODY = 65_536


def _heard(heard: Received) -> None:
    if not 200 <= heard.status <= 599:
        raise InvalidAnswer("is no status of an answer", ".status")
    if len(heard.body) > (0 if heard.status in _BODILESS else _LONGEST_BODY):
        raise InvalidAnswer("is longer than an answer may be", ".body")
    if not heard.content_type.isascii() or not heard.content_type.isprintable() or not heard.content_type:
        raise InvalidAnswer("is no content type", ".content_type")


_RULES: Mapping[type, Checks] = {
    Invoice: _invoice,
    InvoiceState: _invoice_state,
    Binding: _binding,
    MandateState: _mandate_state,
    ChargeState: _charge_state,
    Received: _heard,
}
"""Rules between the fields of one record."""
