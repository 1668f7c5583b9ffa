"""Gateways: status, recent answers of the bank, and setting the status by hand."""

from datetime import UTC, datetime
from typing import Any

from ....core.domain.accounts.accounts import Mode
from ....core.domain.gateways.gateways import BY_HAND, GatewayReason, GatewayStatus
from ....core.domain.gateways.health import Minute
from ....core.usecases.browse.gateways import KnownGateway, known_gateways
from ....core.usecases.browse.timeline import Moment, read_actions
from ....core.usecases.gateways.gateways import read_reason, read_status, set_gateway
from ....ports.bundle import Ports
from ..columns import Column
from ..texts import moment
from .kinds import MODE, Change, ConsoleAction, Doing, Entry, Kind, Wish

_MINUTE = 60


async def _read(ports: Ports, wish: Wish, after: KnownGateway | None, limit: int) -> list[KnownGateway]:
    """Return all gateways as the first page, because there are few."""
    mode = wish.of("mode")
    return [] if after is not None else (await known_gateways(ports, None if mode is None else Mode(mode)))[:limit]


async def _get(ports: Ports, gateway_id: str) -> KnownGateway | None:
    return next((each for each in await known_gateways(ports) if each.id == gateway_id), None)


def _health(each: KnownGateway) -> str:
    """Return the number of faults and calls in the recorded minutes."""
    faults = sum(minute.errors + minute.timeouts for minute in each.health)
    return f"{faults} faults of {sum(minute.calls for minute in each.health)} calls" if faults else "no faults"


def _short_health(each: KnownGateway) -> str:
    faults = sum(minute.errors + minute.timeouts for minute in each.health)
    return f"{faults}/{sum(minute.calls for minute in each.health)} faults" if faults else "no faults"


def _takes(each: KnownGateway) -> str:
    if not each.gateway.takes_payments:
        return "none"
    return "a few, to see whether it is back" if each.gateway.status is GatewayStatus.DOWN else "all"


def _facts(each: KnownGateway) -> list[tuple[str, Any]]:
    gateway = each.gateway
    return [
        ("status", gateway.status),
        ("reason", gateway.reason),
        ("since", gateway.since),
        ("takes payments", _takes(each)),
        ("receivers know", gateway.announced),
        ("health", _health(each)),
        ("last notification", each.last_notification),
        ("pays to", _pays_to(each)),
        ("place", f"{each.rank} of its mode"),
        ("mode", each.mode),
        ("gateway", each.id),
    ]


def _pays_to(each: KnownGateway) -> str | None:
    return None if each.members is None else f"{len(each.members.banks)} banks, listed {moment(each.members.read_at)}"


def _minute(each: Minute) -> Moment:
    return Moment(
        at=datetime.fromtimestamp(each.number * _MINUTE, UTC),
        source="provider",
        text=f"{each.calls} calls: {each.errors} errors, {each.timeouts} timeouts",
    )


async def _timeline(ports: Ports, each: KnownGateway) -> list[Moment]:
    """Return the recent minutes with faults, the last status change, and operator actions."""
    async with ports.storage.snapshot() as seen:
        found = [*map(_minute, each.health), *await read_actions(seen, each.id)]
    if each.gateway.since is not None:
        found.append(Moment(at=each.gateway.since, source="object", text=f"became {each.gateway.status}"))
    return sorted(found, key=lambda moment: moment.at)


async def _set(doing: Doing) -> str:
    reason = read_reason(doing.given["why"])
    done = await set_gateway(doing.ports, doing.record.id, read_status(doing.given["status"]), reason)
    return f"It is {done.status}; merchants are told once that has held for a minute."


def _present(each: KnownGateway) -> str:
    return each.gateway.status.value if each.gateway.reason is None else f"{each.gateway.status}: {each.gateway.reason}"


GATEWAYS = Kind(
    name="gateway",
    title="Gateways",
    key="G",
    columns=(
        Column(title="gateway", cell=lambda each: each.id, width=18),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="status", cell=lambda each: each.gateway.status, width=11),
        Column(title="reason", cell=lambda each: each.gateway.reason, width=16),
        Column(title="health", cell=_short_health, width=16),
        Column(title="since", cell=lambda each: each.gateway.since, width=19, wide=True),
        Column(title="takes payments", cell=_takes, width=32, wide=True),
        Column(title="place", cell=lambda each: each.rank, width=5, right=True, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE,),
    orders=("as payments try them",),
    timeline=_timeline,
    actions=(
        ConsoleAction(
            name="gateway.set",
            title="Set status",
            key="s",
            entries=(
                Entry(
                    name="status",
                    label="Status",
                    choices=tuple(GatewayStatus),
                    default=GatewayStatus.DOWN,
                ),
                Entry(name="why", label="For merchants", choices=tuple(BY_HAND), default=GatewayReason.OPERATOR),
            ),
            changes=lambda each: [
                Change("status", _present(each), "as chosen below"),
                Change("new payments", _takes(each), "none, once down"),
            ],
            follows=lambda each, given: [
                Change("status", _present(each), given["status"]),
                Change("new payments", _takes(each), "none" if given["status"] == GatewayStatus.DOWN else "all"),
            ],
            run=_set,
        ),
    ),
)
