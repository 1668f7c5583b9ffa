"""`cambist restore PATH`: a backup in the place of the database, held."""

import asyncio
from pathlib import Path

import click
import msgspec

from .output import Answer, fields, give
from .session import REFUSED, guarded, loaded_settings


@click.command()
@click.argument("path", metavar="PATH", type=click.Path(exists=True, path_type=Path))
@click.option("--replace", is_flag=True, help="On Postgres: also into a database that is not empty; it is dropped.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def restore(*, path: Path, replace: bool, yes: bool, as_json: bool) -> None:
    """Put the backup PATH in the place of the database, once its pages, books and seals were checked.

    Refused while anybody uses the database. On SQLite what stood there is kept beside it; on Postgres it is done by
    pg_restore, and the database must be empty. The keys are not in a backup: put the key file into the data folder
    first. What was restored is held: it sends no money in live mode until `cambist resume`. Exit 1 when nothing was
    restored, or when its books do not hold. docs/operations.md "Backup and restore".
    """

    def run() -> Answer:
        settings = loaded_settings().settings
        from ..restore import restore as put_back

        if not yes:
            click.confirm(f"Put {path} in the place of {settings.database_place}?", abort=True, err=True)
        done = asyncio.run(put_back(settings, path, lambda text: click.echo(text, err=True), replace=replace))
        document = msgspec.to_builtins(done)
        return Answer(document=document, text=fields({name.replace("_", " "): each for name, each in document.items()}))

    answer = guarded(run, as_json=as_json)
    give(answer, as_json=as_json)
    if not answer.document["ledger_holds"]:
        raise click.exceptions.Exit(REFUSED)
