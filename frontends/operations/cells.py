"""The directory of cells: a file that names every cell, and the maps that proxies read (docs/cells.md "The directory").

Only operators' commands read it. The processes of a cell know their own name and nothing of the others.
"""

import asyncio
import os
import shlex
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from ...adapters.storage.fence import SETTLED
from ...core.domain.accounts.accounts import Account, ApiKey
from ...core.domain.cell_maps import MappedCell, foreign_keys, haproxy_maps, nginx_map
from ...core.domain.cells import CELL_NAME, AccountMove, Stage
from ...core.domain.operators.audit import OperatorAction
from ...core.domain.payments.proofs import DeliveryProof
from ...core.usecases.cells.cell import Cell
from ...core.usecases.cells.moving import Move, move_account, undo_move
from ...core.usecases.common.quarantine import read_hold
from ...core.usecases.operators.action_items import read_action_items
from ...ports.faults import Fault, NotConfigured
from ...ports.storage import AtLeast, OneOf
from ...ports.vault import VaultError
from ..app.compose import open_app
from ..settings.settings import PREFIX, Settings, SettingsError
from ..settings.sources import load
from .signing_in import signed_in

DIRECTORY = f"{PREFIX}CELLS"
USUAL = "cells.toml"
_NGINX = "cambist-cells.conf"
_MOST = 1000
_Word = Annotated[str, msgspec.Meta(pattern=r"^[\w.:\[\]*/-]+\Z")]
"""What a proxy's configuration takes as one word."""


class CellEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cell in the file."""

    settings: str
    """Its settings: a file like cambist.toml, or like deploy/cambist.env if it ends in `.env`."""
    servers: tuple[_Word, ...]
    """Addresses of its API processes, `host:port`."""
    hosts: tuple[_Word, ...] = ()
    """Further names of hosts whose requests belong to it."""


class MapEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the maps are written, and how proxies read them again."""

    nginx: str | None = None
    """Folder for `cambist-cells.conf`."""
    haproxy: str | None = None
    """Folder for `cells-keys.map`, `cells-prefixes.map` and `cells-hosts.map`."""
    reload: tuple[str, ...] = ()
    """Command with its arguments, run when a map changed."""


class Directory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    cells: dict[str, CellEntry]
    default: str | None = None
    """Cell of requests whose host is in no map; default: the first."""
    map: MapEntry = MapEntry()


class Cells:
    """The cells of a directory."""

    def __init__(self, directory: Directory, folder: Path) -> None:
        self._directory = directory
        self._folder = folder
        self.names = tuple(directory.cells)
        self.default = directory.default or self.names[0]

    def settings(self, name: str) -> Settings:
        """Return a cell's settings. Raises: NotConfigured; SettingsError."""
        entry = self._directory.cells.get(name)
        if entry is None:
            raise NotConfigured(f"the directory has no cell {name}: it has {', '.join(self.names)}")
        path = self._folder / entry.settings
        try:
            environ, flags = (
                (_environment(path), {"config": os.devnull}) if path.suffix == ".env" else ({}, {"config": str(path)})
            )
        except OSError as fault:
            raise NotConfigured(f"the settings of {name} cannot be read: {fault}") from fault
        found = load(environ, flags, path.parent).settings
        if found.cell != name:
            raise NotConfigured(f"{path} is not of this cell: it must set cell to {name}")
        return found

    @asynccontextmanager
    async def opened(self, name: str) -> AsyncIterator[Cell]:
        """Open a cell. Raises: NotConfigured; Unavailable; VaultError."""
        async with open_app(self.settings(name), patient=True) as app:
            if app.kept is None:
                raise NotConfigured(f"{name} has no storage")
            yield Cell(name=name, ports=app.ports, storage=app.kept)

    async def home(self, account_id: str) -> str | None:
        """Return the name of the cell that has an account, or that it has not left entirely; None if no cell has it."""
        found: str | None = None
        for name in self.names:
            async with self.opened(name) as cell:
                move = await cell.storage.get(AccountMove, account_id)
                if move is not None and move.stage is Stage.LEAVING:
                    return name
                if await cell.storage.get(Account, account_id) is not None:
                    found = name
        return found

    async def move(self, account_id: str, source: str, target: str, action: OperatorAction) -> Move:
        """Move an account, and write the maps. The operator is the one of the cell that it leaves. Raises as
        `move_account`."""
        async with self.opened(source) as here, self.opened(target) as there:
            operator = await signed_in(here.ports, self.settings(source))
            acting = msgspec.structs.replace(action, operator=operator)

            async def switch() -> None:
                await self.write_maps({source: here, target: there}, arrived=(account_id, target))

            return await move_account(here, there, account_id, action=acting, settled=SETTLED, switch=switch)

    async def undo(self, account_id: str, source: str, target: str) -> None:
        """Undo a move that did not happen. Raises as `undo_move`."""
        async with self.opened(source) as here, self.opened(target) as there:
            await undo_move(here, there, account_id)

    async def write_maps(
        self, opened: Mapping[str, Cell] | None = None, *, arrived: tuple[str, str] | None = None
    ) -> tuple[Path, ...]:
        """Write the maps of all cells, and reload the proxies if one changed. Return the changed files. `arrived`: an
        account that is in this cell, although another one still has its keys, too.

        Raises: Unavailable when a cell cannot be read, because its accounts would be missing; NotConfigured when a file
        cannot be written, or the command fails.
        """
        mapped = []
        for name in self.names:
            if opened is not None and name in opened:
                mapped.append(await self._mapped(opened[name], arrived))
            else:
                async with self.opened(name) as cell:
                    mapped.append(await self._mapped(cell, arrived))
        wanted: dict[Path, str] = {}
        where = self._directory.map
        if where.nginx is not None:
            wanted[self._folder / where.nginx / _NGINX] = nginx_map(mapped, self.default)
        if where.haproxy is not None:
            folder = self._folder / where.haproxy
            wanted |= {folder / name: text for name, text in haproxy_maps(mapped).items()}
        changed = tuple(path for path, text in wanted.items() if _write(path, text))
        if changed and where.reload:
            await _run(where.reload)
        return changed

    async def _mapped(self, cell: Cell, arrived: tuple[str, str] | None) -> MappedCell:
        entry = self._directory.cells[cell.name]
        urls = cell.ports.urls
        names = (urlsplit(url).hostname or "" for url in (urls.base_url, urls.pay_url, urls.app_url))
        keys: list[str] = []
        async for batch in cell.storage.scan(ApiKey):
            keys += [
                key.id for key in batch if arrived is None or key.account_id != arrived[0] or cell.name == arrived[1]
            ]
        return MappedCell(
            name=cell.name,
            servers=entry.servers,
            hosts=tuple(dict.fromkeys((*names, *entry.hosts))),
            keys=foreign_keys(cell.name, keys),
        )


def find_directory(environ: Mapping[str, str], given: str | None) -> Cells:
    """Read the directory: the given file, else that of CAMBIST_CELLS, else `cells.toml`. Raises: NotConfigured."""
    path = Path(given or environ.get(DIRECTORY) or USUAL)
    try:
        directory = msgspec.convert(tomllib.loads(path.read_text()), Directory)
    except OSError as fault:
        raise NotConfigured(
            f"the directory of cells cannot be read: {fault}. Name it by --directory or {DIRECTORY}"
        ) from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as fault:
        raise NotConfigured(f"{path} is no directory of cells: {fault}") from fault
    wrong = [name for name in directory.cells if not CELL_NAME.match(name)]
    if wrong or not directory.cells:
        raise NotConfigured(f"{path}: a cell has a name of 1 to 16 lower-case letters and digits")
    if directory.default is not None and directory.default not in directory.cells:
        raise NotConfigured(f"{path}: the default is no cell of the file")
    return Cells(directory, path.parent)


def _environment(path: Path) -> dict[str, str]:
    """Read a file of variables, as systemd does."""
    found: dict[str, str] = {}
    for line in path.read_text().splitlines():
        name, sign, value = line.strip().partition("=")
        if sign and not name.startswith("#"):
            found[name] = "".join(shlex.split(value))
    return found


def _write(path: Path, text: str) -> bool:
    """Replace a file in one step. Return whether it changed."""
    try:
        if path.exists() and path.read_text() == text:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.new")
        draft.write_text(text)
        draft.replace(path)
    except OSError as fault:
        raise NotConfigured(f"the map cannot be written: {fault}") from fault
    return True


async def _run(command: tuple[str, ...]) -> None:
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
    except OSError as fault:
        raise NotConfigured(f"the maps are written, but the command for the proxies cannot run: {fault}") from fault
    said, _ = await process.communicate()
    if process.returncode:
        last = said.decode("utf-8", "replace").strip()[-500:]
        raise NotConfigured(f"the maps are written, but {shlex.join(command)} failed: {last}")


class CellState(msgspec.Struct, frozen=True, kw_only=True):
    """State of one cell, for operators."""

    name: str
    fault: str | None = None
    """Why the cell cannot be read; the rest is unknown then."""
    accounts: int = 0
    held: bool = False
    """Whether live money is quarantined."""
    urgent: tuple[str, ...] = ()
    """Action items that must not wait."""
    items: int = 0
    """All action items."""
    moves: tuple[AccountMove, ...] = ()
    """Accounts that are being moved out of it or into it."""


async def state_of(cells: Cells, name: str) -> CellState:
    """Return the state of a cell. A cell that cannot be read is a state, too, so that the others are shown."""
    try:
        async with cells.opened(name) as cell:
            async with cell.storage.unit() as unit:
                accounts = await unit[Account].total()
                moves = await unit[AccountMove].find(stage=OneOf((Stage.LEAVING, Stage.ARRIVING)), limit=_MOST)
            items = (await read_action_items(cell.ports)).found
            return CellState(
                name=name,
                accounts=accounts,
                held=await read_hold(cell.ports) is not None,
                urgent=tuple(f"{item.of} {item.object_id}: {item.text}" for item in items if item.urgent),
                items=len(items),
                moves=tuple(moves),
            )
    except (Fault, VaultError, SettingsError) as fault:
        return CellState(name=name, fault=str(fault))


async def twice_claimed(cells: Cells, since: datetime) -> list[tuple[str, str, str]]:
    """Return transactions that confirm delivery in two cells since a moment: the transaction and the two cells. Each
    cell counts a transaction once, and this compares the cells. Raises: Unavailable."""
    seen: dict[str, str] = {}
    found = []
    for name in cells.names:
        async with cells.opened(name) as cell:
            async for proofs in cell.storage.scan(DeliveryProof, status_at=AtLeast(since)):
                for claim in (proof.claim for proof in proofs if proof.claim is not None):
                    if claim in seen:
                        found.append((claim, seen[claim], name))
                    seen[claim] = name
    return found
