"""How many files a process may have open, and who gets how many (frontends/process/open_files.py)."""

import pytest

from cambist.core.usecases.webhooks.dispatcher import WEBHOOKS
from cambist.frontends.process.open_files import CONNECTIONS, WANTED, allowed, file_budget, raise_limit
from tests.tables import table

resource = pytest.importorskip("resource")


class Limits:
    """The process's limits, as configured. `fixed`: they may not be changed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, *, fixed: bool = False) -> None:
        self.soft = soft
        self.hard = hard
        self.fixed = fixed
        self.asked = False
        monkeypatch.setattr(resource, "getrlimit", lambda _: (self.soft, self.hard))
        monkeypatch.setattr(resource, "setrlimit", self._set)

    def _set(self, _: int, limits: tuple[int, int]) -> None:
        self.asked = True
        if self.fixed or limits[0] > self.hard != resource.RLIM_INFINITY:
            raise ValueError("not allowed to raise maximum limit")
        self.soft, _hard = limits


@pytest.mark.parametrize(
    ("hard", "raised"), [(524_288, WANTED), (4096, 4096), (resource.RLIM_INFINITY, WANTED)],
    ids=["more than is wanted", "less", "any number"],
)  # fmt: skip
def test_the_limit_that_shells_give_is_raised(monkeypatch: pytest.MonkeyPatch, hard: int, raised: int) -> None:
    Limits(monkeypatch, 1024, hard)
    raise_limit()
    assert allowed() == raised


@pytest.mark.parametrize("soft", [WANTED, 524_288, resource.RLIM_INFINITY], ids=["wanted", "more", "no limit"])
def test_sufficient_limit_is_not_changed(monkeypatch: pytest.MonkeyPatch, soft: int) -> None:
    """A unit may forbid the call, with death."""
    limits = Limits(monkeypatch, soft, soft)
    raise_limit()
    assert not limits.asked
    assert allowed() == WANTED


@pytest.mark.parametrize(
    ("hard", "fixed"), [(1000, False), (524_288, True)], ids=["no more allowed", "not to be changed"]
)
def test_limit_that_stays_low_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, hard: int, fixed: bool
) -> None:
    Limits(monkeypatch, 1000, hard, fixed=fixed)
    raise_limit()
    assert allowed() == 1000
    assert "1000 files open (ulimit -n): 500 webhooks" in caplog.text


@table("files", [64, 300, 1024, 4096, WANTED])
def test_shares_of_the_file_budget_do_not_overlap(files: int) -> None:
    webhooks, connections, of_an_address = file_budget(files)
    spare = files - webhooks - connections
    assert webhooks <= files // 2
    assert webhooks <= WEBHOOKS
    assert connections <= CONNECTIONS
    assert spare >= files // 8
    assert of_an_address <= files // 4
    assert of_an_address <= connections
    assert min(webhooks, connections, of_an_address) >= 1


def test_process_with_enough_files_sends_all_its_webhooks() -> None:
    assert file_budget(WANTED) == (WEBHOOKS, CONNECTIONS, CONNECTIONS)
