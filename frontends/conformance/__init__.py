"""What adapters must do, as tests: our own pass them (tests/contracts), and whoever writes an adapter runs them.

    pytest -o asyncio_mode=auto --pyargs cambist.conformance.bank

wants pytest and pytest-asyncio, and in the conftest.py of the project's root a fixture that says what is tried:
`bank_bench`, `rates_bench` and so on (benches.py), `place` for storages (docs/adapters.md). What a bench cannot play is
skipped.
"""

from pkgutil import iter_modules

import pytest

if __name__ != "cambist.frontends.conformance":
    # Else every fault would be two classes, and no pytest.raises would know what an adapter raises.
    raise ImportError(
        f"pytest took these suites for {__name__}, as it does where cambist is an editable install: name them as "
        "cambist.conformance, which works there, too"
    )

pytest.register_assert_rewrite(*(f"{__name__}.{room.name}" for room in iter_modules(__path__)))
"""Else pytest would not explain their assertions: `cambist.conformance` imports what it was given by name."""
