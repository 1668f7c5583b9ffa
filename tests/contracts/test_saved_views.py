"""Saved views on every storage (docs/dashboard.md "Saved views")."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, Caller, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.people.people import Membership, Session, User, membership_id
from cambist.core.domain.people.roles import Role
from cambist.core.domain.people.views import VIEW_NAME_LONGEST, VIEW_QUERY_LONGEST, VIEWS_MOST, SavedViews
from cambist.core.usecases.people.sessions import Actor
from cambist.core.usecases.people.views import delete_view, get_view, list_views, rename_view, save_view
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.bundle import Ports
from cambist.ports.storage import Storage
from tests.tables import table

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
async def ports(storage: Storage) -> AsyncIterator[Ports]:
    async with open_app(Settings(database_url="memory://")) as app:
        yield msgspec.structs.replace(app.ports, storage=storage)


def actor(user: str = "usr_1", account_id: str = "acc_1") -> Actor:
    account = Account(id=account_id, name="Merchant", default_shop_id="shop", created_at=NOW)
    return Actor(
        session=Session(
            id="s", user_id=user, account_id=account_id, mode=Mode.TEST, created_at=NOW, seen_at=NOW, method="password",
            security=0,
        ),
        user=User(id=user, email=b"", email_digest=user.encode(), created_at=NOW),
        membership=Membership(
            id=membership_id(account_id, user), account_id=account_id, user_id=user, role=Role.VIEWER, created_at=NOW
        ),
        account=account,
        caller=Caller(account=account, mode=Mode.TEST, key_id=user),
        stepped_up=False,
    )  # fmt: skip


async def names(ports: Ports, person: Actor) -> list[tuple[str, str]]:
    return [(each.name, each.query) for each in await list_views(ports, person, "payments")]


async def test_views_belong_to_one_person_in_one_account(ports: Ports) -> None:
    anna = actor()
    await save_view(ports, anna, "payments", "  Failed   today ", "status=failed&period=today")
    await save_view(ports, anna, "refunds", "Failed today", "status=failed")
    assert await names(ports, anna) == [("Failed today", "status=failed&period=today")]
    for other in (actor("usr_2"), actor(account_id="acc_2")):
        assert await names(ports, other) == []
        [view] = await list_views(ports, anna, "payments")
        await delete_view(ports, other, view.id)
        with pytest.raises(Refusal):
            await rename_view(ports, other, view.id, "Stolen")
        with pytest.raises(Refusal):
            await get_view(ports, other, "payments", view.id)
    assert len(await names(ports, anna)) == 1


async def test_view_is_replaced_renamed_and_deleted(ports: Ports) -> None:
    anna = actor()
    first = await save_view(ports, anna, "payments", "Mine", "status=paid")
    again = await save_view(ports, anna, "payments", "MINE", "status=failed")
    assert again.id == first.id
    assert await names(ports, anna) == [("Mine", "status=failed")]
    other = await save_view(ports, anna, "payments", "Other", "")
    with pytest.raises(Refusal) as taken:
        await rename_view(ports, anna, other.id, "mine")
    assert taken.value.code == "INVALID_STATE"
    await rename_view(ports, anna, first.id, "mine")
    await rename_view(ports, anna, other.id, "Third")
    assert await names(ports, anna) == [("mine", "status=failed"), ("Third", "")]
    await delete_view(ports, anna, first.id)
    await delete_view(ports, anna, first.id)
    assert await names(ports, anna) == [("Third", "")]
    with pytest.raises(Refusal) as gone:
        await rename_view(ports, anna, first.id, "Back")
    assert gone.value.code == "VIEW_NOT_FOUND"


async def test_views_saved_at_once_are_never_more_than_the_bound(ports: Ports) -> None:
    anna = actor()
    for number in range(VIEWS_MOST - 3):
        await save_view(ports, anna, "payments", f"View {number}", "")
    saved = await asyncio.gather(
        *(save_view(ports, anna, "payments", f"At once {number}", "") for number in range(5)), return_exceptions=True
    )
    refused = [each for each in saved if isinstance(each, BaseException)]
    assert [getattr(each, "code", each) for each in refused] == ["INVALID_STATE"] * 2
    assert len(await names(ports, anna)) == VIEWS_MOST
    await save_view(ports, anna, "payments", (await names(ports, anna))[0][0], "status=paid")


async def test_filter_of_a_view_is_encrypted(ports: Ports) -> None:
    anna = actor()
    view = await save_view(ports, anna, "payments", "Anna", "q=anna%40shop.example")
    async with ports.storage.unit() as unit:
        stored = await unit[SavedViews].get("acc_1:usr_1")
    assert stored is not None
    assert b"shop.example" not in stored.views
    for shown in (repr(stored), repr(view)):
        assert "anna" not in shown.lower()


@table(
    ("name", "query"),
    [
        ("", ""),
        ("   ", ""),
        ("a" * (VIEW_NAME_LONGEST + 1), ""),
        ("a\0b", ""),
        ("a\u202eb", ""),
        ("a", "q=" + "a" * VIEW_QUERY_LONGEST),
        ("a", "q=é"),
        ("a", "q=a\r\nb"),
    ],
)
async def test_bad_name_or_filter_is_refused(ports: Ports, name: str, query: str) -> None:
    with pytest.raises(Refusal) as refused:
        await save_view(ports, actor(), "payments", name, query)
    assert refused.value.code == "VALIDATION_ERROR"
    assert await names(ports, actor()) == []
