"""Contract tests for adapters. Our own adapters pass them (tests/contracts), and authors of other adapters run them
too.

 pytest -o asyncio_mode=auto --pyargs cambist.conformance.bank

They need pytest and pytest-asyncio (`cambist[testing]`), and fixtures in the conftest.py of the project's root that
provide the adapter under test: `bank_harness`, `rates_harness` and so on (harnesses.py), `place` for storages
(docs/adapters.md). Tests that need something a harness cannot simulate are skipped.
"""

from pkgutil import iter_modules

from ..settings.plugins import needing

with needing("testing", "the conformance kit"):
    import pytest

if __name__ != "cambist.frontends.conformance":
    # A second import would define every fault class twice, and pytest.raises would not match the faults of adapters.
    raise ImportError(
        f"pytest took these suites for {__name__}, as it does where cambist is an editable install: name them as "
        "cambist.conformance, which works there, too"
    )

pytest.register_assert_rewrite(*(f"{__name__}.{room.name}" for room in iter_modules(__path__)))
"""Registered before the modules are imported, so that pytest explains their assertions."""
