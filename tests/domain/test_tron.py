"""TRON addresses are base58check, and every single wrong letter is noticed, because a transfer cannot be fetched
back."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.tron import is_tron_address, tron_address
from tests.tables import table

USDT = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
"""The contract of USDT on TRON, as its issuer publishes it."""

PAYLOADS = st.binary(min_size=20, max_size=20)


@table(
    ("payload", "address"),
    [
        ("a614f803b6fd780986a42c78ec9c7f77e6ded13c", USDT),
        ("00" * 20, "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"),
    ],
)
def test_published_addresses(payload: str, address: str) -> None:
    """The first from the issuer of USDT; the second is the address that TRON's explorers call the black hole."""
    assert is_tron_address(address)
    assert tron_address(bytes.fromhex(payload)) == address


@given(PAYLOADS)
def test_every_20_bytes_make_an_address_of_34_letters(payload: bytes) -> None:
    address = tron_address(payload)
    assert is_tron_address(address)
    assert (len(address), address[0]) == (34, "T")


@given(PAYLOADS, PAYLOADS)
def test_different_bytes_make_different_addresses(one: bytes, other: bytes) -> None:
    assert (tron_address(one) == tron_address(other)) is (one == other)


@given(PAYLOADS, st.integers(0, 33))
def test_every_change_of_one_letter_is_refused(payload: bytes, place: int) -> None:
    address = tron_address(payload)
    for letter in string.printable:
        changed = address[:place] + letter + address[place + 1 :]
        assert is_tron_address(changed) is (changed == address)


@given(PAYLOADS, st.integers(0, 32))
def test_two_neighbours_swapped_are_refused(payload: bytes, place: int) -> None:
    address = tron_address(payload)
    changed = address[:place] + address[place + 1] + address[place] + address[place + 2 :]
    assert is_tron_address(changed) is (changed == address)


@given(st.text())
def test_no_text_is_too_odd_to_be_asked_about(text: str) -> None:
    assert is_tron_address(text) is False


@table(
    "text",
    [
        "",
        USDT[:-1],
        USDT + "t",
        "1" + USDT,
        f" {USDT}",
        f"{USDT}\n",
        USDT.lower(),
        USDT.upper(),
        "z" * 34,
        "1" * 34,
        "T" + "1" * 33,
        "41a614f803b6fd780986a42c78ec9c7f77e6ded13c",
        "0xa614f803b6fd780986a42c78ec9c7f77e6ded13c",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "Т" + USDT[1:],
    ],
    ids=ascii,
)
def test_malformed_address_is_refused(text: str) -> None:
    """Cut, padded, in another case or form, of another chain (a Bitcoin address of 34 letters), a Cyrillic letter."""
    assert not is_tron_address(text)


@table("size", [0, 19, 21, 32])
def test_an_address_is_made_of_20_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="20 bytes"):
        tron_address(bytes(size))
