"""Passkeys: whose they are, and what a challenge is good for (docs/dashboard.md "Passkeys").

The browser's cryptography is replaced here; tests/stories/test_dashboard_browser.py has the real one.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.people.people import Passkey, User
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.people.passkeys import (
    add_passkey,
    confirm_by_passkey,
    confirm_options,
    creation_options,
    remove_passkey,
    sign_in_by_passkey,
    sign_in_options,
)
from cambist.core.usecases.people.sessions import Actor, change_session, find_actor
from cambist.core.usecases.people.sign_in import check_password
from cambist.ports.passkeys import NewPasskey, PasskeyRefused, PasskeyReply, UsedPasskey
from tests.apps import TestApp
from tests.invariants import everything
from tests.people_kit import PASSWORD, person


class Challenge(msgspec.Struct):
    """Options or a reply: the challenge in hex, and for replies credential and owner."""

    challenge: str
    credential_id: str = "cred"
    user_handle: str | None = None


class Verifier:
    """A PasskeyVerifier that believes every signature."""

    rp_id: str | None = "pay.example"

    def creation_options(self, *, challenge: bytes, user_id: str, user_name: str, known: Sequence[str]) -> str:
        return self.request_options(challenge=challenge)

    def request_options(self, *, challenge: bytes) -> str:
        return msgspec.json.encode(Challenge(challenge.hex())).decode()

    def read(self, reply: str) -> PasskeyReply:
        try:
            read = msgspec.json.decode(reply, type=Challenge)
            challenge = bytes.fromhex(read.challenge)
        except ValueError:
            raise PasskeyRefused("malformed") from None
        return PasskeyReply(credential_id=read.credential_id, challenge=challenge, user_handle=read.user_handle)

    def register(self, reply: str, challenge: bytes) -> NewPasskey:
        read = msgspec.json.decode(reply, type=Challenge)
        return NewPasskey(credential_id=read.credential_id, public_key=b"key", sign_count=0, is_synced=True)

    def check(self, reply: str, challenge: bytes, *, public_key: bytes, sign_count: int) -> UsedPasskey:
        return UsedPasskey(sign_count=sign_count, is_synced=True)


async def stepped_up(app: TestApp, **more: Any) -> Actor:
    """Return a person who has just confirmed, at a service with passkeys."""
    app.ports = msgspec.structs.replace(app.ports, passkeys=Verifier())
    actor = await person(app, **more)
    new = await change_session(app.ports, actor, steps_up=True)
    found = await find_actor(app.ports, new.token)
    assert found is not None
    return found


def reply(options: str | None, user: User | None, credential: str = "cred") -> str:
    """A browser's reply to these options, by a credential of this person."""
    assert options is not None
    read = msgspec.json.decode(options, type=Challenge)
    handle = None if user is None else user.id
    return msgspec.json.encode(Challenge(read.challenge, credential, handle)).decode()


async def with_passkey(app: TestApp, actor: Actor, credential: str = "cred") -> Passkey:
    options = await creation_options(app.ports, actor)
    return await add_passkey(app.ports, actor, reply(options, None, credential), "Laptop")


async def refused(awaited: Any, code: str = "SIGN_IN_FAILED") -> None:
    with pytest.raises(Refusal) as found:
        await awaited
    assert found.value.code == code


async def test_passkey_names_its_person(app: TestApp) -> None:
    actor = await stepped_up(app)
    await with_passkey(app, actor)
    options = sign_in_options(app.ports, "browser")
    user = await sign_in_by_passkey(app.ports, reply(options, actor.user), "browser")
    assert user.id == actor.user.id


async def test_reply_without_owner_or_with_another_is_refused(app: TestApp) -> None:
    actor = await stepped_up(app)
    other = await stepped_up(app, role=Role.ADMIN)
    await with_passkey(app, actor)
    for claimed in (None, other.user):
        options = sign_in_options(app.ports, "browser")
        await refused(sign_in_by_passkey(app.ports, reply(options, claimed), "browser"))
    options = sign_in_options(app.ports, "browser")
    await refused(sign_in_by_passkey(app.ports, reply(options, actor.user, "unknown"), "browser"))
    await refused(sign_in_by_passkey(app.ports, "{}", "browser"))


async def test_challenge_is_answered_once_even_by_a_wrong_reply(app: TestApp) -> None:
    actor = await stepped_up(app)
    await with_passkey(app, actor)
    options = sign_in_options(app.ports, "browser")
    await refused(sign_in_by_passkey(app.ports, reply(options, None), "browser"))
    await refused(sign_in_by_passkey(app.ports, reply(options, actor.user), "browser"))


async def test_challenge_belongs_to_browser_purpose_and_time(app: TestApp) -> None:
    actor = await stepped_up(app)
    await with_passkey(app, actor)
    options = sign_in_options(app.ports, "browser")
    await refused(sign_in_by_passkey(app.ports, reply(options, actor.user), "another browser"))
    for options in (await creation_options(app.ports, actor), await confirm_options(app.ports, actor)):
        await refused(sign_in_by_passkey(app.ports, reply(options, actor.user), actor.session.id))
    options = sign_in_options(app.ports, actor.session.id)
    await refused(confirm_by_passkey(app.ports, actor, reply(options, actor.user)))
    options = sign_in_options(app.ports, "browser")
    await app.clock.advance(timedelta(minutes=6).total_seconds())
    await refused(sign_in_by_passkey(app.ports, reply(options, actor.user), "browser"))


async def test_only_the_persons_own_passkey_confirms(app: TestApp) -> None:
    actor = await stepped_up(app)
    other = await stepped_up(app, role=Role.ADMIN)
    await with_passkey(app, actor)
    assert await confirm_options(app.ports, other) is None
    await with_passkey(app, other, "other")
    options = await confirm_options(app.ports, actor)
    await refused(confirm_by_passkey(app.ports, actor, reply(options, other.user, "other")))
    options = await confirm_options(app.ports, actor)
    await confirm_by_passkey(app.ports, actor, reply(options, actor.user))


async def test_known_credential_cannot_be_registered_by_another(app: TestApp) -> None:
    actor = await stepped_up(app)
    other = await stepped_up(app, role=Role.ADMIN)
    await with_passkey(app, actor)
    await refused(with_passkey(app, other), "INVALID_STATE")
    [kept] = await everything(app.ports, Passkey)
    assert kept.user_id == actor.user.id


async def test_passkeys_are_changed_after_a_confirmation_only(app: TestApp) -> None:
    actor = await stepped_up(app)
    made = await with_passkey(app, actor)
    late = msgspec.structs.replace(actor, stepped_up=False)
    await refused(with_passkey(app, late, "second"), "STEP_UP_NEEDED")
    await refused(remove_passkey(app.ports, late, made.id), "STEP_UP_NEEDED")
    other = await stepped_up(app, role=Role.ADMIN)
    await refused(remove_passkey(app.ports, other, made.id), "USER_NOT_FOUND")
    await remove_passkey(app.ports, actor, made.id)
    options = sign_in_options(app.ports, "browser")
    await refused(sign_in_by_passkey(app.ports, reply(options, actor.user), "browser"))


async def test_passkey_still_signs_in_after_strangers_spent_the_guesses(app: TestApp) -> None:
    actor = await stepped_up(app)
    await with_passkey(app, actor)
    for _ in range(10):
        await refused(check_password(app.ports, "owner@shop.example", "a wrong password", ""))
    await refused(check_password(app.ports, "owner@shop.example", PASSWORD, ""), "TOO_MANY_GUESSES")
    options = sign_in_options(app.ports, "browser")
    user = await sign_in_by_passkey(app.ports, reply(options, actor.user), "browser")
    assert user.id == actor.user.id


async def test_passkey_of_another_host_opens_nothing(app: TestApp) -> None:
    actor = await stepped_up(app)
    await with_passkey(app, actor)
    verifier = Verifier()
    verifier.rp_id = "moved.example"
    app.ports = msgspec.structs.replace(app.ports, passkeys=verifier)
    options = sign_in_options(app.ports, "browser")
    await refused(sign_in_by_passkey(app.ports, reply(options, actor.user), "browser"))
    assert await confirm_options(app.ports, actor) is None
    verifier.rp_id = None
    assert sign_in_options(app.ports, "browser") is None
