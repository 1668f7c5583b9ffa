"""The kinds of operations at providers, a row each: notices (notices.py) and jobs (job_kinds.py) find them here
(ARCHITECTURE.md "Adding an operation at a provider")."""

from typing import Any

from .exchanges.remittances import REMITTANCES
from .exchanges.rub_return import RUB_RETURNS
from .kyc.results import CHECKS
from .operations.operation import Followed, Operation
from .refunds.progress import REFUNDS
from .refunds.suspense_progress import SUSPENSE_RETURNS
from .subscriptions.charge_progress import CHARGES

FOLLOWED: tuple[Followed[Any, Any, Any], ...] = (REFUNDS, SUSPENSE_RETURNS, CHARGES, CHECKS)
"""Those with a kind of job of their own; one that is new is a row here."""

OPERATION_KINDS: tuple[Operation[Any, Any, Any], ...] = (*FOLLOWED, RUB_RETURNS, REMITTANCES)
"""All of them. Those of exchanges are brought by jobs that do more (exchanges/return_progress.py, payout.py)."""
