"""Payouts of USDT on TRON (docs/providers/chains.md "Paying out").

Transfers are built and signed here. Several nodes are compared to follow them, and a transfer counts as failed only
with proof.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from ....ports.chain import Network
from ....ports.checking import Shortage
from ....ports.clock import Clock
from ....ports.faults import Refused, Unavailable
from ....ports.payouts import SenderCapabilities, SentTransfer, SignedTransfer, TransferState
from ...nodes.networks import CHAINS
from ...nodes.nodes import Nodes, View
from ...nodes.records import plain_hash
from ..shared import coins_of, is_address_of, recipient_of, seen, usdt_of
from ..signer import Signer, signer_of
from . import transaction
from .api import Taken, TronApi, agreed_answers, first_answer, handed_over
from .sent import SentTransfers
from .transaction import Transfer, tx_id

SUN = 1_000_000
"""Sun in one TRX."""
LIFETIME = timedelta(hours=1)
"""Time in which a transfer gets into a block, or never. The network allows a day at most."""
PROOF_AFTER = timedelta(minutes=5)
"""Time from a transfer's expiry to the final block that proves it absent.

Nodes index a block later than they show it.
"""
_CHAIN = CHAINS[Network.TRON]
_TOKEN = bytes.fromhex(_CHAIN.usdt[2:])
_BANDWIDTH = 390
"""Bytes of a transfer with its operation and signature, and the bytes that TRON counts for its result."""
_BANDWIDTH_PRICE = 1000
_USUAL_ENERGY = 65_000
"""Energy of a transfer to an address that holds USDT. An address that never did needs twice as much."""
_MARGIN = 1.2
"""Safety margin: the price of energy may rise with the contract's use before the block."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TronSender:
    """Implementation of the port ListingSender, for one wallet from which no other program spends."""

    def __init__(
        self,
        name: str,
        nodes: Nodes,
        apis: Sequence[TronApi],
        signer: Signer,
        sent: SentTransfers,
        clock: Clock,
        *,
        fee_limit: int,
    ) -> None:
        """Set up the wallet without connecting. `fee_limit`: highest cost of the energy of one transfer, in sun."""
        self._name = name
        self._nodes = nodes
        self._apis = apis
        self._signer = signer
        self._sent = sent
        self._clock = clock
        self._fee_limit = fee_limit

    def __repr__(self) -> str:
        return f"<TronSender {self.address}>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def address(self) -> str:
        """Address of the wallet."""
        return _CHAIN.spelling.write(self._signer.payload)

    @property
    def capabilities(self) -> SenderCapabilities:
        return SenderCapabilities(network=Network.TRON, decimals=_CHAIN.decimals)

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        """Sign a transfer, as the port defines it.

        A trial call shows whether the contract would execute it, and the cost.
        """
        if units <= 0 or units % self.capabilities.step:
            raise Refused("no amount that the network can move", reason="amount")
        recipient = recipient_of(_CHAIN, address, self._signer.payload)
        view = await self._nodes.view()
        block = await self._nodes.block(view, view.final)
        amount = _CHAIN.amount(units)
        await self._check_means(view, amount, transaction.call_data(recipient, amount, operation))
        moment = self._clock.now()
        expiration = _milliseconds(moment + LIFETIME)
        made = Transfer(
            owner=self._signer.payload,
            token=_TOKEN,
            recipient=recipient,
            amount=amount,
            fee_limit=self._fee_limit,
            block=bytes.fromhex(plain_hash(block.hash)),
            expiration=expiration,
            timestamp=_milliseconds(moment),
            operation=operation,
        )
        signature = await self._signer.sign(tx_id(made.raw))
        if signer_of(signature, tx_id(made.raw)) != self._signer.payload:
            raise Unavailable("the signer signed for another address, or something else")
        return SignedTransfer(
            operation=operation,
            tx_hash=tx_id(made.raw).hex(),
            blob=transaction.signed(made.raw, signature),
            expires_at=_moment(expiration),
        )

    async def broadcast(self, signed: SignedTransfer) -> None:
        """Broadcast a transfer, as the port defines it. After its expiry it is only searched for, never sent."""
        made = self._checked(signed)
        if self._clock.now() < _moment(made.expiration):
            taken = await handed_over(self._apis, signed.blob)
            if taken is Taken.YES:
                return
            if taken is Taken.NO:
                raise Refused("the network does not take it", reason="invalid")
        view = await self._nodes.view()
        if await self._nodes.receipt(view, signed.tx_hash) is None:
            raise Refused("the transfer has expired", reason="expired")

    async def state(self, signed: SignedTransfer) -> TransferState:
        """Return the state of a transfer, as the port defines it.

        The final block is read before the receipt, so that no block is missed.
        """
        made = self._checked(signed)
        view = await self._nodes.view()
        final = await self._nodes.block(view, view.final)
        receipt = await self._nodes.receipt(view, signed.tx_hash, sure=True)
        if receipt is not None:
            return seen(view, receipt, _CHAIN, made)
        # No block after the expiry accepts the transfer, and all blocks before it are final.
        if final.at < _moment(made.expiration) + PROOF_AFTER:
            return TransferState.UNSEEN
        if any(await agreed_answers(self._apis, lambda api: api.knows(signed.tx_hash))):
            raise Unavailable(f"one alone knows transaction {signed.tx_hash}: nothing is proven")
        return TransferState.FAILED

    async def find(self, operation: str) -> SentTransfer | None:
        """Find a transfer in a block, as the port defines it. A failed transfer moved nothing, so it is not found."""
        view = await self._nodes.view()
        found = [self._sent_by(blob) for blob in await self._sent.of(view, operation)]
        return next((each for each in found if each is not None and each.signed.operation == operation), None)

    async def sent_since(self, moment: datetime) -> list[SentTransfer]:
        """List the transfers in blocks, as the port defines it.

        Blocks that the book lacks are read again, a month back at most.
        """
        view = await self._nodes.view()
        final = await self._nodes.block(view, view.final)
        found = [self._sent_by(blob) for blob in await self._sent.since(view, moment, final.at)]
        # Every transfer broadcast since then had an expiry after `moment`.
        return [each for each in found if each is not None and (each.signed.expires_at or moment) >= moment]

    async def check(self) -> None:
        """Check that nodes and interfaces accept our keys, and that the wallet can pay for a transfer.

        Raises: NotConfigured, Unavailable.
        """
        await self._nodes.check()
        every = [await api.resources(self._signer.payload) for api in self._apis]
        view = await self._nodes.view()
        energy = _USUAL_ENERGY - min(each.energy for each in every)
        price = await first_answer(self._apis, TronApi.energy_price)
        if energy * price > await self._sun(view):
            raise Unavailable(f"the wallet {self.address} has neither energy nor TRX for a transfer of USDT")

    async def shortages(self) -> Sequence[Shortage]:
        """Return shortages of nodes, as the port defines it."""
        shortage = await self._nodes.shortage()
        return [] if shortage is None else [shortage]

    async def owns(self, address: str) -> bool:
        """Return whether the address is the wallet's, as the port defines it."""
        return is_address_of(_CHAIN, address, self._signer.payload)

    async def close(self) -> None:
        """Close all connections."""
        await self._nodes.close()
        for api in self._apis:
            await api.close()

    async def _check_means(self, view: View, amount: int, data: bytes) -> None:
        """Check that the wallet can pay for the transfer with this call `data`.

        Raises: Unavailable if the wallet lacks USDT or the cost, or the contract would not execute the transfer:
        the fee of a failed transfer is lost.
        """
        owner = self._signer.payload
        held = await usdt_of(self._nodes, view, owner)
        if held < amount:
            raise Unavailable(f"the wallet {self.address} lacks USDT: it has {_CHAIN.units(held) / 10**8:.2f}")
        energy, price, free = await asyncio.gather(
            first_answer(self._apis, lambda api: api.energy_of(owner, _TOKEN, data)),
            first_answer(self._apis, TronApi.energy_price),
            first_answer(self._apis, lambda api: api.resources(owner)),
        )
        energy = int(energy * _MARGIN)
        # The network counts all energy against the limit, staked or bought. Above the limit, the fee is burned for
        # nothing.
        if energy * price > self._fee_limit:
            raise Unavailable(f"a transfer may cost {energy * price / SUN:.1f} TRX, above the limit that is set")
        bandwidth = 0 if free.bandwidth >= _BANDWIDTH else _BANDWIDTH * _BANDWIDTH_PRICE
        needed = max(0, energy - free.energy) * price + bandwidth
        sun = await self._sun(view)
        if needed > sun:
            raise Unavailable(
                f"the wallet {self.address} lacks TRX or energy: it has {sun / SUN:.1f} TRX, and a transfer needs "
                f"{needed / SUN:.1f}"
            )

    async def _sun(self, view: View) -> int:
        return await coins_of(self._nodes, view, self._signer.payload)

    def _sent_by(self, blob: bytes) -> SentTransfer | None:
        """Return the sent transfer; None for a transaction that this wallet would not sign."""
        made = transaction.read(transaction.parted(blob)[0])
        if made.owner != self._signer.payload or made.token != _TOKEN:
            return None
        signed = SignedTransfer(
            operation=made.operation,
            tx_hash=tx_id(made.raw).hex(),
            blob=blob,
            expires_at=_moment(made.expiration),
        )
        address = _CHAIN.spelling.write(made.recipient)
        return SentTransfer(signed=signed, address=address, units=_CHAIN.units(made.amount))

    def _checked(self, signed: SignedTransfer) -> Transfer:
        """Return the transfer. Raises: Refused for a transaction that this wallet did not sign in this form."""
        try:
            raw, signature = transaction.parted(signed.blob)
            made, by = transaction.read(raw), signer_of(signature, tx_id(raw))
        except ValueError:
            raise Refused("this wallet did not sign that", reason="invalid") from None
        ours = by == made.owner == self._signer.payload and made.token == _TOKEN
        ours = ours and made.operation == signed.operation
        if not ours or tx_id(raw).hex() != signed.tx_hash or _moment(made.expiration) != signed.expires_at:
            raise Refused("this wallet did not sign that", reason="invalid")
        return made


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _moment(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)
