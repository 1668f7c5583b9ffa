"""Payouts over HTTP, and the discontinued manual withdrawal (docs/settlement.md "Payouts").

No rule lives here.
"""

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from ...core.domain.accounts.accounts import Caller, Mode
from ...core.domain.days import iso, iso_or_none
from ...core.domain.errors import Refusal
from ...core.domain.settlement.withdrawals import Withdrawal, shown_hash
from ...core.usecases.paging import Page
from ...core.usecases.sandbox.withdrawals import WithdrawalSimulation, simulate_withdrawal
from ...core.usecases.settlement.withdrawals import get_withdrawal, list_withdrawals
from ...ports.bundle import Ports
from .door.answers import answer
from .door.bodies import page_of
from .door.operation import PAGES, ApiRequest, Operation, Refusals
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


async def page(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(withdrawals_view(await list_withdrawals(ports, caller, *page_of(request.query))))


async def one(ports: Ports, caller: Caller, request: ApiRequest[None]) -> ASGIApp:
    return answer(withdrawal_view(await get_withdrawal(ports, caller, request.id)))


async def withdraw(_: Ports, __: Caller, ___: ApiRequest[None]) -> ASGIApp:
    raise Refusal("WITHDRAWAL_DISCONTINUED", "Payouts are automatic after the daily settlement")


async def simulate(ports: Ports, caller: Caller, request: ApiRequest[WithdrawalSimulation]) -> ASGIApp:
    return answer(withdrawal_view(await simulate_withdrawal(ports, caller, request.id, request.read)))


_NO_WITHDRAWAL: Refusals = {404: ("WITHDRAWAL_NOT_FOUND",)}

WITHDRAWALS = (
    Operation(
        "list_withdrawals",
        "get",
        "/api/v1/withdrawals",
        "Money",
        "Payouts, the newest first",
        page,
        answer=WithdrawalsView,
        query=PAGES,
    ),
    Operation(
        "get_withdrawal",
        "get",
        "/api/v1/withdrawals/{withdrawal_id}",
        "Money",
        "A payout",
        one,
        answer=WithdrawalView,
        refusals=_NO_WITHDRAWAL,
    ),
    Operation(
        "create_withdrawal",
        "post",
        "/api/v1/withdrawals",
        "Money",
        "Discontinued: payouts are automatic",
        withdraw,
        refusals={410: ("WITHDRAWAL_DISCONTINUED",)},
    ),
    Operation(
        "simulate_withdrawal",
        "post",
        "/api/v1/sandbox/withdrawals/{withdrawal_id}/simulate",
        "Sandbox",
        "Lead a payout to an outcome, as the network would",
        simulate,
        body=WithdrawalSimulation,
        answer=WithdrawalView,
        refusals={**_NO_WITHDRAWAL, 409: ("INVALID_STATE",), 503: ("PROVIDER_UNAVAILABLE",)},
    ),
)
