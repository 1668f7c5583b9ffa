"""The suite that is run by `pytest --pyargs cambist.conformance.payouts` (docs/adapters.md)."""

from cambist.frontends.conformance.payout_faults import *  # noqa: F403 - its tests
from cambist.frontends.conformance.payouts import *  # noqa: F403 - its tests and fixtures
