"""What adapters must do, as tests: our own pass them (tests/contracts), and whoever writes an adapter runs them.

    pytest -o asyncio_mode=auto --pyargs cambist.frontends.conformance.bank

wants pytest and pytest-asyncio, and in the conftest.py of the project's root a fixture that says what is tried: `bench`
for banks, rates and notifiers, `place` for storages (docs/adapters.md). What a bench cannot play is skipped.
"""
