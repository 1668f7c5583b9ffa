"""Transfer of USDT as TRON signs it. It is built here byte by byte from a final block, and decoded again before it is
sent.

The service never signs bytes that a node built. Each call contains its operation after the data that the contract
reads. So two otherwise equal transfers are two transactions, and the network itself shows which operation each
paid.
"""

from hashlib import sha256

import msgspec

from .protobuf import Fields, decoded, encoded

TRIGGER = 31
"""Number of the contract type TriggerSmartContract."""
TYPE_URL = b"type.googleapis.com/protocol.TriggerSmartContract"
SELECTOR = bytes.fromhex("a9059cbb")
"""transfer(address,uint256)."""

_PREFIX = b"\x41"
_WORD = 32
_ADDRESS = 20


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a transaction. Addresses are their 20 bytes."""

    owner: bytes
    token: bytes
    recipient: bytes
    amount: int
    """Amount in the token's smallest units."""
    fee_limit: int
    """Highest cost of its energy, in sun."""
    block: bytes
    """Id of the block that it refers to. On another branch the transfer is invalid."""
    expiration: int
    timestamp: int
    """Milliseconds since 1970."""
    operation: str = ""
    """Empty if the transaction is not ours."""

    @property
    def raw(self) -> bytes:
        """The bytes that are hashed and signed."""
        call: Fields = {
            1: _PREFIX + self.owner,
            2: _PREFIX + self.token,
            4: call_data(self.recipient, self.amount, self.operation),
        }
        parameter: Fields = {1: TYPE_URL, 2: encoded(call)}
        contract: Fields = {1: TRIGGER, 2: encoded(parameter)}
        return encoded(
            {
                1: self.block[6:8],
                4: self.block[8:16],
                8: self.expiration,
                11: encoded(contract),
                14: self.timestamp,
                18: self.fee_limit,
            }
        )


def call_data(recipient: bytes, amount: int, operation: str) -> bytes:
    """Return the call's data for the token's contract, with the operation."""
    return SELECTOR + recipient.rjust(_WORD, b"\0") + amount.to_bytes(_WORD) + operation.encode()


def tx_id(raw: bytes) -> bytes:
    """Return the transaction's id, known before it is broadcast."""
    return sha256(raw).digest()


def signed(raw: bytes, signature: bytes) -> bytes:
    """Return the bytes to broadcast."""
    return encoded({1: raw, 2: signature})


def parted(transaction: bytes) -> tuple[bytes, bytes]:
    """Return the signed bytes and the signature. Raises: ValueError."""
    fields = decoded(transaction)
    raw, signature = fields.get(1), fields.get(2)
    if not isinstance(raw, bytes) or not isinstance(signature, bytes) or signed(raw, signature) != transaction:
        raise ValueError("no transaction with one signature")
    return raw, signature


def read(raw: bytes) -> Transfer:
    """Return the transfer in these bytes, which must contain nothing else: no memo, no TRX, no other call.

    Raises: ValueError.
    """
    fields = decoded(raw)
    parameter = decoded(_bytes(decoded(_bytes(fields.get(11))).get(2)))
    call = decoded(_bytes(parameter.get(2)))
    data = _bytes(call.get(4))
    words = data[len(SELECTOR) :]
    transfer = Transfer(
        owner=_bytes(call.get(1))[1:],
        token=_bytes(call.get(2))[1:],
        recipient=words[_WORD - _ADDRESS : _WORD],
        amount=int.from_bytes(words[_WORD : 2 * _WORD]),
        fee_limit=_number(fields.get(18)),
        block=bytes(6) + _bytes(fields.get(1)) + _bytes(fields.get(4)),
        expiration=_number(fields.get(8)),
        timestamp=_number(fields.get(14)),
        operation=words[2 * _WORD :].decode(),
    )
    # The rebuilt bytes must be equal, so that nothing else can be in them.
    if len(words) < 2 * _WORD or transfer.raw != raw:
        raise ValueError("no transfer as we build it")
    return transfer


def _bytes(value: int | bytes | None) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("no transfer as we build it")  # noqa: TRY004 - an error in the bytes, not in the caller's argument
    return value


def _number(value: int | bytes | None) -> int:
    if not isinstance(value, int):
        raise ValueError("no transfer as we build it")  # noqa: TRY004
    return value
