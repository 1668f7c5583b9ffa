"""Arrays as text (adapters/storage/postgres/arrays.py), read by a real server."""

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cambist.adapters.storage.postgres.arrays import TYPES, array
from cambist.adapters.storage.table.codec import Storing

TEXTS = st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
TRICKY = ["", "null", "NULL", '"', "\\", '\\"', "{a,b}", ",", " a ", "a\nb", "\x1f", "'", "цена", '","', "\\\\N"]


class Server:
    def __init__(self, runner: asyncio.Runner, url: str) -> None:
        self._runner = runner
        self._connection = runner.run(asyncpg.connect(url))

    def read(self, storing: Storing, values: list[Any]) -> list[Any]:
        """Return the server's reading of an array."""
        text = f"SELECT * FROM unnest($1::{TYPES[storing]})"
        return [row[0] for row in self._runner.run(self._connection.fetch(text, array(storing, values)))]

    def close(self) -> None:
        self._runner.run(self._connection.close())


@pytest.fixture(scope="module")
def reading(postgres: str) -> Iterator[Server]:
    with asyncio.Runner() as runner:
        server = Server(runner, postgres)
        yield server
        server.close()


@settings(deadline=None)
@given(values=st.lists(TEXTS, min_size=1))
@example(values=list(TRICKY))
@example(values=[*TRICKY, None])
@example(values=[""])
@example(values=["a", "b"])
def test_any_texts_come_as_they_are(reading: Server, values: list[str | None]) -> None:
    assert reading.read(Storing.TEXT, values) == values
    assert reading.read(Storing.JSON, values) == values


@settings(deadline=None)
@given(values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1))
@example(values=[-(2**63), 2**63 - 1, 0])
def test_any_integers_come_as_they_are(reading: Server, values: list[int | None]) -> None:
    assert reading.read(Storing.INTEGER, values) == values


@settings(deadline=None)
@given(values=st.lists(st.none() | st.booleans(), min_size=1))
def test_any_flags_come_as_they_are(reading: Server, values: list[bool | None]) -> None:
    assert reading.read(Storing.BOOLEAN, values) == values


@settings(deadline=None)
@given(values=st.lists(st.none() | st.binary(), min_size=1))
def test_any_bytes_come_as_they_are(reading: Server, values: list[bytes | None]) -> None:
    assert reading.read(Storing.BYTES, values) == values
