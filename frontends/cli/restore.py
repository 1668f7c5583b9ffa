"""`cambist restore PATH`: replaces the database by a backup and holds it."""

import asyncio
from pathlib import Path

import click
import msgspec

from .output import Answer, fields, give, progress
from .session import REFUSED, guarded, loaded_settings


@click.command()
@click.argument("path", metavar="PATH", type=click.Path(exists=True, path_type=Path))
@click.option("--replace", is_flag=True, help="On Postgres: replace the tables of a database that is not empty.")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def restore(*, path: Path, replace: bool, yes: bool, as_json: bool) -> None:
    """Replace the database by the backup PATH, after a check of its pages, books and encrypted values.

    Refused while a process uses the database. On SQLite the former database is kept beside it; on Postgres pg_restore
    is used, and the database must be empty. A backup does not contain the keys: put the key file into the data folder
    first. The restored installation is held: it sends no money in live mode until `cambist resume`. Exit 1 when nothing
    was restored, or when its books do not hold. docs/operations.md "Backup and restore".
    """

    def run() -> Answer:
        settings = loaded_settings().settings
        from ..operations.restore import restore as put_back

        if not yes:
            click.confirm(f"Put {path} in the place of {settings.database_location}?", abort=True, err=True)
        with progress() as tell:
            done = asyncio.run(put_back(settings, path, tell, replace=replace))
        document = msgspec.to_builtins(done)
        return Answer(document=document, text=fields({name.replace("_", " "): each for name, each in document.items()}))

    answer = guarded(run, as_json=as_json)
    give(answer, as_json=as_json)
    if not answer.document["ledger_holds"]:
        raise click.exceptions.Exit(REFUSED)
