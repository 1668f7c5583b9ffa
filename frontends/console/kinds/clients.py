"""End clients of merchants: verification status, and blocking. Phone numbers are shown only on request."""

from typing import Any

from ....core.domain.kyc.clients import Client, ClientStatus, client_status
from ....core.usecases.browse.browse import browse
from ....core.usecases.common.encrypted import open_client_phone
from ....core.usecases.kyc.clients import set_blocked, stored_as
from ....core.usecases.operators.client_forgetting import forget_client, remains
from ....ports.bundle import Ports
from ..columns import Column, merchant, when
from .kinds import ACCOUNT, MODE, Change, ConsoleAction, Doing, Filter, Kind, Wish, by_id
from .wishes import wanted


async def _read(ports: Ports, wish: Wish, after: Client | None, limit: int) -> list[Client]:
    asked = wanted(wish)
    named = {} if asked.status is None else stored_as(ClientStatus(asked.status))
    return await browse(ports, Client, asked, after, limit, **named)


_get = by_id(Client)


def _facts(client: Client) -> list[tuple[str, Any]]:
    return [
        ("status", client_status(client)),
        ("blocked", client.blocked),
        ("verification", client.kyc),
        ("verified", client.verified_at),
        ("passport", client.passport_state),
        ("address", client.address_state),
        ("level", client.level),
        ("refused last", client.was_refused or None),
        ("checks", client.checks),
        ("verifier", client.verifier),
        ("check", client.check_reference),
        ("phone", "masked; p shows it"),
        ("client ref", client.account_number),
        ("client", client.id),
        ("mode", client.mode),
        ("account", client.account_id),
        ("created", client.created_at),
        ("changed", client.updated_at),
    ]


def _private(ports: Ports, client: Client) -> dict[str, str]:
    return {"phone": open_client_phone(ports.vault, client)}


async def _block(doing: Doing) -> str:
    await set_blocked(doing.ports, doing.record.id, True)
    return "Blocked: no exchange, and no payment that asks for verification."


async def _unblock(doing: Doing) -> str:
    done = await set_blocked(doing.ports, doing.record.id, False)
    return f"Not blocked any more: the client is {client_status(done)} as before."


async def _forget(doing: Doing) -> str:
    return f"Forgotten. {remains(await forget_client(doing.ports, doing.record.id))}"


CLIENTS = Kind(
    name="client",
    title="Clients",
    key="7",
    columns=(
        when("created", lambda each: each.created_at),
        Column(title="status", cell=client_status, width=8),
        Column(title="verification", cell=lambda each: each.kyc, width=12),
        Column(title="mode", cell=lambda each: each.mode, width=4),
        Column(title="client ref", cell=lambda each: each.account_number, width=15, broad=20),
        merchant(12, 24),
        Column(title="verified", cell=lambda each: each.verified_at, width=19, wide=True),
        Column(title="client", cell=lambda each: each.id, width=36, wide=True),
    ),
    read=_read,
    get=_get,
    facts=_facts,
    filters=(MODE, Filter(name="status", choices=tuple(ClientStatus)), ACCOUNT),
    private=_private,
    actions=(
        ConsoleAction(
            name="client.block",
            title="Block",
            key="b",
            ends=True,
            allowed=lambda each: not each.blocked,
            changes=lambda each: [
                Change("status", client_status(each), ClientStatus.BLOCKED),
                Change("may", "pay and exchange, once verified", "neither"),
            ],
            run=_block,
        ),
        ConsoleAction(
            name="client.unblock",
            title="End the block",
            key="e",
            allowed=lambda each: each.blocked,
            changes=lambda each: [
                Change("blocked", "yes", "no"),
                Change("verification", each.kyc, each.kyc),
            ],
            run=_unblock,
        ),
        ConsoleAction(
            name="client.forget",
            title="Forget, for good",
            key="d",
            ends=True,
            allowed=lambda each: not each.blocked,
            changes=lambda each: [
                Change("client", each.id, "gone"),
                Change("phone, documents, events", "kept", "taken away"),
                Change("payments and exchanges", "kept", "kept"),
            ],
            run=_forget,
        ),
    ),
)
