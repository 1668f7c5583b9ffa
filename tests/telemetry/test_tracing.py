"""Traces (docs/operations.md "Tracing"): the tree of spans, which contain no personal data."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from cambist.adapters.script import Ending, Twist
from cambist.frontends.process.observed import observed
from cambist.frontends.settings.settings import Settings, SettingsError
from cambist.frontends.telemetry.tracing import Tracing, start_tracing
from tests.apps import open_test_app
from tests.telemetry.kit import traced_app

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
PERSONAL = ("+79161237788", "79161237788", "client_phone", "svc_test_", "pay.example", "merchant.example")


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Iterator[Tracing]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(provider)
    yield tracing
    tracing.close()


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


async def test_a_payment_s_spans(tracing: Tracing, exporter: InMemorySpanExporter) -> None:
    """A request continues the caller's trace; the bank's call is in the request's span, the webhook in its job's."""
    async with traced_app(tracing) as app:
        app.script.create.append(Twist())  # makes the service ask the bank
        created = await app.pay(traceparent=f"00-{TRACE}-{CALLER}-01")
        await app.simulate(created.json()["id"], outcome="paid", payer_name="ИВАН И.")
        await app.http.get("/api/v1/payments?external_id=%2B79161237788", headers=app.headers())
        await app.work()
    spans = by_name(exporter)
    request = spans["POST /api/v1/payments"]
    bank = spans["bank create_invoice"]
    jobs = [span for span in exporter.get_finished_spans() if span.name == "job webhook.deliver"]
    webhook = spans["deliver"]
    assert request.context is not None
    assert request.parent is not None
    assert (f"{request.context.trace_id:032x}", f"{request.parent.span_id:016x}") == (TRACE, CALLER)
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": "/api/v1/payments",
        "http.response.status_code": 201,
    }
    assert bank.parent == request.context
    assert bank.attributes is not None
    assert bank.attributes["cambist.outcome"] == "done"
    assert {job.parent for job in jobs} == {None}
    assert webhook.parent in [job.context for job in jobs]
    assert webhook.attributes is not None
    assert webhook.attributes["cambist.event.type"] == "payment.status_changed"
    told = " ".join(span.to_json() for span in exporter.get_finished_spans())
    assert [word for word in (*PERSONAL, "ИВАН") if word in told] == []


@pytest.mark.parametrize(
    ("ending", "outcome", "status"),
    [(Ending.UNKNOWN_DONE, "unknown", StatusCode.ERROR), (Ending.REFUSED, "refused", StatusCode.UNSET)],
)
async def test_a_refusal_is_an_answer_and_an_unknown_end_is_an_error(
    tracing: Tracing, exporter: InMemorySpanExporter, ending: Ending, outcome: str, status: StatusCode
) -> None:
    async with traced_app(tracing) as app:
        app.script.create.append(Twist(ending=ending))
        await app.pay()
    bank = by_name(exporter)["bank create_invoice"]
    assert bank.attributes is not None
    assert (bank.attributes["cambist.outcome"], bank.status.status_code) == (outcome, status)
    assert bank.events == (), "what the provider said may hold anything"


async def test_a_traceparent_that_is_none_begins_a_trace(tracing: Tracing, exporter: InMemorySpanExporter) -> None:
    async with traced_app(tracing) as app:
        for given in ("", "00-zz-zz-01", f"00-{TRACE}-{'0' * 16}-01", "x" * 5000):
            assert (await app.http.get("/livez", headers={"traceparent": given})).status_code == 200
    spans = exporter.get_finished_spans()
    assert [span.parent for span in spans] == [None] * 4


async def test_the_standard_variables_name_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    assert start_tracing()._provider.resource.attributes["service.name"] == "cambist"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "payments-eu")
    async with open_test_app() as plain, observed(Settings(tracing=True), plain.clock) as telemetry:
        assert telemetry is not None
        assert telemetry.tracing is not None
        assert telemetry.tracing._provider.resource.attributes["service.name"] == "payments-eu"


def test_an_exporter_that_we_do_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with pytest.raises(SettingsError, match="otlp, console or none"):
        start_tracing()
