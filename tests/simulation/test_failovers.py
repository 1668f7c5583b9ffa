"""Simulated failovers: `nox -s simulate_failovers` runs a thousand (docs/reliability.md)."""

import pytest

from cambist.adapters.storage.postgres.marks import Marks
from cambist.core.usecases.installation import failovers
from tests.simulation.failovers import run


def test_simulated_failovers_are_held_only_where_something_is_lost() -> None:
    for seed in range(1, 4):
        assert run(seed).wrong == [], seed


@pytest.mark.parametrize(
    ("where", "name", "fault"),
    [
        (Marks, "of_commit", lambda *_: None),
        (failovers, "proof", lambda *_, **__: failovers.Proof.COMPLETE),
        (failovers, "proof", lambda *_, **__: failovers.Proof.NONE),
    ],
    ids=["only the marks of each second", "always complete", "never complete"],
)
def test_planted_fault_is_noticed(monkeypatch: pytest.MonkeyPatch, where: object, name: str, fault: object) -> None:
    monkeypatch.setattr(where, name, fault)
    assert any(run(seed).wrong for seed in range(1, 30))
