"""USDT paid out on TRON (docs/providers/chains.md "Paying out"): transfers are built and signed here, followed by nodes
that are held against one another, and called failed only by proof."""

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
"""Of one TRX."""
LIFETIME = timedelta(hours=1)
"""In which a transfer gets into a block, or never. The network takes a day at most."""
PROOF_AFTER = timedelta(minutes=5)
"""How far a final block has to be past the end of a transfer that is in none: nodes index a block later than they show
it."""
_CHAIN = CHAINS[Network.TRON]
_TOKEN = bytes.fromhex(_CHAIN.usdt[2:])
_BANDWIDTH = 390
"""Bytes of a transfer with its operation and signature, and what is counted for its result."""
_BANDWIDTH_PRICE = 1000
_USUAL_ENERGY = 65_000
"""Of a transfer to who holds USDT already; twice that to who never did."""
_MARGIN = 1.2
"""The price of energy rises with the use of the contract until the block is made."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TronSender:
    """Fills the port ListingSender. One wallet, which nobody else spends from."""

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
        """`fee_limit`: what the energy of one transfer may cost, in sun. Opens nothing yet."""
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
        """The wallet's."""
        return _CHAIN.spelling.write(self._signer.payload)

    @property
    def capabilities(self) -> SenderCapabilities:
        return SenderCapabilities(network=Network.TRON, decimals=_CHAIN.decimals)

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        """As the port has it. The contract is asked whether it would do the transfer, and what it costs."""
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
        """As the port has it. After its end it is asked for, and never sent."""
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
        """As the port has it. What is looked at comes before what is looked for, so that no block is missed."""
        made = self._checked(signed)
        view = await self._nodes.view()
        final = await self._nodes.block(view, view.final)
        receipt = await self._nodes.receipt(view, signed.tx_hash, sure=True)
        if receipt is not None:
            return seen(view, receipt, _CHAIN, made)
        # A block upon one that is past the end takes it no more, and all before are final.
        if final.at < _moment(made.expiration) + PROOF_AFTER:
            return TransferState.UNSEEN
        if any(await agreed_answers(self._apis, lambda api: api.knows(signed.tx_hash))):
            raise Unavailable(f"one alone knows transaction {signed.tx_hash}: nothing is proven")
        return TransferState.FAILED

    async def find(self, operation: str) -> SentTransfer | None:
        """As the port has it, of what is in a block. What failed moved nothing, so it is not found."""
        view = await self._nodes.view()
        found = [self._sent_by(blob) for blob in await self._sent.of(view, operation)]
        return next((each for each in found if each is not None and each.signed.operation == operation), None)

    async def sent_since(self, moment: datetime) -> list[SentTransfer]:
        """As the port has it, of what is in a block; what the book lacks is read back, a month at most."""
        view = await self._nodes.view()
        final = await self._nodes.block(view, view.final)
        found = [self._sent_by(blob) for blob in await self._sent.since(view, moment, final.at)]
        # Whatever was handed over from then on had its end ahead.
        return [each for each in found if each is not None and (each.signed.expires_at or moment) >= moment]

    async def check(self) -> None:
        """Whether nodes and interfaces take our keys, and the wallet can pay for a transfer. Raises: NotConfigured,
        Unavailable."""
        await self._nodes.check()
        every = [await api.resources(self._signer.payload) for api in self._apis]
        view = await self._nodes.view()
        energy = _USUAL_ENERGY - min(each.energy for each in every)
        price = await first_answer(self._apis, TronApi.energy_price)
        if energy * price > await self._sun(view):
            raise Unavailable(f"the wallet {self.address} has neither energy nor TRX for a transfer of USDT")

    async def shortages(self) -> Sequence[Shortage]:
        """As the port has it."""
        shortage = await self._nodes.shortage()
        return [] if shortage is None else [shortage]

    async def owns(self, address: str) -> bool:
        """As the port has it."""
        return is_address_of(_CHAIN, address, self._signer.payload)

    async def close(self) -> None:
        """Close all connections."""
        await self._nodes.close()
        for api in self._apis:
            await api.close()

    async def _check_means(self, view: View, amount: int, data: bytes) -> None:
        """`data`: of the call. Raises: Unavailable where the wallet lacks USDT, or what the transfer costs, or the
        contract would not do it: what a network charges for a transfer that fails is lost."""
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
        # The network holds all energy against the limit, staked or bought: above it the fee is burned for nothing.
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
        """None for what this wallet would not sign."""
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
        """What the transfer says. Raises: Refused for what this wallet did not sign as it stands."""
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
