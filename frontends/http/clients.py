"""HTTP API of end clients, without business rules (docs/exchanges.md "Finding exchanges and clients"; docs/sandbox.md
"The calls")."""

import msgspec
from litestar.types import ASGIApp

from ...core.domain.accounts.accounts import Caller
from ...core.domain.days import iso, iso_or_none
from ...core.domain.kyc.clients import ClientStatus, client_status
from ...core.usecases.common.paging import Page
from ...core.usecases.kyc.clients import (
    ClientFilter,
    ClientSimulation,
    ShownClient,
    list_clients,
    simulate_client,
)
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.bodies import page_of
from .edge.operation import MADE, PAGES, ApiRequest, Operation, Query
from .views import Pagination, pagination


class KycDetailsView(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the verification."""

    level: int
    passport_state: str | None
    address_state: str | None


class ClientView(msgspec.Struct, frozen=True, kw_only=True):
    """A client of exchanges (docs/exchanges.md "Finding exchanges and clients"). `nickname` and `messenger_user_id` are
    always null: they belong to clients of a messenger bot, and this service has none."""

    id: str
    phone: str
    nickname: str | None
    messenger_user_id: int | None
    kyc_status: str
    kyc_verified_at: str | None
    kyc_details: KycDetailsView
    client_ref: str | None
    created_at: str
    updated_at: str


class ClientsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[ClientView]
    pagination: Pagination


def client_view(shown: ShownClient) -> ClientView:
    """Return the exchange client object of the API."""
    client = shown.client
    return ClientView(
        id=client.id,
        phone=shown.phone,
        nickname=None,
        messenger_user_id=None,
        kyc_status=client_status(client).value,
        kyc_verified_at=iso_or_none(client.verified_at),
        kyc_details=KycDetailsView(
            level=client.level,
            passport_state=None if client.passport_state is None else client.passport_state.value,
            address_state=None if client.address_state is None else client.address_state.value,
        ),
        client_ref=client.account_number,
        created_at=iso(client.created_at),
        updated_at=iso(client.updated_at),
    )


def clients_view(page: Page[ShownClient]) -> ClientsView:
    """Return a page of clients."""
    return ClientsView(data=[client_view(each) for each in page.records], pagination=pagination(page))


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    asked = request.asked(ClientFilter)
    return answer(clients_view(await list_clients(ports, caller, asked, *page_of(request.query))))


async def simulate(ports: Ports, caller: Caller, request: ApiRequest[ClientSimulation]) -> ASGIApp:
    return answer(client_view(await simulate_client(ports, caller, request.read())))


CLIENTS = (
    Operation(
        "list_exchange_clients",
        "get",
        "/api/v1/exchange-clients",
        "Exchanges",
        "List end clients, newest first",
        page,
        answer=ClientsView,
        query=(
            *PAGES,
            Query("kyc_status", "Only in this status.", {"enum": [*ClientStatus]}),
            Query("q", "At least three digits of the phone; other characters are ignored."),
            *MADE,
        ),
    ),
    Operation(
        "simulate_exchange_client",
        "post",
        "/api/v1/sandbox/exchange-clients",
        "Sandbox",
        "Set the verification state of the client with this phone",
        simulate,
        body=ClientSimulation,
        answer=ClientView,
        refusals={404: ("NOT_FOUND",)},
    ),
)
