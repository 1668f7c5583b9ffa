"""Realistic slips of the code, each of which a world must notice within 200 seeds (docs/reliability.md "Mutants").

The module imports nothing of the package, because the mutated code is loaded after it (trying.py).
"""

from tests.simulation.mutants.exchanging import CLIENTS, EXCHANGES
from tests.simulation.mutants.former import FORMER
from tests.simulation.mutants.money import LEDGER, PAYMENTS, REFUNDS, SETTLEMENT
from tests.simulation.mutants.recurring import SUBSCRIPTIONS
from tests.simulation.mutants.slips import Slip
from tests.simulation.mutants.testing import CLOCKS, PROOFS
from tests.simulation.mutants.work import JOBS, KEYS, WEBHOOKS

ROOMS = (
    *(PAYMENTS, REFUNDS, SETTLEMENT, LEDGER, SUBSCRIPTIONS, EXCHANGES, CLIENTS),
    *(PROOFS, CLOCKS, KEYS, JOBS, WEBHOOKS, FORMER),
)

MUTANTS: dict[str, Slip] = {name: slip for room in ROOMS for name, slip in room.items()}
"""Slips by their descriptions."""
