"""New tags by the present keys over the books and all rows that move money, after the vault's former keys were lost for
good (docs/operations.md "Lost keys").

Without the former keys no program can distinguish the true state from an altered one. So an operator decides it, with a
backup or the merchants at hand, and only links and sums are checked before. It may be interrupted at any point: the
heads of the chains come last, so until the end nothing new is chained, and another run handles only the rest.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import OneOf, Unit
from ....ports.vault import Vault, VaultError
from ...domain.accounts.accounts import Account
from ...domain.chains import Chain, ChainHead, Head, link_in, tag_in
from ...domain.errors import Refusal
from ...domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from ..common.chains import CHAINS, HEAD_RULE, extend_audit, head_fault, new_head, tagged
from ..common.encrypted import TAGGED, TaggedField
from ..common.units import retrying
from ..ledger.check import Progress, nobody, verify_ledger
from ..ledger.listing import list_all
from .reencrypt import AT_ONCE, field_name

Tagging = Callable[[str, int], None]
"""Receives the name of a field, such as `Payment.pay_tag`, and how many rows were tagged again so far."""


class Retagged(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `retag`."""

    values: Mapping[str, int]
    """Number of rows tagged again, by field."""
    rows: int
    """Number of rows of the chains tagged again."""
    wallets: tuple[tuple[str, str], ...]
    """Accounts whose settings were tagged again, with their payout wallets. Compare them with what merchants say."""
    left: tuple[str, ...]
    """Ids of pending payouts that were not tagged, because they go to another wallet than their account's."""


def _silent(_field: str, _count: int) -> None:
    """Ignore the progress."""


async def retag(ports: Ports, *, progress: Tagging = _silent, checked: Progress = nobody) -> Retagged:
    """Tag again every row and both chains whose tag does not fit the present keys. A row without a tag stays so.

    `checked` receives the number of checked entries. Raises: Refusal INVALID_STATE when links or sums differ, or when
    another process chained rows meanwhile.
    """
    report = await verify_ledger(ports, progress=checked, tags=False)
    if not report.holds:
        raise Refusal("INVALID_STATE", "The books do not hold: `cambist ledger verify` names what differs")
    rows = sum([await _retag_rows(ports, chain, progress) for chain in CHAINS])
    run = _Run(ports)
    for field in TAGGED:
        if field.record is not ChainHead:
            await run.walk(field, progress)

    async def work(unit: Unit) -> list[str]:
        return [
            chain.name
            for chain, end in zip(CHAINS, report.heads, strict=True)
            if await _retag_head(ports, unit, chain, end)
        ]

    for name in await retrying(ports.storage, work, again_on=(HEAD_RULE,)):
        run.values[f"ChainHead.{name}"] += 1
    await list_all(ports)
    await extend_audit(ports)
    return Retagged(values=dict(run.values), rows=rows, wallets=tuple(run.wallets), left=tuple(run.left))


class _Run:
    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.values: Counter[str] = Counter()
        self.wallets: list[tuple[str, str]] = []
        self.left: list[str] = []

    async def walk(self, field: TaggedField, progress: Tagging) -> None:
        """Tag the records of one field again."""
        name = field_name(field)
        async for batch in self._ports.storage.scan(field.record, readable=True):
            misfits = [each.id for each in batch if _is_misfit(self._ports.vault, field, each)]
            for start in range(0, len(misfits), AT_ONCE):
                await self._save(field, misfits[start : start + AT_ONCE])
                progress(name, self.values[name])

    async def _save(self, field: TaggedField, ids: Sequence[str]) -> None:
        async def work(unit: Unit) -> tuple[int, list[tuple[str, str]], list[str]]:
            count, wallets, left = 0, [], []
            for before in await unit[field.record].find(id=OneOf(tuple(ids)), limit=len(ids)):
                if not _is_misfit(self._ports.vault, field, before):
                    continue
                if isinstance(before, Withdrawal) and not await _is_to_own_wallet(unit, before):
                    left.append(before.id)
                    continue
                tag = self._ports.vault.tag(field.said(before), field.aad(before))
                unit[field.record].save(msgspec.structs.replace(before, **{field.name: tag}))
                count += 1
                if isinstance(before, Account) and before.settings.payout_wallet is not None:
                    wallets.append((before.id, before.settings.payout_wallet))
            return count, wallets, left

        count, wallets, left = await retrying(self._ports.storage, work)
        if count:
            self.values[field_name(field)] += count
        self.wallets += wallets
        self.left += left


async def _is_to_own_wallet(unit: Unit, payout: Withdrawal) -> bool:
    """Return whether a payout is over, or goes to its account's wallet. No operator has checked any other address: the
    payout waits until an operator cancels it."""
    if payout.status is not WithdrawalStatus.PENDING:
        return True
    account = await unit[Account].get(payout.account_id)
    return account is not None and account.settings.payout_wallet == payout.wallet


def _is_misfit(vault: Vault, field: TaggedField, record: Any) -> bool:
    if field.value(record) is None:
        return False
    try:
        field.judge(vault, record)
    except VaultError:
        return True
    return False


async def _retag_rows(ports: Ports, chain: Chain, progress: Tagging) -> int:
    """Tag rows again whose key was lost and has a successor of the same id. Later tags cover rows whose key is gone."""
    done = 0
    async for batch in ports.storage.scan(chain.rows, readable=True):
        misfits = [each.id for each in batch if _is_row_misfit(ports.vault, chain, each)]
        for start in range(0, len(misfits), AT_ONCE):
            ids = tuple(misfits[start : start + AT_ONCE])

            async def work(unit: Unit, ids: tuple[str, ...] = ids) -> int:
                rows = await unit[chain.rows].find(id=OneOf(ids), limit=len(ids))
                for row in rows:
                    link = link_in(row.seal)
                    unit[chain.rows].change(row, seal=link + ports.vault.tag(link, chain.row_aad(row.number)))
                return len(rows)

            done += await retrying(ports.storage, work)
            progress(f"rows of the {chain.name}", done)
    return done


def _is_row_misfit(vault: Vault, chain: Chain, row: Any) -> bool:
    if row.number is None:
        return False
    try:
        return not vault.fits(tag_in(row.seal), link_in(row.seal), chain.row_aad(row.number))
    except VaultError:
        return False


async def _retag_head(ports: Ports, unit: Unit, chain: Chain, end: Head) -> bool:
    head = await unit[ChainHead].get(chain.head_id)
    if head_fault(ports.vault, chain, head) is None:
        return False
    if head is None:
        fresh = msgspec.structs.replace(new_head(ports, chain), number=end.number, seal=end.link)
        unit[ChainHead].add(tagged(ports.vault, chain, fresh))
    elif (head.number, head.seal) != (end.number, end.link):
        raise Refusal("INVALID_STATE", "Another process chained rows meanwhile: stop it, and try again")
    else:
        unit[ChainHead].save(tagged(ports.vault, chain, head))
    return True
