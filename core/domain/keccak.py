"""Keccak-256 of Ethereum and TRON: SHA-3 before its padding was changed, so hashlib's function differs. It hashes only
public data (public keys, addresses, transactions), a few times a second."""

_MASK = (1 << 64) - 1
_RATE = 136
_ROTATIONS = (
    0, 1, 62, 28, 27,
    36, 44, 6, 55, 20,
    3, 10, 43, 25, 39,
    41, 45, 15, 21, 8,
    18, 2, 61, 56, 14,
)  # fmt: skip
"""By position: row after row, five lanes each."""


def keccak256(data: bytes) -> bytes:
    """Return the digest of 32 bytes."""
    return sponge(data, 0x01)


def sponge(data: bytes, suffix: int) -> bytes:
    """Return the digest with another first byte of padding: 6 makes it SHA3-256, which tests can compare with
    hashlib's."""
    padded = bytearray(data + b"\0" * (_RATE - len(data) % _RATE))
    padded[len(data)] ^= suffix
    padded[-1] ^= 0x80
    lanes = [0] * 25
    for begin in range(0, len(padded), _RATE):
        for place in range(_RATE // 8):
            lanes[place] ^= int.from_bytes(padded[begin + 8 * place : begin + 8 * place + 8], "little")
        lanes = _permuted(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def _permuted(lanes: list[int]) -> list[int]:
    for constant in _ROUNDS:
        # The steps theta, rho and pi, then chi and iota, of FIPS 202.
        columns = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20] for x in range(5)]
        mixed = [columns[x - 1] ^ _turned(columns[(x + 1) % 5], 1) for x in range(5)]
        moved = [0] * 25
        for place in range(25):
            x, y = place % 5, place // 5
            moved[y + 5 * ((2 * x + 3 * y) % 5)] = _turned(lanes[place] ^ mixed[x], _ROTATIONS[place])
        for row in range(0, 25, 5):
            for x in range(5):
                lanes[row + x] = moved[row + x] ^ (~moved[row + (x + 1) % 5] & moved[row + (x + 2) % 5])
        lanes[0] ^= constant
    return lanes


def _turned(lane: int, bits: int) -> int:
    return (lane << bits | lane >> (64 - bits)) & _MASK


def _constants() -> list[int]:
    """Return the constants of the 24 rounds: seven bits each, from a shift register."""
    made, register = [], 1
    for _ in range(24):
        constant = 0
        for power in range(7):
            constant |= (register & 1) << ((1 << power) - 1)
            register = register << 1 ^ (0x171 if register & 0x80 else 0)
        made.append(constant)
    return made


_ROUNDS = _constants()
