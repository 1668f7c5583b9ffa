"""Programs for the upgrade drill: the last release, and this version with one more schema step."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from cambist.adapters.storage.sql.revisions import head

ROOT = Path(__file__).parents[1]

_STEP = '''"""Made up by the upgrade drill: a column and an index that older programs do not know."""

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{head}"


def upgrade() -> None:
    """Add them."""
    op.add_column("payments", sa.Column("made_up", sa.Text(), nullable=True))
    op.create_index("payments_made_up", "payments", ["made_up"])
'''


def last_release(folder: Path) -> Path | None:
    """Build the newest tagged release from this repository's history and return its program `cambist`.

    None before the first release, when no tag exists.
    """
    tag = _git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^")
    if tag is None:
        return None
    source, site = folder / "source", folder / "site"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", tag], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=source, input=archive.stdout, check=True)
    build = "import setuptools.build_meta as backend; backend.build_wheel('..')"
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", build], cwd=source, env=environ, capture_output=True, check=True)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as built:
        built.extractall(site)
    return _program(folder, site)


def next_version(folder: Path) -> tuple[Path, str]:
    """Copy this version, add one schema step, and return its program `cambist` and its schema revision."""
    site = folder / "site"
    shutil.copytree(ROOT / "cambist", site / "cambist")
    revision = f"{int(head()) + 1:04}"
    versions = site / "cambist/adapters/storage/migrations/versions"
    (versions / f"{revision}_made_up.py").write_text(_STEP.format(revision=revision, head=head()), "utf-8")
    return _program(folder, site), revision


def _program(folder: Path, site: Path) -> Path:
    """Write a script that runs the package in `site`, and return its path."""
    program = folder / "cambist"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(site)!r})\n"
        "from cambist.frontends.cli.main import main\nsys.exit(main())\n",
        "utf-8",
    )
    program.chmod(0o755)
    return program


def _git(*arguments: str) -> str | None:
    asked = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else None
