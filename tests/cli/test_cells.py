"""Two cells on clean folders, as an administrator makes them (docs/cells.md)."""

from pathlib import Path

import pytest

from cambist.frontends.operations import cells
from tests.cli.conftest import Call

_PEPPER = "ab" * 32


@pytest.fixture
def directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of two cells; the first one's settings are variables."""
    monkeypatch.setattr(cells, "SETTLED", 0)
    given = {"data_dir": "first", "base_url": "https://c1.example", "vault_key": "1:" + "01" * 32}
    lines = [f"CAMBIST_{name.upper()}='{value}'" for name, value in {**given, "cell": "c1"}.items()]
    (folder / "c1.env").write_text("\n".join(["# the first cell", *lines, f"CAMBIST_VAULT_PEPPER={_PEPPER}"]))
    given = {"data_dir": "second", "base_url": "https://c2.example", "vault_key": "1:" + "02" * 32}
    lines = [f'{name} = "{value}"' for name, value in {**given, "cell": "c2", "vault_pepper": _PEPPER}.items()]
    (folder / "c2.toml").write_text("\n".join(lines))
    path = folder / "cells.toml"
    path.write_text(
        '[cells.c1]\nsettings = "c1.env"\nservers = ["10.0.0.1:8080"]\n'
        '[cells.c2]\nsettings = "c2.toml"\nservers = ["10.0.0.2:8080"]\nhosts = ["two.example"]\n'
        '[map]\nnginx = "maps"\nhaproxy = "maps"\nreload = ["touch", "reloaded"]\n'
    )
    return path


def test_account_moves_and_the_map_leads_to_it(call: Call, folder: Path, directory: Path) -> None:
    for path in ("first", "second"):
        assert call("--data-dir", path, "migrate").status == 0
    made = call("--config", "c2.toml", "account", "create", "Tea", "--json").document
    key = made["live"]["api_key"]
    assert key.startswith("svc_live_c2_")
    assert call("cell", "map", "--json").document["changed"]
    prefixes = (folder / "maps/cells-prefixes.map").read_text()
    assert prefixes.splitlines() == ["svc_live_c1_ c1", "svc_test_c1_ c1", "svc_live_c2_ c2", "svc_test_c2_ c2"]
    assert (folder / "maps/cells-hosts.map").read_text() == "c1.example c1\nc2.example c2\ntwo.example c2\n"
    assert (folder / "maps/cells-keys.map").read_text() == ""
    assert call("cell", "map").out == "The maps are up to date\n"
    (folder / "reloaded").unlink()
    moved = call("account", "move", made["account_id"], "--to", "c1", "--reason", "c2 is full", "--json").document
    assert (moved["from"], moved["to"], moved["resumed"]) == ("c2", "c1", False)
    assert f"{key} c1\n" in (folder / "maps/cells-keys.map").read_text()
    assert f"    {key} c1;\n" in (folder / "maps/cambist-cells.conf").read_text()
    assert (folder / "reloaded").exists()
    counts = {each["cell"]: each["accounts"] for each in call("cell", "list", "--json").document["data"]}
    assert counts == {"c1": 1, "c2": 0}
    assert call("cell", "status").status == 0
    again = call("account", "move", made["account_id"], "--to", "c1")
    assert (again.status, again.err.splitlines()[0]) == (1, "error: The account is in c1 already")
    stays = call("account", "move", made["account_id"], "--to", "c2", "--undo", "--json").document
    assert stays == {"account_id": made["account_id"], "cell": "c1"}


def test_directory_that_cannot_be_used_is_refused(call: Call, folder: Path, directory: Path) -> None:
    for text, said in (
        ("", "is no directory of cells"),
        ("[cells.c1]\nsettings = 1", "is no directory of cells"),
        ('[cells.c1]\nsettings = "c1.env"\nservers = ["10.0.0.1:1; }"]', "is no directory of cells"),
        ('[cells.c1]\nsettings = "c1.env"\nservers = []\nhosts = ["a b"]', "is no directory of cells"),
        ('[cells.C-1]\nsettings = "c1.env"\nservers = []', "lower-case letters"),
        ('default = "c3"\n[cells.c1]\nsettings = "c1.env"\nservers = []', "the default is no cell"),
        ('[cells.c2]\nsettings = "c1.env"\nservers = []', "it must set cell to c2"),
        ('[cells.c2]\nsettings = "none.toml"\nservers = []', "cannot be read"),
    ):
        directory.write_text(text)
        found = call("cell", "map")
        assert (found.status, said in found.err) == (1, True), (text, found.err)
    directory.unlink()
    assert "CAMBIST_CELLS" in call("cell", "list").err
