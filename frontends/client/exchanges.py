"""Exchanges of USDT and RUB, and their end clients (docs/exchanges.md "Exchanges")."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from .model import OpenEnum, Page, Record
from .operations import Face, Group, operation, walk
from .requests import Amount, Request, amount, at, create, get, post


class ExchangeStatus(OpenEnum):
    """Status of an exchange."""

    PENDING = "pending"
    AWAITING_USDT = "awaiting_usdt"
    USDT_RECEIVED = "usdt_received"
    RUB_SENDING = "rub_sending"
    AWAITING_RUB = "awaiting_rub"
    RUB_RECEIVED = "rub_received"
    USDT_SENDING = "usdt_sending"
    PARTIAL = "partial"
    COMPLETED = "completed"
    EXPIRED = "expired"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Direction(OpenEnum):
    """Direction of an exchange."""

    USDT_TO_RUB = "usdt_to_rub"
    RUB_TO_USDT = "rub_to_usdt"


class ClientStatus(OpenEnum):
    """State of an exchange client."""

    PENDING = "pending"
    VERIFIED = "verified"
    REJECTED = "rejected"
    BLOCKED = "blocked"


class NewExchange(Record, frozen=True, kw_only=True):
    """A new exchange with its deposit address, amount and expiry."""

    id: str
    status: ExchangeStatus
    crypto_deposit_address: str | None
    network: str | None
    amount_usdt: Decimal
    amount_rub: Decimal
    rate: Decimal
    expires_at: datetime
    external_id: str | None


class Exchange(NewExchange, frozen=True, kw_only=True):
    """An exchange. The received amount is None until the exchange is over."""

    direction: Direction
    amount_usdt_received: Decimal | None
    client_phone: str
    completed_at: datetime | None
    created_at: datetime


class KycDetails(Record, frozen=True, kw_only=True):
    """Result of the verification."""

    level: int
    passport_state: str | None
    address_state: str | None


class ExchangeClient(Record, frozen=True, kw_only=True):
    """An end client."""

    id: str
    phone: str
    nickname: str | None
    messenger_user_id: int | None
    kyc_status: ClientStatus
    kyc_verified_at: datetime | None
    kyc_details: KycDetails
    client_ref: str | None
    created_at: datetime
    updated_at: datetime


class Exchanges(Group[Face]):
    """`client.exchanges`"""

    @operation
    def create(
        self,
        *,
        amount_usdt: Amount,
        client_phone: str,
        client_bank_id: str,
        external_id: str | None = None,
        idempotency_key: str | UUID | None = None,
    ) -> Request[NewExchange]:
        """Start an exchange of a client's USDT to RUB."""
        body = {
            "amount_usdt": amount(amount_usdt),
            "client_phone": client_phone,
            "client_bank_id": client_bank_id,
            "external_id": external_id,
        }
        return create("/exchanges", NewExchange, body, idempotency_key)

    @operation
    def get(self, exchange_id: str) -> Request[Exchange]:
        """Return the current state of an exchange."""
        return get(at("exchanges", exchange_id), Exchange)

    @operation
    def list(
        self,
        *,
        status: ExchangeStatus | str | None = None,
        external_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[Exchange]]:
        """List exchanges in both directions, newest first. `created_from` is inclusive, `created_to` exclusive."""
        return get(
            "/exchanges",
            Page[Exchange],
            status=status,
            external_id=external_id,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate = walk(list)

    @operation
    def cancel(self, exchange_id: str) -> Request[Exchange]:
        """Cancel an exchange before USDT are received."""
        return post(at("exchanges", exchange_id, "cancel"), Exchange)

    @operation
    def clients(
        self,
        *,
        kyc_status: ClientStatus | str | None = None,
        q: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[Page[ExchangeClient]]:
        """List end clients, newest first. `q`: digits of the phone number, at least three."""
        return get(
            "/exchange-clients",
            Page[ExchangeClient],
            kyc_status=kyc_status,
            q=q,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )

    iterate_clients = walk(clients)
