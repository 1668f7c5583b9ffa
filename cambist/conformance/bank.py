"""The suite that is run by `pytest --pyargs cambist.conformance.bank` (docs/adapters.md)."""

from cambist.frontends.conformance.bank.bank import *  # noqa: F403 - its tests and fixtures
