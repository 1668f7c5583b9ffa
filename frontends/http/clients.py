"""End clients over HTTP. No rule lives here (docs/exchanges.md "Finding exchanges and clients";
docs/sandbox.md "The calls")."""

import msgspec
from litestar import Response, get, post

from ...core.domain.days import iso, iso_or_none
from ...core.domain.kyc.clients import client_status
from ...core.usecases.kyc.clients import (
    ClientFilter,
    ClientSimulation,
    ShownClient,
    list_clients,
    simulate_client,
)
from ...core.usecases.paging import Page
from ...ports.bundle import Ports
from .door.access import ApiRequest, require_test_mode
from .door.answers import answer
from .door.bodies import body_reader, page_of
from .door.routing import Router
from .views import Pagination, pagination


class KycDetailsView(msgspec.Struct, frozen=True, kw_only=True):
    """What the verifier found."""

    level: int
    passport_state: str | None
    address_state: str | None


class ClientView(msgspec.Struct, frozen=True, kw_only=True):
    """See docs/exchanges.md "Finding exchanges and clients". `nickname` and `messenger_user_id` are null: no way tells
    us of them."""

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
    """The exchange client of the interface."""
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
    """A page of clients."""
    return ClientsView(data=[client_view(each) for each in page.records], pagination=pagination(page))


def clients_router(ports: Ports) -> Router:
    """GET /exchange-clients."""

    @get("/")
    async def page(request: ApiRequest) -> Response[bytes]:
        query = request.query_params
        asked = ClientFilter(kyc_status=query.get("kyc_status"), q=query.get("q"))
        return answer(clients_view(await list_clients(ports, request.auth, asked, *page_of(query))))

    return Router("/exchange-clients", route_handlers=[page])


def sandbox_clients_router(ports: Ports) -> Router:
    """POST /sandbox/exchange-clients, for test keys only (docs/sandbox.md "The calls")."""

    @post("/", status_code=200)
    async def simulate(request: ApiRequest) -> Response[bytes]:
        wanted = (await body_reader(request, ClientSimulation))()
        return answer(client_view(await simulate_client(ports, request.auth, wanted)))

    return Router("/sandbox/exchange-clients", route_handlers=[simulate], guards=[require_test_mode])
