"""Known and unknown addresses cost the same work, so that no timing shows who is here (docs/dashboard.md "Wrong
attempts", "A forgotten password"). Calls of the storage and of the password hasher are noted in their order."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.people.invitations import invite
from cambist.core.usecases.people.resets import request_reset
from cambist.core.usecases.people.sign_in import check_password
from cambist.ports.bundle import Ports
from cambist.ports.forwarding import ForwardingRepository, ForwardingStorage
from cambist.ports.passwords import PasswordHasher
from cambist.ports.storage import R, Repository, Unit
from tests.apps import TestApp
from tests.people_kit import joined, with_mail

KNOWN, UNKNOWN = "viewer@shop.example", "nobody@shop.example"


class CountingStorage(ForwardingStorage):
    """A storage that notes each call of a repository."""

    def __init__(self, inner: Any, calls: list[str]) -> None:
        super().__init__(inner)
        self.calls = calls

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[Unit]:
        async with self.inner.unit() as unit:
            yield CountingUnit(unit, self.calls)

    def unit(self) -> Any:
        return self._counted()


class CountingUnit:
    def __init__(self, inner: Unit, calls: list[str]) -> None:
        self._inner, self._calls = inner, calls

    def __getitem__(self, kind: type[R], /) -> Repository[R]:
        return CountingRepository(self._inner[kind], kind.__name__, self._calls)

    async def commit(self, *, durable: bool = True) -> None:
        self._calls.append("commit")
        await self._inner.commit(durable=durable)


class CountingRepository(ForwardingRepository[R], eq=False):
    name: str
    calls: list[str]

    async def get(self, record_id: str, /) -> R | None:
        self.calls.append(f"get {self.name}")
        return await self.inner.get(record_id)

    async def find(self, **asked: Any) -> list[R]:
        self.calls.append(f"find {self.name}")
        return await self.inner.find(**asked)

    def add(self, record: R, /) -> R:
        self.calls.append(f"add {self.name}")
        return self.inner.add(record)

    def save(self, record: R, /) -> R:
        self.calls.append(f"save {self.name}")
        return self.inner.save(record)


class CountingPasswords:
    """A hasher that notes each call."""

    def __init__(self, inner: PasswordHasher, calls: list[str]) -> None:
        self._inner, self._calls = inner, calls

    async def hash(self, password: str) -> str:
        self._calls.append("hash")
        return await self._inner.hash(password)

    async def verify(self, stored: str | None, password: str) -> bool:
        self._calls.append("verify")
        return await self._inner.verify(stored, password)

    def is_outdated(self, stored: str) -> bool:
        return self._inner.is_outdated(stored)


def counting(ports: Ports) -> tuple[Ports, list[str]]:
    """The ports, and the calls that they are used for."""
    calls = list[str]()
    storage, passwords = CountingStorage(ports.storage, calls), CountingPasswords(ports.passwords, calls)
    return msgspec.structs.replace(ports, storage=storage, passwords=passwords), calls


@pytest.fixture
async def known(app: TestApp) -> TestApp:
    """An app with one person, and with e-mail."""
    await joined(app.ports, app.account.account_id, Role.VIEWER, email=KNOWN)
    with_mail(app)
    return app


async def test_reset_does_the_same_for_known_and_unknown_addresses(known: TestApp) -> None:
    done = []
    for address in (KNOWN, UNKNOWN):
        ports, calls = counting(known.ports)
        await request_reset(ports, address)
        done.append(calls)
    assert done[0] == done[1] == ["add Letter", "add Job", "commit"]


async def test_wrong_password_costs_the_same_for_known_and_unknown_addresses(known: TestApp) -> None:
    for _ in range(2):  # the first attempt of a budget adds its row, a further one saves it
        done = []
        for address in (KNOWN, UNKNOWN):
            ports, calls = counting(known.ports)
            with pytest.raises(Refusal) as refused:
                await check_password(ports, address, "wrong words in a row", "")
            assert refused.value.code == "SIGN_IN_FAILED"
            done.append(calls)
        assert done[0] == done[1]
        assert done[0].count("verify") == 1


async def test_invitation_costs_the_same_for_known_and_unknown_addresses(known: TestApp) -> None:
    other = (await create_account(known.ports, "Other")).account_id
    done = []
    for address in (KNOWN, UNKNOWN):
        ports, calls = counting(known.ports)
        await invite(ports, other, address, Role.VIEWER)
        done.append(calls)
    # The second invitation of the account sees the first one.
    assert done[0] == done[1]
    assert "add Letter" in done[0]
