"""Random keys over a storage that is late, away and raising, in short; `nox -s monkey` types 100 000."""

from tests.console.monkey import on_storage


def test_no_keys_end_the_console() -> None:
    met = on_storage("sqlite", seed=7, keys=150, payments=300)
    assert met.endswith("0 ends"), f"seed 7: {met}"
