"""Adoption of a chain that the vault never tagged: once, by an operator, after the upgrade to a version with tags.

A program cannot distinguish a history from before the tags from one forged to look so. So no program adopts it by
itself. Until an operator confirms that this installation wrote the history, alarms report it, and no row is chained
after it.
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
from ..encrypted import key_fits, tag_exchange, tag_key, tag_return, tag_settings, tag_withdrawal
from ..units import retrying
from .check import LedgerReport, Progress, nobody, verify_ledger

UNFINISHED = OneOf(tuple(status for status in ExchangeStatus if status not in FINAL))
"""Statuses of exchanges in progress."""


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an adoption."""

    chains: tuple[str, ...]
    """Names of the adopted chains. Empty when no chain lacked a tag."""
    entries: int
    actions: int
    wallets: tuple[tuple[str, str], ...] = ()
    """Accounts with the payout wallets that were tagged."""


async def adopt(ports: Ports, *, anyway: bool = False, progress: Progress = nobody) -> Adopted:
    """Tag untagged heads of chains after checking every link and balance. Also tag API keys, settings that move money,
    pending payouts and exchanges in progress without a tag. Then extend the chains. If no chain needs adoption, do
    nothing.

    Raises: Refusal INVALID_STATE when the ledger has faults, or when rows or a head show that the vault tagged them
    before, so that this is not an upgrade. With `anyway` the latter is allowed, because the vault's keys are lost and
    the operator knows the state to be true.
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
    return Adopted(chains=taken, entries=report.entries, actions=report.actions, wallets=wallets)


async def _tag_keys(ports: Ports, unit: Unit, *, anyway: bool) -> None:
    """Tag API keys without a tag. With `anyway`, also tag keys whose tag does not fit, because a lost vault key made
    it."""
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
            # Skip a payout to any other address, which no operator has checked. An operator cancels it, and it is
            # created again.
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
