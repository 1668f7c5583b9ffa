"""OpenTelemetry tracing, from the extra `otel`. Nothing of it is imported unless `tracing` is set.

The standard OTEL_* variables configure exporter, sampling and names. Spans contain routes, kinds, object ids and
outcomes, but no URL, query, body or error text.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..settings.settings import SettingFault, SettingsError
from .version import version

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

Attributes = Mapping[str, str | int | None]
"""Span attributes, with OpenTelemetry's names or our own below `cambist.`. None values are left out."""

_EXPORTER = "OTEL_TRACES_EXPORTER"


class Tracing:
    """A private tracer, which is not registered for the whole process."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry.trace import SpanKind

        self._provider = provider
        self._tracer = provider.get_tracer("cambist", version())
        self._kinds = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT, "consumer": SpanKind.CONSUMER}

    @contextmanager
    def span(
        self, name: str, kind: str, attributes: Attributes, carrier: Mapping[str, str] | None = None
    ) -> Iterator["Span"]:
        """Open a span below the current one, or below the one that `carrier` (headers) names."""
        from opentelemetry.propagate import extract

        with self._tracer.start_as_current_span(
            name,
            context=extract(carrier) if carrier else None,
            kind=self._kinds[kind],
            attributes=_known(attributes),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield span

    def close(self) -> None:
        """Send the remaining spans. Blocks on the collector, so call it in a thread."""
        self._provider.shutdown()


def _known(attributes: Attributes) -> dict[str, str | int]:
    return {name: value for name, value in attributes.items() if value is not None}


def ended(span: "Span", attributes: Attributes, failure: str | None) -> None:
    """Set the outcome of a span. `failure`: one word, if it failed."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attributes(_known(attributes))
    if failure is not None:
        span.set_status(Status(StatusCode.ERROR, failure))


def start_tracing() -> Tracing:
    """Return the tracer configured by the OTEL_* variables. Raises: SettingsError."""
    try:
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        exporter = _exporter(os.environ.get(_EXPORTER) or "otlp")
    except ImportError:
        message = "needs the extra `otel`: pip install 'cambist[otel]'"
        raise SettingsError((SettingFault(name="tracing", origin="CAMBIST_TRACING", message=message),)) from None
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "cambist", SERVICE_VERSION: version()}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    if exporter is not None:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider)


def _exporter(name: str) -> "SpanExporter | None":
    if name == "none":
        return None
    if name == "console":
        import sys

        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)  # stdout has one line that scripts wait for
    if name == "otlp":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    message = "must be otlp, console or none"
    raise SettingsError((SettingFault(name="tracing", origin=_EXPORTER, message=message),))
