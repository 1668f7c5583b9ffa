"""Signatures and points match published vectors and two independent implementations: libsecp256k1 and bip-utils."""

from hashlib import sha256
from typing import Any

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.deposits.derived import AccountKey
from cambist.adapters.nodes.secp256k1 import PrivateKey, add_multiple, long_form, read_point, recover, short_form
from cambist.adapters.payouts.signer import KeySigner, signer_is
from cambist.ports.faults import NotConfigured
from tests.tables import table

N = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
P = 2**256 - 2**32 - 977

KEYS = (st.sampled_from([1, 2, 3, N - 2, N - 1]) | st.integers(1, N - 1)).map(lambda number: number.to_bytes(32))
"""Private keys, often those whose points are the generator's neighbours."""
WORDS = st.sampled_from([bytes(32), b"\xff" * 32, N.to_bytes(32)]) | st.binary(min_size=32, max_size=32)
"""Any 32 bytes, often the edges."""


class TestSigning:
    @table(
        ("key", "message", "signature"),
        [
            (
                1,
                "Satoshi Nakamoto",
                "934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d8"
                "2442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5",
            ),
            (
                1,
                "All those moments will be lost in time, like tears in rain. Time to die...",
                "8600dbd41e348fe5c9465ab92d23e3db8b98b873beecd930736488696438cb6b"
                "547fe64427496db33bf66019dacbf0039c04199abb0122918601db38a72cfc21",
            ),
            (
                N - 1,
                "Satoshi Nakamoto",
                "fd567d121db66e382991534ada77a6bd3106f0a1098c231e47993447cd6af2d0"
                "6b39cd0eb1bc8603e159ef5c20a5c8ad685a45b06ce9bebed3f153d10d93bed5",
            ),
        ],
    )
    def test_signature_matches_published_vectors(self, key: int, message: str, signature: str) -> None:
        """The vectors that Bitcoin's libraries share for RFC 6979 on this curve."""
        private, digest = PrivateKey(key.to_bytes(32)), sha256(message.encode()).digest()
        made = private.sign(digest)
        assert made[:64].hex() == signature
        assert recover(made, digest) == private.public

    @table("number", [0, N, N + 1, 2**256 - 1])
    def test_number_outside_the_order_is_no_key(self, number: int) -> None:
        with pytest.raises(ValueError, match="no") as raised:
            PrivateKey(number.to_bytes(32))
        assert number.to_bytes(32).hex() not in str(raised.value)

    @table("size", [0, 31, 33])
    def test_key_of_another_length_is_refused(self, size: int) -> None:
        with pytest.raises(ValueError, match="32 bytes"):
            PrivateKey(b"\1" * size)

    def test_old_openssl_is_reported_when_the_key_is_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def unsupported(*_: Any, **__: Any) -> None:
            raise UnsupportedAlgorithm("RFC 6979")

        monkeypatch.setattr(ec, "ECDSA", unsupported)
        with pytest.raises(NotConfigured, match=r"OpenSSL 3\.2"):
            KeySigner("1" * 64)

    def test_wrong_signature_of_openssl_is_not_returned(self, monkeypatch: pytest.MonkeyPatch) -> None:
        key = PrivateKey(b"\1" * 32)
        monkeypatch.setattr(key, "_key", PrivateKey(b"\2" * 32)._key)
        with pytest.raises(ValueError, match="wrong signature"):
            key.sign(bytes(32))


class TestRecovery:
    DIGEST = bytes(range(32))

    @table(
        ("r", "s", "number"),
        [
            (0, 1, 0),
            (1, 0, 0),
            (N, 1, 0),
            (1, N, 0),
            (1, 1, 4),
            (5, 1, 0),  # 5 is the x of no point
            (P - N, 1, 2),  # r plus the order is no x
            (N - 1, 1, 3),
        ],
    )
    def test_impossible_signature_is_a_value_error(self, r: int, s: int, number: int) -> None:
        with pytest.raises(ValueError, match="sign"):
            recover(r.to_bytes(32) + s.to_bytes(32) + bytes((number,)), self.DIGEST)

    def test_key_at_infinity_is_a_value_error(self) -> None:
        """With r the generator's x, and s the digest, both multiples cancel."""
        r = PrivateKey((1).to_bytes(32)).public[0]
        with pytest.raises(ValueError, match="infinity"):
            recover(r.to_bytes(32) + self.DIGEST + b"\0", self.DIGEST)

    @given(st.binary(max_size=70), st.binary(min_size=32, max_size=32))
    def test_arbitrary_bytes_sign_nothing(self, signature: bytes, digest: bytes) -> None:
        assert not signer_is(b"\1" * 20, signature, digest)


class TestPoints:
    @table("raw", [b"", b"\0", b"\2" + b"\xff" * 32, b"\4" + b"\1" * 64, b"\5" * 33, b"\2" * 32])
    def test_bytes_off_the_curve_are_refused(self, raw: bytes) -> None:
        with pytest.raises(ValueError):  # noqa: PT011 - OpenSSL's words
            read_point(raw)

    def test_point_plus_its_opposite_is_a_value_error(self) -> None:
        point = PrivateKey((N - 7).to_bytes(32)).public
        with pytest.raises(ValueError, match="infinity"):
            add_multiple(point, (7).to_bytes(32))


class TestOracles:
    """Python 3.14 has no wheels of these libraries; older versions prove the same code."""

    @given(KEYS, WORDS)
    def test_signing_and_recovery_match_libsecp256k1(self, raw: bytes, digest: bytes) -> None:
        coincurve = pytest.importorskip("coincurve")
        ours, theirs = PrivateKey(raw), coincurve.PrivateKey(raw)
        signature = ours.sign(digest)
        assert signature == theirs.sign_recoverable(digest, hasher=None)
        assert short_form(recover(signature, digest)) == theirs.public_key.format() == short_form(ours.public)
        assert b"\4" + long_form(ours.public) == theirs.public_key.format(compressed=False)

    @given(WORDS, WORDS, st.integers(0, 3), WORDS)
    def test_key_of_any_signature_matches_libsecp256k1(self, r: bytes, s: bytes, number: int, digest: bytes) -> None:
        coincurve = pytest.importorskip("coincurve")
        signature = r + s + bytes((number,))
        try:
            found = short_form(recover(signature, digest))
        except ValueError:
            found = None
        try:
            expected = coincurve.PublicKey.from_signature_and_message(signature, digest, hasher=None).format()
        except Exception:  # noqa: BLE001 - libsecp256k1's binding raises several
            expected = None
        assert found == expected

    @given(KEYS, KEYS)
    def test_sum_of_points_matches_libsecp256k1(self, raw: bytes, factor: bytes) -> None:
        coincurve = pytest.importorskip("coincurve")
        point = PrivateKey(raw).public
        assert read_point(short_form(point)) == read_point(b"\4" + long_form(point)) == point
        try:
            found = short_form(add_multiple(point, factor))
        except ValueError:
            found = None
        try:
            expected = coincurve.PrivateKey(raw).public_key.add(factor).format()
        except ValueError:
            expected = None
        assert found == expected

    @given(st.binary(min_size=16, max_size=64), st.integers(0, 2**31 - 1))
    def test_deposit_address_matches_bip_utils(self, seed: bytes, number: int) -> None:
        bip = pytest.importorskip("bip_utils")
        account = bip.Bip32Slip10Secp256k1.FromSeed(seed).DerivePath("m/44'/195'/0'")
        child = account.DerivePath(f"0/{number}").PublicKey().KeyObject()
        expected = bip.EthAddrEncoder.EncodeKey(child)
        ours = AccountKey(account.PublicKey().ToExtended()).payload(number)
        assert f"0x{ours.hex()}" == expected.lower()
