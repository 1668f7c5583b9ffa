"""Who gets which notification, when, and in which words (docs/dashboard.md "Notifications")."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.people.notification_texts import KINDS, LINES, TEXTS, message_of
from cambist.core.domain.people.notifications import (
    AT_ONCE,
    BY_DEFAULT,
    HOUR,
    Channel,
    Notification,
    NotificationKind,
    NotificationPreferences,
    after_quiet,
    default_preferences,
    gets,
    kinds_for,
    read_kinds,
    read_minutes,
    recipient_id,
    recipient_of,
    send_at,
    shown_minutes,
)
from cambist.core.domain.people.people import Membership
from cambist.core.domain.people.roles import Role
from tests.tables import table

NOW = datetime(2026, 11, 28, 9, tzinfo=UTC)
K = NotificationKind
EVERYTHING = tuple(kind.value for kind in K)

MAY: dict[Role, set[NotificationKind]] = {
    Role.OWNER: set(K),
    Role.ADMIN: set(K),
    Role.FINANCE: set(K) - {K.ENDPOINT_DEAD},
    Role.SUPPORT: {K.REFUND_DONE, K.MISMATCH},
    Role.DEVELOPER: {K.REFUND_DONE, K.MISMATCH, K.ENDPOINT_DEAD},
    Role.VIEWER: {K.REFUND_DONE, K.MISMATCH},
}
MONEY = {K.PAYOUT_SENT, K.DAILY_SUM}


def member(role: Role = Role.OWNER, **more: object) -> Membership:
    whole = Membership(id="acc_1:usr_1", account_id="acc_1", user_id="usr_1", role=role, created_at=NOW)
    return msgspec.structs.replace(whole, **more)


def chosen(kinds: Collection[str] = EVERYTHING, **more: object) -> NotificationPreferences:
    return msgspec.structs.replace(default_preferences(member()), email=tuple(kinds), **more)


@table("kind", list(K))
@table("role", list(Role))
@table("is_chosen", [True, False])
@table("has_factor", [True, False])
def test_member_gets_chosen_kinds_that_the_role_may_see(
    kind: NotificationKind, role: Role, is_chosen: bool, has_factor: bool
) -> None:
    preferences = chosen(EVERYTHING if is_chosen else ())
    needs_factor = kind in MONEY and role in (Role.OWNER, Role.ADMIN, Role.FINANCE)
    expected = is_chosen and kind in MAY[role] and (has_factor or not needs_factor)
    got = gets(member(role), preferences, Channel.EMAIL, kind, Mode.LIVE, None, has_factor=has_factor)
    assert got is expected
    assert not gets(member(role), preferences, Channel.TELEGRAM, kind, Mode.LIVE, None, has_factor=True)


@table("kind", list(K))
@table("wants_test", [True, False])
def test_test_mode_notifies_only_people_who_ask_for_it(kind: NotificationKind, wants_test: bool) -> None:
    preferences = chosen(test=wants_test)
    got = gets(member(), preferences, Channel.EMAIL, kind, Mode.TEST, None, has_factor=False)
    assert got is (wants_test and kind is not K.DAILY_SUM)


@table("mode, got", [(Mode.LIVE, False), (Mode.TEST, True)])
def test_member_without_live_mode_is_notified_of_test_mode_alone(mode: Mode, got: bool) -> None:
    limited = member(live=False)
    assert gets(limited, chosen(test=True), Channel.EMAIL, K.MISMATCH, mode, None, has_factor=True) is got


@table(
    "kind, shop_id, got",
    [
        (K.REFUND_DONE, "shop_1", True),
        (K.REFUND_DONE, "shop_2", False),
        (K.MISMATCH, None, False),
        (K.PAYOUT_SENT, None, False),
        (K.ENDPOINT_DEAD, None, False),
        (K.DAILY_SUM, None, False),
    ],
)
def test_member_limited_to_shops_is_notified_of_these_alone(
    kind: NotificationKind, shop_id: str | None, got: bool
) -> None:
    limited = member(shops=("shop_1",))
    assert gets(limited, chosen(), Channel.EMAIL, kind, Mode.LIVE, shop_id, has_factor=True) is got


@table("role", list(Role))
def test_choices_of_a_role_are_the_table_of_rights(role: Role) -> None:
    assert set(kinds_for(member(role))) == MAY[role]
    assert read_kinds([kind.value for kind in MAY[role]], member(role))


@table("role", list(Role))
def test_kind_beyond_the_role_cannot_be_chosen(role: Role) -> None:
    for kind in set(K) - MAY[role]:
        with pytest.raises(Refusal) as refused:
            read_kinds([kind.value], member(role))
        assert refused.value.code == "PERSON_RIGHT_MISSING"
    with pytest.raises(Refusal) as unknown:
        read_kinds(["salary"], member(role))
    assert unknown.value.code == "VALIDATION_ERROR"


def test_default_choice_is_what_needs_attention_by_mail() -> None:
    preferences = default_preferences(member())
    assert preferences.kinds(Channel.EMAIL) == tuple(kind.value for kind in BY_DEFAULT)
    assert preferences.kinds(Channel.TELEGRAM) == ()
    assert not preferences.test


@table(
    "start, end, at, until",
    [
        ("22:00", "09:00", "2026-11-28T18:59:59Z", None),
        ("22:00", "09:00", "2026-11-28T19:00:00Z", "2026-11-29T06:00:00Z"),
        ("22:00", "09:00", "2026-11-28T23:30:31Z", "2026-11-29T06:00:00Z"),
        ("22:00", "09:00", "2026-11-29T05:59:59Z", "2026-11-29T06:00:00Z"),
        ("22:00", "09:00", "2026-11-29T06:00:00Z", None),
        ("13:00", "14:30", "2026-11-29T10:00:00Z", "2026-11-29T11:30:00Z"),
        ("13:00", "14:30", "2026-11-29T11:30:00Z", None),
        ("13:00", "14:30", "2026-11-29T09:59:00Z", None),
        ("00:00", "23:59", "2026-11-28T21:00:00Z", "2026-11-29T20:59:00Z"),
    ],
)
def test_quiet_hours_are_moscow_hours(start: str, end: str, at: str, until: str | None) -> None:
    preferences = chosen(quiet_from=read_minutes(start), quiet_to=read_minutes(end))
    moment = datetime.fromisoformat(at)
    assert after_quiet(preferences, moment) == (moment if until is None else datetime.fromisoformat(until))
    assert shown_minutes(preferences.quiet_from) == start


@table("text", ["24:00", "9:00", "09:60", "noon", "09-00", "٠٩:٠٠", "09:00:00", "+9:00"])
def test_time_of_day_has_one_spelling(text: str) -> None:
    with pytest.raises(Refusal):
        read_minutes(text)


@table(
    "minutes_ago, wait",
    [
        ([], 0),
        ([1, 2], 0),
        ([10, 20, 30], 30),
        ([10, 20, 60], 0),
        ([10, 20, 30, 59], 30),
        ([-5, 10, 20], 0),
    ],
)
def test_fourth_message_within_an_hour_waits(minutes_ago: list[int], wait: int) -> None:
    sent = [NOW - timedelta(minutes=minutes) for minutes in minutes_ago]
    assert send_at(chosen(), sent, NOW) == NOW + timedelta(minutes=wait)


def test_rate_bound_and_quiet_hours_apply_together() -> None:
    quiet = chosen(quiet_from=12 * 60 + 30, quiet_to=14 * 60)
    sent = [NOW - timedelta(minutes=minutes) for minutes in (10, 20, 30)]
    assert len(sent) == AT_ONCE
    assert send_at(quiet, sent, NOW) == NOW + 2 * HOUR


def test_recipient_is_read_back_from_its_id() -> None:
    assert recipient_of(recipient_id(member().id, Channel.TELEGRAM)) == ("acc_1", "usr_1", Channel.TELEGRAM)


DETAILS = {
    K.REFUND_DONE: {"amount": "10.00 RUB", "object": "ref_1", "payment": "pay_1"},
    K.PAYOUT_SENT: {"amount": "1 USDT", "object": "wd_1", "network": "TRC20", "transaction": "ab"},
    K.MISMATCH: {"amount": "9.00 RUB", "object": "pay_1", "reason": "=amount"},
    K.ENDPOINT_DEAD: {"endpoint": "=own", "since": "28.11.2026 12:00 MSK"},
    K.DAILY_SUM: {
        "day": "27.11.2026",
        "taken": "5.00 RUB",
        "payments": "2",
        "refunds": "1",
        "payouts": "0",
        "paid_out": "0 USDT",
        "available": "1 USDT",
        "pending": "0.00 RUB",
        "register": "https://a/reports/rep_1",
    },
}


def row(kind: NotificationKind = K.REFUND_DONE, mode: Mode = Mode.LIVE) -> Notification:
    return Notification(id="n", recipient="r", kind=kind, mode=mode, object_id="o", at=NOW, details=DETAILS[kind])


@table("language", ["en", "ru"])
@table("kind", list(K))
def test_every_kind_has_a_text_in_both_languages(language: str, kind: NotificationKind) -> None:
    subject, text = message_of(language, "Merchant", [row(kind)], settings="https://a/s", stop="https://a/u")
    assert subject.startswith("Merchant: ")
    assert "\n" not in subject
    assert not {"{", "}", "="} & set(subject + text)
    assert "https://a/s" in text
    assert "https://a/u" in text
    assert kind.value in KINDS[language]
    assert TEXTS[language].keys() == {each.value for each in K}


def test_summary_counts_all_and_lists_some() -> None:
    rows = [*[row()] * (LINES + 3), row(K.PAYOUT_SENT)]
    subject, text = message_of("en", "Merchant", rows, settings="s", stop="u")
    assert subject == f"Merchant: {LINES + 4} notifications"
    assert f"refunds done: {LINES + 3}" in text
    assert "payouts sent: 1" in text
    assert text.count("Refund of 10.00 RUB is done") == LINES
    assert "and 4 more" in text


@table("language, mark", [("en", "[test]"), ("ru", "[тест]")])
def test_test_mode_is_marked(language: str, mark: str) -> None:
    assert mark in message_of(language, "M", [row(mode=Mode.TEST)], settings="s", stop="u")[0]
    assert mark not in message_of(language, "M", [row()], settings="s", stop="u")[0]


def test_repr_of_a_notification_hides_amounts() -> None:
    assert "10.00" not in repr(row())
