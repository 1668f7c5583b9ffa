"""Check of every live provider for valid credentials, when a process starts and in `cambist doctor` (docs/adapters.md
"When the provider fails")."""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from ....ports.bundle import Ports
from ....ports.checking import Checkable, CountsSources, Shortage
from ....ports.faults import NO_ANSWER, NotConfigured, Unavailable
from ....ports.files import UploadReceiver
from ...domain.accounts.accounts import Mode
from ..gateways.watch import watched

T = TypeVar("T")

LIMIT = 8.0
"""Timeout of one provider's answer, in seconds. It is shorter than the timeout of a check in `cambist doctor`."""

BANK = "bank"

_ONE_OF_A_MODE: Mapping[str, str] = {"payouts": "senders", "deposits": "deposits"}
"""Field of `Ports` that holds the one adapter of a mode, by port."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter and its port."""

    port: str
    name: str
    mode: Mode
    adapter: Any


class ProviderCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a provider's check. `is_checkable` is False when its adapter has no `check`."""

    port: str
    name: str
    is_checkable: bool = True
    fault: Exception | None = None

    def __str__(self) -> str:
        return f"{self.port} {self.name}"


async def check_providers(ports: Ports) -> list[ProviderCheck]:
    """Check every provider of live mode, all at the same time. A bank that refuses our credentials is down from then on
    (docs/webhooks.md "Gateways")."""
    return list(await asyncio.gather(*(check_provider(ports, each) for each in providers_of(ports, Mode.LIVE))))


def providers_of(ports: Ports, mode: Mode) -> Iterator[Provider]:
    """Return the providers of a mode. A provider that both modes share belongs to live mode, because test mode never
    calls it."""
    for port, adapter in _adapters(ports, mode):
        yield Provider(port=port, name=str(getattr(adapter, "name", port)), mode=mode, adapter=adapter)


def _adapters(ports: Ports, mode: Mode) -> Iterator[tuple[str, Any]]:
    yield from ((BANK, bank) for bank in ports.banks.of_mode(mode.value))
    for port, of_mode in _ONE_OF_A_MODE.items():
        try:
            yield port, getattr(ports, of_mode).of_mode(mode.value)
        except NotConfigured:
            continue
    yield from (("rates", source) for source in ports.rates.of_mode(mode.value))
    if mode is Mode.TEST:
        return
    yield from (("kyc", verifier) for verifier in (ports.kyc, *ports.former_kyc.values()))
    yield "chain", ports.chain
    if ports.register is not None:
        yield "receipts", ports.register
    if not isinstance(ports.files, UploadReceiver):
        yield "files", ports.files
    yield from (("alarms", channel) for channel in ports.alarms.channels.values())
    if ports.messenger is not None:
        yield "messenger", ports.messenger


async def check_provider(ports: Ports, provider: Provider) -> ProviderCheck:
    """Check one provider. A bank's answer affects the state of its gateway."""
    port, name, adapter = provider.port, provider.name, provider.adapter
    if not isinstance(adapter, Checkable):
        return ProviderCheck(port=port, name=name, is_checkable=False)
    try:
        if port == BANK:
            async with watched(ports, provider.mode, name, invoices=True):
                await _in_time(ports, adapter.check())
        else:
            await _in_time(ports, adapter.check())
    except NO_ANSWER as fault:
        return ProviderCheck(port=port, name=name, fault=fault)
    return ProviderCheck(port=port, name=name)


async def shortages(ports: Ports) -> list[Shortage]:
    """Return live providers that get answers from too few sources, such as nodes of a network, each once. All are
    checked at the same time. Raises: Unavailable when a provider does not answer in time."""
    adapters = [each.adapter for each in providers_of(ports, Mode.LIVE) if isinstance(each.adapter, CountsSources)]
    found = await asyncio.gather(*(_in_time(ports, adapter.shortages()) for adapter in adapters))
    return list({shortage.of: shortage for each in found for shortage in each}.values())


async def _in_time(ports: Ports, answer: Awaitable[T]) -> T:
    asking, late = asyncio.ensure_future(answer), asyncio.ensure_future(ports.clock.sleep(LIMIT))
    try:
        await asyncio.wait((asking, late), return_when=asyncio.FIRST_COMPLETED)
    finally:
        late.cancel()
        if not asking.done():
            asking.cancel()
    if asking.cancelled() or not asking.done():
        raise Unavailable(f"no answer within {LIMIT:.0f} s")
    return await asking
