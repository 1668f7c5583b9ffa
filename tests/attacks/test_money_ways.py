"""An attacker who can write to the database, but has no vault key, cannot redirect an exchange's money or its return,
and cannot have an operator action confirmed that nobody requested (SECURITY.md)."""

from collections.abc import Awaitable
from typing import Any

import msgspec
import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.exchanges.exchanges import Exchange
from cambist.core.domain.operators.audit import OperatorAction
from cambist.core.domain.operators.pending_actions import ActionStatus, PendingAction
from cambist.core.domain.tron import tron_address
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.actions.audit import acting
from cambist.core.usecases.actions.decisions import Waits
from cambist.core.usecases.exchanges.returns import return_money
from cambist.core.usecases.ledger.check import verify_ledger
from cambist.core.usecases.operators.action_items import ALTERED, read_action_items
from cambist.core.usecases.operators.money_items import NOT_AS_MADE
from cambist.core.usecases.operators.pending_actions import confirm_action, reject_action
from cambist.ports.bundle import FourEyes, Ports
from tests.apps import TestApp
from tests.attacks.kit import OWN, Attacker
from tests.exchange_app import ExchangeApp
from tests.invariants import everything
from tests.usecases.exchanges.test_exchange_return import BACK, late_usdt

THIEF = tron_address(bytes(range(20, 40)))


@pytest.fixture
async def exchanges(attacked: TestApp) -> ExchangeApp:
    app = ExchangeApp(attacked)
    await app.set(exchange="true")
    return app


async def named(ports: Ports) -> list[tuple[str, str]]:
    report = await verify_ledger(ports)
    assert report.holds == (not report.bad_values)
    return [(each.id, each.field) for each in report.bad_values]


async def asked_for(ports: Ports, of: str) -> list[tuple[str, str]]:
    """Return the action items that operators see for objects of this kind."""
    return [(need.object_id, need.text) for need in (await read_action_items(ports)).found if need.of == of]


BOUGHT = {
    "wallet": f"client_wallet = '{THIEF}'",
    "wallet, and its tag taken away": f"client_wallet = '{THIEF}', tag = NULL",
    "amount": "amount_usdt = amount_usdt * 2",
}


@pytest.mark.parametrize("case", BOUGHT)
async def test_an_altered_exchange_sends_no_usdt(exchanges: ExchangeApp, attacker: Attacker, case: str) -> None:
    made = await exchanges.bought()
    await exchanges.pay(made.id)
    assert await named(exchanges.ports) == []
    await attacker.run(f"UPDATE exchanges SET {BOUGHT[case]}")
    assert await named(exchanges.ports) == [(made.id, "exchanges.client_wallet")]
    await exchanges.app.work(3 * 3600)
    standing = await exchanges.exchange(made.id)
    assert (standing.status, standing.tx_hash) == ("rub_received", None)
    assert await exchanges.on_chain() == []
    assert await asked_for(exchanges.ports, "exchange") == [(made.id, NOT_AS_MADE)]


async def test_an_exchange_that_was_altered_before_it_is_signed_is_not(
    exchanges: ExchangeApp, attacker: Attacker
) -> None:
    made = await exchanges.bought()
    await exchanges.pay(made.id)
    held = await exchanges.exchange(made.id)
    forged = msgspec.structs.replace(held, status="usdt_sending", sender=exchanges.sender.name, client_wallet=THIEF)
    await attacker.write(forged)
    await exchanges.app.work(3 * 3600)
    assert (await exchanges.exchange(made.id)).tx_hash is None
    # Once corrected, it continues.
    await attacker.write(msgspec.structs.replace(held, version=(await exchanges.exchange(made.id)).version))
    await exchanges.app.work(6 * 3600)
    assert await exchanges.status(made.id) == "completed"
    assert await named(exchanges.ports) == []


SOLD = {
    "bank": "client_bank_id = 'bank100000000111'",
    "amount": "amount_rub = amount_rub * 2",
}


@pytest.mark.parametrize("case", SOLD)
async def test_an_altered_exchange_sends_no_rub(exchanges: ExchangeApp, attacker: Attacker, case: str) -> None:
    made = await exchanges.made()
    await attacker.run(f"UPDATE exchanges SET {SOLD[case]}")
    await exchanges.send(made.id)
    await exchanges.app.work(3600)
    assert await exchanges.status(made.id) == "usdt_received"
    assert await exchanges.remitted() == {}
    assert await asked_for(exchanges.ports, "exchange") == [(made.id, NOT_AS_MADE)]


DEPOSITS = {
    "address": f"crypto_deposit_address = '{THIEF}'",
    "address, and its tag taken away": f"crypto_deposit_address = '{THIEF}', tag = NULL",
    "another's address and tag": "(crypto_deposit_address, tag) = "
    "(SELECT crypto_deposit_address, tag FROM exchanges WHERE id = '{other}')",
}


@pytest.mark.parametrize("case", DEPOSITS)
async def test_altered_deposit_address_is_never_shown(exchanges: ExchangeApp, attacker: Attacker, case: str) -> None:
    made, other = await exchanges.made(), await exchanges.made(phone="+70000000002")
    assert (await exchanges.shown(made.id))["crypto_deposit_address"] is not None
    assert await named(exchanges.ports) == []
    await attacker.run(f"UPDATE exchanges SET {DEPOSITS[case].format(other=other.id)} WHERE id = '{made.id}'")
    assert (await exchanges.shown(made.id))["crypto_deposit_address"] is None
    listed = (await exchanges.app.get("/exchanges")).json()["data"]
    assert [each["crypto_deposit_address"] is None for each in listed if each["id"] == made.id] == [True]
    assert await named(exchanges.ports) == [(made.id, "exchanges.client_wallet")]
    await exchanges.cancel(made.id)
    [*_, event] = await exchanges.app.events(made.id)
    assert event["crypto_deposit_address"] is None


async def test_a_part_of_a_payout_that_was_altered_is_not_sent(exchanges: ExchangeApp, attacker: Attacker) -> None:
    made = await exchanges.made()
    await exchanges.send(made.id)
    await exchanges.look(made.id)
    [done] = await everything(exchanges.ports, Exchange)
    doubled = tuple(msgspec.structs.replace(each, amount=each.amount + each.amount) for each in done.parts)
    await attacker.write(msgspec.structs.replace(done, parts=doubled))
    assert await named(exchanges.ports) == [(made.id, "exchanges.client_wallet")]


async def test_return_goes_only_to_the_operators_address(exchanges: ExchangeApp, attacker: Attacker) -> None:
    exchange_id = await late_usdt(exchanges)
    [planned] = await return_money(exchanges.ports, exchange_id, BACK)
    assert await named(exchanges.ports) == []
    assert planned.sent_back is not None
    elsewhere = msgspec.structs.replace(planned.sent_back, address=THIEF)
    await attacker.write(msgspec.structs.replace(planned, sent_back=elsewhere))
    assert await named(exchanges.ports) == [(planned.id, "exchange_transfers.sent_back")]
    await exchanges.app.work(3600)
    assert await exchanges.on_chain() == []
    await attacker.write(msgspec.structs.replace(planned, version=(await exchanges.transfers())[0].version))
    await exchanges.app.work(3600)
    assert len(await exchanges.on_chain()) == 1
    [gone] = await exchanges.transfers()
    assert gone.sent_back is not None
    assert gone.sent_back.address == BACK
    assert await named(exchanges.ports) == []


async def waits(doing: Awaitable[Any]) -> PendingAction:
    with pytest.raises(Waits) as waiting:
        await doing
    return waiting.value.action


FORGED: dict[str, dict[str, Any]] = {
    "who asked": {"operator": "vera"},
    "what": {"arguments": {"payout_wallet": THIEF}},
    "until when": {"expires_at": None},
    "its tag": {"tag": None},
    "a tag of his own": {"tag": OWN.tag(b"", "pending_actions")},
}


@pytest.mark.parametrize("case", FORGED)
async def test_an_action_that_nobody_asked_for_so_is_not_confirmed(
    attacked: TestApp, attacker: Attacker, case: str
) -> None:
    account_id = attacked.account.account_id
    strict = msgspec.structs.replace(attacked.ports, four_eyes=FourEyes(actions=frozenset(["payout_wallet"])))

    def by(operator: str) -> Ports:
        return acting(
            strict, OperatorAction(operator=operator, name="account.set", object_id=account_id, reason="they moved")
        )

    action = await waits(set_settings(by("oleg"), account_id, {"payout_wallet": BACK}))
    assert await named(attacked.ports) == []
    changes = FORGED[case]
    if "expires_at" in changes:
        changes = {"expires_at": action.expires_at.replace(year=action.expires_at.year + 1)}
    await attacker.write(msgspec.structs.replace(action, **changes))
    assert await named(attacked.ports) == [(action.id, "pending_actions.operator")]
    assert await asked_for(attacked.ports, "action") == [(action.id, ALTERED)]
    with pytest.raises(Refusal, match="not what the vault tagged"):
        await confirm_action(by("nina"), action.id)
    assert (await reject_action(by("nina"), action.id)).status is ActionStatus.REJECTED
    again = await waits(set_settings(by("oleg"), account_id, {"payout_wallet": BACK}))
    assert (await confirm_action(by("nina"), again.id)).action.status is ActionStatus.CONFIRMED
