"""A bank's file as the list of a bank that has none in its API: each of its days is compared by the same comparison
(docs/reconciliation.md "A bank's file")."""

import re
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, time, timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.reporting import ReportedEntry, ReportedKind, ReportedPage, ReportedState, ReportingBank
from ....ports.storage import Unit
from ...domain.accounts.accounts import Mode
from ...domain.days import MOSCOW, moscow_day
from ...domain.errors import Refusal
from ...domain.payments.payments import Payment
from ...domain.reconciliation.bank_files import (
    BankFile,
    FileColumns,
    FileRow,
    days_of,
    read_bank_file,
    read_columns,
    words_of,
)
from ...domain.reconciliation.comparing import Counted, Subject
from ...domain.reconciliation.reconciliation import Reconciliation, last_comparable
from ..actions.audit import note_outside
from ..common.units import unit_of_work
from .counted import known
from .reconciliation import reconcile_owner
from .scope import Scope, paged

LAG_MOST = 10
_BEFORE = timedelta(days=10)
"""How long before its booking a payment may have been made."""
_AT_ONCE = 500
_OURS = re.compile(r"[a-z_]{2,12}_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])")
_NOON = time(12)


class ComparedFile(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an import."""

    file: BankFile
    days: Sequence[Reconciliation]
    others: int
    """Rows of money out that are no operation of ours, such as the bank's fees."""


class _FileBank:
    """The list of a bank (ports/reporting.py: ReportingBank) that a file contains."""

    def __init__(self, name: str, owner: str, entries: Sequence[ReportedEntry]) -> None:
        self.name = name
        self._owner = owner
        self._entries = sorted(entries, key=lambda each: (each.moment, each.id))
        self._moments = [each.moment for each in self._entries]

    def owners(self) -> Sequence[str]:
        return (self._owner,)

    def owner_of(self, reference: str) -> str:  # noqa: ARG002 - the file is all of the bank's
        return self._owner

    async def entries(self, owner: str, since: datetime, until: datetime, cursor: str | None) -> ReportedPage:  # noqa: ARG002
        begin, end = bisect_left(self._moments, since), bisect_left(self._moments, until)
        return ReportedPage(entries=tuple(self._entries[begin:end]))


@unit_of_work()
async def _columns(_: Ports, unit: Unit, bank: str, given: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the mapping of a bank's CSV files; a given mapping is saved first."""
    found = await unit[FileColumns].get(bank)
    if not given:
        return None if found is None else found.columns
    columns = read_columns(given)
    if found is None:
        unit[FileColumns].add(FileColumns(id=bank, columns=columns))
    elif found.columns != columns:
        unit[FileColumns].save(msgspec.structs.replace(found, columns=columns))
    return columns


async def import_bank_file(
    ports: Ports, bank: str, body: bytes, *, columns: Mapping[str, str] | None = None, lag: int = 0
) -> ComparedFile:
    """Compare each day of a bank's file with our records. The same file can be imported again: the result is the same.

    `columns`: the mapping of a CSV file, which is saved for the bank. `lag`: how many days later the bank books; so
    many of the file's last days are left to the next file.

    Raises: Refusal VALIDATION_ERROR for another bank, a file that cannot be used, or a wrong mapping; INVALID_STATE
    while another process compares one of its days.
    """
    if bank not in (each.name for each in ports.banks.of_mode(Mode.LIVE)):
        raise Refusal("VALIDATION_ERROR", f"{bank!a} is no bank of live mode")
    if isinstance(ports.banks.named(bank), ReportingBank):
        raise Refusal("VALIDATION_ERROR", f"{bank} gives its list itself: compare with cambist reconcile")
    if not 0 <= lag <= LAG_MOST:
        raise Refusal("VALIDATION_ERROR", f"The bank books 0 to {LAG_MOST} days later")
    file = read_bank_file(body, await _columns(ports, bank, columns or {}))
    await note_outside(ports, bank)
    listing = _FileBank(bank, "", ())
    scope = Scope(bank=listing, owner="", account_id=None)
    ours = await _ours(ports, scope, file)
    entries = [entry for row in file.rows if (entry := _entry(row, ours.get(row.id))) is not None]
    listing = _FileBank(bank, "", entries)
    last = last_comparable(ports.clock.now())
    days = [await reconcile_owner(ports, listing, "", day, afresh=True) for day in days_of(file, lag) if day <= last]
    return ComparedFile(file=file, days=days, others=len(file.rows) - len(entries))


async def _ours(ports: Ports, scope: Scope, file: BankFile) -> dict[str, Counted]:
    """Return our operations by the ids of the rows that name them."""
    words = {row.id: [*dict.fromkeys((*_OURS.findall(row.text), *words_of(row.text)))] for row in file.rows}
    by_word = await _by_reference(ports, scope, file, {word for each in words.values() for word in each})
    named = {
        by_word.get(word, word) for each in words.values() for word in each if word in by_word or _OURS.match(word)
    }
    counted: dict[str, Counted] = {}
    operations = sorted(named)
    for start in range(0, len(operations), _AT_ONCE):
        counted |= await known(ports, scope, operations[start : start + _AT_ONCE])
    found = {}
    for name, each in words.items():
        mine = (counted.get(by_word.get(word, word)) for word in each)
        first = next((one for one in mine if one is not None), None)
        if first is not None:
            found[name] = first
    return found


async def _by_reference(ports: Ports, scope: Scope, file: BankFile, words: Collection[str]) -> dict[str, str]:
    """Return the payments of the file's time whose reference at the bank is one of the words."""
    begin, end = moscow_day(file.first)[0] - _BEFORE, moscow_day(file.last)[1]
    found = {}
    async for payment in paged(ports, Payment, "created_at", begin, end, mode=Mode.LIVE, bank=scope.bank.name):
        if payment.bank_reference is not None and payment.bank_reference in words:
            found[payment.bank_reference] = payment.id
    return found


def _entry(row: FileRow, ours: Counted | None) -> ReportedEntry | None:
    """Return a row as an entry of the bank's list; None for money out that is no operation of ours."""
    if ours is None and not row.is_in:
        return None
    kind = ReportedKind.PAYMENT if ours is None else ReportedKind(ours.subject.value)
    is_turned = ours is not None and row.is_in is not (ours.subject is Subject.PAYMENT)
    if is_turned:
        # Money that goes the other way than our operation is another operation.
        kind, ours = (ReportedKind.PAYMENT if row.is_in else ReportedKind.REFUND), None
    moment = row.moment or datetime.combine(row.day, _NOON, MOSCOW)
    if ours is not None and row.moment is None:
        # The file has only the day of booking: the operation stands where we have it.
        moment = ours.began
    return ReportedEntry(
        id=row.id,
        kind=kind,
        state=ReportedState.DONE,
        moment=moment,
        amount_kopecks=row.kopecks,
        operation=None if ours is None else ours.operation,
        fee_kopecks=row.fee,
    )
