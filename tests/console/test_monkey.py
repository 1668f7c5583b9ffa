"""Random keys over a storage that is late, away and raising, in short; `nox -s monkey` types 100 000."""

import pytest

from tests.console.monkey import on_storage


@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_no_keys_end_the_console(storage: str) -> None:
    seed = 7 if storage == "sqlite" else 11
    met = on_storage(storage, seed=seed, keys=150, payments=300)
    assert met.endswith("0 ends"), f"seed {seed}: {met}"
