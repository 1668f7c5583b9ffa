"""`cambist backup PATH`: a copy of an installation, beside the working service."""

import asyncio
from pathlib import Path

import click
import msgspec

from .output import Answer, fields, give
from .session import REFUSED, guarded, loaded_settings


@click.command()
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def backup(*, path: Path, as_json: bool) -> None:
    """Copy database and uploaded files into the new folder PATH, and check the copy: its pages, the ledger, the seals.

    The service may go on. Of Postgres it is a dump by pg_dump. The vault's keys are not copied: keep them apart, for
    who has both can read everything. To restore, `cambist restore`. Exit 1 when there is no backup, or when what it
    holds is not sound. docs/operations.md "Backup and restore".
    """

    def run() -> Answer:
        settings = loaded_settings().settings
        from ..backup import back_up

        made = asyncio.run(back_up(settings, path, lambda text: click.echo(text, err=True)))
        document = {"path": str(path), **msgspec.to_builtins(made), "sound": made.is_sound}
        text = fields({name.replace("_", " "): value for name, value in document.items()})
        return Answer(document=document, text=text)

    answer = guarded(run, as_json=as_json)
    give(answer, as_json=as_json)
    if not answer.document["sound"]:
        raise click.exceptions.Exit(REFUSED)
