"""Traced ports: they have the adapters' capabilities, and distinguish every outcome."""

import asyncio
from typing import Any

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.script import Ending, Twist
from cambist.frontends.layers.wrapping import OPERATIONS
from cambist.frontends.telemetry.telemetry import Telemetry, outcome_of
from cambist.frontends.telemetry.traced import TracedNotifier, traced
from cambist.ports.alarms import Alarms, TellsMerchants
from cambist.ports.bank import Bank, CancellingBank, InvoiceRequest, ListingBank
from cambist.ports.bank_simulator import BankSimulator
from cambist.ports.chain import ChainSimulator, ChainWatcher, OwnsAddresses
from cambist.ports.checking import Checkable, CountsSources
from cambist.ports.deposits import DepositSimulator, DepositWatcher
from cambist.ports.faults import Conflict, Fault, NotConfigured, NotSupported, OutcomeUnknown, Refused, Unavailable
from cambist.ports.files import ElsewhereFiles, FileStore, UploadReceiver
from cambist.ports.kyc import KycVerifier, NoAnswer, VerifierSimulator
from cambist.ports.mandates import MandateBank, MandateSimulator
from cambist.ports.members import BankListing
from cambist.ports.notifications import Notifications
from cambist.ports.notifier import Answer, DeliveryResult, WebhookRequest
from cambist.ports.payouts import FindingSender, ListingSender, ReplacingSender, SenderSimulator, UsdtSender
from cambist.ports.rates import RateSimulator, RateSource
from cambist.ports.receipts import ReceiptBank, ReceiptFinder
from cambist.ports.remittances import RemittanceBank, RemittanceSimulator
from cambist.ports.reporting import BookedList, ReportingBank
from cambist.ports.searching import (
    SearchesBindings,
    SearchesCharges,
    SearchesChecks,
    SearchesInvoices,
    SearchesRefunds,
    SearchesRemittances,
)
from tests.alarm_kit import Postbox
from tests.apps import Postman, open_test_app
from tests.tables import table
from tests.telemetry.kit import traced_app


@table(
    ("ending", "outcome"),
    [(Ending.UNKNOWN_DONE, "unknown"), (Ending.REFUSED, "refused"), (Ending.UNAVAILABLE, "unavailable")],
)
async def test_three_outcomes_of_a_bank_call_are_distinguished(ending: Ending, outcome: str) -> None:
    async with traced_app() as app:
        app.script.create.append(Twist(ending=ending))
        request = InvoiceRequest(operation="pay_1", amount_kopecks=1, purpose="", expires_at=app.clock.now())
        with pytest.raises(Fault):
            await app.ports.banks.named("simulator-test").create_invoice(request)
        bank = ("bank", "simulator-test", "create_invoice")
        assert app.telemetry.counters.calls.read() == [((*bank, outcome), 1)]


@table(
    ("fault", "outcome"),
    [
        (Refused("no"), "refused"),
        (OutcomeUnknown("perhaps"), "unknown"),
        (Unavailable("away"), "unavailable"),
        (NoAnswer("silent"), "unavailable"),
        (NotConfigured("no key"), "not_possible"),
        (NotSupported("cannot"), "not_possible"),
        (Conflict("rule"), "error"),
        (ValueError("a slip"), "error"),
        (asyncio.CancelledError(), "stopped"),
    ],
)
def test_every_fault_has_one_word(fault: BaseException, outcome: str) -> None:
    assert outcome_of(fault) == outcome


@table(
    ("result", "outcome"),
    [
        (DeliveryResult(answer=Answer.RESPONDED, status=204), "2xx"),
        (DeliveryResult(answer=Answer.RESPONDED, status=302), "3xx"),
        (DeliveryResult(answer=Answer.RESPONDED, status=410), "4xx"),
        (DeliveryResult(answer=Answer.RESPONDED, status=500), "5xx"),
        (DeliveryResult(answer=Answer.TIMEOUT), "timeout"),
        (DeliveryResult(answer=Answer.CONNECTION), "connection"),
        (DeliveryResult(answer=Answer.TLS), "tls"),
        (DeliveryResult(answer=Answer.BLOCKED), "blocked"),
    ],
)
async def test_webhook_counts_by_its_outcome(result: DeliveryResult, outcome: str) -> None:
    telemetry, postman = Telemetry(VirtualClock()), Postman()
    postman.answers.append(result)
    assert await TracedNotifier(telemetry, postman).send(WebhookRequest(url="", headers={}, body=b"")) == result
    assert telemetry.counters.deliveries.read() == [((outcome,), 1)]


ABILITIES: dict[str, tuple[type, ...]] = {
    "bank": (
        Bank,
        CancellingBank,
        BankSimulator,
        ListingBank,
        BankListing,
        BookedList,
        ReportingBank,
        MandateBank,
        MandateSimulator,
        ReceiptBank,
        ReceiptFinder,
        RemittanceBank,
        RemittanceSimulator,
        Notifications,
        SearchesInvoices,
        SearchesRefunds,
        SearchesBindings,
        SearchesCharges,
        SearchesRemittances,
    ),
    "chain": (ChainWatcher, ChainSimulator, CountsSources),
    "deposits": (DepositWatcher, DepositSimulator, OwnsAddresses, CountsSources),
    "kyc": (KycVerifier, SearchesChecks, VerifierSimulator, Notifications),
    "payouts": (
        UsdtSender,
        FindingSender,
        ListingSender,
        ReplacingSender,
        SenderSimulator,
        OwnsAddresses,
        CountsSources,
    ),
    "files": (FileStore, UploadReceiver, ElsewhereFiles),
    "rates": (RateSource, RateSimulator),
    "receipts": (ReceiptBank, ReceiptFinder, Notifications),
    "alarms": (Alarms, TellsMerchants),
}
"""Protocols of each port that the core checks by isinstance, and protocols whose calls are counted."""


@table("port", OPERATIONS)
async def test_a_traced_adapter_can_just_what_it_could(port: str) -> None:
    async with open_test_app(receipts="simulator") as plain:
        ports = plain.ports
        adapter: Any = {
            "bank": next(iter(ports.banks.banks.values())),
            "chain": ports.chain,
            "deposits": next(iter(ports.deposits.watchers.values())),
            "kyc": ports.kyc,
            "files": ports.files,
            "payouts": next(iter(ports.senders.senders.values())),
            "rates": ports.rates.of_mode("test")[0],
            "receipts": ports.register,
            "alarms": Postbox(),
        }[port]
        seen = traced(Telemetry(ports.clock), port, adapter)
        for ability in (*ABILITIES[port], Checkable):
            if getattr(ability, "_is_runtime_protocol", False):
                assert isinstance(seen, ability) == isinstance(adapter, ability)
        for name in ("name", "capabilities", "network"):
            assert getattr(seen, name, None) == getattr(adapter, name, None)
        for name in OPERATIONS[port]:
            assert callable(getattr(seen, name, None)) == hasattr(adapter, name)


def test_every_call_of_a_provider_s_port_is_counted() -> None:
    """A new operation of a port is named in OPERATIONS, or begins with `simulate`, which is a simulator's, or
    is `receive` of a file store, which our own front end calls."""
    for port, protocols in ABILITIES.items():
        verbs = {
            name
            for protocol in (*protocols, Checkable)
            for name, member in vars(protocol).items()
            if asyncio.iscoroutinefunction(member)
            and not name.startswith(("_", "simulate"))
            and (port, name) != ("files", "receive")
        }
        assert verbs == set(OPERATIONS[port]), port
