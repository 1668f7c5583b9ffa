"""Payouts of USDT on Ethereum and BNB Smart Chain (docs/providers/chains.md "Paying out").

Transfers are built and signed here. Each has a number of the wallet that is stored first. Several nodes are
compared to follow it, and it counts as failed only with proof.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ....ports.checking import Shortage
from ....ports.clock import Clock
from ....ports.faults import Refused, Unavailable
from ....ports.payouts import SenderCapabilities, SentTransfer, SignedTransfer, TransferState
from ...nodes.nodes import Nodes, View
from ..shared import is_address_of, recipient_of, usdt_of
from ..signer import Signer
from . import transaction
from .answers import Taken, handed_over
from .book import Attempt, Book, Try
from .fees import Market
from .numbers import Numbers
from .offers import PATIENCE, Offers
from .sightings import Moves, Sightings
from .transaction import Fees, Transaction, Transfer, tx_hash

_USUAL_GAS = 65_000


class EvmSender:
    """Implementation of the ports ListingSender and ReplacingSender, for one wallet from which no other program
    spends.
    """

    def __init__(self, name: str, nodes: Nodes, signer: Signer, book: Book, clock: Clock, *, price_limit: int) -> None:
        """Set up the wallet without connecting. `price_limit`: highest price of one gas, in wei."""
        self._name = name
        self._nodes = nodes
        self._chain = nodes.chain
        self._signer = signer
        self._book = book
        self._clock = clock
        self._market = Market(nodes, price_limit)
        self._sightings = Sightings(nodes, signer.payload)
        self._numbers = Numbers(self.address, book, self._sightings, clock)
        self._offers = Offers(nodes, signer, book, self._numbers, self._sightings, self._market, clock)

    def __repr__(self) -> str:
        return f"<EvmSender {self.address}>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def address(self) -> str:
        """Address of the wallet."""
        return self._chain.spelling.write(self._signer.payload)

    @property
    def capabilities(self) -> SenderCapabilities:
        return SenderCapabilities(network=self._chain.network, decimals=self._chain.decimals)

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        """Sign a transfer, as the port defines it.

        An operation keeps its number until the network proves that its transfer failed. So a second signature for
        it is the same, or at least has the same number.
        """
        if units <= 0 or units % self.capabilities.step:
            raise Refused("no amount that the network can move", reason="amount")
        recipient = recipient_of(self._chain, address, self._signer.payload)
        transfer = Transfer(recipient=recipient, amount=self._chain.amount(units), operation=operation)
        view = await self._nodes.view()
        # Step 1: reuse the operation's last attempt, unless it certainly failed.
        attempts = await self._book.attempts(operation)
        attempt = None if not attempts else await self._still_open(view, attempts[-1])
        if attempt is not None and (attempt.recipient, attempt.amount) != (recipient, transfer.amount):
            raise Unavailable(f"something else was signed for {operation}")
        # Step 2: without a signed transfer, check the balance and the fees before taking a number.
        if attempt is None or not attempt.tries:
            count = await self._sightings.count(view, "latest")
            waiting = await self._numbers.waiting(count)
            fees, gas = await self._means(view, transfer, [each for each in waiting if each != attempt])
            # Step 3: take the next number, and sign for it.
            if attempt is None:
                attempt = await self._numbers.give(view, transfer, count, place=len(attempts))
            made = self._call(attempt.nonce, fees, gas, transfer.data)
            attempt = await self._offers.signed(attempt, made)
        if attempt.void or not attempt.tries:
            raise Unavailable(f"the place of {operation} was given up: another comes once that is final")
        return _first(attempt)

    async def broadcast(self, signed: SignedTransfer) -> None:
        """Broadcast a transfer, as the port defines it, with a higher fee if it waited long for a block."""
        made, transfer = self._checked(signed)
        view = await self._nodes.view()
        # Mark the attempt as broadcast before a node gets it.
        attempt = await self._handed(view, signed, made.nonce, transfer)
        if attempt is None:
            raise Refused("another transaction has its place", reason="expired")
        # Submit the newest transaction of the number.
        taken = await handed_over(view.nodes, await self._offers.newest(view, attempt))
        if taken is Taken.NO:
            raise Refused("the network does not take it", reason="invalid")
        if taken is Taken.USED:
            # The number is used in a block: find out whether by this transfer or by another transaction.
            state, _ = await self._sightings.stands(view, self._moves(attempt))
            if state is TransferState.FAILED:
                raise Refused("another transaction has its place", reason="expired")
            if state is TransferState.UNSEEN:
                raise Unavailable("something has its place, and the nodes do not say yet what")
        elif self._clock.now() >= attempt.tries[-1].at + PATIENCE:
            # The transfer waited long, so an earlier number may block it.
            await self._offers.unblock(view, attempt)

    async def state(self, signed: SignedTransfer) -> TransferState:
        """Return the state of the transfer, as the port defines it, from all transactions with its number."""
        return (await self._stands(signed))[0]

    async def in_place(self, signed: SignedTransfer) -> SignedTransfer:
        """Return the transaction in its place, as the port defines it."""
        _, of = await self._stands(signed)
        if of is None or of == signed.tx_hash:
            return signed
        for attempt in await self._book.attempts(signed.operation):
            for each in attempt.tries:
                if tx_hash(each.raw) == of:
                    return msgspec.structs.replace(signed, tx_hash=of, blob=each.raw)
        return msgspec.structs.replace(signed, tx_hash=of)

    async def find(self, operation: str) -> SentTransfer | None:
        """Find the operation's transfer, as the port defines it.

        The network still knows transfers that a restored book lacks.
        """
        view = await self._nodes.view()
        await self._numbers.catch_up(view)
        for attempt in reversed(await self._book.attempts(operation)):
            found = await self._sent(view, attempt)
            if found is not None:
                return found
        return None

    async def sent_since(self, moment: datetime) -> list[SentTransfer]:
        """List sent transfers, as the port defines it."""
        view = await self._nodes.view()
        await self._numbers.catch_up(view)
        found = [await self._sent(view, attempt) for attempt in await self._book.begun_since(moment)]
        return [each for each in found if each is not None]

    async def check(self) -> None:
        """Check that nodes accept our keys, and that the wallet can pay for a transfer.

        Raises: NotConfigured, Unavailable.
        """
        await self._nodes.check()
        view = await self._nodes.view()
        fees = await self._market.fees(view)
        await self._market.check_coins(view, self._signer.payload, _USUAL_GAS * fees.most)

    async def shortages(self) -> Sequence[Shortage]:
        """Return shortages of nodes, as the port defines it."""
        shortage = await self._nodes.shortage()
        return [] if shortage is None else [shortage]

    async def owns(self, address: str) -> bool:
        """Return whether the address is the wallet's, as the port defines it."""
        return is_address_of(self._chain, address, self._signer.payload)

    async def close(self) -> None:
        """Close all connections."""
        await self._nodes.close()

    async def _still_open(self, view: View, attempt: Attempt) -> Attempt | None:
        """Return the attempt; None if it certainly failed."""
        if not attempt.tries:
            return attempt
        state, _ = await self._sightings.stands(view, self._moves(attempt))
        return None if state is TransferState.FAILED else attempt

    async def _means(self, view: View, transfer: Transfer, waiting: list[Attempt]) -> tuple[Fees, int]:
        """Return the fees and the gas for a transfer.

        Raises: Unavailable if the wallet lacks USDT or coins for gas, or the contract would not execute the
        transfer: the fee of a failed transfer is lost.
        """
        held = await usdt_of(self._nodes, view, self._signer.payload) - sum(each.amount for each in waiting)
        if held < transfer.amount:
            free = self._chain.units(max(0, held)) / 10**8
            raise Unavailable(f"the wallet {self.address} lacks USDT: it has {free:.2f} beside what is on its way")
        call = {"from": f"0x{self._signer.payload.hex()}", "to": self._chain.usdt, "data": f"0x{transfer.data.hex()}"}
        gas = await self._market.gas(view, call)
        fees = await self._market.fees(view)
        await self._market.check_coins(view, self._signer.payload, gas * fees.most * (len(waiting) + 1))
        return fees, gas

    def _call(self, nonce: int, fees: Fees, gas: int, data: bytes) -> Transaction:
        token = bytes.fromhex(self._chain.usdt[2:])
        return Transaction(chain_id=self._chain.chain_id, nonce=nonce, fees=fees, gas=gas, to=token, data=data)

    def _checked(self, signed: SignedTransfer) -> tuple[Transaction, Transfer]:
        """Return the transaction and its transfer.

        Raises: Refused for a transaction that this wallet did not sign in this form.
        """
        try:
            read = transaction.read(signed.blob)
            transfer = transaction.read_transfer(read.made.data)
        except ValueError:
            raise Refused("this wallet did not sign that", reason="invalid") from None
        ours = read.made == self._call(read.made.nonce, read.made.fees, read.made.gas, transfer.data)
        said = (transfer.operation, tx_hash(signed.blob), None)
        if not ours or read.by != self._signer.payload or said != (signed.operation, signed.tx_hash, signed.expires_at):
            raise Refused("this wallet did not sign that", reason="invalid")
        return read.made, transfer

    def _moves(self, attempt: Attempt) -> Moves:
        """Return the search for an attempt's transfer.

        For an attempt that was given up, it leaves out the empty transaction, which moves nothing.
        """
        tries = [each for each in attempt.tries if not (attempt.void and self._offers.is_of_nothing(each))]
        return Moves(
            owner=self._signer.payload,
            recipient=attempt.recipient,
            amount=attempt.amount,
            nonce=attempt.nonce,
            hashes=[tx_hash(each.raw) for each in tries],
            height=attempt.height,
        )

    async def _stands(self, signed: SignedTransfer) -> tuple[TransferState, str | None]:
        made, transfer = self._checked(signed)
        view = await self._nodes.view()
        attempt = await self._numbers.attempt(signed.operation, made.nonce)
        moves = (
            Moves(
                owner=self._signer.payload,
                recipient=transfer.recipient,
                amount=transfer.amount,
                nonce=made.nonce,
                hashes=[signed.tx_hash],
                height=None,
            )
            if attempt is None
            else self._moves(attempt)
        )
        return await self._sightings.stands(view, moves)

    async def _handed(self, view: View, signed: SignedTransfer, nonce: int, transfer: Transfer) -> Attempt | None:
        """Mark the attempt as broadcast and return it; None if it was given up."""
        attempt = await self._numbers.attempt(signed.operation, nonce)
        if attempt is None:
            attempt = await self._numbers.enter(view, nonce, transfer, signed.blob)
        mine = Try(signed.blob, self._clock.now())

        def turn(before: Attempt) -> Attempt:
            if before.void:
                return before
            tries = before.tries if signed.blob in [each.raw for each in before.tries] else (mine, *before.tries)
            return msgspec.structs.replace(before, handed=True, tries=tries)

        attempt = await self._book.change(attempt, turn)
        return None if attempt.void else attempt

    async def _sent(self, view: View, attempt: Attempt) -> SentTransfer | None:
        """Return the transfer that was broadcast, unless it failed.

        A transfer that our book only shows as signed may have been broadcast after the backup from which the book
        was restored.
        """
        if not attempt.tries or attempt.void:
            return None
        moves = self._moves(attempt)
        state, of = await self._sightings.stands(view, moves)
        if state is TransferState.FAILED:
            return None
        is_known = attempt.handed or state is not TransferState.UNSEEN
        if not is_known and not await self._sightings.is_known(view, moves.hashes):
            return None
        raw = next((each.raw for each in attempt.tries if tx_hash(each.raw) == of), attempt.tries[0].raw)
        signed = SignedTransfer(operation=attempt.operation, tx_hash=of or tx_hash(raw), blob=raw, expires_at=None)
        return SentTransfer(
            signed=signed,
            address=self._chain.spelling.write(attempt.recipient),
            units=self._chain.units(attempt.amount),
        )


def _first(attempt: Attempt) -> SignedTransfer:
    raw = attempt.tries[0].raw
    return SignedTransfer(operation=attempt.operation, tx_hash=tx_hash(raw), blob=raw, expires_at=None)
