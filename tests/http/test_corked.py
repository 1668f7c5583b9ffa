"""One write for each answer (frontends/http/door/corked.py)."""

import asyncio
from typing import Any

from cambist.frontends.http.door.corked import _Corked


class Transport:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.told.append(data)

    def close(self) -> None:
        self.told.append("closed")
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing

    def get_extra_info(self, name: str) -> str:
        return name


def corked() -> tuple[_Corked, Transport]:
    transport = Transport()
    return _Corked(transport, asyncio.get_running_loop()), transport  # type: ignore[arg-type]  # as much as is used


async def test_what_is_written_in_one_turn_leaves_together_and_in_order() -> None:
    cork, transport = corked()
    cork.write(b"head ")
    cork.writelines([b"bo", b"dy"])
    assert transport.told == []
    await asyncio.sleep(0)
    cork.write(b"next")
    await asyncio.sleep(0)
    assert transport.told == [b"head body", b"next"]


async def test_closing_comes_after_what_was_written() -> None:
    cork, transport = corked()
    cork.write(b"last")
    cork.close()
    await asyncio.sleep(0)
    assert transport.told == [b"last", "closed"]


async def test_what_comes_after_the_end_is_dropped() -> None:
    cork, transport = corked()
    cork.write(b"lost")
    transport.closing = True
    await asyncio.sleep(0)
    assert transport.told == []


async def test_all_else_is_the_transport_s() -> None:
    cork, _ = corked()
    assert cork.get_extra_info("peername") == "peername"
