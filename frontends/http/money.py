"""Money reads and the discontinued manual withdrawal (SPEC "Money reads")."""

from litestar import Response, Router, post

from ...core.domain.errors import Refusal


def money_router() -> Router:
    """POST /withdrawals."""

    @post("/withdrawals")
    async def withdraw() -> Response[bytes]:
        raise Refusal("WITHDRAWAL_DISCONTINUED", "Payouts are automatic after the daily settlement")

    return Router("/", route_handlers=[withdraw])
