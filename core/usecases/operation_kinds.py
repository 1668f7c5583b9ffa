"""Kinds of operations at providers, one row each, for notifications (notifications.py) and jobs (job_kinds.py)
(docs/contributing/operation.md)."""

from typing import Any

from .exchanges.remittances import REMITTANCES
from .exchanges.rub_return import RUB_RETURNS
from .kyc.results import CHECKS
from .operations.operation import Followed, Operation
from .receipts.progress import RECEIPTS
from .refunds.progress import REFUNDS
from .refunds.suspense_progress import SUSPENSE_RETURNS
from .subscriptions.charge_progress import CHARGES

FOLLOWED: tuple[Followed[Any, Any, Any], ...] = (REFUNDS, SUSPENSE_RETURNS, CHARGES, CHECKS, RECEIPTS)
"""Kinds with a job kind of their own. A new kind is a new row here."""

OPERATION_KINDS: tuple[Operation[Any, Any, Any], ...] = (*FOLLOWED, RUB_RETURNS, REMITTANCES)
"""All kinds. The kinds of exchanges are run by jobs that do more (exchanges/return_progress.py, payout.py)."""
