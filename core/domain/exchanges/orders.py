"""The body of POST /exchanges, an operator's request for RUB to USDT, and the order of their refusals: RULES, RUB_RULES
(docs/exchanges.md "Making one", "RUB to USDT"; docs/concepts.md "What is refused first")."""

import re
from collections.abc import Callable
from datetime import datetime
from enum import IntEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from ..accounts.accounts import Account, Mode
from ..errors import Refusal, shape_error, value_error
from ..kyc.clients import Client, is_verified_for_tests, require_registered
from ..masked import Masked
from ..money import Rub, Usdt
from ..shapes import check_text
from ..tron import is_tron_address
from ..wallets import NOBODYS, is_nobodys
from .exchanges import LIFETIME, Direction, Exchange, ExchangeStatus
from .money import ExchangeQuote, check_bounds

EXTERNAL_ID_LONGEST = 40

_PHONE = re.compile(r"\+[0-9]{10,15}\Z")
"""The only accepted spelling of a phone, so that a client cannot have two exchanges by two spellings."""
_BANK = re.compile(r"bank[0-9]{1,20}\Z")


class ExchangeOrder(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /exchanges, field by field. Null counts as absent."""

    _shown = ("amount_usdt",)

    amount_usdt: Annotated[shared.UsdtText, Meta(description="Amount that the client sends, up to 8 decimals")]
    client_phone: Annotated[shared.Phone, shared.CLIENT_PHONE]
    client_bank_id: Annotated[
        str,
        Meta(description="The bank that receives the payout: `bank` and digits, from the list of the service team"),
        shared.limits(pattern="^bank[0-9]+$"),
    ]
    external_id: Annotated[Annotated[str, shared.limits(maxLength=40)] | None, shared.EXTERNAL_ID] = None
    idempotency_key: Annotated[
        str | None, Meta(description="Older form of the Idempotency-Key header; the header takes precedence")
    ] = None
    """Legacy. The header is required and wins, so this has no effect."""


class RubExchangeOrder(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An operator's request on behalf of a merchant: RUB to USDT."""

    _shown = ("amount_rub",)

    amount_rub: str
    client_phone: str
    client_wallet: str
    """The client's TRON address."""
    external_id: str | None = None


class ExchangeCase(msgspec.Struct, frozen=True, kw_only=True):
    """An order together with everything that its rules check. Data for a later step is absent in an earlier one."""

    order: ExchangeOrder | RubExchangeOrder
    account: Account
    mode: Mode
    is_on: bool = True
    """Whether its direction is on for all merchants."""
    members: frozenset[str] | None = None
    """The banks at which clients can be paid; None while unknown."""
    client: Client | None = None
    """The client with this phone, updated from the verifier; None if there is none."""
    quote: ExchangeQuote | None = None
    """None when there is no rate."""
    has_active: bool = False
    """Whether the client has an exchange that is not final. For simultaneous requests the storage's unique rule
    decides."""

    @property
    def direction(self) -> Direction:
        return Direction.USDT_TO_RUB if isinstance(self.order, ExchangeOrder) else Direction.RUB_TO_USDT

    @property
    def amount_usdt(self) -> Usdt:
        """Amount of POST /exchanges; valid only after the shape rule. Raises: ValueError."""
        return Usdt.parse(self.order.amount_usdt) if isinstance(self.order, ExchangeOrder) else Usdt(0)

    @property
    def amount_rub(self) -> Rub:
        """Amount of an operator's order; valid only after the shape rule. Raises: ValueError."""
        return Rub.parse(self.order.amount_rub) if isinstance(self.order, RubExchangeOrder) else Rub(0)


class Step(IntEnum):
    """Data that a rule needs. The steps run in order, each only if the previous one refused nothing."""

    ORDER = 1
    """Data from the request and the account."""
    CLIENT = 2
    """The client, which may need a call to the verifier."""
    QUOTE = 3
    """The rate, which needs calls to rate sources, and everything that depends on it."""


def _shape(case: ExchangeCase) -> None:
    order = case.order
    try:
        _ = case.amount_usdt, case.amount_rub
    except ValueError as error:
        name = "amount_usdt" if isinstance(order, ExchangeOrder) else "amount_rub"
        raise shape_error(name, str(error)) from None
    if isinstance(order, ExchangeOrder) and not _BANK.match(order.client_bank_id):
        raise shape_error("client_bank_id", "must be bank and digits")
    if isinstance(order, RubExchangeOrder) and not is_tron_address(order.client_wallet):
        raise shape_error("client_wallet", "must be a TRON address")
    if isinstance(order, RubExchangeOrder) and is_nobodys(order.client_wallet):
        raise shape_error("client_wallet", NOBODYS)
    check_text("external_id", order.external_id, EXTERNAL_ID_LONGEST)


def _phone(case: ExchangeCase) -> None:
    if not _PHONE.match(case.order.client_phone):
        raise value_error("client_phone", "must be E.164: + and 10 to 15 digits")


def _is_connected(case: ExchangeCase) -> None:
    if not case.account.settings.exchange:
        raise Refusal("FEATURE_NOT_ENABLED", "USDT to RUB exchanges are not connected to this account")


def _direction_is_on(case: ExchangeCase) -> None:
    if not case.is_on:
        raise Refusal("FEATURE_DISABLED", "This direction of exchange is off for the moment; try again later")


def _above_zero(case: ExchangeCase) -> None:
    if isinstance(case.order, ExchangeOrder):
        if case.amount_usdt <= Usdt(0):
            raise Refusal("INVALID_AMOUNT", "amount_usdt must be above zero")
    elif case.amount_rub <= Rub(0):
        raise Refusal("INVALID_AMOUNT", "amount_rub must be above zero")


def _bank_is_known(case: ExchangeCase) -> None:
    order = case.order
    if isinstance(order, ExchangeOrder) and case.members is not None and order.client_bank_id not in case.members:
        raise shape_error("client_bank_id", "is no bank that can be paid to")


def _client(case: ExchangeCase) -> None:
    is_blocked = case.client is not None and case.client.blocked
    if is_blocked or not is_verified_for_tests(case.mode, case.order.client_phone):
        require_registered(case.client)


def _rate(case: ExchangeCase) -> None:
    if case.quote is None:
        raise Refusal("RATE_INVALID", "No rate to exchange by at the moment; try again", retry_after=30)


def _bounds(case: ExchangeCase) -> None:
    if case.quote is not None:
        check_bounds(case.quote.amount_rub)


def _one_active(case: ExchangeCase) -> None:
    if case.has_active:
        raise in_progress()


def in_progress() -> Refusal:
    """Return the refusal for the rule of one active exchange, and for a Conflict of the storage's ACTIVE_RULE."""
    return Refusal("EXCHANGE_IN_PROGRESS", "The client already has an active exchange")


class ExchangeRule(msgspec.Struct, frozen=True):
    """One reason to refuse. `check` raises its Refusal; it may rely on the rules before it."""

    name: str
    step: Step
    check: Callable[[ExchangeCase], None]


RULES = (
    ExchangeRule("shape", Step.ORDER, _shape),
    ExchangeRule("phone", Step.ORDER, _phone),
    ExchangeRule("connected", Step.ORDER, _is_connected),
    ExchangeRule("direction is on", Step.ORDER, _direction_is_on),
    ExchangeRule("above zero", Step.ORDER, _above_zero),
    ExchangeRule("bank is known", Step.ORDER, _bank_is_known),
    ExchangeRule("client", Step.CLIENT, _client),
    ExchangeRule("rate", Step.QUOTE, _rate),
    ExchangeRule("bounds", Step.QUOTE, _bounds),
    ExchangeRule("one active", Step.QUOTE, _one_active),
)
"""Order of the refusals of POST /exchanges, as everywhere (docs/concepts.md "What is refused first"): shape (400),
values (422), account and service, the amount. Then the rules that call providers: the client before the rate, so
that a client who may not exchange never causes a call to a rate source; then the rules that depend on the rate. One
active exchange comes last, because only this can change during the calls: the unit that writes the exchange decides
it anyway."""

RUB_RULES = tuple(rule for rule in RULES if rule.name != "connected")
"""The same for an operator's RUB to USDT: the account's switch is for the other direction
(docs/errors.md "All codes")."""


def judge_exchange(case: ExchangeCase, step: Step) -> None:
    """Check the rules of this step in order. Raises: the Refusal of the first rule that the order breaks."""
    rules = RULES if case.direction is Direction.USDT_TO_RUB else RUB_RULES
    for rule in rules:
        if rule.step is step:
            rule.check(case)


def new_exchange(
    case: ExchangeCase, *, exchange_id: str, phone: bytes, phone_digest: bytes, key_id: str | None, now: datetime
) -> Exchange:
    """Return the exchange of an order that passed all rules; `phone` is encrypted for it. Raises: ValueError without a
    quote."""
    order, quote = case.order, case.quote
    if quote is None or quote.direction is not case.direction:
        raise ValueError("the order was not judged")
    return Exchange(
        id=exchange_id,
        account_id=case.account.id,
        mode=case.mode,
        status=ExchangeStatus.PENDING,
        direction=quote.direction,
        amount_usdt=quote.amount_usdt,
        amount_rub=quote.amount_rub,
        rate=quote.rate,
        base_rate=quote.base_rate,
        markup_percent=quote.markup_percent,
        client_phone=phone,
        phone_digest=phone_digest,
        active_slot=phone_digest,
        client_id=None if case.client is None else case.client.id,
        client_bank_id=order.client_bank_id if isinstance(order, ExchangeOrder) else None,
        client_wallet=order.client_wallet if isinstance(order, RubExchangeOrder) else None,
        external_id=order.external_id,
        key_id=key_id,
        created_at=now,
        expires_at=now + LIFETIME,
    )


ReadExchange = Callable[[], ExchangeOrder]
"""Reads the body on demand: a repeat of a known key never parses it."""
