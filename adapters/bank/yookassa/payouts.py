"""Payouts to people by SBP: a gateway with a key of its own."""

import re
from collections.abc import Sequence
from datetime import datetime

import msgspec

from ....ports.faults import NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from ....ports.members import MemberBank
from ....ports.remittances import RemittanceRequest, RemittanceState
from .bodies import PAYOUT, key_of, payout
from .core import Core, Note
from .errors import KeyReused
from .shops import Shop
from .wire import Payout, SbpBanks, is_ours_to_mend, remittance_state, roubles

PAYOUT_MOST = 500_000_00
_LEAST = 1_00
PAYOUTS = "/payouts"
_PHONE = re.compile(r"\+([0-9]{10,15})\Z")
_BANK = re.compile(r"bank([0-9a-zA-Z]{12})\Z")
_AGAIN = 600.0
"""Seconds until the balance may be refilled or a limit reset."""


class Payouts(Core):
    """Implement the ports RemittanceBank, SearchesRemittances and BankListing."""

    async def remit(self, request: RemittanceRequest) -> RemittanceState:
        """Send the money.

        YooKassa cancels a payout for good when our balance is too small. The next attempt of the operation then uses a
        new idempotence key.
        """
        gateway = self._payouts_gateway()
        body = _body(request)
        note = await self._notes.read(request.operation) or Note()
        try:
            sent = await self._calls.write(gateway, PAYOUTS, key_of(request.operation, note.attempt), body, Payout)
        except KeyReused:
            raise Refused("yookassa: the operation sent something else before", reason="operation") from None
        if not is_ours_to_mend(sent):
            return remittance_state(sent)
        await self._next_attempt(request.operation, note.attempt)
        raise Unavailable("yookassa: the balance of payouts is too small, or a limit is reached", retry_after=_AGAIN)

    async def find_remittance(self, operation: str) -> RemittanceState | None:
        """Raises: NotSupported, because payouts are searched by request."""
        raise NotSupported(f"yookassa finds {operation} in a list alone")

    async def search_remittance(self, request: RemittanceRequest, since: datetime) -> RemittanceState | None:
        """Find the payout in the list. A payout cancelled because our balance was too small counts as never sent."""
        gateway = self._payouts_gateway()
        for found in await self._calls.search(gateway, PAYOUTS, PAYOUT, request.operation, since, Payout):
            if not is_ours_to_mend(found):
                return remittance_state(found)
        return None

    async def banks(self) -> Sequence[MemberBank]:
        """Return the members of SBP in one call. Raises: NotConfigured without a gateway; Unavailable."""
        if self._gateway is None:
            raise NotConfigured("set CAMBIST_YOOKASSA_PAYOUT_ID")
        listed = await self._calls.find(self._gateway, "/sbp_banks", SbpBanks)
        if listed is None:
            raise Unavailable("yookassa lists no banks")
        return [
            MemberBank(id=f"bank{each.bank_id.strip()}", name=each.name, bic=each.bic)
            for each in listed.items
            if each.bank_id.strip().isdecimal()
        ]

    def _payouts_gateway(self) -> Shop:
        if self._gateway is None:
            raise NotSupported("yookassa: no gateway of payouts is set (CAMBIST_YOOKASSA_PAYOUT_ID)")
        return self._gateway

    async def _next_attempt(self, operation: str, attempt: int) -> None:
        """Count one more attempt in the note. Raises: OutcomeUnknown if the note cannot be written, because the old key
        would return the cancelled payout."""
        told = Note(kind=PAYOUT, attempt=attempt + 1)
        try:
            _, is_new = await self._notes.start(operation, told)
            if not is_new:
                await self._notes.change(
                    operation, lambda note: msgspec.structs.replace(note, attempt=max(note.attempt, told.attempt))
                )
        except Unavailable as fault:
            raise OutcomeUnknown(f"yookassa: {fault}") from None


def _body(request: RemittanceRequest) -> dict[str, object]:
    phone, bank = _PHONE.match(request.phone), _BANK.match(request.bank_id)
    if phone is None or bank is None:
        raise Refused("yookassa: no such phone or bank", reason="recipient")
    roubles(request.amount_kopecks)
    if not _LEAST <= request.amount_kopecks <= PAYOUT_MOST:
        raise Refused("yookassa: a payout is of 1 to 500 000 roubles", reason="amount")
    return payout(request, phone[1], bank[1])
