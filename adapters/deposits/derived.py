"""Addresses of a wallet that the service can count up and not spend from: BIP32 of an account's extended public key
(docs/providers/chains.md "Addresses")."""

import hmac

from coincurve import PublicKey

from ...core.domain.keccak import keccak256
from ...ports.faults import NotConfigured
from ..nodes.spelling import read_base58check

_PUBLIC, _PRIVATE = bytes.fromhex("0488b21e"), bytes.fromhex("0488ade4")
_LENGTH = 78
_ACCOUNT_DEPTH = 3
"""m / purpose' / coin' / account'."""
_EXTERNAL = 0
"""The chain of addresses that are shown to others."""
_HARDENED = 1 << 31


class AccountKey:
    """An account's extended public key. Its repr hides it: with one private key of a single address it gives all."""

    def __init__(self, text: str) -> None:
        """`text`: the xpub. Raises: NotConfigured, which says what it is instead and does not quote it."""
        try:
            raw = read_base58check(text.strip())
        except ValueError:
            raise NotConfigured("the xpub has a wrong letter: its checksum does not fit") from None
        if raw.startswith(_PRIVATE):
            raise NotConfigured("it is a private key, which must not lie on a server: export the account's xpub")
        if not raw.startswith(_PUBLIC) or len(raw) != _LENGTH:
            raise NotConfigured("it is no xpub")
        child = int.from_bytes(raw[9:13])
        if raw[4] != _ACCOUNT_DEPTH or child < _HARDENED:
            raise NotConfigured(f"it is no xpub of an account (m/44'/195'/0'): its depth is {raw[4]}")
        try:
            point = PublicKey(raw[45:])
            self._point, self._code = _child(point, raw[13:45], _EXTERNAL)
        except ValueError:
            raise NotConfigured("it is no xpub: its key is no point of the curve") from None

    def __repr__(self) -> str:
        return "<AccountKey>"

    def payload(self, number: int) -> bytes:
        """The 20 bytes of the address with this number, from 0 on. Raises: ValueError for one that there is not."""
        if not 0 <= number < _HARDENED:
            raise ValueError("no such address")
        point, _ = _child(self._point, self._code, number)
        return keccak256(point.format(compressed=False)[1:])[-20:]

    def fingerprint(self) -> str:
        """What tells the key from another one and gives nothing of it away."""
        return keccak256(self._point.format() + self._code).hex()[:8]


def _child(point: PublicKey, code: bytes, number: int) -> tuple[PublicKey, bytes]:
    """CKDpub. Raises: ValueError where there is no such key: of one in 2 to the 127."""
    digest = hmac.digest(code, point.format() + number.to_bytes(4), "sha512")
    return point.add(digest[:32]), digest[32:]
