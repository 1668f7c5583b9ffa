"""The client and the service say the same: operations, queries, bodies, fields and values, one by one."""

import inspect
import typing
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

import msgspec

from cambist.core.domain import movements
from cambist.core.domain.exchanges import exchanges
from cambist.core.domain.gateways import gateways
from cambist.core.domain.kyc import clients as server_clients
from cambist.core.domain.kyc import kyc
from cambist.core.domain.payloads import EVENT_PAYLOADS
from cambist.core.domain.payments import payments, proofs
from cambist.core.domain.refunds import refunds
from cambist.core.domain.settlement import settlement, withdrawals
from cambist.core.domain.subscriptions import periods
from cambist.core.domain.subscriptions import subscriptions as server_subscriptions
from cambist.core.domain.webhooks import events
from cambist.core.usecases.sandbox import exchanges as sandbox_exchanges
from cambist.core.usecases.sandbox import refunds as sandbox_refunds
from cambist.core.usecases.sandbox import subscriptions as sandbox_subscriptions
from cambist.core.usecases.sandbox import withdrawals as sandbox_withdrawals
from cambist.core.usecases.settlement import payout_items
from cambist.frontends import client
from cambist.frontends.client import (
    account,
    clients,
    money,
    payment_links,
    request_log,
    sandbox,
    settlements,
    subscriptions,
    webhook_endpoints,
    webhooks,
)
from cambist.frontends.client import events as client_events
from cambist.frontends.client import exchanges as client_exchanges
from cambist.frontends.client import exports as client_exports
from cambist.frontends.client import kyc as client_kyc
from cambist.frontends.client import payments as client_payments
from cambist.frontends.client import receipts as client_receipts
from cambist.frontends.client import refunds as client_refunds
from cambist.frontends.client import reports as client_reports
from cambist.frontends.client import withdrawals as client_withdrawals
from cambist.frontends.client.model import OpenEnum, Page
from cambist.frontends.client.operations import Operation
from cambist.frontends.client.requests import Request
from cambist.frontends.http.operations import OPERATIONS
from tests.tables import table

GROUPS = (
    clients.Merchant,
    client_payments.Payments,
    payment_links.PaymentLinks,
    client_refunds.Refunds,
    client_receipts.Receipts,
    subscriptions.Subscriptions,
    client_exchanges.Exchanges,
    client_kyc.Kyc,
    money.Money,
    client_exports.Exports,
    client_reports.Reports,
    settlements.Settlements,
    client_withdrawals.Withdrawals,
    client_events.Events,
    webhook_endpoints.WebhookEndpoints,
    request_log.RequestLog,
    account.OwnAccount,
    sandbox.SandboxCalls,
)
NOT_CALLED = {
    ("post", "/api/v1/withdrawals"): "410 for everybody: payouts are automatic",
    ("get", "/api/v1/payment-methods/{method_id}/exchange-rate"): "404 for every method",
    ("get", "/api/v1/export-files/{link_id}"): "the address of a browser, without a key",
    ("get", "/health"): "the client asks under /api/v1",
}
LEFT_OUT = {"idempotency_key": "legacy: the header wins"}

SPECIMENS: dict[str, Any] = {
    "payer": client.Payer(full_name="A B", document_number="AB123"),
    "metadata": {"a": 1},
    "amount_min_rub": "1",
    "amount_max_rub": "1",
    "reusable": True,
    "payments_max": 2,
    "fields": [{"label": "Name"}],
    "expires_at": datetime(2026, 1, 1, tzinfo=UTC),
    "client_info": {"ip": "::1"},
    "amount_rub": "1",
    "actual_amount_rub": "1",
    "cap_amount_rub": "1",
    "cap_window_rub": "1",
    "amount_usdt": "1",
    "ttl_minutes": 5,
    "auto_return": True,
    "interval_count": 1,
    "page": 1,
    "per_page": 1,
    "wait": 1,
    "pending": True,
    "seconds": 1,
    "grant": client.UploadGrant(upload_url="https://cambist.test/uploads/k?s=1", file_key="k"),
    "document": b"x",
    "filter": {"status": "paid"},
    "format": "csv",
    "since": datetime(2026, 1, 1, tzinfo=UTC),
    "until": datetime(2026, 1, 2, tzinfo=UTC),
    "created_from": datetime(2026, 1, 1, tzinfo=UTC),
    "created_to": datetime(2026, 1, 1, tzinfo=UTC),
    "to": datetime(2026, 1, 1, tzinfo=UTC),
}


def operations() -> Iterator[tuple[str, Operation[Any, Any]]]:
    for group in GROUPS:
        for name, value in vars(group).items():
            if isinstance(value, Operation):
                yield f"{group.__name__}.{name}", value


def whole(operation: Operation[Any, Any]) -> Request[Any]:
    """The request with every parameter given."""
    parameters = list(inspect.signature(operation._describe).parameters)[1:]
    return operation.request(**{name: SPECIMENS.get(name, f"{{{name}}}") for name in parameters})


REQUESTS = {name: whole(each) for name, each in operations()}
OF_SERVICE = {name: request for name, request in REQUESTS.items() if request.is_keyed}


def place(request: Request[Any]) -> tuple[str, str]:
    return request.method.lower(), unquote(request.target)


SERVICE = {(each.method, each.path): each for each in OPERATIONS}


def test_the_client_has_every_operation_and_no_other() -> None:
    called, served = {place(request) for request in OF_SERVICE.values()}, SERVICE.keys() - NOT_CALLED.keys()
    assert served - called == set(), "an operation of the service without a function in frontends/client/<subject>.py"
    assert called - served == set(), "a function of the client without a row in frontends/http/openapi"


@table("name", OF_SERVICE)
def test_query_body_and_key_are_those_of_the_service(name: str) -> None:
    request = OF_SERVICE[name]
    described = SERVICE[place(request)]
    known = {each.name for each in described.query}
    # The file of all lines is an operation of its own here, and a value of `format` there, which has no pages.
    expected = known - ({"page", "per_page"} if "format" in request.query else {"format"})
    assert request.query.keys() == expected, f"{name} in frontends/client, and the query in frontends/http/openapi"
    assert (request.key is not None) == described.creates
    sent = set() if request.body is None else set(msgspec.json.decode(request.body))
    taken = set() if described.body is None else fields(described.body) - set(LEFT_OUT)
    assert sent == taken, f"{name} in frontends/client sends other fields than the service takes, {described.body}"


def fields(kind: Any) -> set[str]:
    return set(kind.__struct_encode_fields__)


def pairs(ours: Any, theirs: Any) -> Iterator[tuple[Any, Any]]:
    """The client's struct and the service's, with all that lie inside them."""
    ours, theirs = _struct(ours), _struct(theirs)
    if ours is None or theirs is None:
        return
    yield ours, theirs
    inside = {field.encode_name: field.type for field in msgspec.structs.fields(theirs)}
    for field in msgspec.structs.fields(ours):
        yield from pairs(field.type, inside.get(field.encode_name))


def _struct(kind: Any) -> Any:
    """The struct in an annotation: itself, of a list, or beside None."""
    for inner in typing.get_args(kind):
        if typing.get_origin(kind) is not Page and _struct(inner) is not None:
            return _struct(inner)
    named = typing.get_origin(kind) or kind
    return kind if isinstance(named, type) and issubclass(named, msgspec.Struct) else None


def answer_of(operation: Operation[Any, Any]) -> Any:
    hints = typing.get_type_hints(operation._describe)
    return typing.get_args(hints["return"])[0]


@table(("name", "operation"), [each for each in operations() if each[0] in OF_SERVICE])
def test_answers_have_the_fields_of_the_service(name: str, operation: Operation[Any, Any]) -> None:
    service = SERVICE[place(REQUESTS[name])].answer
    for ours, theirs in pairs(answer_of(operation), service):
        assert fields(typing.get_origin(ours) or ours) == fields(theirs), f"{ours} in frontends/client, and {theirs}"


@table("event", EVENT_PAYLOADS)
def test_events_have_the_fields_of_the_service(event: events.EventType) -> None:
    assert fields(webhooks.EVENTS[event.value]) == fields(EVENT_PAYLOADS[event])


@table(
    ("ours", "theirs"),
    [
        (sandbox.ExchangeOutcome, sandbox_exchanges.OUTCOMES),
        (sandbox.RefundOutcome, sandbox_refunds.OUTCOMES),
        (sandbox.WithdrawalOutcome, sandbox_withdrawals.OUTCOMES),
        (sandbox.SubscriptionOutcome, tuple(sandbox_subscriptions._MAKES_SENSE)),
    ],
)
def test_outcomes_are_those_of_the_sandbox(ours: Any, theirs: tuple[str, ...]) -> None:
    assert set(typing.get_args(ours)) == {str(each) for each in theirs}


@table(
    ("ours", "theirs"),
    [
        (client.PaymentStatus, payments.PaymentStatus),
        (client.FailureReason, payments.FailureReason),
        (client.ProofStatus, proofs.ProofStatus),
        (client.ProofNetwork, proofs.ProofNetwork),
        (client.ProofRejection, proofs.RejectionReason),
        (client.SubscriptionStatus, server_subscriptions.SubscriptionStatus),
        (client.BindingCharge, payments.BindingCharge),
        (client.Interval, periods.Interval),
        (client.RefundStatus, refunds.RefundStatus),
        (client.PendingReason, refunds.PendingReason),
        (client.MovementKind, movements.MOVEMENT_KINDS),
        (client.WithdrawalItemKind, (*movements.MOVEMENT_KINDS, *payout_items.CarryKind)),
        (client.MovementObject, movements.ObjectType),
        (client.BalancePart, movements.Balance),
        (client.ExchangeStatus, exchanges.ExchangeStatus),
        (client.Direction, exchanges.Direction),
        (client.ClientStatus, server_clients.ClientStatus),
        (client.UserType, kyc.UserType),
        (client.WithdrawalStatus, withdrawals.WithdrawalStatus),
        (client.GatewayStatus, gateways.GatewayStatus),
        (client.ItemKind, settlement.ItemKind),
        (client.EventType, events.EventType),
        (client.DeliveryStatus, events.DeliveryStatus),
    ],
)
def test_values_are_those_of_the_service(ours: type[OpenEnum], theirs: type[StrEnum]) -> None:
    assert {each.value for each in ours} == {each.value for each in theirs}
