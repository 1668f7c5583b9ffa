"""`cambist backup PATH`: a copy of an installation, made while the service runs."""

import asyncio
from pathlib import Path

import click
import msgspec

from ...core.domain.days import iso
from ...core.usecases.installation.backups import note_backup
from .output import Answer, fields, give, progress
from .session import REFUSED, guarded, loaded_settings, run_in_app


@click.command()
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path), required=False)
@click.option("--encrypt", is_flag=True, help="Encrypt the copy of the database with the vault's current key.")
@click.option(
    "--since",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Verify only what changed since the last run with this file (`cambist ledger verify --since`).",
)
@click.option("--note", is_flag=True, help="Copy nothing; record that a backup was just made by other means.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def backup(*, path: Path | None, encrypt: bool, since: Path | None, note: bool, as_json: bool) -> None:
    """Copy the database and uploaded files to the new folder PATH, and check the copy.

    The check covers the pages of the database, the ledger and the encrypted values. The service may keep running. On
    Postgres the copy is a dump by pg_dump. The vault's keys are not copied: store them separately, because a person
    with both can read everything, and without the keys an encrypted copy is lost. `cambist restore` restores the
    backup. Exit 1 when no backup was made, or when the copy is not sound. docs/operations.md "Backup and restore".
    """

    if (path is None) is not note or (note and (encrypt or since)):
        raise click.UsageError("Give PATH, or --note alone.")
    if path is None:
        give(guarded(_noted, as_json=as_json), as_json=as_json)
        return

    def run() -> Answer:
        settings = loaded_settings().settings
        from ..operations.backup import back_up

        with progress() as tell:
            made = asyncio.run(back_up(settings, path, tell, encrypt=encrypt, since=since))
        document = {"path": str(path), **msgspec.to_builtins(made), "sound": made.is_sound}
        text = fields({name.replace("_", " "): value for name, value in document.items()})
        return Answer(document=document, text=text)

    answer = guarded(run, as_json=as_json)
    give(answer, as_json=as_json)
    if not answer.document["sound"]:
        raise click.exceptions.Exit(REFUSED)


def _noted() -> Answer:
    at = run_in_app(lambda ports: note_backup(ports, ports.clock.now()))
    return Answer(document={"backed_up_at": iso(at)}, text=fields({"backed up at": iso(at)}))
