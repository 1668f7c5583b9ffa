"""HTTP API of end clients, without business rules (docs/exchanges.md "Finding exchanges and clients"; docs/sandbox.md
"The calls")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.days import iso, iso_or_none
from ...core.domain.kyc.clients import ClientStatus, DocumentState, client_status
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

    level: Annotated[int, Meta(description="Level of the verification")]
    passport_state: Annotated[
        str | None,
        Meta(description="Result of the check of the identity document"),
        shared.among((*DocumentState, None)),
    ]
    address_state: Annotated[
        str | None,
        Meta(description="Result of the check of the proof of address"),
        shared.among((*DocumentState, None)),
    ]


class ClientView(msgspec.Struct, frozen=True, kw_only=True):
    """A client of exchanges (docs/exchanges.md "Finding exchanges and clients"). `nickname` and `messenger_user_id` are
    always null: they belong to clients of a messenger bot, and this service has none."""

    id: Annotated[str, shared.ID]
    phone: Annotated[str, shared.PHONE]
    nickname: Annotated[str | None, Meta(description="Always null: the service identifies clients by phone")]
    messenger_user_id: Annotated[int | None, Meta(description="Always null: the service identifies clients by phone")]
    kyc_status: Annotated[str, Meta(description="State of the verification"), shared.among(ClientStatus)]
    kyc_verified_at: Annotated[str | None, Meta(description="Time of the verification")]
    kyc_details: Annotated[KycDetailsView, Meta(description="Result of the verification")]
    client_ref: Annotated[str | None, Meta(description="The client's number in your books")]
    created_at: Annotated[str, shared.CREATED_AT]
    updated_at: Annotated[str, Meta(description="Time of the last change")]


class ClientsView(msgspec.Struct, frozen=True, kw_only=True):
    data: Annotated[list[ClientView], shared.DATA]
    pagination: Annotated[Pagination, shared.PAGINATION]


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
