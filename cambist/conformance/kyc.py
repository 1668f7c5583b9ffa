"""The suite that is run by `pytest --pyargs cambist.conformance.kyc` (docs/adapters.md)."""

from cambist.frontends.conformance.kyc import *  # noqa: F403 - its tests and fixtures
