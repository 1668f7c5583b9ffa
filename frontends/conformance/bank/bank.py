"""Contract of a bank for invoices and refunds (ports/bank.py). Your conftest.py provides a fixture `bank_harness`, a
BankHarness; tests that need something it cannot simulate are skipped. Mandates, charges and remittances have their own
suites.

The plain rules run first and the tables of faults last, so that `pytest -x` shows the cause of a failure.
"""

# isort: off
from .requests import *  # noqa: F403 - their tests
from .claims import *  # noqa: F403
from .invoices import *  # noqa: F403
from .payments import *  # noqa: F403
from .refunds import *  # noqa: F403
from .drawn import *  # noqa: F403
from .closing import *  # noqa: F403
from .receipts import *  # noqa: F403
from .extremes import *  # noqa: F403
from .notifications import *  # noqa: F403
from .faults import *  # noqa: F403
