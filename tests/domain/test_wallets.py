"""Addresses of the EVM have a checksum in the case of their letters, and no wrong letter goes unnoticed for long."""

import pytest

from cambist.core.domain.account_settings import ACCOUNT_SETTINGS
from cambist.core.domain.tron import tron_address
from cambist.core.domain.wallets import is_evm_address, is_nobodys, is_wallet, is_wallet_on
from tests.tables import table

EIP_55 = (
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0xde709f2102306220921060314715629080e2fb77",
)
"""The examples of EIP-55, of which the last two have letters of one case alone."""
TRON = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"


@table("address", EIP_55)
def test_the_examples_of_eip_55(address: str) -> None:
    assert is_evm_address(address)


@table(
    "wrong",
    [
        EIP_55[0].lower(),
        EIP_55[0].replace("a", "A", 1),
        EIP_55[0][:-1],
        EIP_55[0] + "0",
        EIP_55[0][2:],
        f" {EIP_55[0]}",
        EIP_55[0].replace("5", "\u0665", 1),
        TRON,
        "",
    ],
)
def test_address_with_a_wrong_checksum_is_refused(wrong: str) -> None:
    assert not is_evm_address(wrong)


@table(
    ("network", "address", "fits"),
    [
        ("tron", TRON, True),
        ("tron", EIP_55[0], False),
        ("ethereum", EIP_55[0], True),
        ("bsc", EIP_55[0], True),
        ("bsc", TRON, False),
    ],
)
def test_an_address_is_of_its_network(network: str, address: str, fits: bool) -> None:
    assert is_wallet_on(network, address) is fits
    assert is_wallet(address)


def test_an_account_takes_either() -> None:
    read = ACCOUNT_SETTINGS["payout_wallet"].read
    assert (read(TRON), read(EIP_55[0])) == (TRON, EIP_55[0])
    with pytest.raises(ValueError, match="with the right checksum"):
        read(EIP_55[0].lower())


@table(
    "address",
    [
        "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
        "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
        "TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy",
        tron_address(bytes(18) + b"\xde\xad"),
        tron_address(bytes(18) + b"\x01\x00"),
        "0xdAC17F958D2ee523a2206206994597C13D831ec7",
        "0x55d398326f99059fF775485246999027B3197955",
        "0x0000000000000000000000000000000000000000",
        "0x0000000000000000000000000000000000000001",
        "0x000000000000000000000000000000000000dEaD",
        "0xdEAD000000000000000042069420694206942069",
        "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE",
        "0xFFfFfFffFFfffFFfFFfFFFFFffFFFffffFfFFFfF",
    ],
)
def test_an_address_to_which_nobody_has_the_key_is_paid_nothing(address: str) -> None:
    assert is_wallet(address), "its checksum is right"
    assert is_nobodys(address)
    with pytest.raises(ValueError, match="nobody has the key"):
        ACCOUNT_SETTINGS["payout_wallet"].read(address)


@table("address", [*EIP_55, TRON, "", "x", tron_address(bytes(17) + b"\x01\x00\x00")])
def test_any_other_address_may_be_somebodys(address: str) -> None:
    assert not is_nobodys(address)
