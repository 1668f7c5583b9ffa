"""How many letters a worker has under way, by how many files its process may have open."""

import pytest

from cambist.core.usecases.webhooks.dispatcher import LETTERS
from cambist.frontends.worker.open_files import room_for_letters

resource = pytest.importorskip("resource")


class Limits:
    """The process's limits, as told; `fixed`: they may not be changed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, *, fixed: bool = False) -> None:
        self.soft = soft
        self.hard = hard
        self.fixed = fixed
        self.asked = False
        monkeypatch.setattr(resource, "getrlimit", lambda _: (self.soft, self.hard))
        monkeypatch.setattr(resource, "setrlimit", self._set)

    def _set(self, _: int, limits: tuple[int, int]) -> None:
        self.asked = True
        if self.fixed or limits[0] > self.hard:
            raise ValueError("not allowed to raise maximum limit")
        self.soft, _hard = limits


def test_the_limit_that_shells_give_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(monkeypatch, 1024, 524_288)
    assert room_for_letters() == LETTERS
    assert limits.soft == 8192


def test_one_that_is_enough_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit may forbid the call, with death."""
    limits = Limits(monkeypatch, 2 * LETTERS, 524_288)
    assert room_for_letters() == LETTERS
    assert not limits.asked


def test_no_limit_at_all_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(monkeypatch, resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert room_for_letters() == LETTERS
    assert not limits.asked


@pytest.mark.parametrize(
    ("hard", "fixed"), [(1000, False), (524_288, True)], ids=["no more allowed", "not to be changed"]
)
def test_where_it_stays_low_letters_take_half(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, hard: int, fixed: bool
) -> None:
    """The other half is for requests and storage."""
    Limits(monkeypatch, 1000, hard, fixed=fixed)
    assert room_for_letters() == 500
    assert "1000 files open" in caplog.text
