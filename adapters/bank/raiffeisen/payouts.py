"""Payouts of Raiffeisenbank as the port RemittanceBank: RUB by SBP to a phone, in one step, under a number of ours."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from ....ports.faults import NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.members import MemberBank
from ....ports.operations import tiny_operation
from ....ports.remittances import RemittanceRequest, RemittanceState, RemittanceStatus
from ....ports.written_files import written_text
from .core import Page, RaiffeisenCore
from .errors import BankRefused
from .merchants import NAME, PayoutPair
from .wire import Payout, PayoutBank, kopecks, payout_status, roubles

PAYOUT_MOST = 600_000_00
"""Kopecks of one payout: the limit of SBP."""

_KNOWN: Mapping[str, str] = {
    "bank100000000004": "TINKOFF",
    "bank100000000005": "VTB",
    "bank100000000007": "RAIFFEISEN",
}
"""The bank's names for receivers' banks by SBP id, as far as its documents list them."""
_PHONE = re.compile(r"\+[0-9]{10,15}\Z")
_REASON = re.compile(r"[A-Z_]{1,60}\Z")
_BANK = re.compile(r"bank[0-9]{1,12}\Z")
_ALIAS = re.compile(r"[A-Za-z0-9_. -]{1,255}\Z")
_TITLE = "Перевод по СБП"


class RaiffeisenPayouts(RaiffeisenCore):
    """Payouts part of the adapter."""

    async def remit(self, request: RemittanceRequest) -> RemittanceState:
        """Send money to a person. Ask for the payout by our number before sending it, and again after a refusal."""
        pair = self._paying()
        if not 0 < request.amount_kopecks <= PAYOUT_MOST:
            raise Refused(f"{NAME}: a payout is of 0.01 to 600 000 RUB", reason="amount")
        alias = self._aliases.get(request.bank_id) or _KNOWN.get(request.bank_id)
        if alias is None or not _PHONE.match(request.phone):
            raise Refused(f"{NAME}: no such phone, or a bank whose alias is not set", reason="recipient")
        number = tiny_operation(request.operation)
        await self._notes.start(number, Page(request.operation))
        found = await self._paid_out(pair, number)
        if found is not None:
            return _compared(found, request, alias)
        body = {
            "id": number,
            "account": pair.account,
            "amount": roubles(request.amount_kopecks),
            "currency": "RUB",
            "paymentDetails": _TITLE,
            "payoutMethod": "SBP",
            "payoutParams": {"phone": request.phone.removeprefix("+"), "bankAlias": alias},
        }
        try:
            return _state(await self._api.send(pair, Payout, body, "payout", "v1", "payouts", payout=True))
        except BankRefused:
            try:
                found = await self._paid_out(pair, number)
            except Unavailable:
                raise OutcomeUnknown(f"{NAME}: a payout was refused, and may be a repeat") from None
            if found is None:
                raise
            return _compared(found, request, alias)

    async def find_remittance(self, operation: str) -> RemittanceState | None:
        found = await self._paid_out(self._paying(), tiny_operation(operation))
        return None if found is None else _state(found)

    async def banks(self) -> list[MemberBank]:
        """Return the receiving banks whose alias is known here."""
        told = await self._api.ask(self._paying(), list[PayoutBank], "payout", "v1", "sbp", "banks")
        names = {each.alias: each.name for each in told or ()}
        known = {**_KNOWN, **self._aliases}
        return [MemberBank(id=bank_id, name=names[alias]) for bank_id, alias in known.items() if alias in names]

    def _paying(self) -> PayoutPair:
        if self._payouts is None:
            raise NotSupported(f"{NAME}: payouts are not set up")
        return self._payouts

    async def _paid_out(self, pair: PayoutPair, number: str) -> Payout | None:
        return await self._api.ask(pair, Payout, "payout", "v1", "payouts", number)


def read_aliases(path: Path) -> dict[str, str]:
    """Read the bank's names for receivers' banks from a file of lines like `bank100000000111 = "SBERBANK"`. Raises:
    NotConfigured."""
    try:
        text = written_text(path.read_bytes())
    except (OSError, ValueError) as error:
        why = type(error).__name__ if isinstance(error, OSError) else error
        raise NotConfigured(f"{NAME}: the file of banks cannot be read: {why}") from None
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise NotConfigured(f"{NAME}: the file of banks is no TOML") from None
    for bank_id, alias in told.items():
        if not isinstance(alias, str) or not _ALIAS.match(alias) or not _BANK.match(bank_id):
            raise NotConfigured(f'{NAME}: the file of banks: {bank_id[:32]!r} is no line as bank100000000111 = "ALIAS"')
    return told


def _compared(found: Payout, request: RemittanceRequest, alias: str) -> RemittanceState:
    """Return the state of a payout found at the bank. Raises: Refused if it differs from the request."""
    same = (request.amount_kopecks, request.phone.removeprefix("+"), alias)
    if (kopecks(found.amount), found.payout_params.phone.removeprefix("+"), found.payout_params.bank_alias) != same:
        raise Refused(f"{NAME}: the operation was sent for something else", reason="operation")
    return _state(found)


def _state(said: Payout) -> RemittanceState:
    status = payout_status(said.status.value)
    reason = said.status.decline_reason or ""
    failure = reason.lower() if _REASON.match(reason) else "unknown"
    return RemittanceState(status=status, failure=failure if status is RemittanceStatus.FAILED else None)
