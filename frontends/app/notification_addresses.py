"""Adapters that receive provider notifications, and the networks they accept, determined when the app is wired
(docs/adapters.md "Notifications")."""

import logging
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso
from ...core.usecases.notification_addresses import ShownAddress, list_addresses, make_addresses, silent_banks
from ...core.usecases.operators.findings import Finding, ok, warning
from ...ports.bundle import Ports
from ...ports.notifications import Notifications
from ..settings.plugins import PluginError, setting_key
from ..settings.readers import read_networks
from ..settings.settings import Settings

Networks = tuple[IPv4Network | IPv6Network, ...]

log = logging.getLogger("cambist.notifications")


def notification_networks(settings: Settings, ports: Ports) -> Mapping[str, Networks]:
    """Return the networks of each adapter that is a Notifications: the operator's, else its own. Raises: PluginError
    for invalid networks of an adapter, or for two adapters with the same name."""
    found: dict[str, Networks] = {}
    for adapter in (*ports.banks.banks.values(), ports.kyc, *ports.former_kyc.values(), ports.register):
        if not isinstance(adapter, Notifications):
            continue
        if adapter.name in found:
            raise PluginError(
                f"two adapters that receive notifications are named {adapter.name!r}: each needs its own address"
            )
        own = settings.notification_networks.get(setting_key(adapter.name))
        found[adapter.name] = _declared(adapter) if own is None else own
    return found


def _declared(adapter: Notifications) -> Networks:
    try:
        return read_networks(list(adapter.notification_networks))
    except (TypeError, ValueError):
        raise PluginError(
            f"the adapter {adapter.name!r} ({type(adapter).__name__}) has no good `notification_networks`: name "
            "networks such as 10.0.0.0/8 or single addresses"
        ) from None


async def begin_receiving(settings: Settings, ports: Ports) -> None:
    """Give each adapter that receives notifications its address when a process begins to serve or work. Log a warning
    for a network restriction of an unknown adapter."""
    await make_addresses(ports)
    known = {setting_key(name) for name in ports.notification_networks}
    for name in sorted(settings.notification_networks.keys() - known):
        log.warning(
            "CAMBIST_%s_NOTIFICATION_NETWORKS restricts nothing: no adapter of this name receives notifications",
            name.upper(),
        )


async def judge_notifications(ports: Ports) -> Finding:
    """Check the notification addresses to enter at providers, and whether providers can reach them."""
    shown = await list_addresses(ports)
    if not shown:
        return ok("no adapter receives notifications of its provider")
    missing = [each.adapter for each in shown if each.address is None]
    if missing:
        return warning(f"notifications have no address yet: {', '.join(missing)}", "start the service: it makes them")
    told = "; ".join(f"{each.adapter} at {each.address} ({_last(each)})" for each in shown)
    own = () if ports.register is None else (ports.register.name,)
    live = {*ports.banks.order.get(Mode.LIVE.value, ()), ports.kyc.name, *ports.former_kyc, *own}
    if live & {each.adapter for each in shown} and not ports.urls.base_url.startswith("https://"):
        return warning(f"notifications are taken: {told}", "providers post to https only: set CAMBIST_BASE_URL")
    silent = await silent_banks(ports)
    if silent:
        since = "; ".join(
            f"{name} never notified" if last is None else f"{name} has not notified since {iso(last)}"
            for name, last in silent.items()
        )
        return warning(
            f"{since}, although payments were paid; they are seen by polling alone. Notifications are taken: {told}",
            "enter the address in the cabinet of the bank, for every shop or terminal that takes payments there",
        )
    return ok(f"notifications are taken: {told}")


def _last(shown: ShownAddress) -> str:
    return "never heard" if shown.received_at is None else f"last heard {iso(shown.received_at)}"
