"""The kinds of operations at providers that have a job, a row each: notices (notices.py) and jobs (job_kinds.py) find
them here (ARCHITECTURE.md "Adding an operation at a provider")."""

from typing import Any

from .kyc.results import CHECKS
from .operations.operation import Followed
from .refunds.progress import REFUNDS
from .refunds.suspense_progress import SUSPENSE_RETURNS
from .subscriptions.charge_progress import CHARGES

OPERATION_KINDS: tuple[Followed[Any, Any, Any], ...] = (
    REFUNDS,
    SUSPENSE_RETURNS,
    CHECKS,
    CHARGES,
)
"""All of them; one that is new is a row here."""
