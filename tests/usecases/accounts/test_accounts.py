"""Accounts: opening, settings, keys and authentication (docs/concepts.md "Accounts, keys, modes"; docs/cli.md "A new
account")."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.ids import SeededIds
from cambist.core.domain.accounts.accounts import Account, ApiKey, Mode
from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.errors import Refusal
from cambist.core.domain.ids import canonical_uuid
from cambist.core.usecases.accounts.access import RECENT, authenticate
from cambist.core.usecases.accounts.accounts import (
    create_account,
    get_account,
    list_accounts,
    set_settings,
)
from cambist.core.usecases.accounts.keys import rotate_key
from cambist.core.usecases.common.encrypted import open_webhook_secret
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings, VaultKeys
from cambist.ports.bundle import Ports
from cambist.ports.jobs import Job

FIRST, SECOND, THIRD = "first-secret-0001", "second-secret-002", "third-secret-0003"
URL = "https://merchant.example/hooks"
VAULT = VaultKeys(keys={1: bytes(32)}, current=1, pepper=bytes(range(32)))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def ports(clock: VirtualClock) -> AsyncIterator[Ports]:
    settings = Settings(database_url="memory://", vault=VAULT)
    async with open_app(settings, clock=clock, ids=SeededIds()) as app:
        yield app.ports


async def _stored(ports: Ports, account_id: str) -> Account:
    async with ports.storage.unit() as unit:
        account = await unit[Account].get(account_id)
    assert account is not None
    return account


def _opened(ports: Ports, account: Account, sealed: bytes | None) -> str | None:
    return None if sealed is None else open_webhook_secret(ports.vault, account.id, sealed)


class TestOpening:
    async def test_a_new_account_has_a_key_pair_per_mode_in_the_documented_form(self, ports: Ports) -> None:
        """`svc_live_`, `svc_test_`, a secret of 64 hex characters (docs/concepts.md "Accounts, keys, modes")."""
        made = await create_account(ports, "Merchant")
        assert re.fullmatch(r"svc_live_[0-9a-f]{32}", made.live.api_key)
        assert re.fullmatch(r"svc_test_[0-9a-f]{32}", made.test.api_key)
        assert re.fullmatch(r"[0-9a-f]{64}", made.live.api_secret)
        assert len({made.live.api_secret, made.test.api_secret, made.live.api_key[9:], made.test.api_key[9:]}) == 4
        assert made.account_id.startswith("acc_")

    async def test_a_new_account_takes_payments_at_once(self, ports: Ports) -> None:
        """Acceptance on, an enabled default shop with a markup of 0.03; its id a bare UUID
        (docs/cli.md "A new account")."""
        made = await create_account(ports, "Merchant")
        async with ports.storage.unit() as unit:
            shop = await unit[Shop].get(made.default_shop_id)
        assert shop is not None
        assert (shop.account_id, shop.enabled, shop.markup) == (made.account_id, True, "0.03")
        assert canonical_uuid(made.default_shop_id) == made.default_shop_id
        assert (await _stored(ports, made.account_id)).settings.acceptance

    async def test_storage_holds_only_a_keyed_digest_of_an_api_secret(self, ports: Ports) -> None:
        made = await create_account(ports, "Merchant")
        async with ports.storage.unit() as unit:
            keys = await unit[ApiKey].find(account_id=made.account_id)
        assert {key.secret_digest for key in keys} == {
            ports.vault.fingerprint(pair.api_secret) for pair in (made.live, made.test)
        }
        written = msgspec.json.encode([msgspec.to_builtins(key) for key in keys])
        for pair in (made.live, made.test):
            assert pair.api_secret.encode() not in written
            assert bytes.fromhex(pair.api_secret) not in (key.secret_digest for key in keys)

    async def test_secrets_are_in_no_repr(self, ports: Ports) -> None:
        made = await create_account(ports, "Merchant")
        new = await rotate_key(ports, made.account_id, Mode.TEST)
        text = f"{made!r} {made} {new!r} {await get_account(ports, made.account_id)!r} {VAULT!r}"
        for pair in (made.live, made.test, new.pair):
            assert pair.api_secret not in text
            assert pair.api_key in text

    async def test_a_name_that_breaks_the_rule_opens_nothing(self, ports: Ports) -> None:
        with pytest.raises(Refusal, match="name"):
            await create_account(ports, " \n")
        assert await list_accounts(ports) == []

    async def test_accounts_are_listed_oldest_first_and_may_share_a_name(self, ports: Ports) -> None:
        made = [await create_account(ports, "Same") for _ in range(3)]
        assert [account.id for account in await list_accounts(ports)] == [each.account_id for each in made]

    @pytest.mark.parametrize(
        "account_id", ["", "acc_none", "\0", "acc_\ud800", "x" * 5000], ids=lambda text: ascii(text)[:20]
    )
    async def test_an_unknown_account_is_refused_whatever_was_typed(self, ports: Ports, account_id: str) -> None:
        for work in (
            get_account(ports, account_id),
            set_settings(ports, account_id, {"acceptance": "true"}),
            rotate_key(ports, account_id, Mode.TEST),
        ):
            with pytest.raises(Refusal) as caught:
                await work
            assert caught.value.code == "ACCOUNT_NOT_FOUND"


class TestSettings:
    async def test_settings_are_set_by_name_and_the_others_stay(self, ports: Ports) -> None:
        made = await create_account(ports, "Merchant")
        await set_settings(ports, made.account_id, {"ttl_minutes_max": "90", "auto_return": "false"})
        account = await set_settings(ports, made.account_id, {"acceptance": "false"})
        assert account == await _stored(ports, made.account_id)
        settings = account.settings
        assert (settings.ttl_minutes_max, settings.auto_return, settings.acceptance) == (90, False, False)

    async def test_one_fault_leaves_every_setting_as_it_was(self, ports: Ports) -> None:
        made = await create_account(ports, "Merchant")
        before = await _stored(ports, made.account_id)
        with pytest.raises(Refusal, match="auto_return"):
            await set_settings(ports, made.account_id, {"acceptance": "false", "auto_return": "perhaps"})
        assert await _stored(ports, made.account_id) == before

    async def test_settings_set_at_the_same_time_are_all_kept(self, ports: Ports) -> None:
        """Each change reads again and retries, so no change is lost."""
        made = await create_account(ports, "Merchant")
        wishes = [
            {"ttl_minutes_max": "90"},
            {"acceptance": "false"},
            {"return_url": "https://a.example"},
            {"webhook_url": URL},
        ]
        await asyncio.gather(*(set_settings(ports, made.account_id, wish) for wish in wishes))
        settings = (await _stored(ports, made.account_id)).settings
        assert (settings.ttl_minutes_max, settings.acceptance) == (90, False)
        assert (settings.return_url, settings.webhook_url) == ("https://a.example", URL)

    async def test_webhook_secret_is_stored_encrypted_with_its_associated_data(self, ports: Ports) -> None:
        made = await create_account(ports, "Merchant")
        account = await set_settings(ports, made.account_id, {"webhook_secret": FIRST})
        assert account.webhook_secret is not None
        assert FIRST.encode() not in account.webhook_secret
        assert _opened(ports, account, account.webhook_secret) == FIRST
        assert account.previous_secret is None

    async def test_a_replaced_webhook_secret_signs_for_another_24_hours(
        self, ports: Ports, clock: VirtualClock
    ) -> None:
        """For 24 hours both secrets sign (docs/webhooks.md "Changing the secret")."""
        made = await create_account(ports, "Merchant")
        await set_settings(ports, made.account_id, {"webhook_secret": FIRST})
        account = await set_settings(ports, made.account_id, {"webhook_secret": SECOND})
        assert _opened(ports, account, account.webhook_secret) == SECOND
        assert _opened(ports, account, account.previous_secret) == FIRST
        assert account.previous_secret_until == clock.now() + timedelta(hours=24)

    async def test_setting_the_same_secret_again_starts_no_overlap(self, ports: Ports) -> None:
        made = await create_account(ports, "Merchant")
        await set_settings(ports, made.account_id, {"webhook_secret": FIRST})
        await set_settings(ports, made.account_id, {"webhook_secret": SECOND})
        account = await set_settings(ports, made.account_id, {"webhook_secret": SECOND})
        assert _opened(ports, account, account.previous_secret) == FIRST

    async def test_third_secret_in_the_overlap_keeps_the_first_as_previous(
        self, ports: Ports, clock: VirtualClock
    ) -> None:
        """During an overlap X-Webhook-Signature uses the old secret (docs/webhooks.md "Changing the secret"): that one
        must not fall away."""
        made = await create_account(ports, "Merchant")
        await set_settings(ports, made.account_id, {"webhook_secret": FIRST})
        await set_settings(ports, made.account_id, {"webhook_secret": SECOND})
        await clock.advance(3600)
        account = await set_settings(ports, made.account_id, {"webhook_secret": THIRD})
        assert _opened(ports, account, account.webhook_secret) == THIRD
        assert _opened(ports, account, account.previous_secret) == FIRST
        assert account.previous_secret_until == clock.now() + timedelta(hours=24)

    async def test_a_secret_after_the_overlap_follows_the_one_in_force(self, ports: Ports, clock: VirtualClock) -> None:
        made = await create_account(ports, "Merchant")
        await set_settings(ports, made.account_id, {"webhook_secret": FIRST})
        await set_settings(ports, made.account_id, {"webhook_secret": SECOND})
        await clock.advance(24 * 3600)
        account = await set_settings(ports, made.account_id, {"webhook_secret": THIRD})
        assert _opened(ports, account, account.previous_secret) == SECOND

    async def test_clearing_the_secret_ends_both_at_once(self, ports: Ports) -> None:
        made = await create_account(ports, "Merchant")
        await set_settings(ports, made.account_id, {"webhook_url": URL, "webhook_secret": FIRST})
        await set_settings(ports, made.account_id, {"webhook_secret": SECOND})
        account = await set_settings(ports, made.account_id, {"webhook_secret": ""})
        assert (account.webhook_secret, account.previous_secret, account.previous_secret_until) == (None, None, None)
        assert not account.receives

    async def test_a_secret_whose_sealing_key_is_lost_can_be_replaced(self, ports: Ports) -> None:
        made = await create_account(ports, "Merchant")
        await set_settings(ports, made.account_id, {"webhook_secret": FIRST})
        lost = msgspec.structs.replace(await _stored(ports, made.account_id), webhook_secret=b"\x09" + bytes(60))
        async with ports.storage.unit() as unit:
            unit[Account].save(lost)
            await unit.commit()
        account = await set_settings(ports, made.account_id, {"webhook_secret": SECOND})
        assert _opened(ports, account, account.webhook_secret) == SECOND
        assert account.previous_secret is None

    @pytest.mark.parametrize("order", [("webhook_url", "webhook_secret"), ("webhook_secret", "webhook_url")])
    async def test_held_events_are_released_once_address_and_secret_are_both_set(
        self, ports: Ports, order: tuple[str, str]
    ) -> None:
        """Once both are set they are sent at once (docs/webhooks.md "Webhooks")."""
        made = await create_account(ports, "Merchant")
        values = {"webhook_url": URL, "webhook_secret": FIRST}
        job_id = f"webhook.release:{made.account_id}"

        async def waiting() -> Job | None:
            async with ports.storage.unit() as unit:
                return await unit[Job].get(job_id)

        await set_settings(ports, made.account_id, {order[0]: values[order[0]], "auto_return": "false"})
        assert await waiting() is None
        await set_settings(ports, made.account_id, {order[1]: values[order[1]]})
        job = await waiting()
        assert job is not None
        assert job.due <= ports.clock.now()

    async def test_address_and_secret_cleared_and_set_again_release_again(self, ports: Ports) -> None:
        """Even while the first release still waits for a worker."""
        made = await create_account(ports, "Merchant")
        for _ in range(2):
            await set_settings(ports, made.account_id, {"webhook_url": URL, "webhook_secret": FIRST})
            await set_settings(ports, made.account_id, {"webhook_url": ""})
        assert (await set_settings(ports, made.account_id, {"webhook_url": URL})).receives


class TestAccess:
    @pytest.mark.parametrize("mode", list(Mode))
    async def test_the_key_decides_the_mode(self, ports: Ports, mode: Mode) -> None:
        """Shops and settings are the same in both modes (docs/concepts.md "Accounts, keys, modes")."""
        made = await create_account(ports, "Merchant")
        pair = made.live if mode is Mode.LIVE else made.test
        caller = await authenticate(ports, pair.api_key, pair.api_secret)
        assert (caller.account_id, caller.mode, caller.key_id) == (made.account_id, mode, pair.api_key)

    async def test_every_cause_gives_the_same_answer(self, ports: Ports) -> None:
        """One message for every cause, and never another error (docs/concepts.md "Accounts, keys, modes")."""
        made = await create_account(ports, "Merchant")
        other = await create_account(ports, "Other")
        key, secret = made.test.api_key, made.test.api_secret
        ended = made.live
        await rotate_key(ports, made.account_id, Mode.LIVE)
        wrong_secrets = (
            "", other.test.api_secret, made.live.api_secret, secret.upper(), f"{secret} ", secret[:-1], secret + "0",
            "секрет", "\xff" * 64, "\ud800", "\0",
        )  # fmt: skip
        wrong_keys = (
            "", other.test.api_key, key.upper(), f" {key}", f"{key}\n", key.removeprefix("svc_test_"),
            key.replace("svc_test_", "svc_live_"), key.replace("svc_", "sk_"), "svc_test_", "svc_test_" + "0" * 32,
            "svc_test_" + "x" * 10_000, "svc_test_\0", "svc_test_ключ", "svc_test_\ud800",
        )  # fmt: skip
        attempts = [(key, wrong) for wrong in wrong_secrets] + [(wrong, secret) for wrong in wrong_keys]
        attempts += [("", ""), (ended.api_key, ended.api_secret)]
        answers = set()
        for api_key, api_secret in attempts:
            with pytest.raises(Refusal) as caught:
                await authenticate(ports, api_key, api_secret)
            answers.add((caught.value.code, caught.value.status, caught.value.message, caught.value.details is None))
        assert answers == {("Unauthorized", 401, "The API key or secret is not valid", True)}

    @pytest.mark.parametrize(("mode", "within"), [(Mode.LIVE, RECENT), (Mode.TEST, 0.0)])
    async def test_key_and_live_account_are_cached_2_seconds_a_test_account_never(
        self, ports: Ports, monkeypatch: pytest.MonkeyPatch, mode: Mode, within: float
    ) -> None:
        """Its clock may be moved by another process, and time never goes back."""
        made = await create_account(ports, "Merchant")
        asked: dict[Any, float] = {}
        recent = ports.storage.recent

        async def noted(kind: Any, record_id: str, /, *, within: float = 0.0) -> Any:
            asked[kind] = within
            return await recent(kind, record_id, within=within)

        monkeypatch.setattr(ports.storage, "recent", noted)
        pair = made.live if mode is Mode.LIVE else made.test
        await authenticate(ports, pair.api_key, pair.api_secret)
        assert asked == {ApiKey: RECENT, Account: within}

    async def test_an_unknown_key_costs_the_same_digest_as_a_known_one(self, ports: Ports) -> None:
        """A keyed digest is computed and compared whatever the key is, so that the response time does not reveal
        whether the key exists."""

        class Counting:
            def __init__(self) -> None:
                self.digests = 0

            def fingerprint(self, secret: str) -> bytes:
                self.digests += 1
                return ports.vault.fingerprint(secret)

            seal = ports.vault.encrypt
            decrypt = ports.vault.decrypt

        made = await create_account(ports, "Merchant")
        for api_key in (made.test.api_key, "svc_test_" + "0" * 32, "nothing like a key"):
            vault = Counting()
            with pytest.raises(Refusal):
                await authenticate(msgspec.structs.replace(ports, vault=vault), api_key, "0" * 64)
            assert vault.digests == 1


class TestRotation:
    async def test_the_old_pair_ends_at_once_and_the_other_mode_stays(self, ports: Ports) -> None:
        """The keys of a new account (docs/cli.md "A new account")."""
        made = await create_account(ports, "Merchant")
        new = await rotate_key(ports, made.account_id, Mode.TEST)
        assert new.pair.api_key.startswith("svc_test_")
        assert [old.api_key for old in new.replaced] == [made.test.api_key]
        assert (await authenticate(ports, new.pair.api_key, new.pair.api_secret)).mode is Mode.TEST
        assert (await authenticate(ports, made.live.api_key, made.live.api_secret)).mode is Mode.LIVE
        with pytest.raises(Refusal):
            await authenticate(ports, made.test.api_key, made.test.api_secret)

    async def test_with_an_overlap_both_pairs_work_until_its_last_moment(
        self, ports: Ports, clock: VirtualClock
    ) -> None:
        made = await create_account(ports, "Merchant")
        new = await rotate_key(ports, made.account_id, Mode.LIVE, timedelta(hours=24))
        assert new.replaced[0].ends_at == clock.now() + timedelta(hours=24)
        await clock.advance(24 * 3600 - 1)
        for pair in (made.live, new.pair):
            await authenticate(ports, pair.api_key, pair.api_secret)
        await clock.advance(1)
        await authenticate(ports, new.pair.api_key, new.pair.api_secret)
        with pytest.raises(Refusal):
            await authenticate(ports, made.live.api_key, made.live.api_secret)

    async def test_newest_pair_of_a_mode_is_listed_first(self, ports: Ports, clock: VirtualClock) -> None:
        made = await create_account(ports, "Merchant")
        await clock.advance(60)
        new = await rotate_key(ports, made.account_id, Mode.TEST)
        keys = (await get_account(ports, made.account_id)).keys
        assert [key.id for key in keys] == [made.live.api_key, new.pair.api_key, made.test.api_key]

    async def test_a_rotation_without_overlap_cuts_a_running_overlap_short(self, ports: Ports) -> None:
        """Rotating at once is what one does after a leak: no older pair may survive it."""
        made = await create_account(ports, "Merchant")
        second = await rotate_key(ports, made.account_id, Mode.TEST, timedelta(days=7))
        third = await rotate_key(ports, made.account_id, Mode.TEST)
        assert {old.api_key for old in third.replaced} == {made.test.api_key, second.pair.api_key}
        for pair in (made.test, second.pair):
            with pytest.raises(Refusal):
                await authenticate(ports, pair.api_key, pair.api_secret)

    async def test_a_later_overlap_does_not_lengthen_an_earlier_one(self, ports: Ports, clock: VirtualClock) -> None:
        made = await create_account(ports, "Merchant")
        await rotate_key(ports, made.account_id, Mode.TEST, timedelta(hours=1))
        await rotate_key(ports, made.account_id, Mode.TEST, timedelta(hours=24))
        await clock.advance(3600)
        with pytest.raises(Refusal):
            await authenticate(ports, made.test.api_key, made.test.api_secret)

    async def test_simultaneous_rotations_leave_one_pair_in_force(self, ports: Ports) -> None:
        made = await create_account(ports, "Merchant")
        await asyncio.gather(*(rotate_key(ports, made.account_id, Mode.TEST) for _ in range(5)))
        keys = (await get_account(ports, made.account_id)).keys
        assert len(keys) == 7
        assert [key.mode for key in keys if key.ends_at is None] == [Mode.LIVE, Mode.TEST]

    @pytest.mark.parametrize(
        ("overlap", "pause"),
        [(None, timedelta(0)), (timedelta(0), timedelta(0)), (timedelta(days=30), timedelta(days=30))],
    )
    async def test_the_old_pair_ends_when_the_overlap_is_over(
        self, ports: Ports, clock: VirtualClock, overlap: timedelta | None, pause: timedelta
    ) -> None:
        made = await create_account(ports, "Merchant")
        new = await rotate_key(ports, made.account_id, Mode.TEST, overlap)
        assert [old.ends_at - clock.now() for old in new.replaced] == [pause]

    @pytest.mark.parametrize("overlap", [timedelta(seconds=-1), timedelta(days=30, seconds=1)])
    async def test_an_overlap_is_from_0_to_30_days(self, ports: Ports, overlap: timedelta) -> None:
        made = await create_account(ports, "Merchant")
        with pytest.raises(Refusal, match="overlap"):
            await rotate_key(ports, made.account_id, Mode.TEST, overlap)
        assert len((await get_account(ports, made.account_id)).keys) == 2
