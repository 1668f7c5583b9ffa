"""HTTP API of the sandbox, for test keys only (docs/sandbox.md "The calls")."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import Meta

from ...core.domain.accounts.accounts import Caller
from ...core.usecases.operators.review import Review, resolve_own_mismatch
from ...core.usecases.sandbox.data import forget_test_data
from ...core.usecases.sandbox.sandbox import PaymentSimulation, simulate
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation
from .records import PaymentView, payment_view


class ForgottenView(msgspec.Struct, frozen=True, kw_only=True):
    """Number of deleted records of each kind. If not `complete`, another call continues."""

    removed: Annotated[dict[str, int], Meta(description="Number of deleted records by kind")]
    complete: Annotated[bool, Meta(description="False: not finished; call again")]


async def simulate_payment(ports: Ports, caller: Caller, request: ApiRequest[PaymentSimulation]) -> ASGIApp:
    return answer(payment_view(ports, await simulate(ports, caller, request.id, request.read())))


async def resolve_payment(ports: Ports, caller: Caller, request: ApiRequest[Review]) -> ASGIApp:
    return answer(payment_view(ports, await resolve_own_mismatch(ports, caller, request.id, request.read().outcome)))


async def forget(ports: Ports, caller: Caller, _: ApiRequest[None]) -> ASGIApp:
    forgotten = await forget_test_data(ports, caller)
    return answer(ForgottenView(removed=forgotten.removed, complete=forgotten.complete))


SANDBOX = (
    Operation(
        "simulate_payment",
        "post",
        "/api/v1/sandbox/payments/{payment_id}/simulate",
        "Sandbox",
        "Simulate a report of the bank about a payment",
        simulate_payment,
        body=PaymentSimulation,
        answer=PaymentView,
        refusals={404: ("PAYMENT_NOT_FOUND", "NOT_FOUND")},
    ),
    Operation(
        "resolve_payment",
        "post",
        "/api/v1/sandbox/payments/{payment_id}/resolve",
        "Sandbox",
        "Simulate the review of an amount mismatch",
        resolve_payment,
        body=Review,
        answer=PaymentView,
        refusals={404: ("PAYMENT_NOT_FOUND", "NOT_FOUND"), 409: ("INVALID_STATUS",)},
    ),
    Operation(
        "delete_sandbox_data",
        "delete",
        "/api/v1/sandbox/data",
        "Sandbox",
        "Delete the account's test objects",
        forget,
        answer=ForgottenView,
        refusals={404: ("NOT_FOUND",)},
    ),
)
