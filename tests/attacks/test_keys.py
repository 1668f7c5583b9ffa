"""An attacker who can write to the database, but has no vault key, cannot sign in by changing a key's row
(SECURITY.md)."""

from collections.abc import Mapping

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import ApiKey, Mode
from cambist.core.domain.errors import Refusal
from cambist.core.usecases.accounts.access import authenticate
from cambist.core.usecases.accounts.accounts import KeyPair, create_account
from cambist.core.usecases.accounts.keys import create_key, end_key, rotate_key, set_key
from cambist.ports.forwarding import ForwardingStorage
from cambist.ports.storage import R
from tests.apps import TestApp
from tests.attacks.kit import OWN, Attacker
from tests.attacks.test_money_rows import differing

EDITS: Mapping[str, str] = {
    "another account": "account_id = '{account}'",
    "the other mode": "mode = 'live'",
    "another's digest": "secret_digest = (SELECT secret_digest FROM api_keys WHERE id = '{key}')",
    "more rights": "rights = NULL",
    "more addresses": "addresses = NULL",
    "neither rights nor addresses": "rights = NULL, addresses = NULL",
    "a later end": "ends_at = NULL",
    "another's name": "name = NULL",
    "no tag": "tag = NULL",
    "another's tag": "tag = (SELECT tag FROM api_keys WHERE id = '{key}')",
}


async def opens(app: TestApp, pair: KeyPair) -> bool:
    """Return whether a process without cached reads accepts the pair."""
    fresh = ForwardingStorage(app.ports.storage)

    async def recent(kind: type[R], record_id: str, /, *, within: float = 0.0) -> R | None:
        return await app.ports.storage.get(kind, record_id)

    fresh.recent = recent
    ports = msgspec.structs.replace(app.ports, storage=fresh)
    try:
        await authenticate(ports, pair.api_key, pair.api_secret)
    except Refusal:
        return False
    return True


@pytest.mark.parametrize("case", EDITS)
async def test_altered_key_opens_nothing_and_is_named(attacked: TestApp, attacker: Attacker, case: str) -> None:
    thief = await create_account(attacked.ports, "Thief")
    owner = thief.account_id
    made = await create_key(attacked.ports, owner, Mode.TEST, "reports", rights=["read"], addresses=["203.0.113.0/24"])
    pair = made.pair
    if case == "a later end":
        await end_key(attacked.ports, pair.api_key)
    else:
        assert await opens(attacked, pair)
    assert await differing(attacked) == []
    edit = EDITS[case].format(account=attacked.account.account_id, key=thief.test.api_key)
    await attacker.run(f"UPDATE api_keys SET {edit} WHERE id = '{pair.api_key}'")
    assert await differing(attacked) == [(pair.api_key, "api_keys.account_id")]
    assert not await opens(attacked, pair)
    assert await opens(attacked, thief.test), "other keys go on"


async def test_copied_digest_lets_no_other_secret_in(attacked: TestApp, attacker: Attacker) -> None:
    thief = await create_account(attacked.ports, "Thief")
    victim = attacked.account.live.api_key
    copied = f"(SELECT secret_digest FROM api_keys WHERE id = '{thief.live.api_key}')"
    await attacker.run(f"UPDATE api_keys SET secret_digest = {copied} WHERE id = '{victim}'")
    assert not await opens(attacked, KeyPair(api_key=victim, api_secret=thief.live.api_secret))


async def test_tag_by_keys_of_his_own_does_not_fit(attacked: TestApp, attacker: Attacker) -> None:
    pair = attacked.account.test
    await attacker.run("UPDATE api_keys SET tag = :tag WHERE id = :id", {"tag": OWN.tag(b"x", "y"), "id": pair.api_key})
    assert not await opens(attacked, pair)


async def test_changes_by_operators_keep_a_key_open(attacked: TestApp) -> None:
    owner = attacked.account.account_id
    made = await create_key(attacked.ports, owner, Mode.TEST, "reports", rights=["read"])
    await set_key(attacked.ports, made.pair.api_key, rights=["read", "payments"], addresses=["203.0.113.7"])
    assert await opens(attacked, made.pair)
    await set_key(attacked.ports, made.pair.api_key, rights=None, addresses=None)
    assert await opens(attacked, made.pair)
    renewed = await rotate_key(attacked.ports, owner, Mode.TEST, name="reports")
    assert await opens(attacked, renewed.pair)
    assert not await opens(attacked, made.pair)
    assert await differing(attacked) == []


@pytest.mark.parametrize("name", ["reports", None])
async def test_rotation_takes_no_altered_right_over(attacked: TestApp, attacker: Attacker, name: str | None) -> None:
    owner = attacked.account.account_id
    if name is None:
        key = attacked.account.test.api_key
        await set_key(attacked.ports, key, rights=["read"])
    else:
        key = (await create_key(attacked.ports, owner, Mode.TEST, name, rights=["read"])).pair.api_key
    await attacker.run(f"UPDATE api_keys SET rights = NULL WHERE id = '{key}'")
    with pytest.raises(Refusal) as refused:
        await rotate_key(attacked.ports, owner, Mode.TEST, name=name)
    assert refused.value.code == "INVALID_STATE"
    await end_key(attacked.ports, key)
    # An operator who makes the next pair says what it may do.
    if name is None:
        made = await rotate_key(attacked.ports, owner, Mode.TEST)
    else:
        made = await create_key(attacked.ports, owner, Mode.TEST, name, rights=["read"])
    assert await opens(attacked, made.pair)
    assert await differing(attacked) == [(key, "api_keys.account_id")]


async def test_operators_change_makes_an_altered_key_no_truer(attacked: TestApp, attacker: Attacker) -> None:
    owner = attacked.account.account_id
    made = await create_key(attacked.ports, owner, Mode.TEST, "reports", rights=["read"])
    key = made.pair.api_key
    await attacker.run(f"UPDATE api_keys SET rights = NULL WHERE id = '{key}'")
    with pytest.raises(Refusal) as refused:
        await set_key(attacked.ports, key, addresses=["203.0.113.7"])
    assert refused.value.code == "INVALID_STATE"
    await end_key(attacked.ports, key)
    found = await attacked.ports.storage.get(ApiKey, key)
    assert found is not None
    assert found.ends_at is not None
    assert await differing(attacked) == [(key, "api_keys.account_id")]
