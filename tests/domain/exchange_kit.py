"""An exchange of 100 USDT at 92.50 less 2 %, and one of 10 000 RUB the other way."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Account, Mode, Settings
from cambist.core.domain.exchanges.exchanges import Direction, Exchange, ExchangeStatus
from cambist.core.domain.exchanges.funds import Incoming
from cambist.core.domain.exchanges.money import quote_rub, quote_usdt
from cambist.core.domain.exchanges.orders import ExchangeCase, ExchangeOrder, RubExchangeOrder, new_exchange
from cambist.core.domain.kyc.clients import Client, KycStatus
from cambist.core.domain.ledger import BalanceType, JournalEntry
from cambist.core.domain.money import Rub, Usdt

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
END = NOW + timedelta(minutes=15)
TICK = timedelta(microseconds=1)
S = ExchangeStatus
U2R, R2U = Direction.USDT_TO_RUB, Direction.RUB_TO_USDT
ID = "exch_00000000-0000-4000-8000-000000000001"
PHONE = "+79990000001"
WALLET = "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"
BASE, MARKUP = "92.50", "2"


def account(**settings: Any) -> Account:
    chosen = Settings(**{"exchange": True, **settings})
    return Account(id="acc_1", name="Tea", default_shop_id="shop", created_at=NOW, settings=chosen)


def client(**more: Any) -> Client:
    fields: dict[str, Any] = {
        "id": "client-1",
        "account_id": "acc_1",
        "mode": Mode.LIVE,
        "phone": b"sealed",
        "phone_digest": b"digest",
        "kyc": KycStatus.VERIFIED,
        "created_at": NOW,
        "updated_at": NOW,
        "verified_at": NOW,
    }
    return Client(**{**fields, **more})


def case(**order: Any) -> ExchangeCase:
    """POST /exchanges, with nothing wrong."""
    fields: dict[str, Any] = {"amount_usdt": "100", "client_phone": PHONE, "client_bank_id": "bank100000000004"}
    return ExchangeCase(
        order=ExchangeOrder(**{**fields, **order}),
        account=account(),
        mode=Mode.LIVE,
        client=client(),
        quote=quote_usdt(Usdt.parse("100"), BASE, MARKUP),
    )


def rub_case(**order: Any) -> ExchangeCase:
    """An operator's, with nothing wrong."""
    fields: dict[str, Any] = {"amount_rub": "10000.00", "client_phone": PHONE, "client_wallet": WALLET}
    return ExchangeCase(
        order=RubExchangeOrder(**{**fields, **order}),
        account=account(exchange=False),
        mode=Mode.LIVE,
        client=client(),
        quote=quote_rub(Rub.parse("10000.00"), BASE, MARKUP),
    )


def made(given: ExchangeCase) -> Exchange:
    return new_exchange(given, exchange_id=ID, phone=b"sealed", phone_digest=b"digest", key_id="key", now=NOW)


def exchange(status: ExchangeStatus = S.AWAITING_USDT, **more: Any) -> Exchange:
    """USDT to RUB."""
    slot = None if status in (S.COMPLETED, S.FAILED, S.EXPIRED, S.CANCELLED) else b"digest"
    return msgspec.structs.replace(made(case()), **{"status": status, "active_slot": slot, **more})


def rub_exchange(status: ExchangeStatus = S.AWAITING_RUB, **more: Any) -> Exchange:
    """RUB to USDT."""
    return msgspec.structs.replace(made(rub_case()), **{"status": status, **more})


def incoming(amount: int, source: str = "a:0", at: datetime = NOW, *, is_final: bool = True) -> Incoming:
    return Incoming(source=source, amount=amount, at=at, is_final=is_final)


def posted(entry: JournalEntry | None) -> dict[BalanceType, int]:
    return {} if entry is None else {posting.balance_type: posting.amount for posting in entry.postings}


usdt_amounts = st.integers(1, 10**15).map(Usdt)
rub_amounts = st.integers(1, 1_000_000_00).map(Rub)
bases = st.decimals(min_value="0.01", max_value="999999", places=12).filter(lambda rate: rate > 0).map(str)
markups = st.integers(0, 50_0000).map(lambda part: str(Decimal(part) / 10_000))


def sold(amount: Usdt, base: str, markup: str, **more: Any) -> Exchange:
    quote = quote_usdt(amount, base, markup)
    fields = {name: getattr(quote, name) for name in ("amount_usdt", "amount_rub", "rate", "base_rate")}
    return exchange(S.RUB_SENDING, markup_percent=markup, amount_usdt_received=amount, **fields, **more)


def bought(amount: Rub, base: str, markup: str) -> Exchange:
    quote = quote_rub(amount, base, markup)
    fields = {name: getattr(quote, name) for name in ("amount_usdt", "amount_rub", "rate", "base_rate")}
    return rub_exchange(S.USDT_SENDING, markup_percent=markup, amount_rub_received=amount, **fields)
