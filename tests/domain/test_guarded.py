"""The effects of an operator action that need a second person, because they let more leave the service
(docs/operations.md "Two pairs of eyes")."""

from typing import Any

import msgspec

from cambist.core.domain.accounts.accounts import Account, ApiKey, Mode, RefundApproval
from cambist.core.domain.accounts.shops import Shop
from cambist.core.domain.installation import Installation
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.operators.guarded import Guarded, decisions, may_decide, webhook_secret, word_on_operation
from cambist.core.domain.settlement.withdrawals import Withdrawal, WithdrawalStatus
from tests.domain import exchange_kit
from tests.domain.refund_kit import NOW
from tests.tables import table

URL = "https://shop.example/hooks"


def account(**settings: Any) -> Account:
    return exchange_kit.account(**{"exchange": False, **settings})


def shop(markup: str | None) -> Shop:
    return Shop(id="s", account_id="acc_1", name="Tea", name_folded="tea", created_at=NOW, markup=markup)


def key(mode: Mode = Mode.LIVE, **more: Any) -> ApiKey:
    return ApiKey(id="k", account_id="acc_1", mode=mode, secret_digest=b"x", created_at=NOW, **more)


def installation(**more: Any) -> Installation:
    return Installation(**{"mark": "m", "marked_at": NOW, **more})


def payout(status: WithdrawalStatus, **more: Any) -> Withdrawal:
    fields: dict[str, Any] = {"mode": Mode.LIVE, "amount": Usdt.parse("5"), "wallet": "T1", **more}
    return Withdrawal(
        id="wd_1", account_id="acc_1", status=status, sender="w", network="tron", created_at=NOW, **fields
    )


_W = WithdrawalStatus


@table(
    ("before", "after", "guarded", "shown"),
    [
        # An account may do more.
        (account(), account(refunds=True), "limits", ("refunds", "false", "true")),
        (account(refunds=True), account(), None, None),
        (account(), account(exchange=True), "limits", ("exchange", "false", "true")),
        (account(), account(direct_links=True), "limits", ("direct_links", "false", "true")),
        (account(refund_reserve=True), account(), "limits", ("refund_reserve", "true", "false")),
        (account(), account(refund_reserve=True), None, None),
        (account(), account(refund_approval=RefundApproval.AUTO), "limits", ("refund_approval", "-", "auto")),
        (account(refund_approval=RefundApproval.MANUAL), account(), None, None),
        (account(refund_approval=RefundApproval.AUTO), account(refund_approval=RefundApproval.AUTO), None, None),
        (
            account(refund_overdraft_usdt=Usdt.parse("1")),
            account(refund_overdraft_usdt=Usdt.parse("2")),
            "limits",
            ("refund_overdraft_usdt", "1.00000000", "2.00000000"),
        ),
        (account(refund_overdraft_usdt=Usdt.parse("2")), account(refund_overdraft_usdt=Usdt.parse("1")), None, None),
        (
            account(),
            account(amount_rub_max=Rub(2_000_000_00)),
            "limits",
            ("amount_rub_max", "1000000.00", "2000000.00"),
        ),
        (account(), account(amount_rub_max=Rub(100_00)), None, None),
        (account(), account(acceptance=False, ttl_minutes_max=30, kyc_open_page=False), None, None),
        (None, account(), None, None),
        (None, account(refunds=True), "limits", ("refunds", "false", "true")),
        # The markup falls.
        (shop("0.03"), shop("0.02"), "limits", ("markup", "0.03", "0.02")),
        (shop("0.03"), shop("0.030"), None, None),
        (shop("0.03"), shop("0.04"), None, None),
        (shop("0.03"), shop(None), None, None),
        (shop(None), shop("0.01"), "limits", ("markup", "-", "0.01")),
        (shop(None), shop("0.03"), None, None),
        (None, shop("0.03"), None, None),
        (None, shop("0.01"), "limits", ("markup", "-", "0.01")),
        # Where events go to.
        (account(), account(webhook_url=URL), "webhooks", ("webhook_url", "-", URL)),
        (account(webhook_url=URL), account(), "webhooks", ("webhook_url", URL, "-")),
        (account(), account(webhook_url="https://in-process.invalid/acc_1"), None, None),
        # Live keys.
        (None, key(), "keys", ("live key", "-", "a new pair")),
        (None, key(Mode.TEST), None, None),
        (key(rights=("read",)), key(rights=("read", "refunds")), "keys", ("rights", "read", "read, refunds")),
        (key(rights=("read",)), key(), "keys", ("rights", "read", "all")),
        (key(), key(rights=("read",)), None, None),
        (key(addresses=("192.0.2.1/32",)), key(), "keys", ("addresses", "192.0.2.1/32", "all")),
        (key(), key(ends_at=NOW), None, None),
        (key(Mode.TEST, rights=("read",)), key(Mode.TEST), None, None),
        # A held copy sends money again.
        (
            installation(held_since=NOW),
            installation(),
            "hold",
            ("hold", f"since {NOW.isoformat()}", "money is sent again"),
        ),
        (installation(), installation(held_since=NOW), None, None),
        (installation(), installation(mark="n"), None, None),
        (None, installation(), None, None),
        # A pending payout becomes what the wallet sent by it.
        (
            payout(_W.PENDING),
            payout(_W.PROCESSING, amount=Usdt.parse("6"), wallet="T2"),
            "operations",
            ("amount", "5.00000000 USDT", "6.00000000 USDT"),
        ),
        (payout(_W.PENDING), payout(_W.CANCELLED), None, None),
        (payout(_W.PENDING, mode=Mode.TEST), payout(_W.PROCESSING, mode=Mode.TEST), None, None),
        (None, payout(_W.PROCESSING), None, None),
        (payout(_W.PROCESSING), payout(_W.PROCESSING), None, None),
    ],
)
def test_effect_that_widens_what_may_leave_is_guarded(
    before: Any, after: Any, guarded: str | None, shown: tuple[str, str, str] | None
) -> None:
    made = decisions(before, after)
    assert [each.guarded for each in made] == ([] if guarded is None else [guarded])
    for each in made:
        assert may_decide(after)
        assert shown in [msgspec.structs.astuple(line) for line in each.lines]


def test_one_record_may_have_effects_of_several_kinds() -> None:
    after = account(refunds=True, webhook_url=URL, payout_wallet="TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t")
    assert [each.guarded for each in decisions(account(), after)] == [
        Guarded.PAYOUT_WALLET,
        Guarded.LIMITS,
        Guarded.WEBHOOKS,
    ]


def test_word_on_an_operation_is_a_decision_in_live_mode_only() -> None:
    made = word_on_operation("ref_1", "acc_1", Mode.LIVE, "op_1", "failed")
    assert made is not None
    assert (made.guarded, made.account_id, made.lines[1].after) == (Guarded.OPERATIONS, "acc_1", "failed")
    assert word_on_operation("ref_1", "acc_1", Mode.TEST, "op_1", "failed") is None


def test_another_webhook_secret_is_shown_without_the_secret() -> None:
    assert webhook_secret("acc_1", clears=False).lines[0].after == "another one"
    assert webhook_secret("acc_1", clears=True).lines[0].after == "-"
