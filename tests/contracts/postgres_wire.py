"""Record the traffic to a Postgres server for tests."""

from typing import Any

import asyncpg
import pytest


def noted_statements(monkeypatch: pytest.MonkeyPatch, *methods: str) -> list[str]:
    """The texts that these methods of a connection send from now on."""
    sent: list[str] = []
    for name in methods:
        plain = getattr(asyncpg.Connection, name)

        async def noted(self: Any, text: str, *values: Any, _plain: Any = plain, **options: Any) -> Any:
            sent.append(text)
            return await _plain(self, text, *values, **options)

        monkeypatch.setattr(asyncpg.Connection, name, noted)
    return sent
