"""`cambist vault …`: encryption keys and their rotation."""

import asyncio
from pathlib import Path
from typing import Any

import click

from ...core.usecases.operators.reencrypt import KeyReport, inspect_keys
from ...core.usecases.operators.reencrypt import reencrypt as reencrypt_all
from ...core.usecases.vault_checks import adopt_vault
from ...ports.bundle import Ports
from ...ports.faults import NotConfigured
from ...ports.registry import Role
from ...ports.vault import VaultError
from ..settings.settings import Settings
from .groups import group
from .output import Answer, fields, give, shown, table
from .session import REFUSED, answering, guarded, loaded_settings, reasoned, run_in_app

_KEY_SIZE = 32
"""Size of a key and of the pepper, in bytes."""


@group()
def vault() -> None:
    """Manage the vault's keys, which encrypt webhook secrets, payer data and phones. docs/operations.md "Key
    rotation"."""


@vault.command("new")
@click.option("--id", "number", type=click.IntRange(1, 255), default=1, show_default=True, help="Id of the key.")
@answering
def new(number: int) -> Answer:
    """Print a new key for CAMBIST_VAULT_KEY, and a pepper. They are not stored: they are shown only once.

    Use it for the first start of an installation whose keys come from settings. The pepper never changes; a further key
    gets the next id, before the old one: CAMBIST_VAULT_KEY=2:NEW,1:OLD.
    """
    from ..app.compose import system_ids

    ids = system_ids()
    made = {"CAMBIST_VAULT_KEY": f"{number}:{ids.secret(_KEY_SIZE)}", "CAMBIST_VAULT_PEPPER": ids.secret(_KEY_SIZE)}
    return Answer(document=made, text="\n".join(f"{name}={value}" for name, value in made.items()))


@vault.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def status(*, as_json: bool) -> None:
    """Decrypt everything that is encrypted, and count values by key. Exit 1 when a value cannot be decrypted."""
    report = guarded(lambda: run_in_app(lambda ports: inspect_keys(ports, progress=_progress)), as_json=as_json)
    give(Answer(document=_document(report), text=_text(report)), as_json=as_json)
    if report.unopened_count:
        raise click.exceptions.Exit(REFUSED)


@vault.command("reencrypt")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def reencrypt(*, as_json: bool) -> None:
    """Encrypt values of older keys again with the current key, beside the working service.

    You may interrupt it with Ctrl-C; another run continues with the rest. Exit 0 when no older key is needed any more.
    Exit 1 when one is: a value cannot be decrypted, or a running process still encrypts with it. Restart that process,
    and run again.
    """
    report = guarded(lambda: run_in_app(lambda ports: reencrypt_all(ports, progress=_progress)), as_json=as_json)
    give(Answer(document=_document(report), text=_text(report)), as_json=as_json)
    if report.old_in_use or report.unopened_count:
        raise click.exceptions.Exit(REFUSED)


@vault.command("adopt")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@answering
@reasoned
def adopt(*, yes: bool) -> Answer:
    """Adopt the configured pepper and key for the database, after the former ones were lost or replaced for good.

    Stop every process first, and start all of them with the new ones. Values encrypted with the former keys stay
    unreadable, and with another pepper every API key is invalid until it is rotated.
    """
    if not yes:
        click.confirm("Are the former pepper and keys gone for good?", abort=True, err=True)

    async def work(ports: Ports) -> int:
        await adopt_vault(ports.storage, ports.vault, ports.clock, ports.ids)
        return ports.vault.current

    number = run_in_app(work, fitting=False)
    return Answer(document={"current": number}, text=f"key {number} and the pepper are this database's own now")


@vault.command("rotate")
@answering
def rotate() -> Answer:
    """Add a new key to the key file, to encrypt from the next start on. The service must be stopped.

    Then start the service and run `cambist vault reencrypt`.
    """
    settings = loaded_settings().settings
    path = _key_file(settings)
    from ..app.maintenance import add_vault_key, open_registry

    async def alone() -> int:
        registry = open_registry(settings)
        if registry is None:
            raise NotConfigured("a storage in memory keeps no keys")
        try:
            # A running service would not know the new key, and could not decrypt values encrypted with it by others.
            if not await registry.enter(Role.COUNTING, alone=True):
                who = ", ".join(await registry.others(Role.COUNTING))
                raise NotConfigured(f"the service runs ({who}): stop it first, for it would not know the new key")
            return add_vault_key(path)
        finally:
            await registry.close()

    number = asyncio.run(alone())
    text = (
        fields({"current key": number, "key file": path}) + "\n\nBack the file up, start, then: cambist vault reencrypt"
    )
    return Answer(document={"current": number, "key_file": str(path)}, text=text)


@vault.command("drop")
@click.argument("number", metavar="KEY_ID", type=click.IntRange(0, 255))
@answering
def drop(number: int) -> Answer:
    """Remove an old key from the key file when no value is encrypted with it. Older backups still need it."""
    path = _key_file(loaded_settings().settings)
    from ..app.maintenance import drop_vault_key

    report = run_in_app(lambda ports: inspect_keys(ports, progress=_progress))
    in_use = report.in_use.get(number, 0)
    if in_use and number != report.current:
        raise VaultError(f"{in_use} values are sealed with key {number}: run `cambist vault reencrypt` first")
    drop_vault_key(path, number)
    return Answer(document={"dropped": number, "key_file": str(path)}, text=f"key {number} is dropped from {path}")


def _key_file(settings: Settings) -> Path:
    """Return the path of the key file. Raises: NotConfigured."""
    from ..app.maintenance import key_file

    path = key_file(settings)
    if path is None:
        raise NotConfigured(
            "the keys come from CAMBIST_VAULT_KEY: put a new one before the old there, as 2:NEW,1:OLD (openssl rand "
            "-hex 32 makes one); first as 1:OLD,2:NEW where several processes run. See docs/operations.md"
        )
    return path


def _progress(kind: str, seen: int, reencrypted: int) -> None:
    if seen % 10_000 == 0 or reencrypted:
        click.echo(f"{kind}: {seen} looked at, {reencrypted} sealed anew", err=True)


def _document(report: KeyReport) -> dict[str, Any]:
    return {
        "current": report.current,
        "keys": report.keys,
        "in_use": {str(number): count for number, count in report.in_use.items()},
        "old_in_use": report.old_in_use,
        "droppable": report.droppable,
        "fields": {field.field: {str(n): count for n, count in field.by_key.items()} for field in report.fields},
        "reencrypted": report.reencrypted,
        "unopened": report.unopened_count,
        "first_unopened": report.unopened,
    }


def _text(report: KeyReport) -> str:
    head = fields(
        {
            "current key": report.current,
            "keys": report.keys,
            "older keys in use": report.old_in_use,
            "may be dropped": report.droppable,
            "records sealed anew": report.reencrypted,
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
