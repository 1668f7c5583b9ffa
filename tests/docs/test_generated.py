"""The generated pages equal the current output of docs/generate.py."""

from typing import Any

from cambist.core.domain.errors import CATALOGUE
from cambist.core.domain.machine import Moves
from cambist.core.domain.payloads import EVENT_PAYLOADS
from docs.generate import (
    CLIENT_CALLS,
    DOCS,
    IMAGES,
    PAYLOADS,
    TABLES,
    calls_page,
    cli_page,
    diagram,
    embedding_page,
    errors_page,
    payloads_page,
    russian_errors_page,
    russian_payloads_page,
    russian_states_page,
    settings_page,
    source_mark,
    states_page,
)
from docs.signatures import CLASSES, methods
from tests.openapi_tour import EXAMPLES, recorded
from tests.tables import table

STALE = "the page is not what the code says now: python docs/generate.py makes it anew"


def test_the_table_of_errors_is_the_catalogue() -> None:
    page = (DOCS / "errors.md").read_text("utf-8")
    assert page == errors_page(), STALE
    assert (DOCS / "ru/errors.md").read_text("utf-8") == russian_errors_page(), STALE
    assert [code for code in CATALOGUE if f"| `{code}` |" not in page] == []


def test_the_tables_of_states_are_the_codes() -> None:
    assert (DOCS / "states.md").read_text("utf-8") == states_page(), STALE
    assert (DOCS / "ru/states.md").read_text("utf-8") == russian_states_page(), STALE


@table("name", TABLES)
def test_the_drawings_are_of_the_codes_tables(name: str) -> None:
    moves: Moves[Any, Any] = TABLES[name][1]
    drawn = (IMAGES / f"states-{name}.svg").read_text("utf-8")
    assert source_mark(diagram(moves)) in drawn, STALE
    for row in moves.rows:
        assert f">{row.before}<" in drawn


def test_the_fields_of_events_are_the_schemas() -> None:
    assert (DOCS / "payloads.md").read_text("utf-8") == payloads_page(), STALE
    assert (DOCS / "ru/payloads.md").read_text("utf-8") == russian_payloads_page(), STALE
    assert set(PAYLOADS) == {payload.__name__ for payload in EVENT_PAYLOADS.values()}


def test_the_table_of_commands_is_the_command_lines() -> None:
    assert (DOCS / "cli.md").read_text("utf-8") == cli_page(), STALE


def test_signatures_of_embedding_are_the_codes() -> None:
    page = (DOCS / "embedding.md").read_text("utf-8")
    assert page == embedding_page(), STALE
    for kind in CLASSES:
        for name, _ in methods(kind):
            assert f"{kind.__name__}.{name}(" in page


def test_the_page_of_settings_is_what_the_code_declares() -> None:
    assert (DOCS / "settings.md").read_text("utf-8") == settings_page(), STALE


def test_the_clients_calls_send_the_examples() -> None:
    assert CLIENT_CALLS.read_bytes() == calls_page(), STALE


async def test_the_examples_are_what_the_service_answers() -> None:
    now = await recorded()
    assert EXAMPLES.read_bytes() == now, STALE
