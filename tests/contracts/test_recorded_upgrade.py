"""A database of a release, with data, is upgraded by the next version: docs/versioning.md "The database".

Each release records its database (tests/recorded_database.py). Here every recorded one, and one of this state, goes
through `cambist migrate` of a version that has one schema step more, and then through `cambist ledger verify`.
"""

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import recorded_database
from tests.public_surface import RECORDED
from tests.recorded_database import KINDS, VAULT, dumped, restore, rows_of
from tests.releases import next_version
from tests.servers import database

THIS = "this state"
SOUND = {"schema", "pages", "vault", "rows", "ledger"}
"""Findings of `cambist doctor` about the data."""
RELEASES = [*sorted(path.name for path in RECORDED.glob("*/")), THIS]


@pytest.fixture(scope="module")
def following(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The program of the next version, and its revision."""
    return next_version(tmp_path_factory.mktemp("next"))


def new_database(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    if kind == "sqlite":
        return f"sqlite:///{folder}/{len(list(folder.iterdir()))}.db"
    opened = database(request.getfixturevalue("server"))
    url = opened.__enter__()
    request.addfinalizer(lambda: opened.__exit__(None, None, None))
    return url


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", RELEASES)
def test_database_of_a_release_is_upgraded_with_all_its_data(
    release: str, kind: str, following: tuple[Path, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if release == THIS:
        made = new_database(kind, tmp_path, request)
        asyncio.run(recorded_database.make(made))
        text = dumped(made)
    else:
        text = (RECORDED / release / f"{kind}.sql").read_text("utf-8")
    url = new_database(kind, tmp_path, request)
    asyncio.run(restore(url, text))
    before = asyncio.run(rows_of(url))
    assert len([name for name, rows in before.items() if rows]) > 25, "nearly every table has rows"

    program, revision = following
    settings = {"database_url": url, "data_dir": str(tmp_path), **VAULT}
    environ = {**os.environ, **{f"CAMBIST_{name.upper()}": value for name, value in settings.items()}}

    def call(*arguments: str, status: int = 0) -> str:
        command = [str(program), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    assert revision in call("migrate")
    after = asyncio.run(rows_of(url))
    assert after["alembic_version"] == [{"version_num": revision}]
    for name, rows in before.items():
        if name not in ("alembic_version", "schema_beside"):
            kept = [{field: row[field] for field in rows[0]} for row in after[name]] if rows else after[name]
            assert kept == rows, name
    call("ledger", "verify")
    told = call("doctor", "--full", status=1)  # it is a copy, and no worker runs
    assert {each for each in SOUND if re.search(rf"^ok +{each} ", told, re.MULTILINE)} == SOUND, told
