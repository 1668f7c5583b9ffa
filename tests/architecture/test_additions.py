"""A new table, job or setting needs rows in several files; each missing row is reported (docs/contributing/job.md and
docs/contributing/setting.md)."""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.core import usecases
from cambist.core.usecases.cells.plan import BY_HAND, ROWS, STAYS
from cambist.core.usecases.common.schedule import FollowUp
from cambist.core.usecases.jobs import HANDLERS
from cambist.core.usecases.recurring_jobs import RECURRING_JOBS
from cambist.frontends.settings.settings import OPTIONS, Settings

ROOT = Path(__file__).parents[2]

FROM_SEVERAL: dict[str, set[str]] = {
    "vault": {"vault_key", "vault_pepper"},
    "notification_networks": set(),
    "providers": set(),
}
"""Settings fields that do not come from the option of the same name: they combine two options or one option for each
adapter, whose names are not known in advance, or belong to adapters."""


def test_every_table_moves_or_says_why_not() -> None:
    """Otherwise `cambist account move` would leave its rows behind (docs/contributing/record.md)."""
    planned = [rows.record for rows in ROWS] + [*BY_HAND, *STAYS]
    assert len(planned) == len(set(planned))
    assert {table.kind for table in CATALOGUE} == set(planned)


def test_every_kind_of_job_has_a_handler() -> None:
    """Otherwise a unit could queue a job that no worker knows and that fails for ever."""
    kinds = {each for room in rooms() for each in vars(room).values() if isinstance(each, FollowUp)}
    assert len(kinds) > 15
    missing = sorted({each.kind for each in kinds} - HANDLERS.keys())
    assert missing == [], f"no row in core/usecases/job_kinds.py: JOB_KINDS for {missing}"
    missing = sorted(RECURRING_JOBS.keys() - HANDLERS.keys())
    assert missing == [], f"a recurring job needs its row in core/usecases/job_kinds.py: JOB_KINDS, too: {missing}"


def rooms() -> list[object]:
    """All modules of the use cases."""
    return [import_module(found.name) for found in walk_packages(usecases.__path__, f"{usecases.__name__}.")]


def test_every_setting_of_the_installation_can_be_given() -> None:
    fields = set(Settings.__struct_fields__)
    fields = fields - FROM_SEVERAL.keys() | set().union(*FROM_SEVERAL.values())
    assert fields - OPTIONS.keys() == set(), "describe it by setting(): nobody could set it"
    assert OPTIONS.keys() - fields == set(), "it is no field of Settings"


def test_operators_read_of_every_setting() -> None:
    """Look for the name of the setting, or of its variable, in docs/operations.md."""
    page = set(re.findall(r"\w+", (ROOT / "docs/operations.md").read_text("utf-8")))
    untold = [name for name in OPTIONS if not {name, f"CAMBIST_{name.upper()}"} & page]
    assert untold == [], "say in docs/operations.md when an operator sets it"
