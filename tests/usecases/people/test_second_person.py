"""Changes that a second person of the account approves (docs/dashboard.md "A second person")."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, ApiKey, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.operators.pending_actions import PendingAction
from cambist.core.domain.people.people import Invitation, Membership
from cambist.core.domain.people.roles import PersonRight, Role, grant
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.accounts.keys import NewKey
from cambist.core.usecases.people.invitations import invite
from cambist.core.usecases.people.keys import list_keys, make_key, roll_key
from cambist.core.usecases.people.members import change_member, list_members, remove_member
from cambist.core.usecases.people.own_account import change_settings, change_shop, roll_webhook_secret
from cambist.core.usecases.people.requests import (
    approve_request,
    complete_request,
    list_requests,
    reject_request,
)
from cambist.core.usecases.people.second_person import OPEN_MOST, Requested
from cambist.core.usecases.people.sessions import Actor, find_actor, start_session
from cambist.core.usecases.people.users import email_of
from cambist.ports.bundle import Ports
from tests.apps import TestApp
from tests.dashboard.browser import in_test_mode
from tests.dashboard.browser import joined as browsing
from tests.invariants import everything
from tests.payout_kit import WALLET
from tests.people_kit import joined, with_mail

Change = Callable[[Ports, Actor], Awaitable[Any]]
GUEST = "guest@shop.example"


async def member(app: TestApp, role: Role, *, email: str | None = None, mode: Mode = Mode.LIVE) -> Actor:
    """A person of the account, signed in by passkey."""
    user = await joined(app.ports, app.account.account_id, role, email=email)
    return await again(app, user.id, mode)


async def again(app: TestApp, user_id: str, mode: Mode = Mode.LIVE) -> Actor:
    """A person in a new session, who has just confirmed the passkey."""
    new = await start_session(app.ports, user_id, method="passkey", mode=mode)
    actor = await find_actor(app.ports, new.token)
    assert actor is not None
    return actor


@pytest.fixture
async def owner(app: TestApp) -> Actor:
    """An owner of an account that asks for a second person."""
    await set_settings(app.ports, app.account.account_id, {"second_person": "true"})
    return await member(app, Role.OWNER)


async def requested(change: Awaitable[Any]) -> str:
    """The id of the request for a change."""
    with pytest.raises(Requested) as waits:
        await change
    return waits.value.action.id


async def code_of(change: Awaitable[Any]) -> str:
    with pytest.raises(Refusal) as refused:
        await change
    return refused.value.code


async def guest(ports: Ports, actor: Actor) -> str:
    found = await list_members(ports, actor.account.id)
    return next(each.user.id for each in found if each.email == GUEST)


async def role_of_guest(ports: Ports, actor: Actor, role: Role) -> Any:
    return await change_member(ports, actor, await guest(ports, actor), role=role, shops=None, live=True)


CHANGES: dict[str, Change] = {
    "key": lambda ports, actor: make_key(ports, actor, "books", ["read"], []),
    "key that refunds": lambda ports, actor: make_key(ports, actor, "till", ["read", "refunds"], []),
    "webhook secret": roll_webhook_secret,
    "wallet": lambda ports, actor: change_settings(ports, actor, {"payout_wallet": WALLET}),
    "no second person": lambda ports, actor: change_settings(ports, actor, {"second_person": "false"}),
    "role": lambda ports, actor: role_of_guest(ports, actor, Role.FINANCE),
    "owner": lambda ports, actor: role_of_guest(ports, actor, Role.OWNER),
    "invitation": lambda ports, actor: invite(ports, "", "new@shop.example", Role.VIEWER, inviter=actor),
}

TABLE = {
    "key": "x x - - x -",
    "key that refunds": "x x - - d -",
    "webhook secret": "x x - - x -",
    "wallet": "x - - - - -",
    "no second person": "x - - - - -",
    "role": "x x - - - -",
    "owner": "x d - - - -",
    "invitation": "x x - - - -",
}
"""Who may approve an owner's request, in the order of Role: x: approves it; d: sees it and is denied; -: does not see
it."""


async def test_every_role_approves_as_the_table_says(app: TestApp, owner: Actor) -> None:
    await joined(app.ports, app.account.account_id, Role.VIEWER, email=GUEST)
    approvers = {role: await member(app, role, email=f"second-{role}@shop.example") for role in Role}
    found = {}
    for name, change in CHANGES.items():
        cells = []
        for role in Role:
            action_id = await requested(change(app.ports, owner))
            approver = await again(app, approvers[role].user.id)
            try:
                await approve_request(app.ports, approver, action_id)
                cells.append("x")
            except Refusal as refusal:
                cells.append({"PERSON_RIGHT_MISSING": "d", "REQUEST_NOT_FOUND": "-"}[refusal.code])
            await reject_request(app.ports, owner, action_id)
        found[name] = " ".join(cells)
    assert found == TABLE
    assert all(each.accepted_at is not None for each in await everything(app.ports, Invitation))


@pytest.mark.parametrize("name", list(CHANGES))
async def test_approved_change_is_made_once_by_the_person_who_asked(app: TestApp, owner: Actor, name: str) -> None:
    await joined(app.ports, app.account.account_id, Role.VIEWER, email=GUEST)
    second = await member(app, Role.OWNER, email="second@shop.example")
    kinds = (Account, ApiKey, Membership, Invitation)
    before = [await everything(app.ports, kind) for kind in kinds]
    action_id = await requested(CHANGES[name](app.ports, owner))
    assert await code_of(complete_request(app.ports, owner, action_id)) == "INVALID_STATE"
    assert await code_of(approve_request(app.ports, await again(app, owner.user.id), action_id)) == "INVALID_STATE"
    await approve_request(app.ports, second, action_id)
    assert await code_of(complete_request(app.ports, second, action_id)) == "INVALID_STATE"
    seen = [await everything(app.ports, kind) for kind in kinds]
    assert [[each for each in rows if not isinstance(each, Membership)] for rows in seen] == [
        [each for each in rows if not isinstance(each, Membership)] for rows in before
    ], "an approval changes nothing"
    ends = await asyncio.gather(
        *(complete_request(app.ports, owner, action_id) for _ in range(2)), return_exceptions=True
    )
    assert sum(isinstance(end, Refusal) for end in ends) == 1
    made = next(end for end in ends if not isinstance(end, BaseException))
    after = [await everything(app.ports, kind) for kind in kinds]
    assert after != seen
    if isinstance(made, NewKey):
        [key] = [each for each in after[1] if each.id == made.pair.api_key]
        assert key.made_by == owner.user.id
        assert len(after[1]) == len(before[1]) + 1
    rows = [each for each in await everything(app.ports, AuditEntry) if action_id in each.after]
    assert [(each.action, each.operator) for each in sorted(rows, key=lambda each: each.id)] == [
        ("request.ask", owner.user.id),
        ("request.approve", second.user.id),
        ("request.complete", owner.user.id),
    ]
    assert f"approved_by={second.user.id}" in max(rows, key=lambda each: each.id).after


async def test_two_approvals_at_once_count_once(app: TestApp, owner: Actor) -> None:
    others = [await member(app, Role.OWNER, email=f"{name}@shop.example") for name in ("b", "c")]
    action_id = await requested(CHANGES["wallet"](app.ports, owner))
    tries = (approve_request(app.ports, each, action_id) for each in others)
    ends = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(end, Refusal) for end in ends) == 1


async def test_decision_needs_a_confirmation(app: TestApp, owner: Actor) -> None:
    second = msgspec.structs.replace(await member(app, Role.OWNER, email="second@shop.example"), stepped_up=False)
    action_id = await requested(CHANGES["wallet"](app.ports, owner))
    assert await code_of(approve_request(app.ports, second, action_id)) == "STEP_UP_NEEDED"
    assert await code_of(reject_request(app.ports, second, action_id)) == "STEP_UP_NEEDED"
    await approve_request(app.ports, msgspec.structs.replace(second, stepped_up=True), action_id)
    late = msgspec.structs.replace(owner, stepped_up=False)
    assert await code_of(complete_request(app.ports, late, action_id)) == "STEP_UP_NEEDED"


async def test_request_expires_before_and_after_the_approval(app: TestApp, owner: Actor) -> None:
    second = await member(app, Role.OWNER, email="second@shop.example")
    first = await requested(CHANGES["wallet"](app.ports, owner))
    other = await requested(CHANGES["invitation"](app.ports, owner))
    await approve_request(app.ports, second, other)
    await app.clock.advance(timedelta(days=3).total_seconds())
    assert await code_of(approve_request(app.ports, second, first)) == "INVALID_STATE"
    assert await code_of(complete_request(app.ports, owner, other)) == "INVALID_STATE"
    assert await list_requests(app.ports, owner) == []
    assert await requested(CHANGES["wallet"](app.ports, owner)) != first


async def test_rights_at_the_completion_count(app: TestApp, owner: Actor) -> None:
    admin = await member(app, Role.ADMIN)
    action_id = await requested(CHANGES["key that refunds"](app.ports, admin))
    await approve_request(app.ports, owner, action_id)
    lower = msgspec.structs.replace(admin, membership=msgspec.structs.replace(admin.membership, role=Role.DEVELOPER))
    assert await code_of(complete_request(app.ports, lower, action_id)) == "PERSON_RIGHT_MISSING"


async def test_state_that_changed_meanwhile_needs_a_new_request(app: TestApp, owner: Actor) -> None:
    second = await member(app, Role.OWNER, email="second@shop.example")
    first = await requested(CHANGES["wallet"](app.ports, owner))
    await set_settings(app.ports, owner.account.id, {"payout_wallet": "TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7"})
    assert await code_of(approve_request(app.ports, second, first)) == "INVALID_STATE"
    assert await requested(CHANGES["wallet"](app.ports, owner)) != first


async def test_altered_request_is_not_approved(app: TestApp, owner: Actor) -> None:
    second = await member(app, Role.OWNER, email="second@shop.example")
    action_id = await requested(CHANGES["wallet"](app.ports, owner))
    for name in ("usr_other", owner.user.id):
        async with app.ports.storage.unit() as unit:
            found = await unit[PendingAction].get(action_id)
            assert found is not None
            unit[PendingAction].save(msgspec.structs.replace(found, operator=name))
            await unit.commit()
        if name != owner.user.id:
            assert await code_of(approve_request(app.ports, second, action_id)) == "INVALID_STATE"
    await approve_request(app.ports, second, action_id)


async def test_same_request_is_kept_once_and_their_number_is_bounded(app: TestApp, owner: Actor) -> None:
    def named(number: int) -> Awaitable[Any]:
        return make_key(app.ports, owner, f"key-{number}", ["read"], [])

    first = [await requested(named(0)) for _ in range(2)]
    assert len({*first}) == 1
    for number in range(1, OPEN_MOST):
        await requested(named(number))
    assert await code_of(named(OPEN_MOST)) == "INVALID_STATE"
    await reject_request(app.ports, owner, first[0])
    await requested(named(OPEN_MOST))


async def test_request_writes_to_those_who_may_approve_it(app: TestApp, owner: Actor) -> None:
    """Other members get no letter, and repeated requests do not flood them."""
    mailbox = with_mail(app)
    for role in (Role.DEVELOPER, Role.SUPPORT, Role.VIEWER):
        await joined(app.ports, app.account.account_id, role)
    await joined(app.ports, app.account.account_id, Role.ADMIN, email="test-only@shop.example", live=False)
    await app.work(1)
    before, mailbox.letters = mailbox.letters, []
    action_id = await requested(make_key(app.ports, owner, "ci", ["read"], []))
    assert await requested(make_key(app.ports, owner, "ci", ["read"], [])) == action_id
    await app.work(1)
    members = await list_members(app.ports, app.account.account_id)
    able = {each.email for each in members if grant(each.membership.role, PersonRight.KEYS, Mode.LIVE)}
    expected = able - {email_of(app.ports, owner.user), "test-only@shop.example"}
    assert sorted(each.to for each in mailbox.letters) == sorted(expected), before
    assert "developer@shop.example" in expected
    for letter in mailbox.letters:
        assert email_of(app.ports, owner.user) in letter.text
        assert f"/approvals/{action_id}" in letter.text
    assert any("a new API key" in each.text for each in mailbox.letters)
    mailbox.letters = []
    for number in range(OPEN_MOST - 1):
        await requested(make_key(app.ports, owner, f"ci-{number}", ["read"], []))
    await app.work(1)
    assert len(mailbox.letters) == 9 * len(expected), "ten requests in an hour write"


async def test_account_needs_two_owners_to_ask_for_a_second_person(app: TestApp) -> None:
    owner = await member(app, Role.OWNER)
    change = {"second_person": "true"}
    assert await code_of(change_settings(app.ports, owner, change)) == "INVALID_STATE"
    await member(app, Role.OWNER, email="second@shop.example")
    after = await change_settings(app.ports, owner, change)
    assert after.settings.second_person


async def test_other_work_and_test_keys_need_no_second_person(app: TestApp, owner: Actor) -> None:
    await make_key(app.ports, await again(app, owner.user.id, Mode.TEST), "books", ["read"], [])
    await change_settings(app.ports, owner, {"auto_return": "true"})
    await change_shop(app.ports, owner, app.account.default_shop_id, name="Tea House")
    viewer = await member(app, Role.VIEWER)
    await remove_member(app.ports, owner, viewer.user.id)
    [own] = await list_keys(app.ports, owner)
    await requested(roll_key(app.ports, owner, own.key.id, timedelta(hours=24)))


async def test_request_of_another_account_is_not_found(app: TestApp, owner: Actor) -> None:
    action_id = await requested(CHANGES["wallet"](app.ports, owner))
    stranger = msgspec.structs.replace(
        owner, account=msgspec.structs.replace(owner.account, id="acc_other"), user=msgspec.structs.replace(owner.user)
    )
    for decide in (approve_request, reject_request, complete_request):
        assert await code_of(decide(app.ports, stranger, action_id)) == "REQUEST_NOT_FOUND"


async def test_wallet_is_changed_by_two_owners_on_the_pages(app: TestApp) -> None:
    first = await in_test_mode(await browsing(app, Role.OWNER))
    second = await in_test_mode(await browsing(app, Role.OWNER, email="second@shop.example"))
    await first.open("/settings")
    await first.send("/settings/second-person")
    await first.open("/settings")
    await first.send("/settings/wallet", payout_wallet=WALLET)
    first.sees("Another person of the account has to approve it.", "waits for another person", WALLET)
    page = first.path
    assert [each for each in first.page.forms if each.action.endswith(("/approve", "/complete"))] == []
    await second.open("/home")
    second.sees("Changes that wait for you: 1")
    await second.open("/approvals")
    await second.open(next(each for each in second.page.links if "/approvals/action_" in each))
    second.sees("owner@shop.example", WALLET)
    await second.send(f"{page}/approve")
    second.sees("approved, not completed yet")
    await first.open("/settings")
    assert first.page.forms[0].values.get("payout_wallet") != [WALLET]
    await first.open(page)
    await first.send(f"{page}/complete")
    first.sees("completed")
    await first.open("/settings")
    assert WALLET in first.answer.text
