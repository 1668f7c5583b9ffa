"""End clients: lists for merchants, simulation in test mode, blocking by operators (docs/exchanges.md "Finding
exchanges and clients"; docs/sandbox.md "The calls").
"""

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ....ports.bundle import Ports
from ....ports.storage import OneOf, Snapshot, Unit
from ...domain import shared_fields as shared
from ...domain.accounts.accounts import Caller, Mode
from ...domain.errors import Refusal, read_choice, shape_error
from ...domain.ids import canonical_uuid
from ...domain.kyc.clients import IN_PROGRESS, Client, ClientStatus, KycStatus, staged
from ...domain.masked import Masked
from ..accounts.accounts import find_account, storable
from ..common import keyset
from ..common.account_time import in_test_time
from ..common.encrypted import open_client_phone
from ..common.keyset import Count, Cursor, KeysetPage, Listed, Listing, keyset_page, read_listing, with_records
from ..common.long_lists import LongList, long_page
from ..common.paging import MomentFilter, Page, Position, newest
from ..common.units import retrying, unit_of_work
from .gate import find_client
from .register import new_client
from .results import announce_client

_NEWEST_FIRST = "-created_at"
_BATCH = 500
_SHORTEST_SEARCH = 3
_E164 = re.compile(r"\+[0-9]{10,15}\Z")
_DIGITS = re.compile(r"[0-9]")

_STORED: dict[ClientStatus, dict[str, Any]] = {
    ClientStatus.PENDING: {"blocked": False, "kyc": OneOf(IN_PROGRESS)},
    ClientStatus.VERIFIED: {"blocked": False, "kyc": KycStatus.VERIFIED},
    ClientStatus.REJECTED: {"blocked": False, "kyc": KycStatus.FAILED},
    ClientStatus.BLOCKED: {"blocked": True},
}


class ClientFilter(MomentFilter, frozen=True, kw_only=True):
    """Raw query values of GET /exchange-clients; None when absent."""

    kyc_status: str | None = None
    q: str | None = None


class ShownClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client with the decrypted phone number. Its repr hides it."""

    client: Client
    phone: str

    def __repr__(self) -> str:
        return f"ShownClient({self.client.id!r}, ***)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("client", self.client.id)]


class ClientSimulation(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/exchange-clients."""

    phone: Annotated[shared.Phone, Meta(description="`+` and 10 to 15 digits")]
    kyc_status: Annotated[str, Meta(description="State of the verification"), shared.among(ClientStatus)]


def shown(ports: Ports, client: Client) -> ShownClient:
    """Return a client as its merchant may see it."""
    return ShownClient(client=client, phone=open_client_phone(ports.vault, client))


def stored_as(status: ClientStatus) -> dict[str, Any]:
    """Return the query criteria of a status."""
    return _STORED[status]


async def list_clients(ports: Ports, caller: Caller, asked: ClientFilter, number: int, size: int) -> Page[ShownClient]:
    """Return a page of the caller's clients, newest first, as of one moment.

    Phone numbers are encrypted, so a search decrypts all numbers of the account one by one. Raises: Refusal
    VALIDATION_ERROR.
    """
    criteria: dict[str, Any] = {"account_id": caller.account_id, "mode": caller.mode, "created_at": asked.made()}
    if asked.kyc_status is not None:
        criteria |= _STORED[read_choice("kyc_status", asked.kyc_status, ClientStatus)]
    digits = None if asked.q is None else "".join(_DIGITS.findall(asked.q))
    if digits is not None and len(digits) < _SHORTEST_SEARCH:
        return Page([], number, size, 0)
    offset = (number - 1) * size
    if digits is None and asked.kyc_status is None:
        long = LongList(kind=Client, caller=caller, name="clients", made=asked.made())
        found = await long_page(ports, long, number, size)
        return Page([shown(ports, client) for client in found.records], number, size, found.total)
    async with ports.storage.snapshot() as seen:
        if digits is None:
            page = await newest(seen, Client, number, size, **criteria)
            return Page([shown(ports, client) for client in page.records], number, size, page.total)
        matches: list[ShownClient] = []
        total = 0
        wanted = Listing(
            kind=Client,
            criteria={name: each for name, each in criteria.items() if name != "created_at"},
            made=asked.made(),
        )
        async for client in _every(seen, wanted):
            each = shown(ports, client)
            if digits in each.phone:
                if offset <= total < offset + size:
                    matches.append(each)
                total += 1
    return Page(matches, number, size, total)


async def browse_clients(
    ports: Ports, caller: Caller, asked: ClientFilter, cursor: Cursor | None, size: int
) -> Listed[ShownClient]:
    """Return a page of the caller's clients by cursor, newest first. A search decrypts at most SCANNED numbers.

    Raises: Refusal VALIDATION_ERROR.
    """
    criteria: dict[str, Any] = {"account_id": caller.account_id, "mode": caller.mode}
    also: dict[str, Any] = {}
    if asked.kyc_status is not None:
        also = dict(_STORED[read_choice("kyc_status", asked.kyc_status, ClientStatus)])
        if isinstance(also.get("kyc"), KycStatus):
            criteria["kyc"] = also.pop("kyc")
    wanted = Listing(kind=Client, criteria=criteria, also=also, made=asked.made())
    digits = None if asked.q is None else "".join(_DIGITS.findall(asked.q))
    if digits is not None:
        if len(digits) < _SHORTEST_SEARCH:
            return Listed(page=KeysetPage(records=[]), count=Count(0))
        async with ports.storage.snapshot() as seen:
            page = await _search(seen, ports, wanted, digits, cursor, size)
        is_whole = page.newer is None and page.older is None
        return Listed(page=page, count=Count(len(page.records)) if is_whole else None)
    found = await read_listing(ports, wanted, cursor, size)
    records = [shown(ports, client) for client in found.page.records]
    return Listed(page=with_records(found.page, records), count=found.count)


async def _search(
    seen: Snapshot, ports: Ports, wanted: Listing[Client], digits: str, cursor: Cursor | None, size: int
) -> KeysetPage[ShownClient]:
    """Return a page of the clients whose numbers contain these digits. A search that read SCANNED clients says how far
    it came."""
    is_newer = cursor is not None and cursor.newer
    found, edge, read = list[ShownClient](), cursor, 0
    is_end = is_cut = False
    while len(found) <= size and not (is_end or is_cut):
        page = await keyset_page(seen, wanted, edge, _BATCH)
        records = page.records
        if is_newer and edge is not None:
            # At the top of the list the page also has records on the other side of the position.
            here = edge.position
            records = [each for each in records[::-1] if Position(each.created_at, each.id) > here]
        found += [each for each in (shown(ports, client) for client in records) if digits in each.phone]
        read += len(records)
        beyond = page.newer if is_newer else page.older
        is_end, is_cut = beyond is None, read >= keyset.SCANNED
        edge = edge if beyond is None else Cursor(beyond, newer=is_newer)
    is_full = len(found) > size
    if is_newer and is_end and not is_full:
        return await _search(seen, ports, wanted, digits, None, size)
    found = found[:size][:: -1 if is_newer else 1]
    stopped = edge.position if edge is not None and is_cut and not is_full and not is_end else None
    first = _position(found[0]) if found else None if cursor is None else cursor.position
    last = _position(found[-1]) if found else None if cursor is None else cursor.position
    if is_newer:
        newer, older = stopped or first, last
    else:
        newer, older = None if cursor is None else first, last if is_full else stopped
    return KeysetPage(records=found, newer=newer, older=older, searched_to=None if stopped is None else stopped.at)


def _position(found: ShownClient) -> Position:
    return Position(found.client.created_at, found.client.id)


async def get_client(ports: Ports, caller: Caller, client_id: str) -> ShownClient:
    """Return a client of the caller's account and mode. Raises: Refusal CLIENT_NOT_FOUND (never 403)."""
    client = await ports.storage.get(Client, client_id) if canonical_uuid(client_id) == client_id else None
    if client is None or client.account_id != caller.account_id or client.mode is not caller.mode:
        raise Refusal("CLIENT_NOT_FOUND", "There is no client of this id")
    return shown(ports, client)


async def _every(seen: Snapshot, wanted: Listing[Client]) -> AsyncIterator[Client]:
    """Iterate over all matching clients in batches, newest first."""
    cursor: Cursor | None = None
    while True:
        page = await keyset_page(seen, wanted, cursor, _BATCH)
        for client in page.records:
            yield client
        if page.older is None:
            return
        cursor = Cursor(page.older)


async def every_client(ports: Ports, account_id: str, mode: Mode | None = None, limit: int = 1000) -> list[Client]:
    """Return clients of an account for operators, newest first; phone numbers stay encrypted. Raises: Refusal
    ACCOUNT_NOT_FOUND.
    """
    async with ports.storage.unit() as unit:
        await find_account(unit, account_id)
        found: list[Client] = []
        for each in Mode if mode is None else (mode,):
            found += await unit[Client].find(
                account_id=account_id, mode=each, order=_NEWEST_FIRST, limit=limit, readable=True
            )
    return sorted(found, key=lambda client: (client.created_at, client.id), reverse=True)[:limit]


@in_test_time(Client)
@unit_of_work()
async def set_blocked(ports: Ports, unit: Unit, record_id: str, blocked: bool) -> Client:
    """Block or unblock a client as an operator. The verification does not change, and no event exists for it.

    Raises: Refusal CLIENT_NOT_FOUND.
    """
    client = await unit[Client].get(record_id) if storable(record_id) else None
    if client is None:
        raise Refusal("CLIENT_NOT_FOUND", "There is no client of this id")
    if client.blocked is blocked:
        return client
    return unit[Client].save(msgspec.structs.replace(client, blocked=blocked, updated_at=ports.clock.now()))


async def simulate_client(ports: Ports, caller: Caller, wanted: ClientSimulation) -> ShownClient:
    """Put the client of a phone into a state, creating it if needed, and write the event of that change if it has one.

    Raises: Refusal VALIDATION_ERROR.
    """
    if not _E164.match(wanted.phone):
        raise shape_error("phone", "must be E.164: + and 10 to 15 digits")
    status = read_choice("kyc_status", wanted.kyc_status, ClientStatus)

    async def work(unit: Unit) -> Client:
        present = await find_client(ports, unit, caller.account_id, caller.mode, wanted.phone)
        before = present or new_client(ports, caller.account_id, caller.mode, wanted.phone)
        after = staged(before, status, ports.clock.now())
        await announce_client(ports, unit, before, after)
        if present is None:
            return unit[Client].add(after)
        return present if after == present else unit[Client].save(after)

    return shown(ports, await retrying(ports.storage, work, again_on=("clients_phone",)))
