"""Faults of processes, database, banks and receivers, by the plan (plan.py: Blow)."""

from typing import TYPE_CHECKING

from tests.simulation.damage import TABLES
from tests.simulation.plan import Blow, Problem

if TYPE_CHECKING:
    from tests.simulation.processes import Process
    from tests.simulation.strands import Strand
    from tests.simulation.world import World


def strike(world: "World", blow: Blow) -> None:
    """Cause the problem."""
    world.trace.tell(f"{blow.kind.value} {blow.whom} {blow.seconds:+.3f} s")
    process, network = world.processes.get(blow.whom), world.network
    is_victims = blow.kind is Problem.ROW_DAMAGED and world.plan.victim is not None
    if blow.kind not in _OTHERS_GO_ON and not is_victims:
        world.vigil.troubled(_planned_late(world, process) if blow.kind is Problem.SET_CLOCK else abs(blow.seconds))
    match blow.kind:
        case Problem.CRASH if process is not None and process.strand is not None:
            process.restarts_after = blow.seconds
            process.strand.fuse, process.strand.on_fuse = blow.steps + 1, process.crash
            if world.parts is not None:
                world.parts(world, process)
        case Problem.STOP if process is not None and process.strand is not None:
            _stop(world, process, process.strand, blow)
        case Problem.SET_CLOCK if world.plan.machine:
            world.database_clock.skew += blow.seconds
            for each in world.processes.values():
                _set(each, blow.seconds)
        case Problem.SET_CLOCK if process is not None:
            _set(process, blow.seconds)
        case Problem.CLAIM_BREAKS:
            network.garbled.add(blow.whom)
        case Problem.SIGNER_STOPS:
            network.signing_stops.append(blow.seconds)
        case Problem.EVENT_SPOILT | Problem.DELIVERY_SPOILT:
            table = "events" if blow.kind is Problem.EVENT_SPOILT else "deliveries"
            world.database.spoils.add((table, world.merchants[int(blow.whom)].account.account_id))
        case Problem.CUT:
            network.cut.add(blow.whom)
            network.soon(blow.seconds, lambda: network.cut.discard(blow.whom))
        case Problem.STORAGE_AWAY:
            network.away.add("storage")
            network.soon(min(blow.seconds, 60.0), lambda: network.away.discard("storage"))
        case Problem.STORAGE_FAILS:
            world.trace.tell(f"{world.database.fail()} changes are lost")
            network.away.add("storage")
            network.soon(1.0, lambda: network.away.discard("storage"))
        case Problem.DISK_FULL:
            _meanwhile(world, network.away, "disk", min(blow.seconds, 300.0))
        case Problem.APART:
            _meanwhile(world, network.apart, blow.whom, blow.seconds)
        case Problem.ROW_DAMAGED:
            _damage(world, blow)
        case Problem.BANK_AWAY | Problem.RECEIVER_AWAY:
            _meanwhile(world, network.away, _whom(blow), blow.seconds)
        case Problem.CHAIN_AWAY:
            _meanwhile(world, network.away, world.explorer.name, blow.seconds)
        case Problem.BANK_HANGS | Problem.RECEIVER_HANGS:
            _meanwhile(world, network.hanging, _whom(blow), blow.seconds)


_OTHERS_GO_ON = (Problem.BANK_HANGS, Problem.RECEIVER_HANGS, Problem.EVENT_SPOILT, Problem.DELIVERY_SPOILT)
"""Problems for which nobody else waits."""


def _stop(world: "World", process: "Process", strand: "Strand", blow: Blow) -> None:
    def stand_still() -> None:
        strand.on_fuse = process.crash
        world.vigil.troubled(blow.seconds)
        world.loop.stop_strand(strand)
        world.network.soon(blow.seconds, lambda: world.loop.go_on(strand))

    if blow.steps and strand.fuse is None:
        strand.fuse, strand.on_fuse = blow.steps, stand_still
    else:
        stand_still()


def _planned_late(world: "World", process: "Process | None") -> float:
    """Seconds for which what a process planned by a clock that is ahead waits by the database's, once it is set right;
    where there is one clock for all, that is put right, too (docs/operations.md "Running several machines")."""
    return 0.0 if process is None or world.plan.machine else max(process.skew, 0.0)


def _set(process: "Process", seconds: float) -> None:
    process.skew += seconds
    if process.clock is not None:
        process.clock.skew += seconds


def _whom(blow: Blow) -> str:
    return blow.whom if blow.kind in (Problem.BANK_AWAY, Problem.BANK_HANGS) else f"receiver {blow.whom}"


def _meanwhile(world: "World", among: set[str], name: str, seconds: float) -> None:
    among.add(name)
    world.network.soon(seconds, lambda: among.discard(name))


def _damage(world: "World", blow: Blow) -> None:
    chance, damage = world.chance.of("damage"), world.database.damage
    account_id = world.merchants[int(blow.whom)].account.account_id
    of = world.database.damageable(chance.choice(TABLES), account_id)
    if not of:
        return
    table, record_id = chance.choice(of)
    world.trace.tell(f"{table} {record_id} cannot be read")
    damage.rows.setdefault(table, {})[record_id] = account_id
    world.network.soon(blow.seconds, lambda: world.database.mend(table, record_id))
