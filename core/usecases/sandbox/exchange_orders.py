"""Exchanges that only test mode can create through the API (docs/sandbox.md "The calls"): RUB to USDT, which an
operator creates in live mode, and in both directions a pending exchange without an address or invoice.
"""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta

from ....ports.bundle import Ports
from ...domain import shared_fields as shared
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.orders import ExchangeOrder, RubExchangeOrder
from ...domain.masked import Masked
from ..exchanges.creation import begin_exchange
from .exchanges import made_up_wallet

SANDBOX_BANK = "bank100000000004"
"""Default destination of simulated RUB."""


class ExchangeWish(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/exchanges. The amount that is set determines the direction."""

    client_phone: Annotated[shared.Phone, shared.CLIENT_PHONE]
    amount_rub: Annotated[
        shared.RubText | None, Meta(description="Amount of an exchange of RUB to USDT; or use `amount_usdt`")
    ] = None
    amount_usdt: Annotated[
        shared.UsdtText | None, Meta(description="Amount of an exchange of USDT to RUB; or use `amount_rub`")
    ] = None
    address: Annotated[
        str | None, Meta(description="The client's wallet for RUB to USDT; a made-up address if absent")
    ] = None
    client_bank_id: Annotated[
        Annotated[str, shared.limits(pattern="^bank[0-9]+$")] | None,
        Meta(description="The client's bank for USDT to RUB; a made-up bank if absent"),
    ] = None
    external_id: Annotated[Annotated[str, shared.limits(maxLength=40)] | None, shared.EXTERNAL_ID] = None
    pending: Annotated[
        bool, Meta(description="Whether the exchange stays `pending` for ten seconds of the account's clock")
    ] = False
    """Whether it stays `pending` until the first run of its watch ten seconds later."""


async def begin_simulated(ports: Ports, caller: Caller, read_wish: Callable[[], ExchangeWish]) -> Exchange:
    """Create the requested exchange. Raises: Refusal, in the order of `orders.RULES` and `RUB_RULES`."""
    wish = read_wish()
    if (wish.amount_rub is None) == (wish.amount_usdt is None):
        raise Refusal("VALIDATION_ERROR", "Give either amount_rub or amount_usdt")
    return await begin_exchange(ports, caller, _order(wish), opens=not wish.pending)


def _order(wish: ExchangeWish) -> ExchangeOrder | RubExchangeOrder:
    if wish.amount_usdt is not None:
        return ExchangeOrder(
            amount_usdt=wish.amount_usdt,
            client_phone=wish.client_phone,
            client_bank_id=wish.client_bank_id or SANDBOX_BANK,
            external_id=wish.external_id,
        )
    return RubExchangeOrder(
        amount_rub=wish.amount_rub or "",
        client_phone=wish.client_phone,
        client_wallet=wish.address or made_up_wallet(wish.client_phone),
        external_id=wish.external_id,
    )
