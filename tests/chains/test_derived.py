"""Addresses from an account's extended public key: they match those of wallets, and no other text passes for a key."""

import hashlib
import random

import pytest

from cambist.adapters.deposits.derived import AccountKey, _child
from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.secp256k1 import read_point, short_form
from cambist.adapters.nodes.spelling import EVM, TRON, Spelling, base58check, read_base58check
from cambist.core.domain.keccak import keccak256, sponge
from cambist.core.domain.tron import is_tron_address, tron_address
from cambist.ports.chain import Network
from cambist.ports.faults import NotConfigured
from tests.chains.harnesses import XPUB
from tests.tables import table

# BIP32, test vector 1: m/0' and m/0'/1.
_PARENT = (
    "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw"
)
_CHILD = (
    "xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ"
)


def remade(version: str = "0488b21e", depth: int = 3, child: int = 1 << 31, key: bytes | None = None) -> str:
    """The xpub with one part of it changed, and a checksum that fits."""
    raw = read_base58check(XPUB)
    return base58check(
        bytes.fromhex(version) + bytes([depth]) + raw[5:9] + child.to_bytes(4) + raw[13:45] + (key or raw[45:])
    )


class TestAccountKey:
    def test_addresses_are_the_wallets(self) -> None:
        """m/44'/195'/0'/0/0 and /1 of the words of all test wallets, as a TRON wallet shows them."""
        key = AccountKey(XPUB)
        assert [TRON.write(key.payload(number)) for number in (0, 1)] == [
            "TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6",
            "TPjjvMwjPoDC32V2dGDYTkLH4E5LAtBZ6C",
        ]

    def test_a_child_is_the_one_of_the_standard(self) -> None:
        parent, child = read_base58check(_PARENT), read_base58check(_CHILD)
        point, code = _child(read_point(parent[45:]), parent[13:45], 1)
        assert (short_form(point), code) == (child[45:], child[13:45])

    @table(
        ("text", "why"),
        [
            ("", "checksum"),
            (XPUB[:-1] + "s", "checksum"),
            ("0x" + "ab" * 20, "checksum"),
            (remade(version="0488ade4"), "private key"),
            (remade(version="043587cf"), "no xpub"),  # a test network's key
            (remade(depth=4), "depth is 4"),
            (remade(depth=0), "depth is 0"),
            (remade(child=0), "depth is 3"),  # not hardened: the key belongs to no account
            (remade(key=b"\2" + b"\xff" * 32), "no point"),
            ("x" * 100_000, "checksum"),
        ],
    )
    def test_invalid_account_public_key_is_refused(self, text: str, why: str) -> None:
        with pytest.raises(NotConfigured, match=why) as raised:
            AccountKey(text)
        assert not text or text not in str(raised.value), "a key that stands in the wrong place is quoted"

    def test_account_key_is_not_shown_in_its_repr(self) -> None:
        assert XPUB not in repr(AccountKey(XPUB))

    @table("number", [-1, 1 << 31])
    def test_there_is_no_address_beyond_the_numbers(self, number: int) -> None:
        with pytest.raises(ValueError, match="no such"):
            AccountKey(XPUB).payload(number)


class TestKeccak:
    def test_keccak_is_the_one_before_the_standard(self) -> None:
        empty = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
        assert keccak256(b"").hex() == empty

    @table("size", [0, 1, 135, 136, 137, 272, 300])
    def test_but_for_its_padding_it_is_sha3(self, size: int) -> None:
        data = random.Random(size).randbytes(size)
        assert sponge(data, 6) == hashlib.sha3_256(data).digest()


class TestSpelling:
    def test_tron_is_spelled_as_the_core_reads_it(self) -> None:
        payload = bytes.fromhex(CHAINS[Network.TRON].usdt[2:])
        assert TRON.write(payload) == tron_address(payload) == "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
        assert TRON.read(TRON.write(payload)) == payload
        assert is_tron_address(TRON.write(payload))

    def test_evm_addresses_have_their_checksum_in_the_case(self) -> None:
        payload = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
        assert EVM.write(payload) == "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
        assert EVM.read(EVM.write(payload)) == EVM.read(EVM.write(payload).lower()) == payload

    @table(
        ("spelling", "text"),
        [
            (EVM, "0xf39fd6e51aad88F6F4ce6aB8827279cffFb92266"),
            (EVM, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb9226"),
            (EVM, "f39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
            (TRON, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6T"),
            (TRON, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6"),
            (TRON, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"),
            (TRON, "T" * 34),
            (TRON, "Тест"),
        ],
    )
    def test_a_wrong_letter_is_found(self, spelling: Spelling, text: str) -> None:
        with pytest.raises(ValueError):  # noqa: PT011 - whichever of the rules it breaks
            spelling.read(text)


class TestUnits:
    @table(
        ("network", "amount", "units"),
        [
            (Network.TRON, 490_000_000, 490_00000000),
            (Network.ETHEREUM, 1, 100),
            (Network.BSC, 490 * 10**18, 490_00000000),
            (Network.BSC, 10**10, 1),
            (Network.BSC, 10**10 - 1, 0),
        ],
    )
    def test_each_network_counts_in_its_own_decimals(self, network: Network, amount: int, units: int) -> None:
        assert CHAINS[network].units(amount) == units
