"""Facts about a provider that an operator needs before its first payment: credentials, clock, address for
notifications, and capabilities (docs/providers/index.md "Checking a provider")."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from typing import Any

import msgspec

from ....ports.bank import BankCapabilities
from ....ports.bundle import Ports
from ....ports.checking import TellsTime
from ....ports.faults import NotConfigured
from ...domain.accounts.accounts import Mode
from ...domain.errors import Refusal
from ..notification_addresses import ShownAddress, list_addresses, silent_banks
from .provider_checks import BANK, Provider, ProviderCheck, check_provider, providers_of

SKEW_MOST = 30.0
"""Maximum clock skew, in seconds. Providers that check the time refuse requests from about a minute of skew on."""


class Credentials(StrEnum):
    """Result of a credentials check."""

    TAKEN = "taken"
    REFUSED = "refused"
    NO_ANSWER = "no_answer"
    NOT_CHECKED = "not_checked"
    """The provider's adapter has no check."""


class ProviderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a provider that can be found without moving money."""

    port: str
    name: str
    mode: Mode
    credentials: Credentials
    fault: str | None
    """The provider's error message, for operators."""
    clock_skew: float | None
    """Seconds by which the provider's clock is ahead of ours. None when it is unknown."""
    notification_address: str | None
    """Contains a secret. None when the provider sends no notifications, or the service has never been started."""
    notification_networks: Sequence[IPv4Network | IPv6Network]
    received_at: datetime | None
    """Moment of its last notification."""
    is_silent: bool = False
    """Payments were paid there, but no notification has arrived for them or since."""
    can: Sequence[str] = ()
    cannot: Sequence[str] = ()
    limits: Mapping[str, Any] = {}
    """A bank's other capabilities, by name."""

    @property
    def is_well(self) -> bool:
        """Return whether these facts allow a first payment."""
        return self.fault is None and (self.clock_skew is None or abs(self.clock_skew) <= SKEW_MOST)


async def provider_facts(ports: Ports, name: str | None = None) -> list[ProviderFacts]:
    """Return facts about every provider of live mode and every real bank of test mode, or only the providers with this
    name. All are checked at the same time.

    Raises: Refusal GATEWAY_NOT_FOUND for an unknown name; Unavailable; VaultError.
    """
    every = [each for mode in Mode for each in _known(ports, mode)]
    wanted = [each for each in every if name in (None, each.name)]
    if not wanted:
        raise Refusal("GATEWAY_NOT_FOUND", f"No provider has this name; there are: {', '.join(e.name for e in every)}")
    addresses = {each.adapter: each for each in await list_addresses(ports)}
    silent = await silent_banks(ports)
    checked = await asyncio.gather(*(check_provider(ports, each) for each in wanted))
    return [
        _facts(each, said, addresses.get(each.name), is_silent=each.mode is Mode.LIVE and each.name in silent)
        for each, said in zip(wanted, checked, strict=True)
    ]


def _known(ports: Ports, mode: Mode) -> Iterator[Provider]:
    for each in providers_of(ports, mode):
        if mode is Mode.LIVE or (each.port == BANK and not each.adapter.capabilities.simulated):
            yield each


def _facts(provider: Provider, said: ProviderCheck, address: ShownAddress | None, *, is_silent: bool) -> ProviderFacts:
    can, cannot, limits = _abilities(provider.adapter)
    return ProviderFacts(
        port=provider.port,
        name=provider.name,
        mode=provider.mode,
        credentials=_credentials(said),
        fault=None if said.fault is None else str(said.fault),
        clock_skew=provider.adapter.clock_skew if isinstance(provider.adapter, TellsTime) else None,
        notification_address=None if address is None else address.address,
        notification_networks=() if address is None else address.networks,
        received_at=None if address is None else address.received_at,
        is_silent=is_silent,
        can=can,
        cannot=cannot,
        limits=limits,
    )


def _credentials(said: ProviderCheck) -> Credentials:
    if not said.is_checkable:
        return Credentials.NOT_CHECKED
    if said.fault is None:
        return Credentials.TAKEN
    return Credentials.REFUSED if isinstance(said.fault, NotConfigured) else Credentials.NO_ANSWER


def _abilities(adapter: Any) -> tuple[list[str], list[str], dict[str, Any]]:
    """Return a bank's capabilities in three groups: names of the true ones, names of the false ones, and all others
    with their values."""
    capabilities = getattr(adapter, "capabilities", None)
    if not isinstance(capabilities, BankCapabilities):
        return [], [], {}
    said = msgspec.structs.asdict(capabilities)
    can = [name for name, value in said.items() if value is True]
    cannot = [name for name, value in said.items() if value is False]
    limits = {name: value for name, value in said.items() if not isinstance(value, bool) and value is not None}
    return can, cannot, limits
