"""Payouts over HTTP, and the discontinued manual withdrawal (docs/settlement.md "Payouts").

No rule lives here.
"""

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath
from msgspec import UNSET, UnsetType

from ...core.domain.accounts.accounts import Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.errors import Refusal
from ...core.domain.settlement.withdrawals import Withdrawal, shown_hash
from ...core.usecases.paging import Page
from ...core.usecases.sandbox.withdrawals import WithdrawalSimulation, simulate_withdrawal
from ...core.usecases.settlement.withdrawals import get_withdrawal, list_withdrawals
from ...ports.bundle import Ports
from .door.access import ApiRequest, require_test_mode
from .door.answers import answer
from .door.bodies import body_reader, page_of
from .door.routing import Router
from .views import Pagination, pagination


class WithdrawalView(msgspec.Struct, frozen=True, kw_only=True):
    """A payout: the fields of its event (docs/payloads.md "Payout"), and what is known around them."""

    id: str
    withdrawal_id: str
    status: str
    amount_usdt: str
    wallet_address: str
    tx_hash: str | None
    """Null until it was sent."""
    network: str
    settlement_id: str | None
    created_at: str
    sent_at: str | None
    completed_at: str | None
    """When it came to its end, whichever it was."""
    sandbox: bool | UnsetType = UNSET


class WithdrawalsView(msgspec.Struct, frozen=True, kw_only=True):
    data: list[WithdrawalView]
    pagination: Pagination


def withdrawal_view(withdrawal: Withdrawal) -> WithdrawalView:
    """The withdrawal object of the interface."""
    return WithdrawalView(
        id=withdrawal.id,
        withdrawal_id=withdrawal.id,
        status=withdrawal.status.value,
        amount_usdt=str(withdrawal.amount),
        wallet_address=withdrawal.wallet,
        tx_hash=shown_hash(withdrawal),
        network=withdrawal.network,
        settlement_id=withdrawal.settlement_id,
        created_at=iso(withdrawal.created_at),
        sent_at=iso_or_none(withdrawal.sent_at),
        completed_at=iso_or_none(withdrawal.completed_at),
        sandbox=True if withdrawal.mode is Mode.TEST else UNSET,
    )


def withdrawals_view(page: Page[Withdrawal]) -> WithdrawalsView:
    """A page of payouts."""
    return WithdrawalsView(data=[withdrawal_view(each) for each in page.records], pagination=pagination(page))


def withdrawals_router(ports: Ports) -> Router:
    """GET /withdrawals, GET /withdrawals/{id}, POST /withdrawals."""

    @get("/")
    async def page(request: ApiRequest) -> Response[bytes]:
        number, size = page_of(request.query_params)
        return answer(withdrawals_view(await list_withdrawals(ports, request.auth, number, size)))

    @get("/{withdrawal_id:str}")
    async def one(request: ApiRequest, withdrawal_id: FromPath[str]) -> Response[bytes]:
        return answer(withdrawal_view(await get_withdrawal(ports, request.auth, withdrawal_id)))

    @post("/")
    async def withdraw() -> Response[bytes]:
        raise Refusal("WITHDRAWAL_DISCONTINUED", "Payouts are automatic after the daily settlement")

    return Router("/withdrawals", route_handlers=[page, one, withdraw])


def sandbox_withdrawals_router(ports: Ports) -> Router:
    """POST /sandbox/withdrawals/{id}/simulate, for test keys only."""

    @post("/{withdrawal_id:str}/simulate", status_code=200)
    async def simulate(request: ApiRequest, withdrawal_id: FromPath[str]) -> Response[bytes]:
        simulated = await simulate_withdrawal(
            ports, request.auth, withdrawal_id, await body_reader(request, WithdrawalSimulation)
        )
        return answer(withdrawal_view(simulated))

    return Router("/sandbox/withdrawals", route_handlers=[simulate], guards=[require_test_mode])
