"""Notifications of people from the event to the mailbox (docs/dashboard.md "Notifications")."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.days import MOSCOW
from cambist.core.domain.errors import Refusal
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.domain.people.notifications import (
    Channel,
    Notification,
    NotificationKind,
    NotificationPreferences,
    NotificationQueue,
    TelegramChat,
)
from cambist.core.domain.people.people import Membership, User
from cambist.core.domain.people.roles import Role
from cambist.core.domain.settlement.withdrawals import GIVEN_BACK, WithdrawalStatus
from cambist.core.domain.webhooks.breaker import Breaker, new_breaker, outage_id
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.common.encrypted import telegram_chat_aad
from cambist.core.usecases.jobs import run_due
from cambist.core.usecases.operators.provider_checks import check_providers
from cambist.core.usecases.people.invitations import accept_invitation, invite
from cambist.core.usecases.people.members import change_member, list_members, remove_member, switch_user
from cambist.core.usecases.people.notifications import (
    NOTIFY,
    change_preferences,
    find_unsubscription,
    preferences_of,
    read_preferences,
    unsubscribe,
    unsubscribe_link,
)
from cambist.core.usecases.people.sessions import Actor
from cambist.core.usecases.person_events import note_for_people
from cambist.core.usecases.recurring_jobs import DAILY_SUMS, start_recurring_jobs
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.bundle import Ports
from cambist.ports.faults import OutcomeUnknown, Refused, Unavailable
from cambist.ports.jobs import Job
from cambist.ports.mailer import MailMessage
from tests.apps import TestApp
from tests.invariants import everything
from tests.payout_kit import PAID, open_payouts
from tests.people_kit import PASSWORD, Bot, Mailbox, person, signed_in, token_of, with_bot, with_mail
from tests.refund_app import RefundApp, open_refund_app
from tests.tables import table

K = NotificationKind
EVERYTHING = tuple(kind.value for kind in K)
DAY = 24 * 3600


class People:
    """An app with mail, a merchant who may refund, and a member who subscribes to all notifications."""

    def __init__(self, merchant: RefundApp, mailbox: Mailbox) -> None:
        self.merchant = merchant
        self.app = merchant.app
        self.mailbox = mailbox

    @property
    def ports(self) -> Ports:
        return self.app.ports

    async def member(self, role: Role = Role.OWNER, **chosen: Any) -> Actor:
        """A signed-in member with these choices; by default everything by e-mail, in test mode, too."""
        actor = await person(self.app, role)
        await self.choose(actor, **chosen)
        await run_due(self.ports)
        self.mailbox.letters.clear()
        return actor

    async def choose(self, actor: Actor, **chosen: Any) -> NotificationPreferences:
        shown = await read_preferences(self.ports, actor)
        every = [kind.value for kind in shown.kinds]
        usual = {"email": every, "telegram": (), "test": True, "quiet_from": "", "quiet_to": ""}
        return await change_preferences(self.ports, actor, **{**usual, **chosen})

    async def refund(self) -> str:
        _, refund_id = await self.merchant.completed()
        await run_due(self.ports)
        return refund_id

    async def refunds(self, number: int) -> list[str]:
        return [await self.refund() for _ in range(number)]

    @property
    def letters(self) -> list[MailMessage]:
        return self.mailbox.letters


@pytest.fixture
async def people() -> AsyncIterator[People]:
    async with open_refund_app() as merchant:
        mailbox = with_mail(merchant.app)
        merchant.ports = merchant.app.ports
        yield People(merchant, mailbox)


async def test_refund_reaches_the_member_once_with_a_way_out(people: People) -> None:
    await people.member()
    refund_id = await people.refund()
    await people.app.work(DAY)
    [letter] = people.letters
    assert letter.to == "owner@shop.example"
    assert letter.subject == "Merchant: [test] Refund of 100.00 RUB is done"
    assert refund_id in letter.text
    assert letter.unsubscribe is not None
    assert letter.unsubscribe in letter.text
    assert await everything(people.ports, Notification) == []
    assert not [job for job in await everything(people.ports, Job) if job.kind.startswith("person.")]


async def test_installation_without_channels_writes_nothing() -> None:
    async with open_refund_app() as merchant:
        await person(merchant.app)
        await merchant.completed()
        assert not [job for job in await everything(merchant.ports, Job) if job.kind.startswith("person.")]


async def test_amount_that_differs_reaches_the_member(people: People) -> None:
    await people.member(Role.SUPPORT)
    payment = await people.app.created()
    await people.app.told(payment["id"], Simulation(status=InvoiceStatus.PAID, amount_kopecks=90_00))
    await run_due(people.ports)
    [letter] = people.letters
    assert letter.subject == "Merchant: [test] 90.00 RUB is under review"
    assert payment["id"] in letter.text
    assert "another amount" in letter.text


async def test_money_in_suspense_reaches_the_member(people: People) -> None:
    await people.member(Role.SUPPORT)
    payment_id = await people.merchant.paid()
    await people.app.told(payment_id, Simulation(status=InvoiceStatus.PAID, again=True))
    await run_due(people.ports)
    [letter] = people.letters
    assert "fits no open payment" in letter.text


class TestPayout:
    @table(
        ("role", "letters"),
        [(Role.OWNER, 1), (Role.FINANCE, 1), (Role.SUPPORT, 0), (Role.DEVELOPER, 0), (Role.VIEWER, 0)],
    )
    async def test_payout_sent_reaches_those_who_see_money(self, role: Role, letters: int) -> None:
        async with open_payouts() as payouts:
            people = People(RefundApp(payouts.app), with_mail(payouts.app))
            await people.member(role)
            payout = await payouts.made()
            await people.app.work(DAY)
            payout = await payouts.record(payout.id)
            assert payout.status is WithdrawalStatus.COMPLETED
            assert [letter.subject for letter in people.letters] == [
                f"Merchant: [test] Payout of {PAID} USDT was sent"
            ] * letters
            for letter in people.letters:
                assert f"Payout {payout.id}, network TRC20, transaction {payout.tx_hash}" in letter.text
            assert await everything(people.ports, Notification) == []

    async def test_payout_that_is_not_sent_is_not_reported(self) -> None:
        async with open_payouts() as payouts:
            people = People(RefundApp(payouts.app), with_mail(payouts.app))
            await people.member()
            payouts.script.sign.append(Twist(ending=Ending.REFUSED))
            payout = await payouts.made()
            await people.app.work(DAY)
            assert (await payouts.record(payout.id)).status in GIVEN_BACK
            assert people.letters == []

    async def test_payout_is_not_reported_to_people_limited_to_shops(self) -> None:
        async with open_payouts() as payouts:
            people = People(RefundApp(payouts.app), with_mail(payouts.app))
            await person(people.app, Role.FINANCE, shops=[people.app.account.default_shop_id])
            await run_due(people.ports)
            people.letters.clear()
            await payouts.made()
            await people.app.work(DAY)
            assert people.letters == []


async def broken(ports: Ports, account_id: str, opened_at: datetime | None, *, mode: Mode = Mode.TEST) -> Breaker:
    """The account's endpoint has failed since then; None: it works again."""

    async with ports.storage.unit() as unit:
        stored = await unit[Breaker].get(new_breaker(account_id, mode).id)
        state = msgspec.structs.replace(
            stored or new_breaker(account_id, mode),
            opened_at=opened_at,
            next_probe_at=None if opened_at is None else opened_at + timedelta(days=1),
        )
        state = unit[Breaker].add(state) if stored is None else unit[Breaker].save(state)
        if opened_at is not None:
            note_for_people(ports, unit, K.ENDPOINT_DEAD, outage_id(state))
        await unit.commit()
    return state


@table("minutes, letters", [(14, 0), (16, 1)])
async def test_dead_endpoint_is_reported_after_a_quarter_hour(minutes: int, letters: int) -> None:
    async with open_refund_app() as merchant:
        people = People(merchant, with_mail(merchant.app))
        await people.member(Role.DEVELOPER)
        await broken(people.ports, people.app.account.account_id, people.app.clock.now())
        await people.app.work(minutes * 60)
        assert [letter.subject for letter in people.letters] == [
            "Merchant: [test] A webhook endpoint does not accept webhooks"
        ] * letters


async def test_endpoint_that_recovers_in_time_is_not_reported(people: People) -> None:
    await people.member(Role.DEVELOPER)
    account_id = people.app.account.account_id
    await broken(people.ports, account_id, people.app.clock.now())
    await people.app.work(300)
    await broken(people.ports, account_id, None)
    await people.app.work(DAY)
    assert people.letters == []


class TestDailySum:
    async def sums(self, people: People, role: Role = Role.SUPPORT, **chosen: Any) -> Sequence[MailMessage]:
        """Return the e-mails after a Moscow day with one paid live payment."""
        actor = await people.member(role, **chosen)
        await self.factor(people.ports, actor)
        await start_recurring_jobs(people.ports)
        await people.merchant.paid("250.00", mode="live")
        await people.app.work(DAY + 12 * 3600)
        return people.letters

    async def factor(self, ports: Ports, actor: Actor) -> None:
        """Give the person a second factor."""
        async with ports.storage.unit() as unit:
            user = await unit[User].get(actor.user.id)
            assert user is not None
            unit[User].save(msgspec.structs.replace(user, totp=user.email))
            await unit.commit()

    async def test_sum_comes_the_morning_after_the_moscow_day(self, people: People) -> None:
        here = people.app.clock.now().astimezone(MOSCOW)
        [letter] = await self.sums(people, Role.OWNER)
        day = here.strftime("%d.%m.%Y")
        assert letter.subject == f"Merchant: {day}: 250.00 RUB, payments: 1"
        assert "Awaiting settlement: 250.00 RUB" in letter.text

        assert "By shop" not in letter.text, "the account has one"

    async def test_sum_has_a_line_for_each_shop(self, people: People) -> None:
        shop = await create_shop(people.ports, people.app.account.account_id, "Second", "0.05")
        for number in range(2):
            await people.merchant.paid(f"{number + 1}00.00", mode="live", shop_id=shop.id)
        [letter] = await self.sums(people, Role.OWNER)
        assert letter.subject.endswith("550.00 RUB, payments: 3")
        lines = letter.text.partition("By shop (payments in brackets):\n")[2].splitlines()
        assert lines[:3] == ["- Second: 300.00 RUB (2)", "- Default: 250.00 RUB (1)", ""]

    async def test_viewer_gets_no_sum(self, people: People) -> None:
        assert await self.sums(people, Role.VIEWER) == []

    async def test_former_owner_gets_no_sum_as_viewer(self, people: People) -> None:
        owner = await people.member()
        other = await person(people.app, Role.OWNER, email="other@shop.example")
        await people.choose(other)
        for actor in (owner, other):
            await self.factor(people.ports, actor)
        await change_member(people.ports, owner, other.user.id, role=Role.VIEWER, shops=None, live=True)
        await start_recurring_jobs(people.ports)
        await people.merchant.paid(mode="live")
        people.letters.clear()
        await people.app.work(DAY + 12 * 3600)
        assert [letter.to for letter in people.letters if "payments: 1" in letter.subject] == ["owner@shop.example"]

    async def test_day_without_movements_brings_no_mail(self, people: People) -> None:
        await people.member(Role.OWNER)
        await start_recurring_jobs(people.ports)
        await people.app.work(3 * DAY)
        assert people.letters == []

    async def test_sum_waits_for_the_end_of_quiet_hours(self, people: People) -> None:
        actor = await people.member(quiet_from="20:00", quiet_to="11:30")
        await self.factor(people.ports, actor)
        await start_recurring_jobs(people.ports)
        await people.merchant.paid(mode="live")
        async with people.ports.storage.unit() as unit:
            job = await unit[Job].get(DAILY_SUMS)
        assert job is not None
        await people.app.work((job.due - people.app.clock.now()).total_seconds() + DAY + 3 * 3600)
        assert people.letters == []
        await people.app.work(1801)
        assert len(people.letters) == 1

    async def test_repeated_job_sends_no_second_sum(self, people: People) -> None:
        [letter] = await self.sums(people, Role.OWNER)
        async with people.ports.storage.unit() as unit:
            job = await unit[Job].get(DAILY_SUMS)
            assert job is not None
            unit[Job].change(job, due=people.app.clock.now())
            await unit.commit()
        await people.app.work(60)
        assert people.letters == [letter]


async def test_many_events_in_an_hour_fold_into_one_summary(people: People) -> None:
    await people.member()
    began = people.app.clock.now()
    await people.refunds(10)
    assert people.app.clock.now() - began < timedelta(hours=1)
    assert len(people.letters) == 3
    await people.app.work(3600)
    assert len(people.letters) == 4
    assert people.letters[-1].subject == "Merchant: 7 notifications"
    assert "refunds done: 7" in people.letters[-1].text
    await people.app.work(DAY)
    assert len(people.letters) == 4


async def test_messages_wait_for_the_end_of_quiet_hours(people: People) -> None:
    here = people.app.clock.now().astimezone(MOSCOW)
    start, end = here - timedelta(hours=1), here + timedelta(hours=2)
    await people.member(quiet_from=f"{start:%H:%M}", quiet_to=f"{end:%H:%M}")
    await people.refunds(2)
    left = (end.replace(second=0, microsecond=0) - people.app.clock.now()).total_seconds()
    await people.app.work(left - 1)
    assert people.letters == []
    await people.app.work(2)
    assert [letter.subject for letter in people.letters] == ["Merchant: 2 notifications"]


async def test_shorter_quiet_hours_release_what_waits(people: People) -> None:
    here = people.app.clock.now().astimezone(MOSCOW)
    start, end = here - timedelta(hours=1), here + timedelta(hours=2)
    actor = await people.member(quiet_from=f"{start:%H:%M}", quiet_to=f"{end:%H:%M}")
    await people.refund()
    assert people.letters == []
    await people.choose(actor)
    await run_due(people.ports)
    assert len(people.letters) == 1


async def test_kind_that_is_switched_off_while_it_waits_is_not_sent(people: People) -> None:
    here = people.app.clock.now().astimezone(MOSCOW)
    actor = await people.member(quiet_from=f"{here - timedelta(hours=1):%H:%M}", quiet_to=f"{here:%H:%M}")
    await people.choose(actor, quiet_from=f"{here:%H:%M}", quiet_to=f"{here + timedelta(hours=2):%H:%M}")
    await people.refund()
    await people.choose(actor, email=("payout_sent",))
    await people.app.work(DAY)
    assert people.letters == []
    assert await everything(people.ports, Notification) == []


async def test_removed_member_gets_nothing_more(people: People) -> None:
    owner = await people.member()
    viewer = await people.member(Role.VIEWER, quiet_from="00:00", quiet_to="23:59")
    await people.refund()
    await remove_member(people.ports, owner, viewer.user.id)
    await people.app.work(2 * DAY)
    await people.refund()
    await people.app.work(2 * DAY)
    assert [letter.to for letter in people.letters if "Refund" in letter.subject] == ["owner@shop.example"] * 2
    assert [each.user_id for each in await everything(people.ports, NotificationPreferences)] == [owner.user.id]
    assert await everything(people.ports, Notification) == []


async def test_person_disabled_by_an_operator_gets_nothing_more(people: People) -> None:
    await people.member()
    viewer = await people.member(Role.VIEWER, quiet_from="00:00", quiet_to="23:59")
    await people.refund()
    await switch_user(people.ports, viewer.user.id, enabled=False)
    await people.app.work(2 * DAY)
    await people.refund()
    await people.app.work(2 * DAY)
    assert {letter.to for letter in people.letters} == {"owner@shop.example"}


async def test_members_of_another_account_get_nothing(people: People) -> None:
    other = await create_account(people.ports, "Other")
    new = await invite(people.ports, other.account_id, "stranger@other.example", Role.OWNER, language="en")
    stranger = await accept_invitation(people.ports, token_of(new.link), PASSWORD, "en")
    actor, _ = await signed_in(people.ports, stranger, account_id=other.account_id)
    await people.choose(actor)
    await people.member()
    await people.refund()
    assert {letter.to for letter in people.letters} == {"owner@shop.example"}


class TestDelivery:
    @table(
        "faults, letters",
        [
            ([Unavailable("away")], 1),
            ([Unavailable("away")] * 4, 1),
            ([Unavailable("away")] * 5, 0),
            ([OutcomeUnknown("lost")] * 2, 1),
            ([Refused("no such mailbox")], 0),
        ],
    )
    async def test_letter_is_tried_again_within_bounds(self, faults: list[Exception], letters: int) -> None:
        async with open_refund_app() as merchant:
            people = People(merchant, with_mail(merchant.app))
            await people.member()
            people.mailbox.faults = list(faults)
            await people.refund()
            await people.app.work(DAY)
            assert len(people.letters) == letters
            assert await everything(people.ports, Notification) == []
            assert people.mailbox.faults == []

    async def test_repeat_of_a_mail_that_may_have_arrived_keeps_its_id(self, people: People) -> None:
        await people.member()
        ids: list[str] = []
        send = people.mailbox.send

        async def sent(message: MailMessage) -> None:
            ids.append(message.id)
            await send(message)

        people.mailbox.send = sent  # type: ignore[method-assign]
        # The second one is a crash: the job ends without saving an outcome.
        people.mailbox.faults = [OutcomeUnknown("lost"), RuntimeError("crash"), Unavailable("away")]
        await people.refund()
        await people.app.work(DAY)
        assert len(ids) == 4
        assert ids[0] == ids[1] == ids[2] != ids[3]

    async def test_message_to_a_chat_that_may_have_arrived_is_not_repeated(self, people: People) -> None:
        bot = await self.chat(people)
        bot.faults.append(OutcomeUnknown("lost"))
        await people.refund()
        await people.app.work(DAY)
        assert bot.sent == []
        await people.refund()
        assert len(bot.sent) == 1

    async def test_chat_that_blocks_the_bot_is_forgotten(self, people: People) -> None:
        bot = await self.chat(people)
        bot.faults.append(Refused("blocked"))
        await people.refunds(2)
        [chat] = await everything(people.ports, TelegramChat)
        assert chat.chat is None
        assert bot.sent == []

    async def chat(self, people: People) -> Bot:
        """A bot, and a member with a linked chat who wants everything there."""
        bot = with_bot(people.app)
        actor = await people.member(email=(), telegram=EVERYTHING)
        async with people.ports.storage.unit() as unit:
            encrypted = people.ports.vault.encrypt(b"4711", telegram_chat_aad(actor.user.id))
            unit[TelegramChat].add(TelegramChat(id=actor.user.id, chat=encrypted))
            await unit.commit()
        return bot

    async def test_chat_gets_the_text_of_the_mail(self, people: People) -> None:
        bot = await self.chat(people)
        await people.refund()
        [(chat, text)] = bot.sent
        assert chat == "4711"
        assert text.startswith("Merchant: [test] Refund of 100.00 RUB is done")
        assert people.letters == []

    async def test_event_noted_twice_is_sent_once(self, people: People) -> None:
        await people.member()
        refund_id = await people.refund()
        for _ in range(2):
            async with people.ports.storage.unit() as unit:
                note_for_people(people.ports, unit, K.PAYOUT_SENT, refund_id)
                note_for_people(people.ports, unit, K.PAYOUT_SENT, refund_id)
                await unit.commit()
        await people.app.work(DAY)
        assert len(people.letters) == 1


class TestUnsubscribe:
    async def link(self, people: People, actor: Actor, channel: Channel = Channel.EMAIL) -> str:
        async with people.ports.storage.unit() as unit:
            membership = await unit[Membership].get(actor.membership.id)
            assert membership is not None
            preferences = await preferences_of(unit, membership)
        link = unsubscribe_link(people.ports, membership, preferences, channel)
        [token] = parse_qs(urlsplit(link).query)["token"]
        return token

    async def email_of(self, people: People, actor: Actor) -> tuple[str, ...]:
        return (await read_preferences(people.ports, actor)).preferences.email

    async def test_link_ends_the_mails_of_this_account(self, people: People) -> None:
        actor = await people.member()
        await people.refund()
        assert people.letters[0].unsubscribe is not None
        token = parse_qs(urlsplit(people.letters[0].unsubscribe).query)["token"][0]
        shown = await find_unsubscription(people.ports, token)
        assert (shown.account_name, shown.channel, shown.is_done) == ("Merchant", Channel.EMAIL, False)
        assert await self.email_of(people, actor)
        assert (await unsubscribe(people.ports, token)).is_done
        assert await self.email_of(people, actor) == ()
        await people.refund()
        await people.app.work(DAY)
        assert len(people.letters) == 1
        rows = [row for row in await everything(people.ports, AuditEntry) if row.action == "person.unsubscribe"]
        assert [row.operator for row in rows] == [actor.user.id]

    async def test_member_without_choices_can_unsubscribe(self, people: People) -> None:
        actor = await person(people.app)
        assert await self.email_of(people, actor)
        await unsubscribe(people.ports, await self.link(people, actor))
        assert await self.email_of(people, actor) == ()

    async def test_repeated_click_changes_nothing(self, people: People) -> None:
        actor = await people.member()
        token = await self.link(people, actor)
        for _ in range(3):
            assert (await unsubscribe(people.ports, token)).is_done
        [stored] = await everything(people.ports, NotificationPreferences)
        assert stored.email_links == 1

    async def test_used_link_does_not_end_a_later_choice(self, people: People) -> None:
        actor = await people.member()
        token = await self.link(people, actor)
        await unsubscribe(people.ports, token)
        await people.choose(actor)
        for use in (find_unsubscription, unsubscribe):
            with pytest.raises(Refusal) as refused:
                await use(people.ports, token)
            assert refused.value.code == "UNSUBSCRIBE_VOID"
        assert await self.email_of(people, actor)

    async def test_channels_have_links_of_their_own(self, people: People) -> None:
        actor = await people.member(telegram=EVERYTHING)
        mail = await self.link(people, actor)
        await unsubscribe(people.ports, await self.link(people, actor, Channel.TELEGRAM))
        assert await self.email_of(people, actor)
        assert (await unsubscribe(people.ports, mail)).is_done

    async def test_forged_links_are_void(self, people: People) -> None:
        actor = await people.member()
        other = await people.member(Role.VIEWER)
        mine, theirs = await self.link(people, actor), await self.link(people, other)
        recipient, _, tag = mine.rpartition(":")
        stranger, _, foreign = theirs.rpartition(":")
        forged = [
            "", ":", "a:b:c:d", recipient, f"{recipient}:", f"{recipient}:{foreign}", f"{stranger}:{tag}",
            f"{recipient.replace('email', 'telegram')}:{tag}", f"{recipient}:{tag[:-1]}", f"{recipient}:{tag}A",
            f"{recipient}:{tag[:-2]}!!", f"{recipient}:{'A' * 44}", f"{recipient}:{tag * 9}", f"{recipient}\0:{tag}",
            f"{recipient.upper()}:{tag}", f"х{mine}", mine.replace("acc_", "acc-"), f"{recipient}:{recipient}:{tag}",
        ]  # fmt: skip
        for token in forged:
            with pytest.raises(Refusal) as refused:
                await unsubscribe(people.ports, token)
            assert refused.value.code == "UNSUBSCRIBE_VOID", token
        for each in (actor, other):
            assert await self.email_of(people, each)
        assert not [row for row in await everything(people.ports, AuditEntry) if row.action == "person.unsubscribe"]

    async def test_link_ends_with_the_membership(self, people: People) -> None:
        owner = await people.member()
        viewer = await people.member(Role.VIEWER)
        token = await self.link(people, viewer)
        await remove_member(people.ports, owner, viewer.user.id)
        with pytest.raises(Refusal):
            await unsubscribe(people.ports, token)
        await people.app.clock.advance(1)
        new = await invite(people.ports, people.app.account.account_id, "viewer@shop.example", Role.VIEWER)
        await accept_invitation(people.ports, token_of(new.link), PASSWORD, "en")
        with pytest.raises(Refusal):
            await unsubscribe(people.ports, token)
        members = await list_members(people.ports, people.app.account.account_id)
        assert len(members) == 2

    async def test_telegram_link_of_an_unused_channel_is_harmless(self, people: People) -> None:
        actor = await people.member()
        assert (await unsubscribe(people.ports, await self.link(people, actor, Channel.TELEGRAM))).is_done
        assert await self.email_of(people, actor)


class TestPreferences:
    @table("quiet", [("22:00", ""), ("", "09:00"), ("09:00", "09:00"), ("25:00", "09:00")])
    async def test_quiet_hours_need_start_and_end(self, app: TestApp, quiet: tuple[str, str]) -> None:
        actor = await person(app, email=f"{quiet[0][:2]}{quiet[1][:2]}@shop.example")
        with pytest.raises(Refusal):
            await change_preferences(
                app.ports, actor, email=(), telegram=(), test=False, quiet_from=quiet[0], quiet_to=quiet[1]
            )

    async def test_viewer_cannot_choose_the_daily_sum(self, app: TestApp) -> None:
        actor = await person(app, Role.VIEWER)
        with pytest.raises(Refusal) as refused:
            await change_preferences(
                app.ports, actor, email=("daily_sum",), telegram=(), test=False, quiet_from="", quiet_to=""
            )
        assert refused.value.code == "PERSON_RIGHT_MISSING"

    async def test_change_is_in_the_audit_log(self, people: People) -> None:
        actor = await people.member(email=("payout_sent",))
        [row] = [row for row in await everything(people.ports, AuditEntry) if row.action == "person.notifications"]
        assert (row.operator, row.account_id) == (actor.user.id, people.app.account.account_id)
        assert "payout_sent" in row.after


async def test_queue_of_a_recipient_is_one_job(people: People) -> None:
    actor = await people.member(quiet_from="00:00", quiet_to="23:59")
    await people.refunds(3)
    jobs = [job for job in await everything(people.ports, Job) if job.kind == NOTIFY.kind]
    assert [job.argument for job in jobs] == [f"{actor.membership.id}:email"]
    assert await everything(people.ports, NotificationQueue) == []


async def test_doctor_checks_the_bot_of_notifications(app: TestApp) -> None:
    assert "messenger" not in {each.port for each in await check_providers(app.ports)}
    with_bot(app)
    assert "messenger" in {each.port for each in await check_providers(app.ports)}
