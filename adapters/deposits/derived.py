"""Addresses of a wallet that the service can derive and not spend from:

BIP32 of an account's extended public key (docs/providers/chains.md "Addresses").
"""

import hmac

from ...core.domain.keccak import keccak256
from ...ports.faults import NotConfigured
from ..nodes.secp256k1 import Point, add_multiple, long_form, read_point, short_form
from ..nodes.spelling import read_base58check

_PUBLIC, _PRIVATE = bytes.fromhex("0488b21e"), bytes.fromhex("0488ade4")
_LENGTH = 78
_ACCOUNT_DEPTH = 3
"""m / purpose' / coin' / account'."""
_EXTERNAL = 0
"""Number of the chain of addresses for receiving."""
_HARDENED = 1 << 31


class AccountKey:
    """Extended public key of an account.

    Its repr hides it, because together with one address's private key it reveals all others.
    """

    def __init__(self, text: str) -> None:
        """Read the xpub. Raises: NotConfigured, which describes the text and does not quote it."""
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
            point = read_point(raw[45:])
            self._point, self._code = _child(point, raw[13:45], _EXTERNAL)
        except ValueError:
            raise NotConfigured("it is no xpub: its key is no point of the curve") from None

    def __repr__(self) -> str:
        return "<AccountKey>"

    def payload(self, number: int) -> bytes:
        """Return the 20 bytes of the address with this number, from 0.

        Raises: ValueError for a number that has no key.
        """
        if not 0 <= number < _HARDENED:
            raise ValueError("no such address")
        point, _ = _child(self._point, self._code, number)
        return keccak256(long_form(point))[-20:]

    def fingerprint(self) -> str:
        """Fingerprint that tells the key from others without revealing it."""
        return keccak256(short_form(self._point) + self._code).hex()[:8]


def _child(point: Point, code: bytes, number: int) -> tuple[Point, bytes]:
    """Derive a child key (CKDpub). Raises: ValueError if there is none, which happens for one key in 2 to the 127."""
    digest = hmac.digest(code, short_form(point) + number.to_bytes(4), "sha512")
    return add_multiple(point, digest[:32]), digest[32:]
