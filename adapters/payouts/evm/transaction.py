"""Transactions of Ethereum and BNB Smart Chain, signed and decoded: those of EIP-1559, and those with a single gas
price and the chain id of EIP-155, for a network whose blocks have no base fee.
"""

import msgspec

from ....core.domain.keccak import keccak256
from ..signer import signer_of
from . import rlp

SELECTOR = bytes.fromhex("a9059cbb")
"""transfer(address,uint256)."""

_DYNAMIC = b"\x02"
_WORD = 32
_ADDRESS = 20
_LEGACY_V = 35
_LEGACY_FIELDS, _DYNAMIC_FIELDS = 9, 12


class Fees(msgspec.Struct, frozen=True):
    """Limits on the price of gas, in wei."""

    most: int
    """Highest total price of one gas."""
    tip: int | None = None
    """Highest share of it for the block's producer, beside the base fee; None if there is no base fee."""

    @property
    def raised(self) -> "Fees":
        """Return fees high enough that nodes accept a replacement for a transaction with these."""
        return Fees(_more(self.most), None if self.tip is None else _more(self.tip))


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a transaction before it is signed. Addresses are their 20 bytes."""

    chain_id: int
    nonce: int
    fees: Fees
    gas: int
    """Gas limit."""
    to: bytes
    value: int = 0
    """Value in wei."""
    data: bytes = b""

    @property
    def digest(self) -> bytes:
        """The digest to sign."""
        if self.fees.tip is not None:
            return keccak256(_DYNAMIC + rlp.encoded(self._fields()))
        return keccak256(rlp.encoded([*self._fields(), rlp.number(self.chain_id), b"", b""]))

    def signed(self, signature: bytes) -> bytes:
        """Return the bytes to broadcast. `signature`: r, s, and 0 or 1."""
        r, s, parity = int.from_bytes(signature[:32]), int.from_bytes(signature[32:64]), signature[64] % 27
        if self.fees.tip is not None:
            return _DYNAMIC + rlp.encoded([*self._fields(), *map(rlp.number, (parity, r, s))])
        return rlp.encoded([*self._fields(), *map(rlp.number, (self.chain_id * 2 + _LEGACY_V + parity, r, s))])

    def _fields(self) -> list[rlp.Item]:
        called = [rlp.number(self.gas), self.to, rlp.number(self.value), self.data]
        if self.fees.tip is None:
            return [rlp.number(self.nonce), rlp.number(self.fees.most), *called]
        head = map(rlp.number, (self.chain_id, self.nonce, self.fees.tip, self.fees.most))
        return [*head, *called, []]


class Signed(msgspec.Struct, frozen=True):
    """Transaction with its signature."""

    made: Transaction
    by: bytes
    """The signer's address, as 20 bytes."""


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """Call of the token's contract, and its operation.

    The operation follows the data that the contract reads, so that the network itself shows which operation a
    transfer paid (docs/providers/chains.md "Paying out").
    """

    recipient: bytes
    amount: int
    """Amount in the token's smallest units."""
    operation: str

    @property
    def data(self) -> bytes:
        """Data of the call."""
        said = self.recipient.rjust(_WORD, b"\0") + self.amount.to_bytes(_WORD)
        return SELECTOR + said + self.operation.encode()


def tx_hash(raw: bytes) -> str:
    """Return the transaction's hash, known before it is broadcast: 64 hex digits."""
    return keccak256(raw).hex()


def read(raw: bytes) -> Signed:
    """Return the transaction and its signer. Raises: ValueError for bytes that `signed` would not write."""
    made, signature = _read_dynamic(raw[1:]) if raw[:1] == _DYNAMIC else _read_legacy(raw)
    if made.signed(signature) != raw:
        raise ValueError("no transaction as we sign it")
    return Signed(made, signer_of(signature, made.digest))


def read_transfer(data: bytes) -> Transfer:
    """Return the transfer in a call's data. Raises: ValueError."""
    words = data[len(SELECTOR) :]
    made = Transfer(
        recipient=words[_WORD - _ADDRESS : _WORD],
        amount=int.from_bytes(words[_WORD : 2 * _WORD]),
        operation=words[2 * _WORD :].decode(),
    )
    if len(words) < 2 * _WORD or made.data != data:
        raise ValueError("no transfer of a token")
    return made


def _read_dynamic(body: bytes) -> tuple[Transaction, bytes]:
    fields = _fields(body, _DYNAMIC_FIELDS)
    chain_id, nonce, tip, most, gas = map(rlp.read_number, fields[:5])
    to, value, data, accesses = fields[5:9]
    if accesses:
        raise ValueError("a list of accesses is none of ours")
    made = Transaction(
        chain_id=chain_id,
        nonce=nonce,
        fees=Fees(most, tip),
        gas=gas,
        to=_bytes(to),
        value=rlp.read_number(value),
        data=_bytes(data),
    )
    return made, _signature(*map(rlp.read_number, fields[9:]))


def _read_legacy(raw: bytes) -> tuple[Transaction, bytes]:
    fields = _fields(raw, _LEGACY_FIELDS)
    nonce, price, gas = map(rlp.read_number, fields[:3])
    v, r, s = map(rlp.read_number, fields[6:])
    chain_id, parity = divmod(v - _LEGACY_V, 2)
    made = Transaction(
        chain_id=chain_id,
        nonce=nonce,
        fees=Fees(price),
        gas=gas,
        to=_bytes(fields[3]),
        value=rlp.read_number(fields[4]),
        data=_bytes(fields[5]),
    )
    return made, _signature(parity, r, s)


def _fields(body: bytes, many: int) -> list[rlp.Item]:
    fields = rlp.decoded(body)
    if isinstance(fields, bytes) or len(fields) != many:
        raise ValueError("no transaction as we sign it")
    return list(fields)


def _signature(parity: int, r: int, s: int) -> bytes:
    if parity not in (0, 1) or max(r, s) >= 1 << 256:
        raise ValueError("no signature")
    return r.to_bytes(32) + s.to_bytes(32) + bytes((parity,))


def _bytes(item: rlp.Item) -> bytes:
    if not isinstance(item, bytes):
        raise ValueError("no transaction as we sign it")  # noqa: TRY004 - an error in the bytes, not in the caller's argument
    return item


def _more(fee: int) -> int:
    """Return the fee plus an eighth, at least one more. Nodes require a tenth."""
    return fee + max(fee // 8, 1) + 1
