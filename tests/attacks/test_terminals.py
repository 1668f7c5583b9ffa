"""Text from merchants cannot send commands to the operator's terminal (docs/limits.md "Sizes")."""

import ast
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.core.domain.errors import Refusal
from cambist.core.domain.shapes import check_text
from cambist.frontends.cli.output import printed
from cambist.frontends.terminal_texts import escaped, json_text
from tests.apps import TestApp
from tests.tables import table

ROOT = Path(__file__).parents[2]
OBEYED = [
    "\x1b]0;title\x07", "\x9b2J", "\x85", "\x7f", "\u061c", "\u200b", "\u200e", "\u2028", "\u2029", "\u202e",
    "\u2066", "\ufeff", "\U000e0001", "\r",
]  # fmt: skip
CONTROLS = [chr(code) for code in (*range(0x01, 0x20), *range(0x7F, 0xA0))]
TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_json_has_the_same_value_and_nothing_a_terminal_obeys(value: Any) -> None:
    for indent in (2, -1):
        text = json_text(value, indent=indent)
        assert msgspec.json.decode(text) == value
        assert text.replace("\n", "").isprintable()
        assert indent > 0 or "\n" not in text


@table("text", OBEYED, ids=ascii)
def test_each_is_escaped_in_both_forms(text: str) -> None:
    document = {f"key {text}": [f"Чай {text}"]}
    line = printed(document, indent=-1)
    assert line.isascii() or line.decode().isprintable()
    assert "Чай" in line.decode(), "what can be shown is"
    assert msgspec.json.decode(line) == document
    assert escaped(text).isprintable()


def test_beyond_65_536_json_has_two_units() -> None:
    assert json_text("\U000e0001", indent=-1) == '"\\udb40\\udc01"'


def test_commands_write_json_by_that_one_function() -> None:
    rooms = sorted((ROOT / "frontends" / "cli").glob("*.py"))
    assert len(rooms) > 20
    for path in rooms:
        calls = {
            ast.unparse(node.func)
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call)
        }
        assert not calls & {"msgspec.json.encode", "msgspec.json.format", "json.dumps", "json.dump"}, path.name


@table("char", CONTROLS, ids=ascii)
def test_no_short_text_has_a_control_character(char: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_text("external_id", f"a{char}b", 256)
    assert refused.value.code == "VALIDATION_ERROR"
    assert char not in refused.value.message


@pytest.mark.parametrize("name", ["external_id", "description", "client_email"])
async def test_a_payment_with_one_is_refused_in_the_envelope(app: TestApp, name: str) -> None:
    answer = await app.create({"amount_rub": "100.00", name: "order\x9b2J"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["details"][0]["path"]) == (400, "VALIDATION_ERROR", name)


@pytest.mark.parametrize("name", ["full_name", "kyc_reference"])
async def test_so_is_a_payer_with_one(app: TestApp, name: str) -> None:
    payer = {"full_name": "Anna", "document_number": "A12345", name: "A\x85"}
    answer = await app.create({"amount_rub": "100.00", "payer": payer})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["details"][0]["path"]) == (
        422,
        "VALIDATION_ERROR",
        f"payer.{name}",
    )


@pytest.mark.parametrize("name", ["external_id", "description", "client_ref"])
async def test_so_is_a_subscription_with_one(app: TestApp, name: str) -> None:
    order = {"amount_rub": "100.00", "interval": "month", "description": "Tea"} | {name: "\x85tea"}
    headers = app.headers(Idempotency_Key=str(uuid4()))
    answer = await app.http.post("/api/v1/subscriptions", json=order, headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["details"][0]["path"]) == (400, "VALIDATION_ERROR", name)


async def test_writing_of_every_direction_is_taken(app: TestApp) -> None:
    """Marks of direction belong to some languages: they are kept, and escaped where a terminal would obey."""
    answer = await app.create({"amount_rub": "100.00", "description": "שלום\u200f Чай"})
    assert answer.status_code == 201
