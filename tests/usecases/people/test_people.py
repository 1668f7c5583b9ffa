"""People, invitations, sessions and sign-in (docs/dashboard.md)."""

import asyncio
import base64
from datetime import timedelta

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.people.passwords import totp_code
from cambist.core.domain.people.people import Invitation, Letter, Membership, Session, User
from cambist.core.domain.people.roles import PersonRight, Role
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.people.factors import (
    begin_totp,
    change_password,
    confirm_totp,
    remove_totp,
    renew_recovery_codes,
)
from cambist.core.usecases.people.invitations import accept_invitation, invite, revoke_invitation, show_invitation
from cambist.core.usecases.people.members import change_member, list_members, remove_member, reset_user, switch_user
from cambist.core.usecases.people.resets import is_reset_open, new_reset_link, request_reset, reset_password
from cambist.core.usecases.people.sessions import (
    change_session,
    end_other_sessions,
    end_session,
    find_actor,
    list_sessions,
    may,
    require,
    start_session,
)
from cambist.core.usecases.people.sign_in import (
    check_code,
    check_password,
    device_token,
    half_signed_in,
    half_token,
    require_password,
)
from cambist.core.usecases.people.users import email_of
from cambist.ports.faults import Refused, Unavailable
from tests.houses import TestHouse
from tests.invariants import everything
from tests.people_kit import PASSWORD, joined, person, signed_in, token_of, with_mail
from tests.tables import table

OTHER = "another long sentence"  # of nobody


def code_of(refusal: pytest.ExceptionInfo[Refusal]) -> str:
    return refusal.value.code


class TestInvitation:
    async def test_invited_person_becomes_a_member_once(self, house: TestHouse) -> None:
        new = await invite(house.ports, house.account.account_id, "Olga@Shop.Example", Role.OWNER)
        assert (new.is_mailed, new.link.startswith("https://pay.example/invite?token=")) == (False, True)
        shown = await show_invitation(house.ports, token_of(new.link))
        assert (shown.email, shown.has_password, shown.account.name) == ("olga@shop.example", False, "Merchant")
        user = await accept_invitation(house.ports, token_of(new.link), PASSWORD, "ru")
        [member] = await list_members(house.ports, house.account.account_id)
        assert (member.user.id, member.email, member.membership.role) == (user.id, "olga@shop.example", Role.OWNER)
        with pytest.raises(Refusal) as again:
            await accept_invitation(house.ports, token_of(new.link), PASSWORD, "ru")
        assert code_of(again) == "INVITATION_NOT_FOUND"

    async def test_address_and_token_are_not_stored_in_clear(self, house: TestHouse) -> None:
        new = await invite(house.ports, house.account.account_id, "olga@shop.example", Role.OWNER)
        [stored] = await everything(house.ports, Invitation)
        assert b"olga" not in stored.email
        assert token_of(new.link) not in repr((stored, new))
        assert "olga" not in repr(stored)

    @table("days, open_still", [(6.99, True), (7.01, False)])
    async def test_invitation_lives_for_seven_days(self, house: TestHouse, days: float, open_still: bool) -> None:
        new = await invite(house.ports, house.account.account_id, "olga@shop.example", Role.OWNER)
        await house.clock.advance(timedelta(days=days).total_seconds())
        if open_still:
            await show_invitation(house.ports, token_of(new.link))
        else:
            with pytest.raises(Refusal):
                await show_invitation(house.ports, token_of(new.link))

    async def test_newer_invitation_of_an_address_voids_the_older(self, house: TestHouse) -> None:
        first = await invite(house.ports, house.account.account_id, "olga@shop.example", Role.VIEWER)
        second = await invite(house.ports, house.account.account_id, "olga@shop.example", Role.ADMIN)
        with pytest.raises(Refusal):
            await show_invitation(house.ports, token_of(first.link))
        assert (await show_invitation(house.ports, token_of(second.link))).invitation.role is Role.ADMIN

    async def test_person_of_another_account_joins_with_the_present_password(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id, Role.VIEWER)
        other = await create_account(house.ports, "Other")
        new = await invite(house.ports, other.account_id, "viewer@shop.example", Role.OWNER)
        with pytest.raises(Refusal) as wrong:
            await accept_invitation(house.ports, token_of(new.link), OTHER, "en")
        assert code_of(wrong) == "SIGN_IN_FAILED"
        same = await accept_invitation(house.ports, token_of(new.link), PASSWORD, "en")
        assert (same.id, same.security) == (user.id, user.security)

    async def test_two_acceptances_at_once_make_one_person(self, house: TestHouse) -> None:
        new = await invite(house.ports, house.account.account_id, "olga@shop.example", Role.OWNER)
        tries = [accept_invitation(house.ports, token_of(new.link), PASSWORD, "en") for _ in range(2)]
        await asyncio.gather(*tries, return_exceptions=True)
        assert len(await everything(house.ports, User)) == 1
        assert len(await everything(house.ports, Membership)) == 1

    async def test_admin_invites_no_owner_and_support_nobody(self, house: TestHouse) -> None:
        for role in (Role.ADMIN, Role.SUPPORT):
            actor = await person(house, role)
            with pytest.raises(Refusal) as denied:
                await invite(house.ports, "", "o@shop.example", Role.OWNER, inviter=actor)
            assert code_of(denied) == "PERSON_RIGHT_MISSING"

    async def test_invitation_is_void_once_its_inviter_may_not_invite(self, house: TestHouse) -> None:
        owner, admin = await person(house), await person(house, Role.ADMIN)
        new = await invite(house.ports, "", "o@shop.example", Role.VIEWER, inviter=admin)
        await change_member(house.ports, owner, admin.user.id, role=Role.VIEWER, shops=None, live=True)
        with pytest.raises(Refusal) as void:
            await accept_invitation(house.ports, token_of(new.link), PASSWORD, "en")
        assert code_of(void) == "INVITATION_NOT_FOUND"

    async def test_revoked_invitation_opens_nothing(self, house: TestHouse) -> None:
        owner = await person(house)
        new = await invite(house.ports, "", "o@shop.example", Role.VIEWER, inviter=owner)
        await revoke_invitation(house.ports, owner, new.invitation.id)
        with pytest.raises(Refusal):
            await show_invitation(house.ports, token_of(new.link))

    async def test_invitations_are_in_the_audit_log_with_the_person(self, house: TestHouse) -> None:
        owner = await person(house)
        new = await invite(house.ports, "", "o@shop.example", Role.VIEWER, inviter=owner)
        [entry] = await everything(house.ports, AuditEntry)
        assert (entry.operator, entry.act, entry.account_id) == (
            owner.user.id,
            "person.invite",
            house.account.account_id,
        )
        assert (entry.object_id, "role=viewer" in entry.after) == (new.invitation.id, True)

    async def test_unknown_shop_cannot_limit_a_member(self, house: TestHouse) -> None:
        with pytest.raises(Refusal) as unknown:
            await invite(house.ports, house.account.account_id, "o@shop.example", Role.VIEWER, shops=("no",))
        assert code_of(unknown) == "SHOP_NOT_FOUND"


class TestSession:
    async def test_token_opens_the_session_and_its_digest_does_not(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        actor, token = await signed_in(house.ports, user)
        assert (actor.user.id, actor.role, actor.mode) == (user.id, Role.OWNER, Mode.TEST)
        assert await find_actor(house.ports, actor.session.id) is None
        assert await find_actor(house.ports, token + "0") is None

    @table(
        "role, idle, absolute",
        [(Role.OWNER, 30, 12 * 60), (Role.FINANCE, 30, 12 * 60), (Role.SUPPORT, 12 * 60, 7 * 24 * 60)],
    )
    async def test_session_ends_unused_and_in_any_case(
        self, house: TestHouse, role: Role, idle: int, absolute: int
    ) -> None:
        user = await joined(
            house.ports, house.account.account_id, role, email=f"{house.clock.now().timestamp()}@s.example"
        )
        _, token = await signed_in(house.ports, user)
        await house.clock.advance(idle * 60 + 1)
        assert await find_actor(house.ports, token) is None
        _, token = await signed_in(house.ports, user)
        for _ in range(absolute // (idle - 1)):
            await house.clock.advance((idle - 1) * 60)
            assert await find_actor(house.ports, token)
        await house.clock.advance(absolute * 60 - (absolute // (idle - 1)) * (idle - 1) * 60 + 1)
        assert await find_actor(house.ports, token) is None

    async def test_new_token_replaces_the_old_at_once(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        actor, token = await signed_in(house.ports, user)
        new = await change_session(house.ports, actor, mode=Mode.LIVE)
        assert await find_actor(house.ports, token) is None
        found = await find_actor(house.ports, new.token)
        assert found is not None
        assert found.mode is Mode.LIVE

    async def test_member_of_test_mode_enters_no_live_mode(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id, Role.DEVELOPER, live=False)
        actor, _ = await signed_in(house.ports, user, mode=Mode.LIVE)
        assert actor.mode is Mode.TEST
        with pytest.raises(Refusal) as denied:
            await change_session(house.ports, actor, mode=Mode.LIVE)
        assert code_of(denied) == "LIVE_MODE_DENIED"

    async def test_person_enters_no_foreign_account(self, house: TestHouse) -> None:
        actor = await person(house)
        other = await create_account(house.ports, "Other")
        with pytest.raises(Refusal) as denied:
            await change_session(house.ports, actor, account_id=other.account_id)
        assert code_of(denied) == "NO_ACCOUNT"
        with pytest.raises(Refusal):
            await start_session(house.ports, actor.user.id, method="password", account_id=other.account_id)

    async def test_person_ends_own_sessions_only(self, house: TestHouse) -> None:
        owner, viewer = await person(house), await person(house, Role.VIEWER)
        await end_session(house.ports, viewer.user.id, owner.session.id)
        assert len(await list_sessions(house.ports, owner.user.id)) == 1
        _, token = await signed_in(house.ports, owner.user)
        assert await end_other_sessions(house.ports, owner) == 1
        assert await find_actor(house.ports, token) is None

    async def test_twenty_sessions_of_a_person_are_open_at_most(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        for _ in range(25):
            await signed_in(house.ports, user)
            await house.clock.advance(1)
        assert len(await everything(house.ports, Session)) == 20

    async def test_confirmation_lasts_ten_minutes(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        _, token = await signed_in(house.ports, user)
        for minutes, confirmed in ((9.9, True), (0.2, False)):
            await house.clock.advance(minutes * 60)
            actor = await find_actor(house.ports, token)
            assert actor is not None
            assert may(actor, PersonRight.KEYS) is confirmed
        assert actor is not None
        with pytest.raises(Refusal) as needed:
            require(actor, PersonRight.KEYS)
        assert code_of(needed) == "STEP_UP_NEEDED"

    async def test_money_roles_need_a_second_factor_in_live_mode(self, house: TestHouse) -> None:
        actor = await person(house, Role.FINANCE, mode=Mode.LIVE)
        assert may(actor, PersonRight.READ)
        with pytest.raises(Refusal) as needed:
            require(actor, PersonRight.MONEY)
        assert code_of(needed) == "SECOND_FACTOR_NEEDED"


class TestMembers:
    async def test_removed_member_is_out_at_the_next_request(self, house: TestHouse) -> None:
        owner = await person(house)
        user = await joined(house.ports, house.account.account_id, Role.VIEWER)
        _, token = await signed_in(house.ports, user)
        await remove_member(house.ports, owner, user.id)
        assert await find_actor(house.ports, token) is None

    async def test_last_owner_stays(self, house: TestHouse) -> None:
        owner = await person(house)
        for leaving in (
            remove_member(house.ports, owner, owner.user.id),
            change_member(house.ports, owner, owner.user.id, role=Role.ADMIN, shops=None, live=True),
        ):
            with pytest.raises(Refusal) as last:
                await leaving
            assert code_of(last) == "LAST_OWNER"

    async def test_two_owners_who_remove_each_other_leave_one(self, house: TestHouse) -> None:
        first = await person(house)
        second = await person(house, email="second@shop.example")
        await asyncio.gather(
            remove_member(house.ports, first, second.user.id),
            remove_member(house.ports, second, first.user.id),
            return_exceptions=True,
        )
        [left] = await everything(house.ports, Membership)
        assert left.role is Role.OWNER

    async def test_admin_touches_no_owner_and_raises_nobody_to_owner(self, house: TestHouse) -> None:
        owner, admin = await person(house), await person(house, Role.ADMIN)
        for act in (
            remove_member(house.ports, admin, owner.user.id),
            change_member(house.ports, admin, admin.user.id, role=Role.OWNER, shops=None, live=True),
        ):
            with pytest.raises(Refusal) as denied:
                await act
            assert code_of(denied) == "PERSON_RIGHT_MISSING"

    async def test_changed_role_counts_at_once(self, house: TestHouse) -> None:
        owner, admin = await person(house), await person(house, Role.ADMIN)
        await change_member(house.ports, owner, admin.user.id, role=Role.VIEWER, shops=None, live=False)
        assert await list_sessions(house.ports, admin.user.id) == []

    async def test_stale_form_changes_nobody(self, house: TestHouse) -> None:
        owner, admin = await person(house), await person(house, Role.ADMIN)
        seen = admin.membership.version
        await change_member(house.ports, owner, admin.user.id, role=Role.VIEWER, shops=None, live=True)
        with pytest.raises(Refusal) as stale:
            await change_member(house.ports, owner, admin.user.id, role=Role.ADMIN, shops=None, live=True, version=seen)
        assert code_of(stale) == "INVALID_STATE"

    async def test_disabled_person_is_out_everywhere(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        _, token = await signed_in(house.ports, user)
        await switch_user(house.ports, "owner@shop.example", enabled=False)
        assert await find_actor(house.ports, token) is None
        with pytest.raises(Refusal) as failed:
            await check_password(house.ports, "owner@shop.example", PASSWORD, "")
        assert code_of(failed) == "SIGN_IN_FAILED"
        await switch_user(house.ports, user.id, enabled=True)
        await check_password(house.ports, "owner@shop.example", PASSWORD, "")

    async def test_operator_resets_a_person_who_lost_everything(self, house: TestHouse) -> None:
        await joined(house.ports, house.account.account_id)
        _, link = await reset_user(house.ports, "owner@shop.example")
        with pytest.raises(Refusal):
            await check_password(house.ports, "owner@shop.example", PASSWORD, "")
        await reset_password(house.ports, token_of(link), OTHER)
        await check_password(house.ports, "owner@shop.example", OTHER, "")


class TestPassword:
    @table("address", ["owner@shop.example", "nobody@shop.example", "no address", ""])
    async def test_each_failure_has_one_answer(self, house: TestHouse, address: str) -> None:
        if not await everything(house.ports, User):
            await joined(house.ports, house.account.account_id)
        with pytest.raises(Refusal) as failed:
            await check_password(house.ports, address, "a wrong password", "")
        assert (code_of(failed), str(failed.value)) == ("SIGN_IN_FAILED", "Address or password is wrong")

    async def test_guesses_of_strangers_do_not_lock_out_a_known_browser(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        known = device_token(house.ports, user.id)
        for _ in range(10):
            with pytest.raises(Refusal):
                await check_password(house.ports, "owner@shop.example", "a wrong password", "")
        with pytest.raises(Refusal) as spent:
            await check_password(house.ports, "owner@shop.example", PASSWORD, "")
        assert (code_of(spent), 3000 < (spent.value.retry_after or 0) <= 3600) == ("TOO_MANY_GUESSES", True)
        await check_password(house.ports, "owner@shop.example", PASSWORD, known)
        await house.clock.advance(3601)
        await check_password(house.ports, "owner@shop.example", PASSWORD, "")

    async def test_many_guesses_at_once_have_one_budget(self, house: TestHouse) -> None:
        await joined(house.ports, house.account.account_id)
        tries = [check_password(house.ports, "owner@shop.example", f"wrong password {n}", "") for n in range(30)]
        ends = await asyncio.gather(*tries, return_exceptions=True)
        codes = [end.code for end in ends if isinstance(end, Refusal)]
        assert (codes.count("SIGN_IN_FAILED"), codes.count("TOO_MANY_GUESSES")) == (10, 20)

    async def test_right_password_spends_no_budget(self, house: TestHouse) -> None:
        await joined(house.ports, house.account.account_id)
        for _ in range(12):
            await check_password(house.ports, "owner@shop.example", PASSWORD, "")

    async def test_device_token_of_another_person_is_unknown(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        foreign = device_token(house.ports, "usr_other").replace("usr_other", user.id, 1)
        for _ in range(10):
            with pytest.raises(Refusal):
                await check_password(house.ports, "owner@shop.example", "a wrong password", foreign)
        with pytest.raises(Refusal) as spent:
            await check_password(house.ports, "owner@shop.example", PASSWORD, foreign)
        assert code_of(spent) == "TOO_MANY_GUESSES"

    async def test_hash_is_stored_encrypted(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        assert user.password is not None
        assert b"argon2" not in user.password

    async def test_new_password_ends_other_sessions(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        _, other = await signed_in(house.ports, user)
        actor, token = await signed_in(house.ports, user)
        with pytest.raises(Refusal):
            await change_password(house.ports, actor, OTHER, OTHER)
        await change_password(house.ports, actor, PASSWORD, OTHER)
        assert await find_actor(house.ports, other) is None
        assert await find_actor(house.ports, token) is not None
        await check_password(house.ports, "owner@shop.example", OTHER, "")

    async def test_confirmations_have_a_budget(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        for _ in range(5):
            with pytest.raises(Refusal):
                await require_password(house.ports, user, "a wrong password")
        with pytest.raises(Refusal) as spent:
            await require_password(house.ports, user, PASSWORD)
        assert code_of(spent) == "TOO_MANY_GUESSES"


class TestAuthenticatorApp:
    async def enrolled(self, house: TestHouse) -> tuple[User, bytes, tuple[str, ...]]:
        user = await joined(house.ports, house.account.account_id)
        actor, token = await signed_in(house.ports, user)
        secret = base64.b32decode((await begin_totp(house.ports, actor)).secret)
        present = await find_actor(house.ports, token)
        assert present is not None
        codes = await confirm_totp(house.ports, present, self.code(house, secret))
        return (await everything(house.ports, User))[0], secret, codes

    def code(self, house: TestHouse, secret: bytes) -> str:
        return totp_code(secret, int(house.clock.now().timestamp()) // 30)

    async def test_it_counts_once_its_first_code_is_right(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        actor, token = await signed_in(house.ports, user)
        await begin_totp(house.ports, actor)
        assert not (await check_password(house.ports, "owner@shop.example", PASSWORD, "")).needs_code
        again = await find_actor(house.ports, token)
        assert again is not None
        with pytest.raises(Refusal) as wrong:
            await confirm_totp(house.ports, again, "000000")
        assert code_of(wrong) == "SIGN_IN_FAILED"

    async def test_code_works_once_even_in_parallel(self, house: TestHouse) -> None:
        user, secret, _ = await self.enrolled(house)
        await house.clock.advance(60)
        code = self.code(house, secret)
        ends = await asyncio.gather(*(check_code(house.ports, user, code) for _ in range(3)), return_exceptions=True)
        assert sum(isinstance(end, User) for end in ends) == 1

    async def test_recovery_code_works_once_even_in_parallel(self, house: TestHouse) -> None:
        user, _, codes = await self.enrolled(house)
        assert len(codes) == 10
        ends = await asyncio.gather(
            *(check_code(house.ports, user, codes[0]) for _ in range(3)), return_exceptions=True
        )
        assert sum(isinstance(end, User) for end in ends) == 1
        assert len((await everything(house.ports, User))[0].recovery) == 9

    async def test_guesses_of_codes_have_a_budget_over_all_sign_ins(self, house: TestHouse) -> None:
        user, secret, _ = await self.enrolled(house)
        await house.clock.advance(60)
        for _ in range(5):
            with pytest.raises(Refusal):
                await check_code(house.ports, user, "000000")
        with pytest.raises(Refusal) as spent:
            await check_code(house.ports, user, self.code(house, secret))
        assert code_of(spent) == "TOO_MANY_GUESSES"

    async def test_step_between_password_and_code_is_bound_and_short(self, house: TestHouse) -> None:
        user, _, _ = await self.enrolled(house)
        assert (await check_password(house.ports, "owner@shop.example", PASSWORD, "")).needs_code
        token = half_token(house.ports, user)
        assert await half_signed_in(house.ports, token)
        assert await half_signed_in(house.ports, token.replace(user.id, "usr_other", 1)) is None
        assert await find_actor(house.ports, token) is None
        await house.clock.advance(601)
        assert await half_signed_in(house.ports, token) is None

    async def test_removing_it_and_new_codes_need_a_confirmation(self, house: TestHouse) -> None:
        user, _, codes = await self.enrolled(house)
        actor, token = await signed_in(house.ports, user)
        fresh = await renew_recovery_codes(house.ports, actor)
        assert not set(fresh) & set(codes)
        await house.clock.advance(601)
        late = await find_actor(house.ports, token)
        assert late is not None
        with pytest.raises(Refusal) as needed:
            await remove_totp(house.ports, late)
        assert code_of(needed) == "STEP_UP_NEEDED"

    async def test_reset_by_mail_does_not_lift_it(self, house: TestHouse) -> None:
        mailbox = with_mail(house)
        await self.enrolled(house)
        await request_reset(house.ports, "owner@shop.example")
        await house.work(1)

        await run_due(house.ports)
        link = next(each.text for each in mailbox.letters if "reset?token" in each.text).split()
        await reset_password(house.ports, token_of(next(each for each in link if "token=" in each)), OTHER)
        assert (await check_password(house.ports, "owner@shop.example", OTHER, "")).needs_code


class TestReset:
    async def link(self, house: TestHouse) -> str:

        link = await new_reset_link(house.ports, "owner@shop.example", mails=False)
        assert link is not None
        return token_of(link)

    async def test_link_sets_the_password_once_and_ends_sessions(self, house: TestHouse) -> None:
        user = await joined(house.ports, house.account.account_id)
        _, session = await signed_in(house.ports, user)
        token, second = await self.link(house), await self.link(house)
        assert await is_reset_open(house.ports, token)
        await reset_password(house.ports, token, OTHER)
        assert await find_actor(house.ports, session) is None
        for each in (token, second):
            with pytest.raises(Refusal) as void:
                await reset_password(house.ports, each, PASSWORD)
            assert code_of(void) == "RESET_VOID"

    async def test_link_lives_for_thirty_minutes(self, house: TestHouse) -> None:
        await joined(house.ports, house.account.account_id)
        token = await self.link(house)
        await house.clock.advance(1801)
        assert not await is_reset_open(house.ports, token)

    async def test_three_links_are_open_at_most(self, house: TestHouse) -> None:

        await joined(house.ports, house.account.account_id)
        made = [await new_reset_link(house.ports, "owner@shop.example", mails=False) for _ in range(5)]
        assert [link is not None for link in made] == [True, True, True, False, False]

    @table("address", ["nobody@shop.example", "no address"])
    async def test_unknown_address_gets_no_letter(self, house: TestHouse, address: str) -> None:
        mailbox = with_mail(house)
        await request_reset(house.ports, address)

        await run_due(house.ports)
        assert mailbox.letters == []


class TestLetters:
    async def test_letter_goes_to_the_person_alone_and_is_then_forgotten(self, house: TestHouse) -> None:

        mailbox = with_mail(house)
        new = await invite(house.ports, house.account.account_id, "olga@shop.example", Role.VIEWER, language="ru")
        [letter] = await everything(house.ports, Letter)
        assert b"olga" not in letter.body
        await run_due(house.ports)
        [sent] = mailbox.letters
        assert (sent.to, sent.subject, new.link in sent.text) == ("olga@shop.example", "Приглашение в Merchant", True)
        assert await everything(house.ports, Letter) == []

    async def test_letter_is_tried_again_while_the_server_is_away(self, house: TestHouse) -> None:

        mailbox = with_mail(house, Unavailable("away"), Unavailable("away"))
        await invite(house.ports, house.account.account_id, "olga@shop.example", Role.VIEWER)
        for seconds in (0, 31, 301):
            await house.clock.advance(seconds)
            await run_due(house.ports)
        assert len(mailbox.letters) == 1

    async def test_rejected_letter_is_given_up(self, house: TestHouse) -> None:

        with_mail(house, Refused("no such mailbox"))
        await invite(house.ports, house.account.account_id, "olga@shop.example", Role.VIEWER)
        await run_due(house.ports)
        assert await everything(house.ports, Letter) == []

    async def test_person_is_told_of_a_changed_password(self, house: TestHouse) -> None:

        mailbox = with_mail(house)
        actor = await person(house)
        await change_password(house.ports, actor, PASSWORD, OTHER)
        await run_due(house.ports)
        assert mailbox.letters[-1].to == email_of(house.ports, actor.user) == "owner@shop.example"
        assert "Your password was changed." in mailbox.letters[-1].text
