"""`cambist cell …`: the cells of an installation, and the maps that lead requests to them."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from ...core.domain.days import iso
from ..app.compose import system_clock
from ..operations.cells import Cells, CellState, find_directory, state_of, twice_claimed
from .groups import group
from .output import Answer, give, table
from .session import REFUSED, answering, guarded

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_CLAIMS = timedelta(days=30)


def directory_option(command: F) -> F:
    """Add `--directory` to a command."""
    text = "File that names the cells. Default: CAMBIST_CELLS, or ./cells.toml."
    return click.option("--directory", metavar="FILE", help=text)(command)


def with_cells(directory: str | None, work: Callable[[Cells], Awaitable[T]]) -> T:
    """Run work on the cells of the directory."""

    async def inside() -> T:
        return await work(find_directory(os.environ, directory))

    return asyncio.run(inside())


@group()
def cell() -> None:
    """Show cells, and write the maps that lead requests to them."""


@cell.command("list")
@directory_option
@answering
def list_all(directory: str | None) -> Answer:
    """List the cells with their accounts, action items and moves."""
    found = with_cells(directory, _states)
    documents = [_document(each) for each in found]
    titles = ("cell", "state", "accounts", "items", "urgent", "moves")
    rows = [(each.name, _word(each), each.accounts, each.items, len(each.urgent), len(each.moves)) for each in found]
    return Answer(document={"data": documents}, text=table(titles, rows))


@cell.command("status")
@directory_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def status(directory: str | None, *, as_json: bool) -> None:
    """Check all cells: whether they answer, urgent items, unfinished moves, and transactions counted in two cells.

    Ends with 1 if a person should look.
    """
    answer, is_well = guarded(lambda: _status(directory), as_json=as_json)
    give(answer, as_json=as_json)
    if not is_well:
        raise click.exceptions.Exit(REFUSED)


def _status(directory: str | None) -> tuple[Answer, bool]:

    async def work(cells: Cells) -> tuple[list[CellState], list[tuple[str, str, str]]]:
        found = await _states(cells)
        if any(each.fault for each in found):
            return found, []
        return found, await twice_claimed(cells, system_clock().now() - _CLAIMS)

    found, claims = with_cells(directory, work)
    lines = [f"{each.name}: {_word(each)}, {each.accounts} accounts, {each.items} items" for each in found]
    for each in found:
        lines += [f"  {each.name}: {text}" for text in (*((each.fault,) if each.fault else ()), *each.urgent)]
        lines += [f"  {each.name}: {move.id} is {move.stage}, other cell {move.cell}" for move in each.moves]
    lines += [f"  {claim} confirms delivery in {first} and in {second}" for claim, first, second in claims]
    document = {
        "data": [_document(each) for each in found],
        "claimed_twice": [{"transaction": claim, "cells": [first, second]} for claim, first, second in claims],
    }
    is_well = not claims and all(_word(each) == "ok" for each in found)
    return Answer(document=document, text="\n".join(lines)), is_well


@cell.command("map")
@directory_option
@answering
def write_map(directory: str | None) -> Answer:
    """Write the maps for nginx and HAProxy, and reload them if a map changed."""
    changed = [str(path) for path in with_cells(directory, lambda cells: cells.write_maps())]
    text = "\n".join(changed) if changed else "The maps are up to date"
    return Answer(document={"changed": changed}, text=text)


async def _states(cells: Cells) -> list[CellState]:
    return [await state_of(cells, name) for name in cells.names]


def _word(each: CellState) -> str:
    if each.fault is not None:
        return "unreachable"
    return "held" if each.held else "urgent" if each.urgent else "moving" if each.moves else "ok"


def _document(each: CellState) -> dict[str, Any]:
    return {
        "cell": each.name,
        "state": _word(each),
        "fault": each.fault,
        "accounts": each.accounts,
        "items": each.items,
        "urgent": list(each.urgent),
        "moves": [
            {"account_id": move.id, "stage": move.stage.value, "other_cell": move.cell, "held_at": iso(move.held_at)}
            for move in each.moves
        ],
    }
