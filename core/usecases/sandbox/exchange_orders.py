"""Beginning an exchange in test mode as nobody can by the public interface: RUB to USDT, which live an operator begins,
and in either direction one that is still without a place for the client's money (docs/sandbox.md "The calls")."""

from collections.abc import Callable

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Caller
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.orders import ExchangeOrder, RubExchangeOrder
from ...domain.masked import Masked
from ..exchanges.creation import begin_exchange
from .exchanges import made_up_wallet

SANDBOX_BANK = "bank100000000004"
"""Where simulated RUB go unless the wish says otherwise."""


class ExchangeWish(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sandbox/exchanges. Which of the amounts it has says the direction."""

    client_phone: str
    amount_rub: str | None = None
    """RUB to USDT."""
    amount_usdt: str | None = None
    """USDT to RUB."""
    address: str | None = None
    """Of the client's wallet, for RUB to USDT; absent: a made-up one."""
    client_bank_id: str | None = None
    """Of USDT to RUB; absent: a made-up one."""
    external_id: str | None = None
    pending: bool = False
    """It stays `pending` until it is looked at ten seconds later."""


async def begin_simulated(ports: Ports, caller: Caller, read_wish: Callable[[], ExchangeWish]) -> Exchange:
    """Begin what is wished for. Raises: Refusal, as `orders.RULES` and `RUB_RULES` have them."""
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
