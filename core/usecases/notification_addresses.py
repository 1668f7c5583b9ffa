"""Addresses for providers' notifications. They are created at the first start, are the same for all processes, and are
shown to operators, who can rotate their secrets (docs/operations.md "Notifications of providers")."""

from collections.abc import Collection
from datetime import datetime, timedelta
from hmac import compare_digest
from ipaddress import IPv4Network, IPv6Network
from urllib.parse import quote

import msgspec

from ...ports.bundle import Ports
from ...ports.storage import Between, OneOf, Unit
from ..domain.accounts.accounts import Mode
from ..domain.errors import Refusal
from ..domain.notifications import PATH, SECRET_BYTES, NotificationAddress, rotated
from ..domain.payments.payments import Payment, PaymentStatus
from .common.encrypted import notification_secret_aad, open_notification_secret
from .common.units import retrying
from .gateways.polling import is_backed_up

RECENT = 5.0
"""Seconds within which a process notifications a rotation by another process."""

_ARRIVES_WITHIN = timedelta(minutes=10)
"""Maximum difference between the arrival of a payment's notification and the time of its transfer, by the bank's clock
and ours."""
_NEWEST = 1000
"""Number of paid payments that are checked for banks that never notified."""
_WALKED = 10_000
"""Number of newest payments among which they are looked for."""

_MADE_ALREADY = ("notification_addresses_id",)


class ShownAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Address for one provider's notifications. Its repr hides the secret."""

    adapter: str
    address: str | None
    """None until the service was first started with this adapter."""
    networks: tuple[IPv4Network | IPv6Network, ...]
    """Networks that may send notifications. Empty: any network."""
    received_at: datetime | None = None
    former_until: datetime | None = None
    """End of the validity of the previous address."""

    def __repr__(self) -> str:
        return f"<address of {self.adapter}>"


async def make_addresses(ports: Ports) -> None:
    """Create an address for each adapter that receives notifications, unless it has one. Called at the start of a
    server or worker."""
    async with ports.storage.unit() as unit:
        there = {each.id for each in await _found(unit, ports.notification_networks)}
    for adapter in ports.notification_networks:
        if adapter not in there:
            await retrying(ports.storage, lambda unit, name=adapter: _made(ports, unit, name), again_on=_MADE_ALREADY)  # type: ignore[misc]


async def _made(ports: Ports, unit: Unit, adapter: str) -> NotificationAddress:
    present = await unit[NotificationAddress].get(adapter)
    if present is not None:
        return present
    return unit[NotificationAddress].add(
        NotificationAddress(id=adapter, secret=_new_secret(ports, adapter), created_at=ports.clock.now())
    )


def _new_secret(ports: Ports, adapter: str) -> bytes:
    return ports.vault.encrypt(ports.ids.secret(SECRET_BYTES).encode(), notification_secret_aad(adapter))


async def is_address(ports: Ports, adapter: str, secret: str) -> bool:
    """Return whether this is the secret of the adapter's address, in constant time. Raises: Unavailable; VaultError."""
    record = await ports.storage.recent(NotificationAddress, adapter, within=RECENT)
    if record is None:
        return False
    told, found = secret.encode("utf-8", "surrogatepass"), False
    for sealed in (record.secret, record.former_at(ports.clock.now())):
        if sealed is not None:
            found |= compare_digest(open_notification_secret(ports.vault, adapter, sealed).encode(), told)
    return found


async def list_addresses(ports: Ports) -> list[ShownAddress]:
    """Return the addresses of all adapters that receive notifications, with their secrets. Raises: VaultError."""
    async with ports.storage.unit() as unit:
        records = {each.id: each for each in await _found(unit, ports.notification_networks)}
    return [_shown(ports, adapter, records.get(adapter)) for adapter in ports.notification_networks]


async def rotate_address(ports: Ports, adapter: str) -> ShownAddress:
    """Create a new address for an adapter. The previous one stays valid for a day. Raises: Refusal GATEWAY_NOT_FOUND;
    VaultError."""
    if adapter not in ports.notification_networks:
        raise Refusal("GATEWAY_NOT_FOUND", "No adapter of this name receives notifications")
    secret = _new_secret(ports, adapter)

    async def work(unit: Unit) -> NotificationAddress:
        present = await unit[NotificationAddress].get(adapter)
        if present is None:
            return await _made(ports, unit, adapter)
        return unit[NotificationAddress].save(rotated(present, secret, ports.clock.now()))

    return _shown(ports, adapter, await retrying(ports.storage, work, again_on=_MADE_ALREADY))


async def last_received(ports: Ports) -> dict[str, datetime]:
    """Return the moment of each provider's last notification, for providers that ever sent one."""
    async with ports.storage.unit() as unit:
        found = await _found(unit, ports.notification_networks)
    return {each.id: each.received_at for each in found if each.received_at is not None}


async def silent_banks(ports: Ports) -> dict[str, datetime | None]:
    """Return the live banks with a paid payment but no notification for it or since, with the time of their last
    notification. Probably the address was never entered there, or is no longer the current one. Only the newest paid
    payments are checked."""
    heard, now = await last_received(ports), ports.clock.now()
    expected = [name for name in ports.notification_networks if is_backed_up(ports, name)]
    if not expected:
        return {}
    async with ports.storage.unit() as unit:
        # No index has these statuses, so bound the walk.
        edge = await unit[Payment].find(order="-created_at", offset=_WALKED, limit=1, readable=True)
        paid = await unit[Payment].find(
            status=OneOf((PaymentStatus.PAID, PaymentStatus.SETTLED)),
            created_at=Between(edge[0].created_at if edge else None),
            order="-created_at",
            limit=_NEWEST,
            readable=True,
        )
    silent: dict[str, datetime | None] = {}
    for payment in paid:
        name, came_at = payment.bank, payment.transfer_at
        if name not in expected or payment.mode is not Mode.LIVE or payment.is_charge:
            continue
        if came_at is None or came_at > now - _ARRIVES_WITHIN:
            continue
        last = heard.get(name)
        if last is None or last < came_at - _ARRIVES_WITHIN:
            silent[name] = last
    return silent


async def _found(unit: Unit, adapters: Collection[str]) -> list[NotificationAddress]:
    if not adapters:
        return []
    return await unit[NotificationAddress].find(id=OneOf(tuple(adapters)), limit=len(adapters), readable=True)


def _shown(ports: Ports, adapter: str, record: NotificationAddress | None) -> ShownAddress:
    networks = ports.notification_networks[adapter]
    if record is None:
        return ShownAddress(adapter=adapter, address=None, networks=networks)
    secret = open_notification_secret(ports.vault, adapter, record.secret)
    return ShownAddress(
        adapter=adapter,
        address=f"{ports.urls.base_url}{PATH}{quote(adapter, safe='')}/{secret}",
        networks=networks,
        received_at=record.received_at,
        former_until=record.former_until if record.former_at(ports.clock.now()) else None,
    )
