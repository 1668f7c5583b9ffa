"""Contract of a bank for invoices and refunds (ports/bank.py). Your conftest.py provides a fixture `bank_harness`, a
BankHarness; tests that need something it cannot simulate are skipped. Mandates, charges and remittances have their own
suites."""

from .claims import *  # noqa: F403 - their tests
from .closing import *  # noqa: F403
from .drawn import *  # noqa: F403
from .faults import *  # noqa: F403
from .invoices import *  # noqa: F403
from .notifications import *  # noqa: F403
from .receipts import *  # noqa: F403
from .refunds import *  # noqa: F403
