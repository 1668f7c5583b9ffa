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
from tests.apps import TestApp
from tests.invariants import everything
from tests.people_kit import PASSWORD, joined, person, signed_in, token_of, with_mail
from tests.tables import table

OTHER = "another long sentence"  # A password that belongs to nobody.


def code_of(refusal: pytest.ExceptionInfo[Refusal]) -> str:
    return refusal.value.code


class TestInvitation:
    async def test_invited_person_becomes_a_member_once(self, app: TestApp) -> None:
        new = await invite(app.ports, app.account.account_id, "Olga@Shop.Example", Role.OWNER)
        assert (new.is_mailed, new.link.startswith("https://pay.example/invite?token=")) == (False, True)
        shown = await show_invitation(app.ports, token_of(new.link))
        assert (shown.email, shown.has_password, shown.account.name) == ("olga@shop.example", False, "Merchant")
        user = await accept_invitation(app.ports, token_of(new.link), PASSWORD, "ru")
        [member] = await list_members(app.ports, app.account.account_id)
        assert (member.user.id, member.email, member.membership.role) == (user.id, "olga@shop.example", Role.OWNER)
        with pytest.raises(Refusal) as again:
            await accept_invitation(app.ports, token_of(new.link), PASSWORD, "ru")
        assert code_of(again) == "INVITATION_NOT_FOUND"

    async def test_address_and_token_are_not_stored_in_clear(self, app: TestApp) -> None:
        new = await invite(app.ports, app.account.account_id, "olga@shop.example", Role.OWNER)
        [stored] = await everything(app.ports, Invitation)
        assert b"olga" not in stored.email
        assert token_of(new.link) not in repr((stored, new))
        assert "olga" not in repr(stored)

    @table("days, open_still", [(6.99, True), (7.01, False)])
    async def test_invitation_lives_for_seven_days(self, app: TestApp, days: float, open_still: bool) -> None:
        new = await invite(app.ports, app.account.account_id, "olga@shop.example", Role.OWNER)
        await app.clock.advance(timedelta(days=days).total_seconds())
        if open_still:
            await show_invitation(app.ports, token_of(new.link))
        else:
            with pytest.raises(Refusal):
                await show_invitation(app.ports, token_of(new.link))

    async def test_newer_invitation_of_an_address_voids_the_older(self, app: TestApp) -> None:
        first = await invite(app.ports, app.account.account_id, "olga@shop.example", Role.VIEWER)
        second = await invite(app.ports, app.account.account_id, "olga@shop.example", Role.ADMIN)
        with pytest.raises(Refusal):
            await show_invitation(app.ports, token_of(first.link))
        assert (await show_invitation(app.ports, token_of(second.link))).invitation.role is Role.ADMIN

    async def test_person_of_another_account_joins_with_the_present_password(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id, Role.VIEWER)
        other = await create_account(app.ports, "Other")
        new = await invite(app.ports, other.account_id, "viewer@shop.example", Role.OWNER)
        with pytest.raises(Refusal) as wrong:
            await accept_invitation(app.ports, token_of(new.link), OTHER, "en")
        assert code_of(wrong) == "SIGN_IN_FAILED"
        same = await accept_invitation(app.ports, token_of(new.link), PASSWORD, "en")
        assert (same.id, same.security) == (user.id, user.security)

    async def test_two_acceptances_at_once_make_one_person(self, app: TestApp) -> None:
        new = await invite(app.ports, app.account.account_id, "olga@shop.example", Role.OWNER)
        tries = [accept_invitation(app.ports, token_of(new.link), PASSWORD, "en") for _ in range(2)]
        await asyncio.gather(*tries, return_exceptions=True)
        assert len(await everything(app.ports, User)) == 1
        assert len(await everything(app.ports, Membership)) == 1

    async def test_admin_invites_no_owner_and_support_nobody(self, app: TestApp) -> None:
        for role in (Role.ADMIN, Role.SUPPORT):
            actor = await person(app, role)
            with pytest.raises(Refusal) as denied:
                await invite(app.ports, "", "o@shop.example", Role.OWNER, inviter=actor)
            assert code_of(denied) == "PERSON_RIGHT_MISSING"

    async def test_invitation_is_void_once_its_inviter_may_not_invite(self, app: TestApp) -> None:
        owner, admin = await person(app), await person(app, Role.ADMIN)
        new = await invite(app.ports, "", "o@shop.example", Role.VIEWER, inviter=admin)
        await change_member(app.ports, owner, admin.user.id, role=Role.VIEWER, shops=None, live=True)
        with pytest.raises(Refusal) as void:
            await accept_invitation(app.ports, token_of(new.link), PASSWORD, "en")
        assert code_of(void) == "INVITATION_NOT_FOUND"

    async def test_revoked_invitation_opens_nothing(self, app: TestApp) -> None:
        owner = await person(app)
        new = await invite(app.ports, "", "o@shop.example", Role.VIEWER, inviter=owner)
        await revoke_invitation(app.ports, owner, new.invitation.id)
        with pytest.raises(Refusal):
            await show_invitation(app.ports, token_of(new.link))

    async def test_invitations_are_in_the_audit_log_with_the_person(self, app: TestApp) -> None:
        owner = await person(app)
        new = await invite(app.ports, "", "o@shop.example", Role.VIEWER, inviter=owner)
        [entry] = await everything(app.ports, AuditEntry)
        assert (entry.operator, entry.action, entry.account_id) == (
            owner.user.id,
            "person.invite",
            app.account.account_id,
        )
        assert (entry.object_id, "role=viewer" in entry.after) == (new.invitation.id, True)

    async def test_unknown_shop_cannot_limit_a_member(self, app: TestApp) -> None:
        with pytest.raises(Refusal) as unknown:
            await invite(app.ports, app.account.account_id, "o@shop.example", Role.VIEWER, shops=("no",))
        assert code_of(unknown) == "SHOP_NOT_FOUND"


class TestSession:
    async def test_token_opens_the_session_and_its_digest_does_not(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        actor, token = await signed_in(app.ports, user)
        assert (actor.user.id, actor.role, actor.mode) == (user.id, Role.OWNER, Mode.TEST)
        assert await find_actor(app.ports, actor.session.id) is None
        assert await find_actor(app.ports, token + "0") is None

    @table(
        "role, idle, absolute",
        [(Role.OWNER, 30, 12 * 60), (Role.FINANCE, 30, 12 * 60), (Role.SUPPORT, 12 * 60, 7 * 24 * 60)],
    )
    async def test_session_ends_unused_and_in_any_case(
        self, app: TestApp, role: Role, idle: int, absolute: int
    ) -> None:
        user = await joined(app.ports, app.account.account_id, role, email=f"{app.clock.now().timestamp()}@s.example")
        _, token = await signed_in(app.ports, user)
        await app.clock.advance(idle * 60 + 1)
        assert await find_actor(app.ports, token) is None
        _, token = await signed_in(app.ports, user)
        for _ in range(absolute // (idle - 1)):
            await app.clock.advance((idle - 1) * 60)
            assert await find_actor(app.ports, token)
        await app.clock.advance(absolute * 60 - (absolute // (idle - 1)) * (idle - 1) * 60 + 1)
        assert await find_actor(app.ports, token) is None

    async def test_new_token_replaces_the_old_at_once(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        actor, token = await signed_in(app.ports, user)
        new = await change_session(app.ports, actor, mode=Mode.LIVE)
        assert await find_actor(app.ports, token) is None
        found = await find_actor(app.ports, new.token)
        assert found is not None
        assert found.mode is Mode.LIVE

    async def test_member_of_test_mode_enters_no_live_mode(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id, Role.DEVELOPER, live=False)
        actor, _ = await signed_in(app.ports, user, mode=Mode.LIVE)
        assert actor.mode is Mode.TEST
        with pytest.raises(Refusal) as denied:
            await change_session(app.ports, actor, mode=Mode.LIVE)
        assert code_of(denied) == "LIVE_MODE_DENIED"

    async def test_person_enters_no_foreign_account(self, app: TestApp) -> None:
        actor = await person(app)
        other = await create_account(app.ports, "Other")
        with pytest.raises(Refusal) as denied:
            await change_session(app.ports, actor, account_id=other.account_id)
        assert code_of(denied) == "NO_ACCOUNT"
        with pytest.raises(Refusal):
            await start_session(app.ports, actor.user.id, method="password", account_id=other.account_id)

    async def test_person_ends_own_sessions_only(self, app: TestApp) -> None:
        owner, viewer = await person(app), await person(app, Role.VIEWER)
        await end_session(app.ports, viewer.user.id, owner.session.id)
        assert len(await list_sessions(app.ports, owner.user.id)) == 1
        _, token = await signed_in(app.ports, owner.user)
        assert await end_other_sessions(app.ports, owner) == 1
        assert await find_actor(app.ports, token) is None

    async def test_twenty_sessions_of_a_person_are_open_at_most(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        for _ in range(25):
            await signed_in(app.ports, user)
            await app.clock.advance(1)
        assert len(await everything(app.ports, Session)) == 20

    async def test_confirmation_lasts_ten_minutes(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        _, token = await signed_in(app.ports, user)
        for minutes, confirmed in ((9.9, True), (0.2, False)):
            await app.clock.advance(minutes * 60)
            actor = await find_actor(app.ports, token)
            assert actor is not None
            assert may(actor, PersonRight.KEYS) is confirmed
        assert actor is not None
        with pytest.raises(Refusal) as needed:
            require(actor, PersonRight.KEYS)
        assert code_of(needed) == "STEP_UP_NEEDED"

    async def test_money_roles_need_a_second_factor_in_live_mode(self, app: TestApp) -> None:
        actor = await person(app, Role.FINANCE, mode=Mode.LIVE)
        assert may(actor, PersonRight.READ)
        with pytest.raises(Refusal) as needed:
            require(actor, PersonRight.MONEY)
        assert code_of(needed) == "SECOND_FACTOR_NEEDED"


class TestMembers:
    async def test_removed_member_is_out_at_the_next_request(self, app: TestApp) -> None:
        owner = await person(app)
        user = await joined(app.ports, app.account.account_id, Role.VIEWER)
        _, token = await signed_in(app.ports, user)
        await remove_member(app.ports, owner, user.id)
        assert await find_actor(app.ports, token) is None

    async def test_last_owner_stays(self, app: TestApp) -> None:
        owner = await person(app)
        for leaving in (
            remove_member(app.ports, owner, owner.user.id),
            change_member(app.ports, owner, owner.user.id, role=Role.ADMIN, shops=None, live=True),
        ):
            with pytest.raises(Refusal) as last:
                await leaving
            assert code_of(last) == "LAST_OWNER"

    async def test_two_owners_who_remove_each_other_leave_one(self, app: TestApp) -> None:
        first = await person(app)
        second = await person(app, email="second@shop.example")
        await asyncio.gather(
            remove_member(app.ports, first, second.user.id),
            remove_member(app.ports, second, first.user.id),
            return_exceptions=True,
        )
        [left] = await everything(app.ports, Membership)
        assert left.role is Role.OWNER

    async def test_admin_touches_no_owner_and_raises_nobody_to_owner(self, app: TestApp) -> None:
        owner, admin = await person(app), await person(app, Role.ADMIN)
        for action in (
            remove_member(app.ports, admin, owner.user.id),
            change_member(app.ports, admin, admin.user.id, role=Role.OWNER, shops=None, live=True),
        ):
            with pytest.raises(Refusal) as denied:
                await action
            assert code_of(denied) == "PERSON_RIGHT_MISSING"

    async def test_changed_role_counts_at_once(self, app: TestApp) -> None:
        owner, admin = await person(app), await person(app, Role.ADMIN)
        await change_member(app.ports, owner, admin.user.id, role=Role.VIEWER, shops=None, live=False)
        assert await list_sessions(app.ports, admin.user.id) == []

    async def test_stale_form_changes_nobody(self, app: TestApp) -> None:
        owner, admin = await person(app), await person(app, Role.ADMIN)
        seen = admin.membership.version
        await change_member(app.ports, owner, admin.user.id, role=Role.VIEWER, shops=None, live=True)
        with pytest.raises(Refusal) as stale:
            await change_member(app.ports, owner, admin.user.id, role=Role.ADMIN, shops=None, live=True, version=seen)
        assert code_of(stale) == "INVALID_STATE"

    async def test_disabled_person_is_out_everywhere(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        _, token = await signed_in(app.ports, user)
        await switch_user(app.ports, "owner@shop.example", enabled=False)
        assert await find_actor(app.ports, token) is None
        with pytest.raises(Refusal) as failed:
            await check_password(app.ports, "owner@shop.example", PASSWORD, "")
        assert code_of(failed) == "SIGN_IN_FAILED"
        await switch_user(app.ports, user.id, enabled=True)
        await check_password(app.ports, "owner@shop.example", PASSWORD, "")

    async def test_operator_resets_a_person_who_lost_everything(self, app: TestApp) -> None:
        await joined(app.ports, app.account.account_id)
        _, link = await reset_user(app.ports, "owner@shop.example")
        with pytest.raises(Refusal):
            await check_password(app.ports, "owner@shop.example", PASSWORD, "")
        await reset_password(app.ports, token_of(link), OTHER)
        await check_password(app.ports, "owner@shop.example", OTHER, "")


class TestPassword:
    @table("address", ["owner@shop.example", "nobody@shop.example", "no address", ""])
    async def test_each_failure_has_one_answer(self, app: TestApp, address: str) -> None:
        if not await everything(app.ports, User):
            await joined(app.ports, app.account.account_id)
        with pytest.raises(Refusal) as failed:
            await check_password(app.ports, address, "a wrong password", "")
        assert (code_of(failed), str(failed.value)) == ("SIGN_IN_FAILED", "Address or password is wrong")

    async def test_guesses_of_strangers_do_not_lock_out_a_known_browser(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        known = device_token(app.ports, user.id)
        for _ in range(10):
            with pytest.raises(Refusal):
                await check_password(app.ports, "owner@shop.example", "a wrong password", "")
        with pytest.raises(Refusal) as spent:
            await check_password(app.ports, "owner@shop.example", PASSWORD, "")
        assert (code_of(spent), 3000 < (spent.value.retry_after or 0) <= 3600) == ("TOO_MANY_GUESSES", True)
        await check_password(app.ports, "owner@shop.example", PASSWORD, known)
        await app.clock.advance(3601)
        await check_password(app.ports, "owner@shop.example", PASSWORD, "")

    async def test_many_guesses_at_once_have_one_budget(self, app: TestApp) -> None:
        await joined(app.ports, app.account.account_id)
        tries = [check_password(app.ports, "owner@shop.example", f"wrong password {n}", "") for n in range(30)]
        ends = await asyncio.gather(*tries, return_exceptions=True)
        codes = [end.code for end in ends if isinstance(end, Refusal)]
        assert (codes.count("SIGN_IN_FAILED"), codes.count("TOO_MANY_GUESSES")) == (10, 20)

    async def test_right_password_spends_no_budget(self, app: TestApp) -> None:
        await joined(app.ports, app.account.account_id)
        for _ in range(12):
            await check_password(app.ports, "owner@shop.example", PASSWORD, "")

    async def test_device_token_of_another_person_is_unknown(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        foreign = device_token(app.ports, "usr_other").replace("usr_other", user.id, 1)
        for _ in range(10):
            with pytest.raises(Refusal):
                await check_password(app.ports, "owner@shop.example", "a wrong password", foreign)
        with pytest.raises(Refusal) as spent:
            await check_password(app.ports, "owner@shop.example", PASSWORD, foreign)
        assert code_of(spent) == "TOO_MANY_GUESSES"

    async def test_hash_is_stored_encrypted(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        assert user.password is not None
        assert b"argon2" not in user.password

    async def test_new_password_ends_other_sessions(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        _, other = await signed_in(app.ports, user)
        actor, token = await signed_in(app.ports, user)
        with pytest.raises(Refusal):
            await change_password(app.ports, actor, OTHER, OTHER)
        await change_password(app.ports, actor, PASSWORD, OTHER)
        assert await find_actor(app.ports, other) is None
        assert await find_actor(app.ports, token) is not None
        await check_password(app.ports, "owner@shop.example", OTHER, "")

    async def test_confirmations_have_a_budget(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        for _ in range(5):
            with pytest.raises(Refusal):
                await require_password(app.ports, user, "a wrong password")
        with pytest.raises(Refusal) as spent:
            await require_password(app.ports, user, PASSWORD)
        assert code_of(spent) == "TOO_MANY_GUESSES"


class TestAuthenticatorApp:
    async def enrolled(self, app: TestApp) -> tuple[User, bytes, tuple[str, ...]]:
        user = await joined(app.ports, app.account.account_id)
        actor, token = await signed_in(app.ports, user)
        secret = base64.b32decode((await begin_totp(app.ports, actor)).secret)
        present = await find_actor(app.ports, token)
        assert present is not None
        codes = await confirm_totp(app.ports, present, self.code(app, secret))
        return (await everything(app.ports, User))[0], secret, codes

    def code(self, app: TestApp, secret: bytes) -> str:
        return totp_code(secret, int(app.clock.now().timestamp()) // 30)

    async def test_authenticator_app_counts_after_its_first_right_code(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        actor, token = await signed_in(app.ports, user)
        await begin_totp(app.ports, actor)
        assert not (await check_password(app.ports, "owner@shop.example", PASSWORD, "")).needs_code
        again = await find_actor(app.ports, token)
        assert again is not None
        with pytest.raises(Refusal) as wrong:
            await confirm_totp(app.ports, again, "000000")
        assert code_of(wrong) == "SIGN_IN_FAILED"

    async def test_code_works_once_even_in_parallel(self, app: TestApp) -> None:
        user, secret, _ = await self.enrolled(app)
        await app.clock.advance(60)
        code = self.code(app, secret)
        ends = await asyncio.gather(*(check_code(app.ports, user, code) for _ in range(3)), return_exceptions=True)
        assert sum(isinstance(end, User) for end in ends) == 1

    async def test_recovery_code_works_once_even_in_parallel(self, app: TestApp) -> None:
        user, _, codes = await self.enrolled(app)
        assert len(codes) == 10
        ends = await asyncio.gather(*(check_code(app.ports, user, codes[0]) for _ in range(3)), return_exceptions=True)
        assert sum(isinstance(end, User) for end in ends) == 1
        assert len((await everything(app.ports, User))[0].recovery) == 9

    async def test_guesses_of_codes_have_a_budget_over_all_sign_ins(self, app: TestApp) -> None:
        user, secret, _ = await self.enrolled(app)
        await app.clock.advance(60)
        for _ in range(5):
            with pytest.raises(Refusal):
                await check_code(app.ports, user, "000000")
        with pytest.raises(Refusal) as spent:
            await check_code(app.ports, user, self.code(app, secret))
        assert code_of(spent) == "TOO_MANY_GUESSES"

    async def test_step_between_password_and_code_is_bound_and_short(self, app: TestApp) -> None:
        user, _, _ = await self.enrolled(app)
        assert (await check_password(app.ports, "owner@shop.example", PASSWORD, "")).needs_code
        token = half_token(app.ports, user)
        assert await half_signed_in(app.ports, token)
        assert await half_signed_in(app.ports, token.replace(user.id, "usr_other", 1)) is None
        assert await find_actor(app.ports, token) is None
        await app.clock.advance(601)
        assert await half_signed_in(app.ports, token) is None

    async def test_removing_it_and_new_codes_need_a_confirmation(self, app: TestApp) -> None:
        user, _, codes = await self.enrolled(app)
        actor, token = await signed_in(app.ports, user)
        fresh = await renew_recovery_codes(app.ports, actor)
        assert not set(fresh) & set(codes)
        await app.clock.advance(601)
        late = await find_actor(app.ports, token)
        assert late is not None
        with pytest.raises(Refusal) as needed:
            await remove_totp(app.ports, late)
        assert code_of(needed) == "STEP_UP_NEEDED"

    async def test_reset_by_mail_does_not_lift_it(self, app: TestApp) -> None:
        mailbox = with_mail(app)
        await self.enrolled(app)
        await request_reset(app.ports, "owner@shop.example")
        await app.work(1)

        await run_due(app.ports)
        link = next(each.text for each in mailbox.letters if "reset?token" in each.text).split()
        await reset_password(app.ports, token_of(next(each for each in link if "token=" in each)), OTHER)
        assert (await check_password(app.ports, "owner@shop.example", OTHER, "")).needs_code


class TestReset:
    async def link(self, app: TestApp) -> str:

        link = await new_reset_link(app.ports, "owner@shop.example")
        assert link is not None
        return token_of(link)

    async def test_link_sets_the_password_once_and_ends_sessions(self, app: TestApp) -> None:
        user = await joined(app.ports, app.account.account_id)
        _, session = await signed_in(app.ports, user)
        token, second = await self.link(app), await self.link(app)
        assert await is_reset_open(app.ports, token)
        await reset_password(app.ports, token, OTHER)
        assert await find_actor(app.ports, session) is None
        for each in (token, second):
            with pytest.raises(Refusal) as void:
                await reset_password(app.ports, each, PASSWORD)
            assert code_of(void) == "RESET_VOID"

    async def test_link_lives_for_thirty_minutes(self, app: TestApp) -> None:
        await joined(app.ports, app.account.account_id)
        token = await self.link(app)
        await app.clock.advance(1801)
        assert not await is_reset_open(app.ports, token)

    async def test_three_links_are_open_at_most(self, app: TestApp) -> None:

        await joined(app.ports, app.account.account_id)
        made = [await new_reset_link(app.ports, "owner@shop.example") for _ in range(5)]
        assert [link is not None for link in made] == [True, True, True, False, False]

    @table("address", ["nobody@shop.example", "no address"])
    async def test_unknown_address_gets_no_mail(self, app: TestApp, address: str) -> None:
        mailbox = with_mail(app)
        await request_reset(app.ports, address)

        await run_due(app.ports)
        assert mailbox.letters == []


class TestLetters:
    async def test_letter_goes_to_the_person_alone_and_is_then_forgotten(self, app: TestApp) -> None:

        mailbox = with_mail(app)
        new = await invite(app.ports, app.account.account_id, "olga@shop.example", Role.VIEWER, language="ru")
        [letter] = await everything(app.ports, Letter)
        assert b"olga" not in letter.body
        await run_due(app.ports)
        [sent] = mailbox.letters
        assert (sent.to, sent.subject, new.link in sent.text) == ("olga@shop.example", "Приглашение в Merchant", True)
        assert await everything(app.ports, Letter) == []

    async def test_letter_is_tried_again_while_the_server_is_away(self, app: TestApp) -> None:

        mailbox = with_mail(app, Unavailable("away"), Unavailable("away"))
        await invite(app.ports, app.account.account_id, "olga@shop.example", Role.VIEWER)
        for seconds in (0, 31, 301):
            await app.clock.advance(seconds)
            await run_due(app.ports)
        assert len(mailbox.letters) == 1

    async def test_rejected_mail_is_abandoned(self, app: TestApp) -> None:

        with_mail(app, Refused("no such mailbox"))
        await invite(app.ports, app.account.account_id, "olga@shop.example", Role.VIEWER)
        await run_due(app.ports)
        assert await everything(app.ports, Letter) == []

    async def test_person_is_mailed_about_a_changed_password(self, app: TestApp) -> None:

        mailbox = with_mail(app)
        actor = await person(app)
        await change_password(app.ports, actor, PASSWORD, OTHER)
        await run_due(app.ports)
        assert mailbox.letters[-1].to == email_of(app.ports, actor.user) == "owner@shop.example"
        assert "Your password was changed." in mailbox.letters[-1].text
