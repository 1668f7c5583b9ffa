"""Addresses that USDT are sent to, by the network: a wrong letter would send them where nobody can fetch them back, so
an address is checked where it is written down, and again before something is sent to it."""

import re

from .keccak import keccak256
from .tron import is_tron_address

_EVM = re.compile(r"0x[0-9a-fA-F]{40}\Z")
TRON = "tron"


def is_evm_address(text: str) -> bool:
    """Whether `text` is an address of Ethereum or BNB Smart Chain with its checksum (EIP-55), which is in the case of
    its letters. One in lower case alone has none, and is refused."""
    if not _EVM.match(text):
        return False
    marks = keccak256(text[2:].lower().encode()).hex()
    return all(
        digit == (digit.upper() if int(mark, 16) > 7 else digit.lower())
        for digit, mark in zip(text[2:], marks, strict=False)
    )


def is_wallet_on(network: str, text: str) -> bool:
    """Whether `text` is an address of the network (`ports/chain.py: Network`)."""
    return is_tron_address(text) if network == TRON else is_evm_address(text)


def is_wallet(text: str) -> bool:
    """Whether `text` is an address of some network that pays out."""
    return is_tron_address(text) or is_evm_address(text)
