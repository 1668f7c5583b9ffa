"""Addresses for USDT, by network. A wrong letter would send USDT where nobody can recover it, so an address is checked
when it is entered, and again before something is sent to it."""

import re

from .keccak import keccak256
from .tron import is_tron_address, tron_payload

_EVM = re.compile(r"0x[0-9a-fA-F]{40}\Z")
TRON = "tron"
NOBODYS = "must not be USDT's own contract, or an address to which nobody has the key"
_RESERVED = 1 << 16
"""Lower numbers are contracts of the networks themselves, and zero."""
_KEYLESS = frozenset(
    bytes.fromhex(each)
    for each in (
        "a614f803b6fd780986a42c78ec9c7f77e6ded13c",  # USDT on TRON: TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t
        "dac17f958d2ee523a2206206994597c13d831ec7",  # USDT on Ethereum
        "55d398326f99059ff775485246999027b3197955",  # USDT on BNB Smart Chain
        "77944d19c052b73ee2286823aa83f8138cb7032f",  # TRON's black hole: TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy
        "000000000000000000000000000000000000dead",
        "dead000000000000000000000000000000000000",
        "dead000000000000000042069420694206942069",
        "deaddeaddeaddeaddeaddeaddeaddeaddeaddead",
        "ffffffffffffffffffffffffffffffffffffffff",
        "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",  # placeholder of some programs for the network's own coin
    )
)
"""For all networks: an address belongs to the same key on each."""


def is_evm_address(text: str) -> bool:
    """Return whether `text` is an address of Ethereum or BNB Smart Chain with its checksum (EIP-55), which is the case
    of its letters. An address in lower case only has no checksum, and is refused."""
    if not _EVM.match(text):
        return False
    marks = keccak256(text[2:].lower().encode()).hex()
    return all(
        digit == (digit.upper() if int(mark, 16) > 7 else digit.lower())
        for digit, mark in zip(text[2:], marks, strict=False)
    )


def is_wallet_on(network: str, text: str) -> bool:
    """Return whether `text` is an address of the network (`ports/chain.py: Network`)."""
    return is_tron_address(text) if network == TRON else is_evm_address(text)


def is_wallet(text: str) -> bool:
    """Return whether `text` is an address of any network that supports payouts."""
    return is_tron_address(text) or is_evm_address(text)


def is_nobodys(text: str) -> bool:
    """Return whether USDT sent to this address are lost: the token's contract, zero, and known burn addresses. False
    for an invalid address."""
    payload = bytes.fromhex(text[2:]) if _EVM.match(text) else tron_payload(text)
    return payload is not None and (payload in _KEYLESS or int.from_bytes(payload) < _RESERVED)
