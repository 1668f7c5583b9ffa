"""`cambist user …` (docs/dashboard.md "People")."""

import asyncio
from pathlib import Path
from typing import Any

from cambist.core.usecases.people.invitations import accept_invitation
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.sources import load
from tests.cli.conftest import Call
from tests.cli.test_events import account, ask
from tests.people_kit import PASSWORD, token_of

__all__ = ["account", "ask"]

EMAIL = "olga@shop.example"


def accepted(folder: Path, link: str) -> str:
    """Accept an invitation, and return the person's id."""

    async def inside() -> str:
        async with open_app(load({}, {}, folder).settings) as app:
            return (await accept_invitation(app.ports, token_of(link), PASSWORD, "en")).id

    return asyncio.run(inside())


def test_invited_person_is_listed_disabled_and_reset(ask: Any, call: Call, account: str, folder: Path) -> None:
    made = ask("user", "invite", account, EMAIL, "--role", "owner")
    assert (made["role"], made["mailed"], "/invite?token=" in made["invite_url"]) == ("owner", False, True)
    user_id = accepted(folder, made["invite_url"])
    [listed] = ask("user", "list", "--account", account)["data"]
    assert (listed["user_id"], listed["email"], listed["disabled_at"]) == (user_id, EMAIL, None)
    assert [(each["account_id"], each["role"]) for each in listed["memberships"]] == [(account, "owner")]
    assert ask("user", "disable", EMAIL)["disabled_at"] is not None
    assert call("user", "reset", EMAIL, "--json").document["error"]["code"] == "INVALID_STATE"
    assert ask("user", "enable", user_id)["disabled_at"] is None
    assert "/reset?token=" in ask("user", "reset", EMAIL)["reset_url"]


def test_wrong_role_and_address_are_refused(call: Call, account: str) -> None:
    assert call("user", "invite", account, EMAIL, "--role", "king", "--json").status == 2
    outcome = call("user", "invite", account, "no address", "--role", "owner", "--json")
    assert (outcome.status, outcome.document["error"]["code"]) == (1, "VALIDATION_ERROR")
    outcome = call("user", "disable", "nobody@shop.example", "--json")
    assert outcome.document["error"]["code"] == "USER_NOT_FOUND"
