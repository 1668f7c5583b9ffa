"""What adapters must do, as tests: our own pass them (tests/contracts), and whoever writes an adapter runs them.

    pytest -o asyncio_mode=auto --pyargs cambist.frontends.conformance.bank

wants pytest and pytest-asyncio, and in the conftest.py of the project's root a fixture that says what is tried:
`bank_bench`, `rates_bench` and so on (benches.py), `place` for storages (docs/adapters.md). What a bench cannot play is
skipped.
"""

import pytest

if __name__ != "cambist.frontends.conformance":
    # Else every fault would be two classes, and no pytest.raises would know what an adapter raises.
    raise ImportError(
        f"pytest took these suites for {__name__}: it does so where cambist is an editable install. Install it plainly "
        "(pip install PATH_OR_URL, without -e), then run them by --pyargs"
    )

_ROOMS = (
    "benches",
    "storage_asking",
    "storage_jobs",
    "storage_kit",
    "storage_leases",
    "storage_races",
    "storage_reads",
    "storage_recent",
    "storage_rules",
    "storage_sums",
    "storage_tallies",
    "storage_units",
    "storage_values",
)
"""Rooms whose assertions pytest would else not explain: it does so only for those that it was given by name."""

pytest.register_assert_rewrite(*(f"{__name__}.{room}" for room in _ROOMS))
