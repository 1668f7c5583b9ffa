"""Signatures and public points of secp256k1, the curve of TRON and Ethereum.

OpenSSL does every operation on a secret: it reads the key, multiplies by it and signs. Python's integers take time that
depends on their value, so they calculate here with public numbers alone: signatures, digests and public keys. The
service never derives private keys, so no secret is ever added to another (docs/security.md "Code that runs with the
service").
"""

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature

Point = tuple[int, int]
"""Public point of the curve, never the one at infinity."""

SIGNATURE = 65
"""Bytes of a recoverable signature: r, s, and the recovery id."""

_CURVE = ec.SECP256K1()
_P = 2**256 - 2**32 - 977
_N = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
_G = (
    0x79BE667E_F9DCBBAC_55A06295_CE870B07_029BFCDB_2DCE28D9_59F2815B_16F81798,
    0x483ADA77_26A3C465_5DA4FBFC_0E1108A8_FD17B448_A6855419_9C47D08F_FB10D4B8,
)
_KEY_DER = bytes.fromhex("302e0201010420"), bytes.fromhex("a00706052b8104000a")
"""Bytes before and after a key in its DER form (RFC 5915). OpenSSL reads the key from this form, and no Python
integer holds it."""

_Jacobian = tuple[int, int, int]
_INFINITY = (1, 1, 0)


class PrivateKey:
    """Private key inside OpenSSL."""

    def __init__(self, raw: bytes) -> None:
        """Read the 32 bytes of the key. Raises: ValueError for bytes that are no key."""
        self._key = _private(raw)
        self.public = _point(self._key.public_key())

    def sign(self, digest: bytes) -> bytes:
        """Return the recoverable signature of these 32 bytes.

        It is deterministic (RFC 6979), and its s is in the lower half, as Ethereum requires. Raises:
        UnsupportedAlgorithm if OpenSSL is older than 3.2.
        """
        r, s = decode_dss_signature(self._key.sign(digest, _deterministic()))
        s = min(s, _N - s)
        # The point that r was taken from. Computing it again also proves the signature.
        inverse, z = pow(s, -1, _N), int.from_bytes(digest)
        x, y = _sum_of_multiples(z * inverse % _N, r * inverse % _N, self.public)
        if x % _N != r:
            raise ValueError("OpenSSL returned a wrong signature")
        return r.to_bytes(32) + s.to_bytes(32) + bytes(((x >= _N) << 1 | y & 1,))


def can_sign() -> bool:
    """Return whether this OpenSSL makes deterministic signatures: version 3.2 and later do."""
    try:
        _deterministic()
    except UnsupportedAlgorithm:
        return False
    return True


def recover(signature: bytes, digest: bytes) -> Point:
    """Return the public key that signed these 32 bytes. Raises: ValueError for an invalid signature."""
    if len(signature) != SIGNATURE or signature[-1] > 3:
        raise ValueError("a recoverable signature has 65 bytes, the last at most 3")
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:64])
    x = r + _N * (signature[-1] >> 1)
    if not (0 < r < _N and 0 < s < _N and x < _P):
        raise ValueError("a number of the signature is out of range")
    y = pow(x**3 + 7, (_P + 1) // 4, _P)
    if (y * y - x**3 - 7) % _P:
        raise ValueError("the signature names no point of the curve")
    inverse = pow(r, -1, _N)
    point = (x, y if y & 1 == signature[-1] & 1 else _P - y)
    return _sum_of_multiples(-int.from_bytes(digest) * inverse % _N, s * inverse % _N, point)


def read_point(raw: bytes) -> Point:
    """Read a public key in its short or long form. Raises: ValueError for bytes that are no point of the curve."""
    return _point(ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, raw))


def short_form(point: Point) -> bytes:
    """Return the 33 bytes of a public key."""
    return bytes((2 + (point[1] & 1),)) + point[0].to_bytes(32)


def long_form(point: Point) -> bytes:
    """Return the 64 bytes of a public key, from which an address is hashed."""
    return point[0].to_bytes(32) + point[1].to_bytes(32)


def add_multiple(point: Point, factor: bytes) -> Point:
    """Return the point plus `factor` times the generator. OpenSSL multiplies, because the factor may be secret. Raises:
    ValueError for a factor that is no private key, and for a sum at infinity."""
    return _affine(_added((*point, 1), _point(_private(factor).public_key())))


def _private(raw: bytes) -> ec.EllipticCurvePrivateKey:
    if len(raw) != 32:
        raise ValueError("a private key has 32 bytes")
    begin, end = _KEY_DER
    try:
        key = serialization.load_der_private_key(begin + raw + end, None)
    except ValueError:
        raise ValueError("not a private key of the curve") from None
    assert isinstance(key, ec.EllipticCurvePrivateKey)  # noqa: S101 - the form says so
    return key


def _point(key: ec.EllipticCurvePublicKey) -> Point:
    numbers = key.public_numbers()
    return numbers.x, numbers.y


def _deterministic() -> ec.ECDSA:
    return ec.ECDSA(Prehashed(hashes.SHA256()), deterministic_signing=True)


def _sum_of_multiples(a: int, b: int, point: Point) -> Point:
    """Return a times the generator plus b times the point, for public numbers alone: the time tells them. Raises:
    ValueError for a sum at infinity."""
    both = _affine(_added((*_G, 1), point)) if _G[0] != point[0] else None
    total = _INFINITY
    for bit in range(255, -1, -1):
        total = _doubled(total)
        in_a, in_b = a >> bit & 1, b >> bit & 1
        if in_a and in_b and both is not None:
            total = _added(total, both)
            continue
        if in_a:
            total = _added(total, _G)
        if in_b:
            total = _added(total, point)
    return _affine(total)


def _doubled(point: _Jacobian) -> _Jacobian:
    x, y, z = point
    square = y * y % _P
    chord = 4 * x * square % _P
    slope = 3 * x * x % _P
    new_x = (slope * slope - 2 * chord) % _P
    return new_x, (slope * (chord - new_x) - 8 * square * square) % _P, 2 * y * z % _P


def _added(left: _Jacobian, right: Point) -> _Jacobian:
    x, y, z = left
    if z == 0:
        return *right, 1
    z2 = z * z % _P
    width = (right[0] * z2 - x) % _P
    height = (right[1] * z2 * z - y) % _P
    if width == 0:
        return _INFINITY if height else _doubled(left)
    width2 = width * width % _P
    width3 = width2 * width % _P
    chord = x * width2 % _P
    new_x = (height * height - width3 - 2 * chord) % _P
    return new_x, (height * (chord - new_x) - y * width3) % _P, z * width % _P


def _affine(point: _Jacobian) -> Point:
    x, y, z = point
    if z == 0:
        raise ValueError("the sum is at infinity")
    inverse = pow(z, -1, _P)
    inverse2 = inverse * inverse % _P
    return x * inverse2 % _P, y * inverse2 * inverse % _P
