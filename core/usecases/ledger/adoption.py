"""Taking a chain over that the vault never tagged: once, at the upgrade to a version with tags, by an operator.

A program cannot tell a history of before there were tags from one that was forged to look so. So nothing takes it over
by itself: until an operator says that the history is the one that this installation wrote, alarms name it, and nothing
is chained on top of it.
"""

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import OneOf, Unit
from ...domain.accounts.accounts import Account, ApiKey, money_settings
from ...domain.chains import ChainHead
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import FINAL, Exchange, ExchangeStatus
from ...domain.exchanges.funds import ExchangeTransfer, is_under_way
from ...domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from ..chains import CHAINS, HEAD_RULE, extend_chain, head_fault, new_head, tagged
from ..sealed import key_fits, tag_exchange, tag_key, tag_return, tag_settings, tag_withdrawal
from ..units import retrying
from .check import LedgerReport, Progress, nobody, verify_ledger

UNFINISHED = OneOf(tuple(status for status in ExchangeStatus if status not in FINAL))
"""Of exchanges."""


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken over."""

    chains: tuple[str, ...]
    """The names of those whose heads bore no tag; empty: there was nothing to do."""
    entries: int
    acts: int
    wallets: tuple[tuple[str, str], ...] = ()
    """Accounts, and the payout wallets that were taken for theirs."""


async def adopt(ports: Ports, *, anyway: bool = False, progress: Progress = nobody) -> Adopted:
    """Tag the heads of chains that bear no tag, once every link and balance was found to hold, and payout wallets,
    pending payouts and exchanges under way that bear none; and extend the chains by what waits. Where no chain is to be
    taken over, nothing is.

    Raises: Refusal INVALID_STATE where the books do not hold; where rows or a head show that the vault tagged them
    before, so that this is no upgrade, unless `anyway`: its keys are lost, and what stands is known to be true.
    """
    report = await verify_ledger(ports, progress=progress, adopting=True)
    if not report.holds:
        raise Refusal("INVALID_STATE", "The books do not hold: `cambist ledger verify` names what differs")

    async def work(unit: Unit) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        chains = await _take_over(ports, unit, report, anyway=anyway)
        if chains:
            await _tag_keys(ports, unit, anyway=anyway)
        return chains, await _tag_wallets(ports, unit) if chains else ()

    taken, wallets = await retrying(ports.storage, work, again_on=(HEAD_RULE,))
    for chain in CHAINS if taken else ():
        await extend_chain(ports, chain)
    return Adopted(chains=taken, entries=report.entries, acts=report.acts, wallets=wallets)


async def _tag_keys(ports: Ports, unit: Unit, *, anyway: bool) -> None:
    """Tag API keys that bear no tag, and `anyway` those whose tag does not fit: it was made by a vault key that is
    lost."""
    async for keys in ports.storage.scan(ApiKey, readable=True):
        for key in keys:
            if key.tag is None or (anyway and not key_fits(ports.vault, key)):
                unit[ApiKey].save(tag_key(ports.vault, key))


async def _tag_wallets(ports: Ports, unit: Unit) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    async for accounts in ports.storage.scan(Account, readable=True):
        for account in accounts:
            if money_settings(account.settings) and account.settings_tag is None:
                unit[Account].save(tag_settings(ports.vault, account))
                if account.settings.payout_wallet is not None:
                    found[account.id] = account.settings.payout_wallet
    async for payouts in ports.storage.scan(Withdrawal, status=WithdrawalStatus.PENDING, readable=True):
        for payout in payouts:
            # One that goes elsewhere nobody has looked at: an operator calls it off, and has it made anew.
            if payout.tag is None and found.get(payout.account_id) == payout.wallet:
                unit[Withdrawal].save(tag_withdrawal(ports.vault, payout))
    async for exchanges in ports.storage.scan(Exchange, status=UNFINISHED, readable=True):
        for exchange in exchanges:
            if exchange.tag is None:
                unit[Exchange].save(tag_exchange(ports.vault, exchange))
    async for transfers in ports.storage.scan(ExchangeTransfer, resolved_at=None, readable=True):
        for transfer in transfers:
            if is_under_way(transfer) and transfer.return_tag is None:
                unit[ExchangeTransfer].save(tag_return(ports.vault, transfer))
    return tuple(found.items())


async def _take_over(ports: Ports, unit: Unit, report: LedgerReport, *, anyway: bool) -> tuple[str, ...]:
    taken = []
    for chain, seen in zip(CHAINS, report.heads, strict=True):
        head = await unit[ChainHead].get(chain.head_id)
        if head_fault(ports.vault, chain, head) is None:
            continue
        if (report.is_tagged or (head is not None and head.tag is not None)) and not anyway:
            raise Refusal(
                "INVALID_STATE",
                f"The {chain.name} was tagged by the vault before, so this is no upgrade: somebody altered it, or the "
                "vault's keys are others. Restore a backup, or say --anyway where you know that the history is true",
            )
        if head is None:
            fresh = msgspec.structs.replace(new_head(ports, chain), number=seen.number, seal=seen.link)
            unit[ChainHead].add(tagged(ports.vault, chain, fresh))
        elif (head.number, head.seal) != (seen.number, seen.link):
            raise Refusal("INVALID_STATE", "Another process sealed meanwhile: stop older versions, and try again")
        else:
            unit[ChainHead].save(tagged(ports.vault, chain, head))
        taken.append(chain.name)
    return tuple(taken)
