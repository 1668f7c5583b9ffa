"""A wallet without money, on a chain of its own: transfers that come into a block and become final by the clock.

The chain lies in the storage, so that it survives a restart, and every process of the service sees the same one. It
keeps no timers: how a transfer stands follows from what is written and the clock whenever it is asked. Signing writes
nothing, as with a real wallet: a transfer that was signed and never sent leaves no trace. What was sent is written down
by its operation, too, in the step that brings it onto the chain.
"""

import re
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from ...ports.chain import Network
from ...ports.clock import Clock, Ids
from ...ports.faults import OutcomeUnknown, Refused, Unavailable
from ...ports.notebook import Notebook
from ...ports.payouts import SenderCapabilities, SentTransfer, SignedTransfer, TransferState
from ...ports.storage import Storage
from ..script import Ending, SenderScript, Twist, be_silent, begin_read, begin_write, fault, spoken

LIFETIME = timedelta(seconds=60)
"""From signing until no block takes a transfer any more: what TRON gives a transaction."""
FINALITY = timedelta(seconds=5)
"""From a block until it is final; so a transfer is proven absent this long after its end."""

_HASH = re.compile(r"[0-9a-f]{64}\Z")
_TRON = re.compile(r"T[1-9A-HJ-NP-Za-km-z]{33}\Z")
_EVM = re.compile(r"0x[0-9a-fA-F]{40}\Z")
"""The shapes of addresses. Whether a checksum is right the core checks (core/domain/wallets.py), before it asks."""
_DECIMALS = {Network.TRON: 6, Network.ETHEREUM: 6, Network.BSC: 18}


class _Body(msgspec.Struct, frozen=True, kw_only=True):
    """What a blob says. Its hash is the transaction's, as on TRON."""

    wallet: str
    operation: str
    address: str
    units: int
    expires_at: datetime
    nonce: str


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction on the chain: the body of a note."""

    state: TransferState
    since: datetime
    held: bool = False
    """Somebody said that it stands so: the clock does not move it on."""


class _Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent for an operation: the body of a note whose key is the operation, a slash and the hash."""

    tx_hash: str
    blob: bytes


class SimulatedSender:
    """Fills the ports ListingSender and SenderSimulator, with USDT on a network of its own."""

    def __init__(
        self,
        name: str,
        storage: Storage,
        clock: Clock,
        ids: Ids,
        *,
        script: SenderScript | None = None,
        network: Network = Network.TRON,
    ) -> None:
        """`network`: where it pays out. It takes addresses of TRON there, too, since exchanges are always on TRON."""
        self._chain = Notebook(name, _Entry, storage, clock)
        self._sent = Notebook(name, _Sent, storage, clock)
        self._clock = clock
        self._ids = ids
        self._network = network
        self.script = script or SenderScript()
        """What the next calls shall do instead of behaving."""

    @property
    def name(self) -> str:
        """As given; part of every note's id."""
        return self._chain.provider

    @property
    def capabilities(self) -> SenderCapabilities:
        """USDT on its network."""
        return SenderCapabilities(network=self._network, decimals=_DECIMALS[self._network], simulated=True)

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        """Another transaction at each call. Raises: Refused for an amount that the network cannot move, or what does
        not look like an address; what the script says."""
        await begin_read(self._clock, self.script.sign)
        if units <= 0 or units % self.capabilities.step:
            raise Refused("no amount that the network can move", reason="amount")
        if not _TRON.match(address) and (self._network is Network.TRON or not _EVM.match(address)):
            raise Refused("no address of the network", reason="address")
        expires_at = self._clock.now() + LIFETIME
        body = _Body(
            wallet=self.name,
            operation=operation,
            address=address,
            units=units,
            expires_at=expires_at,
            nonce=self._ids.uuid(),
        )
        blob = msgspec.json.encode(body)
        return SignedTransfer(operation=operation, tx_hash=sha256(blob).hexdigest(), blob=blob, expires_at=expires_at)

    async def broadcast(self, signed: SignedTransfer) -> None:
        """Into a block at once; final after FINALITY. One that a dropped block threw out comes back so.

        Raises: Refused for one that this wallet did not sign as it stands, or that has expired and is in no block;
        OutcomeUnknown when the storage lost its answer; what the script says.
        """
        twist = await begin_write(self._clock, self.script.broadcast)
        self._check(signed)
        now, end = self._clock.now(), _end(signed)
        try:
            entry = await self._change(signed.tx_hash, lambda before: _included(before, end, now), signed)
        except Unavailable as trouble:
            raise OutcomeUnknown("the chain did not answer") from trouble
        await be_silent(self._clock, twist)
        if now >= end and entry.state in (TransferState.UNSEEN, TransferState.FAILED):
            raise Refused("the transfer has expired", reason="expired")
        if twist.ending is Ending.UNKNOWN_DONE:
            raise fault(twist)

    async def state(self, signed: SignedTransfer) -> TransferState:
        """The transfer by the clock of now. Raises: Unavailable; what the script says."""
        await self._begin_read(self.script.state)
        now, end = self._clock.now(), _end(signed)
        written = await self._chain.read(signed.tx_hash)
        entry = _as_of(written, end, now)
        if entry.state is TransferState.FAILED and entry != written:
            # Written down before it is said, so that a broadcast still under way comes too late.
            entry = await self._change(signed.tx_hash, lambda before: _as_of(before, end, now))
        return entry.state

    async def find(self, operation: str) -> SentTransfer | None:
        """What was broadcast for the operation and has not failed. Raises: Unavailable; what the script says."""
        await self._begin_read(self.script.find)
        now = self._clock.now()
        for sent in await self._sent.below(operation):
            body = msgspec.json.decode(sent.blob, type=_Body)
            entry = _as_of(await self._chain.read(sent.tx_hash), body.expires_at, now)
            if entry.state is not TransferState.FAILED:
                signed = SignedTransfer(
                    operation=operation, tx_hash=sent.tx_hash, blob=sent.blob, expires_at=body.expires_at
                )
                return SentTransfer(signed=signed, address=body.address, units=body.units)
        return None

    async def sent_since(self, moment: datetime) -> list[SentTransfer]:
        """What was broadcast since and has not failed. Raises: Unavailable."""
        operations = {key.rpartition("/")[0] for key, _ in await self._sent.since(moment) if "/" in key}
        found = [await self.find(operation) for operation in sorted(operations)]
        return [each for each in found if each is not None]

    async def pretend(self, tx_hash: str, state: TransferState) -> None:
        """Put the transfer in that state. Raises: ValueError for what is no hash in canonical form."""
        if not _HASH.match(tx_hash):
            raise ValueError("a transaction hash is 64 hex digits in lower case")
        await self._chain.put(tx_hash, _Entry(state=state, since=self._clock.now(), held=True))

    def _check(self, signed: SignedTransfer) -> None:
        """A network takes only what a wallet signed as it stands."""
        try:
            body = msgspec.json.decode(signed.blob, type=_Body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            body = None
        if (
            body is None
            or sha256(signed.blob).hexdigest() != signed.tx_hash
            or (body.wallet, body.operation, body.expires_at) != (self.name, signed.operation, signed.expires_at)
        ):
            raise Refused("this wallet did not sign that", reason="invalid")

    async def _change(
        self, tx_hash: str, change: Callable[[_Entry | None], _Entry], sent: SignedTransfer | None = None
    ) -> _Entry:
        """Write what `change` makes of the entry, whether there is one or not, and what was `sent` with it. Raises:
        Unavailable."""
        key = "" if sent is None else f"{sent.operation}/{tx_hash}"
        page = None if sent is None else _Sent(tx_hash=tx_hash, blob=sent.blob)
        entry, is_new = await self._chain.start(
            tx_hash, change(None), *(() if page is None else (self._sent.note(key, page),))
        )
        if is_new:
            return entry
        if page is not None and await self._sent.read(key) is None:
            # Somebody said how it stands before it was sent.
            await self._sent.start(key, page)
        changed = await self._chain.change(tx_hash, change)
        if changed is None:
            raise Unavailable(f"{self.name}: a transaction was there and is gone")
        return changed

    async def _begin_read(self, twists: deque[Twist]) -> None:
        """No read is refused: the network is unavailable instead."""
        twist = await spoken(self._clock, twists)
        if twist.ending is Ending.REFUSED:
            raise Unavailable(twist.message, retry_after=twist.retry_after)
        if twist.ending is not Ending.NORMAL:
            raise fault(twist, is_read=True)


def _end(signed: SignedTransfer) -> datetime:
    if signed.expires_at is None:
        raise Refused("this wallet signs nothing without an end", reason="invalid")
    return signed.expires_at


def _as_of(entry: _Entry | None, expires_at: datetime, now: datetime) -> _Entry:
    """How the transaction stands once time did its part."""
    if entry is None:
        entry = _Entry(state=TransferState.UNSEEN, since=now)
    if entry.state is TransferState.UNSEEN and now >= expires_at + FINALITY:
        return _Entry(state=TransferState.FAILED, since=now)
    if entry.state is TransferState.IN_BLOCK and not entry.held and now >= entry.since + FINALITY:
        return _Entry(state=TransferState.FINAL, since=now)
    return entry


def _included(entry: _Entry | None, expires_at: datetime, now: datetime) -> _Entry:
    """A block is made with the transaction in it, unless it is in one already or has expired."""
    known = _as_of(entry, expires_at, now)
    if known.state is TransferState.UNSEEN and now < expires_at:
        return _Entry(state=TransferState.IN_BLOCK, since=now)
    return known
