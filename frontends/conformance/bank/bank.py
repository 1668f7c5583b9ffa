"""What every bank must do with invoices and refunds (ports/bank.py). Your conftest.py gives a fixture `bank_bench`, a
BankBench; what it cannot play is skipped. Mandates, charges and remittances have suites of their own."""

from .claims import *  # noqa: F403 - their tests
from .closing import *  # noqa: F403
from .drawn import *  # noqa: F403
from .faults import *  # noqa: F403
from .invoices import *  # noqa: F403
from .notices import *  # noqa: F403
from .receipts import *  # noqa: F403
from .refunds import *  # noqa: F403
