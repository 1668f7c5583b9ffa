"""`cambist vault …`: the keys that seal, and their rotation."""

import asyncio
from pathlib import Path
from typing import Any

import click

from ...core.usecases.operators.reseal import SealReport, inspect_seals
from ...core.usecases.operators.reseal import reseal as seal_anew
from ...core.usecases.vault_checks import adopt_vault
from ...ports.bundle import Ports
from ...ports.faults import NotConfigured
from ...ports.registry import Role
from ...ports.vault import VaultError
from ..settings import Settings
from .groups import group
from .output import Answer, fields, give, shown, table
from .session import REFUSED, answering, guarded, in_house, loaded_settings, reasoned

_KEY_SIZE = 32
"""Bytes of a key, and of the pepper."""


@group()
def vault() -> None:
    """The vault's keys: they seal webhook secrets, payer data and phones. docs/operations.md "Key rotation"."""


@vault.command("new")
@click.option("--id", "number", type=click.IntRange(1, 255), default=1, show_default=True, help="The key's id.")
@answering
def new(number: int) -> Answer:
    """Print a fresh key as CAMBIST_VAULT_KEY takes it, and a pepper. Nothing is kept: it is shown this once.

    For the first start of an installation whose keys come from settings. Its pepper stays for ever; a further key gets
    the next id, before the old one: CAMBIST_VAULT_KEY=2:NEW,1:OLD.
    """
    from ..compose import system_ids

    ids = system_ids()
    made = {"CAMBIST_VAULT_KEY": f"{number}:{ids.secret(_KEY_SIZE)}", "CAMBIST_VAULT_PEPPER": ids.secret(_KEY_SIZE)}
    return Answer(document=made, text="\n".join(f"{name}={value}" for name, value in made.items()))


@vault.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def status(*, as_json: bool) -> None:
    """Open everything that is sealed, and count with which keys. Exit 1 when something does not open."""
    report = guarded(lambda: in_house(lambda ports: inspect_seals(ports, progress=_progress)), as_json=as_json)
    give(Answer(document=_document(report), text=_text(report)), as_json=as_json)
    if report.unopened_count:
        raise click.exceptions.Exit(REFUSED)


@vault.command("reseal")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def reseal(*, as_json: bool) -> None:
    """Seal anew with the current key what older keys sealed, beside the working service.

    Ctrl-C may break it off at any time; another run goes on with what is left. Exit 0 when no older key is needed any
    more, 1 when one is: something does not open, or a running process still seals with it. Restart that, and run again.
    """
    report = guarded(lambda: in_house(lambda ports: seal_anew(ports, progress=_progress)), as_json=as_json)
    give(Answer(document=_document(report), text=_text(report)), as_json=as_json)
    if report.old_in_use or report.unopened_count:
        raise click.exceptions.Exit(REFUSED)


@vault.command("adopt")
@click.option("--yes", is_flag=True, help="Do not ask.")
@answering
@reasoned
def adopt(*, yes: bool) -> Answer:
    """Take the given pepper and key for the database's own, after the former ones were lost or replaced for good.

    Stop every process first, and start all of them with the new ones. What the former keys sealed stays closed, and
    with another pepper every API key is dead until it is rotated.
    """
    if not yes:
        click.confirm("Are the former pepper and keys gone for good?", abort=True, err=True)

    async def work(ports: Ports) -> int:
        await adopt_vault(ports.storage, ports.vault, ports.clock, ports.ids)
        return ports.vault.current

    number = in_house(work, fitting=False)
    return Answer(document={"current": number}, text=f"key {number} and the pepper are this database's own now")


@vault.command("rotate")
@answering
def rotate() -> Answer:
    """Put a fresh key into the key file, which seals from the next start on. The service must be stopped.

    Afterwards: start it, and `cambist vault reseal`.
    """
    settings = loaded_settings().settings
    path = _key_file(settings)
    from ..maintenance import add_vault_key, open_registry

    async def alone() -> int:
        registry = open_registry(settings)
        if registry is None:
            raise NotConfigured("a storage in memory keeps no keys")
        try:
            # A running service would not know the new key, and could not open what others seal with it.
            if not await registry.enter(Role.COUNTING, alone=True):
                who = ", ".join(await registry.others(Role.COUNTING))
                raise NotConfigured(f"the service runs ({who}): stop it first, for it would not know the new key")
            return add_vault_key(path)
        finally:
            await registry.close()

    number = asyncio.run(alone())
    text = fields({"current key": number, "key file": path}) + "\n\nBack the file up, start, then: cambist vault reseal"
    return Answer(document={"current": number, "key_file": str(path)}, text=text)


@vault.command("drop")
@click.argument("number", metavar="KEY_ID", type=click.IntRange(0, 255))
@answering
def drop(number: int) -> Answer:
    """Take an old key out of the key file, once nothing is sealed with it. Backups from before still need it."""
    path = _key_file(loaded_settings().settings)
    from ..maintenance import drop_vault_key

    report = in_house(lambda ports: inspect_seals(ports, progress=_progress))
    in_use = report.in_use.get(number, 0)
    if in_use and number != report.current:
        raise VaultError(f"{in_use} values are sealed with key {number}: run `cambist vault reseal` first")
    drop_vault_key(path, number)
    return Answer(document={"dropped": number, "key_file": str(path)}, text=f"key {number} is dropped from {path}")


def _key_file(settings: Settings) -> Path:
    """Raises: NotConfigured."""
    from ..compose import key_file

    path = key_file(settings)
    if path is None:
        raise NotConfigured(
            "the keys come from CAMBIST_VAULT_KEY: put a new one before the old there, as 2:NEW,1:OLD (openssl rand "
            "-hex 32 makes one); first as 1:OLD,2:NEW where several processes run. See docs/operations.md"
        )
    return path


def _progress(kind: str, seen: int, resealed: int) -> None:
    if seen % 10_000 == 0 or resealed:
        click.echo(f"{kind}: {seen} looked at, {resealed} sealed anew", err=True)


def _document(report: SealReport) -> dict[str, Any]:
    return {
        "current": report.current,
        "keys": report.keys,
        "in_use": {str(number): count for number, count in report.in_use.items()},
        "old_in_use": report.old_in_use,
        "droppable": report.droppable,
        "fields": {field.field: {str(n): count for n, count in field.by_key.items()} for field in report.fields},
        "resealed": report.resealed,
        "unopened": report.unopened_count,
        "first_unopened": report.unopened,
    }


def _text(report: SealReport) -> str:
    head = fields(
        {
            "current key": report.current,
            "keys": report.keys,
            "older keys in use": report.old_in_use,
            "may be dropped": report.droppable,
            "records sealed anew": report.resealed,
            "values that do not open": report.unopened_count,
        }
    )
    rows = [
        (field.field, ", ".join(f"{number}: {count}" for number, count in sorted(field.by_key.items())))
        for field in report.fields
    ]
    roles = [head, *([table(("field", "values by key"), rows)] if rows else [])]
    roles += [f"{shown(bad.field)} {shown(bad.record_id)}: {shown(bad.reason)}" for bad in report.unopened]
    return "\n\n".join(roles[:2]) + "".join(f"\n{line}" for line in roles[2:])
