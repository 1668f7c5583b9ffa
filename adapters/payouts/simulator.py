"""Wallet without money, on its own chain: transfers get into a block and become final by the clock.

The storage holds the chain, so that it survives a restart and every process of the service sees the same one. There
are no timers: the state of a transfer follows from the stored entry and the clock. Signing stores nothing, as with
a real wallet: a transfer that is signed and never broadcast leaves no trace. Broadcasting stores the transfer by
its operation as well.
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
from ...ports.operation_log import OperationLog
from ...ports.payouts import SenderCapabilities, SentTransfer, SignedTransfer, TransferState
from ...ports.storage import Storage
from ..script import Ending, SenderScript, Twist, be_silent, begin_read, begin_write, fault, spoken

LIFETIME = timedelta(seconds=60)
"""Time from signing until no block accepts a transfer any more, as on TRON."""
FINALITY = timedelta(seconds=5)
"""Time from a block until it is final. A transfer is proven absent this long after its expiry."""

_HASH = re.compile(r"[0-9a-f]{64}\Z")
_TRON = re.compile(r"T[1-9A-HJ-NP-Za-km-z]{33}\Z")
_EVM = re.compile(r"0x[0-9a-fA-F]{40}\Z")
"""Form of an EVM address. The core checks the checksum (core/domain/wallets.py) before it calls the wallet."""
_DECIMALS = {Network.TRON: 6, Network.ETHEREUM: 6, Network.BSC: 18}


class _Body(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a blob. Its hash is the transaction's hash, as on TRON."""

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
    """A simulation call fixed the state, so the clock does not change it."""


class _Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer sent for an operation: the body of a note whose key is the operation, a slash and the hash."""

    tx_hash: str
    blob: bytes


class SimulatedSender:
    """Implementation of the ports ListingSender and SenderSimulator, with USDT on its own network."""

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
        """Set up the wallet on `network`. It also accepts addresses of TRON, because exchanges are always on TRON."""
        self._chain = OperationLog(name, _Entry, storage, clock)
        self._sent = OperationLog(name, _Sent, storage, clock)
        self._clock = clock
        self._ids = ids
        self._network = network
        self.script = script or SenderScript()
        """Faults for the next calls."""

    @property
    def name(self) -> str:
        """Name of the wallet, which is part of every note's id."""
        return self._chain.provider

    @property
    def capabilities(self) -> SenderCapabilities:
        """Capabilities: USDT on its network."""
        return SenderCapabilities(network=self._network, decimals=_DECIMALS[self._network], simulated=True)

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        """Sign another transaction at each call.

        Raises: Refused for an amount that the network cannot move, or a text that does not look like an address;
        the scripted faults.
        """
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
        """Put a transfer into a block at once; it is final after FINALITY. A transfer from a dropped block gets into a
        new one the same way.

        Raises: Refused for a transfer that this wallet did not sign in this form, or that has expired and is in no
        block; OutcomeUnknown when the storage lost its answer; the scripted faults.
        """
        twist = await begin_write(self._clock, self.script.broadcast)
        self._check(signed)
        now, end = self._clock.now(), _end(signed)
        try:
            entry = await self._change(signed.tx_hash, lambda before: _included(before, end, now), signed)
        except Unavailable as problem:
            raise OutcomeUnknown("the chain did not answer") from problem
        await be_silent(self._clock, twist)
        if now >= end and entry.state in (TransferState.UNSEEN, TransferState.FAILED):
            raise Refused("the transfer has expired", reason="expired")
        if twist.ending is Ending.UNKNOWN_DONE:
            raise fault(twist)

    async def state(self, signed: SignedTransfer) -> TransferState:
        """Return the state of the transfer now. Raises: Unavailable; the scripted faults."""
        await self._begin_read(self.script.state)
        now, end = self._clock.now(), _end(signed)
        written = await self._chain.read(signed.tx_hash)
        entry = _as_of(written, end, now)
        if entry.state is TransferState.FAILED and entry != written:
            # Store the failure before reporting it, so that a concurrent broadcast comes too late.
            entry = await self._change(signed.tx_hash, lambda before: _as_of(before, end, now))
        return entry.state

    async def find(self, operation: str) -> SentTransfer | None:
        """Return the transfer that was broadcast for the operation and has not failed.

        Raises: Unavailable; the scripted faults.
        """
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
        """Return the transfers broadcast since `moment` that have not failed. Raises: Unavailable."""
        operations = {key.rpartition("/")[0] for key, _ in await self._sent.since(moment) if "/" in key}
        found = [await self.find(operation) for operation in sorted(operations)]
        return [each for each in found if each is not None]

    async def simulate(self, tx_hash: str, state: TransferState) -> None:
        """Put the transfer in that state. Raises: ValueError for a hash that is not in canonical form."""
        if not _HASH.match(tx_hash):
            raise ValueError("a transaction hash is 64 hex digits in lower case")
        await self._chain.put(tx_hash, _Entry(state=state, since=self._clock.now(), held=True))

    def _check(self, signed: SignedTransfer) -> None:
        """Refuse a transfer that the wallet did not sign in this form."""
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
        """Store the result of `change` for the entry, which may not exist yet, together with the `sent` transfer.

        Raises: Unavailable.
        """
        key = "" if sent is None else f"{sent.operation}/{tx_hash}"
        page = None if sent is None else _Sent(tx_hash=tx_hash, blob=sent.blob)
        entry, is_new = await self._chain.start(
            tx_hash, change(None), *(() if page is None else (self._sent.note(key, page),))
        )
        if is_new:
            return entry
        if page is not None and await self._sent.read(key) is None:
            # A simulation call set the state before the transfer was sent.
            await self._sent.start(key, page)
        changed = await self._chain.change(tx_hash, change)
        if changed is None:
            raise Unavailable(f"{self.name}: a transaction was there and is gone")
        return changed

    async def _begin_read(self, twists: deque[Twist]) -> None:
        """Apply the script to a read. A read is never refused; the network is unavailable instead."""
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
    """Return the state of the transaction at the time `now`."""
    if entry is None:
        entry = _Entry(state=TransferState.UNSEEN, since=now)
    if entry.state is TransferState.UNSEEN and now >= expires_at + FINALITY:
        return _Entry(state=TransferState.FAILED, since=now)
    if entry.state is TransferState.IN_BLOCK and not entry.held and now >= entry.since + FINALITY:
        return _Entry(state=TransferState.FINAL, since=now)
    return entry


def _included(entry: _Entry | None, expires_at: datetime, now: datetime) -> _Entry:
    """Put the transaction into a new block, unless it is in one or has expired."""
    known = _as_of(entry, expires_at, now)
    if known.state is TransferState.UNSEEN and now < expires_at:
        return _Entry(state=TransferState.IN_BLOCK, since=now)
    return known
