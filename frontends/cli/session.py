"""The frame around every command: settings, a house to work in, one answer, and an exit status that means something
(0 done, 1 refused, 2 wrong usage, 3 waits for a second operator, 130 interrupted)."""

import asyncio
import functools
import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ...core.domain.days import iso
from ...core.domain.errors import Refusal, doc_url
from ...core.domain.operators.audit import Act
from ...core.domain.operators.pending_acts import PendingAct
from ...core.usecases.acts.audit import acting
from ...core.usecases.acts.decisions import Waits
from ...ports.bundle import Ports
from ...ports.faults import Fault
from ...ports.vault import VaultError
from ..settings import SettingsError
from ..settings_sources import Loaded, load
from ..signing_in import signed_in
from .output import Answer, complain, give, reader_is_gone
from .views import act_document, act_text

T = TypeVar("T")

REFUSED = 1
WAITS = 3
"""Not done yet: another operator is to confirm it (docs/operations.md "Two pairs of eyes")."""
INTERRUPTED = 130
"""As a shell reports a program that ended by SIGINT."""


def loaded_settings(**flags: Any) -> Loaded:
    """The settings of this call; `flags` are the command's own, by the options' names. Raises: SettingsError."""
    everywhere = click.get_current_context().find_root().params
    loaded = load(os.environ, {**everywhere, **flags}, Path.cwd())
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)
    return loaded


def in_house(work: Callable[[Ports], Awaitable[T]], *, fitting: bool = True) -> T:
    """Open the house, do the work there, close it. What it writes is the operator's act, and audited as such.

    `fitting`: refuse keys of the vault that are not the database's.
    """
    settings = loaded_settings().settings
    context = click.get_current_context()
    from ..compose import open_house

    async def inside() -> T:
        async with open_house(settings, patient=True, fitting=fitting) as house:
            return await work(acting(house.ports, _act(context, await signed_in(house.ports, settings))))

    return asyncio.run(inside())


def _act(context: click.Context, operator: str) -> Act:
    """`cambist refund approve ref_…` is the act `refund.approve` on the object of its first id."""
    given = context.params
    names = sorted((name for name in given if name.endswith("_id")), key=lambda name: name == "account_id")
    reason = given.get("reason")
    return Act(
        operator=operator,
        name=".".join(context.command_path.split()[1:]),
        object_id=next((given[name] for name in names if given[name]), None),
        reason=reason if isinstance(reason, str) else "",
    )


def reasoned(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Give a command `--reason`, which only the audit log keeps."""

    @click.option("--reason", default="", help="Why; kept in the audit log.")
    @functools.wraps(command)
    def given_a_reason(*, reason: str, **given: Any) -> Answer:  # noqa: ARG001 - read from the context
        return command(**given)

    return given_a_reason


def _code(fault: Fault) -> str:
    """A fault's class as a code: `SchemaMismatch` is SCHEMA_MISMATCH."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(fault).__name__).upper()


def _doc_url(code: str) -> str | None:
    """Where the service that this command works on explains a refusal, as far as its address is known."""
    context = click.get_current_context(silent=True)
    if context is None:
        return None
    try:
        address = (
            context.params.get("base_url") or load(os.environ, context.find_root().params, Path.cwd()).settings.base_url
        )
    except SettingsError:
        return None
    return doc_url(address, code)


_WRONG_ENCODING = (
    f"an argument has letters that are no {sys.getfilesystemencoding()}, the encoding that the terminal names: set a "
    "locale of UTF-8, as in LC_ALL=C.UTF-8"
)


def _is_misread() -> bool:
    """Whether an argument of this command came in another encoding than the terminal names."""
    context = click.get_current_context(silent=True)
    values = () if context is None else context.params.values()
    texts = (text for value in values for text in (value if isinstance(value, tuple) else (value,)))
    return any("\udc80" <= char <= "\udcff" for text in texts if isinstance(text, str) for char in text)


def guarded(run: Callable[[], T], *, as_json: bool = False) -> T:
    """Run it; what it cannot do becomes a message and an exit status. A fault of our own keeps its traceback."""
    try:
        return run()
    except Waits as waiting:
        give(_waits(waiting.act), as_json=as_json)
        raise click.exceptions.Exit(WAITS) from None
    except Refusal as refusal:
        complain(
            refusal.code,
            [_WRONG_ENCODING if refusal.code == "VALIDATION_ERROR" and _is_misread() else refusal.message],
            as_json=as_json,
            details=refusal.details,
            doc_url=_doc_url(refusal.code),
        )
    except SettingsError as error:
        lines = [f"{fault.origin}: {fault.message}" for fault in error.faults]
        complain("SETTINGS_INVALID", lines, as_json=as_json, details=list(error.faults))
    except VaultError as error:
        complain("VAULT_ERROR", [str(error)], as_json=as_json)
    except Fault as fault:
        complain(_code(fault), [str(fault)], as_json=as_json)
    except BrokenPipeError:
        if reader_is_gone():
            raise  # click ends the program without a word, as `head` expects it
        complain("UNAVAILABLE", ["a connection broke off"], as_json=as_json)
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        complain("UNAVAILABLE", [f"{named}{error.strerror or error}"], as_json=as_json)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None
    raise click.exceptions.Exit(REFUSED)


def _waits(act: PendingAct) -> Answer:
    document = act_document(act, act.created_at)
    asks = f"Nothing was done yet: it waits until {iso(act.expires_at)} for a second operator."
    how = f"  cambist act confirm {act.id}\n  cambist act reject {act.id}"
    return Answer(document=document, text=f"{asks}\n\n{act_text(document)}\n\n{how}")


def answering(command: Callable[..., Answer]) -> Callable[..., None]:
    """Make a function that returns an Answer a command that takes `--json`."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @functools.wraps(command)
    def answered(*, as_json: bool, **given: Any) -> None:
        give(guarded(lambda: command(**given), as_json=as_json), as_json=as_json)

    return answered
