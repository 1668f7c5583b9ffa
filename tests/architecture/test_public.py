"""README, docs and examples use public names alone (docs/versioning.md "The package"), so that rooms may move."""

import inspect
import json
import pickle
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import get_type_hints

import cambist
import cambist.client
import cambist.testing
from cambist.core.domain.webhooks.signing import Flaw
from cambist.frontends.client.requests import Request
from cambist.frontends.settings.settings import SettingFault
from tests.public_surface import MODULES, RECORDED, lost, public_objects, surface
from tests.tables import table

ROOT = Path(__file__).parents[2]
DJANGO = {f"cambist.django{module}" for module in ("", ".admin", ".embedded", ".models", ".testing", ".urls")}
EDGES = {"cambist", "cambist.client", "cambist.conformance", "cambist.ports", "cambist.testing", *DJANGO}
IMPORT = re.compile(r"^\s*(?:from|import)\s+(cambist[\w.]*)", re.MULTILINE)
ROOM = re.compile(r"cambist\.(?:core|adapters|frontends)\b|cambist\.ports\.[a-z]\w*")
TEXTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *(path for path in sorted((ROOT / "examples").rglob("*")) if path.suffix in {".md", ".py", ".toml"}),
]


@table("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_texts_for_users_name_public_modules_only(path: Path) -> None:
    text = path.read_text("utf-8")
    assert {found for found in IMPORT.findall(text) if found not in EDGES} == set()
    assert ROOM.findall(text) == []


def test_a_clone_in_a_folder_that_is_no_name_of_python_can_be_tested() -> None:
    """pytest then imports the root's `__init__.py` by its path, without a package, and looks for `pytest_plugins`."""
    spec = spec_from_file_location("__init__", ROOT / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    alone = module_from_spec(spec)
    spec.loader.exec_module(alone)
    assert not hasattr(alone, "pytest_plugins")


class TestPublicPlace:
    """Reprs, tracebacks and pickles name the public module of a name, so that modules may move."""

    def test_class_or_function_names_its_public_module_and_is_pickled_by_it(self) -> None:
        found = [(name, each) for name, each in public_objects() if inspect.isclass(each) or inspect.isfunction(each)]
        assert len(found) > 300
        for name, each in found:
            assert each.__module__ in MODULES, name
            assert pickle.loads(pickle.dumps(each)) is each, name
            get_type_hints(each)  # msgspec reads annotations in the namespace of this module, too

    def test_docstring_stands_alone(self) -> None:
        """docs/ is not in the wheel, so an editor shows the docstring and nothing else."""
        for name, each in public_objects():
            if not (inspect.isclass(each) or inspect.isfunction(each)):
                continue
            text = vars(each).get("__doc__") if inspect.isclass(each) else each.__doc__
            assert text, name
            assert len(re.sub(r"\(docs/[^)]*\)|See docs/.*", "", text).strip()) > 8, name

    @table(
        "error",
        [
            cambist.Refusal("VALIDATION_ERROR", "no", status=422, details={"path": "x"}, retry_after=5),
            cambist.Unavailable("away", retry_after=2.0),
            cambist.NotVerified(Flaw.TOO_OLD, "old"),
            cambist.SettingsError((SettingFault(name="port", origin="PORT", message="no number"),)),
            cambist.client.NoAnswer("away", request=Request(method="GET", path="/x", read=bytes), is_unsent=True),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_error_is_the_same_in_another_process(self, error: Exception) -> None:
        """Pools of processes and task queues pickle what a task raises."""
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))

    def test_traceback_names_the_public_error(self) -> None:
        script = "import cambist; raise cambist.Refusal('INVALID_STATE', 'no')"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.stderr.splitlines()[-1] == "cambist.Refusal: no"

    def test_completion_offers_public_names_only(self) -> None:
        assert {"TYPE_CHECKING", "Any", "core", "frontends"} & {*dir(cambist), *dir(cambist.testing)} == set()
        assert {"open", "Mount", "__version__"} <= {*dir(cambist)}


class TestSurface:
    """A release records its public names (tests/public_surface.py); no later version may lack one of them."""

    def test_recorded_names_are_all_there(self) -> None:
        now = surface()
        for part, name in [
            ("operations", "POST /api/v1/payments create_payment"),
            ("fields", "Payment.amount_rub: string"),
            ("fields", "Payment.status = paid"),
            ("webhooks", "payment.status_changed"),
            ("errors", "INVALID_AMOUNT"),
            ("commands", "cambist doctor --full"),
            ("settings", "database_url"),
            ("names", "cambist.client.Client.health"),
            ("names", "cambist.open(on_event)"),
            ("schema", "payments.id: TEXT"),
        ]:
            assert name in now[part]
        for recorded in sorted(RECORDED.glob("*.json")):
            missing = lost(json.loads(recorded.read_text("utf-8")), now)
            assert missing == [], f"{recorded.stem} promised them; if it is not released yet, run `nox -s record`"

    def test_removed_name_is_reported_and_a_new_one_is_not(self) -> None:
        before = {"errors": ["A", "B"], "settings": ["x"]}
        assert lost(before, {"errors": ["B", "C"]}) == ["errors: A", "settings: x"]
