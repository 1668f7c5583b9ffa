"""Defects that the service once had, given back to it. The commits before they were mended know none of the ports that
a world stands on, so they are tried on the tree as it is."""

from tests.mutants import Mutant
from tests.simulation.mutants.slips import Slip, at, domain, slip, usecase

FORMER: dict[str, Slip] = {
    "an unreadable row ends the process": at(
        "frontends/worker/loop.py",
        "            claimed = await self._ports.storage.claim(room, WORKER_LEASE, **which)\n"
        "            for job in claimed:\n"
        "                self._begin(job)\n"
        "        except Exception as fault:",
        "            claimed = await self._ports.storage.claim(room, WORKER_LEASE, **which)\n"
        "            for job in claimed:\n"
        "                self._begin(job)\n"
        "        except Fault as fault:",
    ),
    "a bank that hangs holds all who ask it": slip(
        Mutant("frontends/layers/guard/guard.py", "LIMIT = 20.0\n", "LIMIT = 3600.0\n"),
        Mutant("frontends/layers/guard/guard.py", "REQUEST_LIMIT = 24.0\n", "REQUEST_LIMIT = 3600.0\n"),
        Mutant("frontends/layers/guard/bulkheads.py", "CALLS = 64\n", "CALLS = 10_000\n"),
        Mutant("frontends/layers/guard/bulkheads.py", "TRIALS = 8\n", "TRIALS = 10_000\n"),
        Mutant(
            "frontends/layers/guard/guard.py",
            "            alarms.append(self._clock.call_later(SLOW, slow))\n",
            "            alarms.append(self._clock.call_later(3600.0, slow))\n",
        ),
    ),
    "receivers that hang hold all others": slip(
        Mutant(
            "core/domain/webhooks/limiter_pool.py",
            "        self._most_slow = -(-permits * 2 // 5)\n",
            "        self._most_slow = permits\n",
        ),
        Mutant(
            "core/domain/webhooks/limiter_pool.py",
            "        self._most_unproven = permits - permits // 5\n",
            "        self._most_unproven = permits\n",
        ),
    ),
    "one event that cannot be read delays its merchant's others": usecase(
        "webhooks/endpoint_worker",
        "events = await unit[Event].find(id=OneOf(ids), limit=len(ids), quick=True, readable=True)",
        "events = await unit[Event].find(id=OneOf(ids), limit=len(ids), quick=True)",
    ),
    "a clock that is set back leaves work in its future": at(
        "frontends/worker/clock.py",
        "        if self._clocked is None or not self._clocked.by_own_clock:\n",
        "        if self._clocked is None or self._clocked.by_own_clock:\n",
    ),
    "a webhook that was unreadable once is never sent": usecase(
        "operators/unreadable",
        "            await resume_delivery(ports, unit, record)\n",
        "            return\n",
    ),
    "a payment stays pending if its money came too late before any poll": domain(
        "payments/reports",
        "                trigger=_T.LAPSED if _has_lapsed(payment, now) else None, unapplied=",
        "                unapplied=",
    ),
    "an event is of when its call began": usecase(
        "common/account_time",
        "    return there if here and there and there.offset > here.offset + TOGETHER else here\n",
        "    return here\n",
    ),
}
