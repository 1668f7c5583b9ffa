"""Findings of people on their first day (docs/dashboard.md "Home", "Settings", "For developers")."""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import click

import cambist
from cambist.core.domain.accounts.accounts import Settings
from cambist.core.domain.operators.audit import SAFE
from cambist.core.domain.people.roles import Role
from cambist.frontends.cli.main import cli
from cambist.frontends.dashboard.app import ROWS
from cambist.frontends.dashboard.texts import PAIRS
from tests.apps import TestApp
from tests.dashboard.browser import Browser, in_test_mode, joined

ROOT = Path(cambist.__file__).resolve().parent
BY_PERSON = {"by_person", "acting", "asking", "audited", "OperatorAction", "_asking", "_decided"}
NO_ACCOUNT = {
    *("failover.accept", "request.ask"),
    *("bank.import", "cell.list", "cell.map", "cell.status", "receipt.list", "receipt.show", "report.file"),
    *("link.list", "link.show", "report.list"),
    *("account.endpoint", "account.endpoints", "account.list", "account.show", "action.list", "action.show"),
    *("alarm.list", "alarm.test", "api", "backup", "client.list", "config.check", "console", "demo", "difference.list"),
    *("doctor", "event.list", "exchange.disable", "exchange.enable", "exchange.list", "exchange.show"),
    *("exchange.suspense", "gateway.banks", "gateway.list", "gateway.set", "hold", "key.list", "ledger.head"),
    *("ledger.retag", "ledger.verify", "listen", "logs.tail", "mcp", "migrate", "movements", "notification.list"),
    *("openapi", "operation.list", "operator.create", "operator.end", "operator.list", "payment.list"),
    *("payment.show", "payment.suspense", "payout.items", "payout.list", "provider.check", "provider.trial"),
    *("reconcile", "refund.list", "restore", "resume", "serve", "shop.list", "terminal.list", "trigger"),
    *("unreadable.forget", "unreadable.list", "unreadable.retry", "user.list", "vault.adopt", "vault.drop"),
    *("vault.new", "vault.reencrypt", "vault.rotate", "vault.status", "version", "wallet.addresses", "wallet.check"),
    *("wallet.skip", "worker"),
}
"""Commands that only read, and actions that concern no account: the account's log has no row of them."""
OF_NO_ACCOUNT = {"held_since", "held_because", "as_of", "ended_at", "contradicted_at", "is_on"}


FILTERS = (
    ("/payments?from=2026-13-45", "is not a date"),
    ("/payments?from=2026-11-20&to=2026-11-10", "before the first day"),
    ("/payments?status=paied", "There is no “paied” here"),
    ("/payments?payment_method=cash", "There is no “cash” here"),
    ("/payments?period=century", "There is no “century” here"),
    ("/refunds?status=paied", "There is no “paied” here"),
    ("/subscriptions?to=yesterday", "is not a date"),
    ("/exchanges?status=x", "There is no “x” here"),
    ("/clients?status=x", "There is no “x” here"),
    ("/developers/events?type=x", "There is no “x” here"),
    ("/developers/events?delivery_status=x", "There is no “x” here"),
    ("/developers/requests?status=abc", "Three digits"),
    ("/balance?from=x", "is not a date"),
    ("/payouts?from=x", "is not a date"),
)
"""Addresses with an invalid filter, and the words beside its field."""


def actions_of_people() -> Iterator[str]:
    """The name of each action that a person's ports are made for."""
    for path in chain((ROOT / "core").rglob("*.py"), (ROOT / "frontends/dashboard").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = node.func
            name = (
                called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
            )
            if name in BY_PERSON:
                given = [*node.args, *(each.value for each in node.keywords if each.arg == "name")]
                yield from (
                    each.value
                    for each in given
                    if isinstance(each, ast.Constant) and isinstance(each.value, str) and "." in each.value
                )


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The name of each command, as the audit log writes it."""
    if not isinstance(command, click.Group):
        yield ".".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from commands(inner, (*path, name))


def test_every_action_of_the_audit_log_has_words_in_both_languages() -> None:
    assert ROWS
    people = set(actions_of_people())
    assert len(people) > 40
    missing = {name for name in people | set(commands(cli)) if f"action.{name}" not in PAIRS}
    assert missing <= NO_ACCOUNT, sorted(missing - NO_ACCOUNT)
    for key, texts in PAIRS.items():
        if key.startswith("action."):
            assert key.removeprefix("action.") not in texts, key


def test_every_field_of_the_audit_log_has_words() -> None:
    fields = {name for names in SAFE.values() for name in names} | {*Settings.__struct_fields__, "webhook_secret_set"}
    assert {name for name in fields if f"field.{name}" not in PAIRS} <= OF_NO_ACCOUNT


async def test_audit_log_speaks_in_words(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/people")
    await owner.send("/people/invite", email="vera@shop.example", role="viewer", live="yes")
    await owner.open("/audit?lang=ru")
    owner.sees("приглашён человек", "роль: наблюдатель", "боевой режим: да")
    assert "person.invite" not in owner.text
    assert "role=" not in owner.text
    await owner.open("/audit?lang=en")
    owner.sees("person invited", "role: viewer", "live mode: yes")


async def test_invited_person_lands_in_the_mode_that_has_payments(app: TestApp) -> None:
    await app.created()
    viewer = await joined(app, Role.VIEWER)
    viewer.sees("Test mode")
    assert "There are no payments" not in viewer.text
    await viewer.send("/switch")
    viewer.sees("Live mode", "There are no payments in this mode yet. Test mode has some.")
    await viewer.post("/switch", next(each.values for each in viewer.page.forms if "mode" in each.values))
    viewer.sees("Test mode")
    await app.create(mode="live")
    (await joined(app, Role.ADMIN)).sees("Live mode")


async def test_empty_account_says_how_to_go_on(app: TestApp) -> None:
    owner = await joined(app, Role.OWNER)
    owner.sees("There are no payments yet. Test mode: everything can be tried there without money.")
    await in_test_mode(owner)
    owner.sees("A program creates them with an API key.")


async def test_payment_link_can_be_copied(app: TestApp) -> None:
    payment = (await app.created())["id"]
    viewer = await joined(app, Role.VIEWER)
    await viewer.open(f"/payments/{payment}")
    link = app.ports.urls.payment_page(payment)
    assert f'<code class="code" data-copy="Copy" data-copied="Copied">{link}</code>' in viewer.answer.text


async def test_invalid_filter_shows_its_fault_beside_the_field(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for address, word in FILTERS:
        await owner.open(address)
        owner.sees(word)
        wrong = [given for _, given in owner.page.tags if given.get("aria-invalid") == "true"]
        assert [given["aria-describedby"].split()[0] in owner.page.ids for given in wrong] == [True], address


async def test_webhook_page_names_its_cards_and_answers(app: TestApp) -> None:
    owner = await in_test_mode(await joined(app, Role.OWNER))
    await owner.open("/developers/webhooks")
    titles = [line for line in ("Change the first endpoint", "New endpoint") if line in owner.text]
    assert len(titles) == 2
    await owner.send("/developers/webhooks/own", url="http://127.0.0.1:9/hook")
    await owner.open("/developers/webhooks")
    await owner.send("/developers/webhooks/secret")
    await owner.open("/developers/webhooks")
    await owner.send("/developers/webhooks/test")
    owner.sees("Answer: ")
    assert "connection no connection" not in owner.text


async def test_page_has_no_two_cards_of_one_title(app: TestApp) -> None:
    await app.created()
    owner = await in_test_mode(await joined(app, Role.OWNER))
    for path in ("/developers/webhooks", "/settings", "/profile", "/people", "/shops", "/developers/keys"):
        await _has_distinct_titles(owner, path)


async def _has_distinct_titles(owner: Browser, path: str) -> None:
    await owner.open(path)
    titles = [part.partition("</h2>")[0].partition(">")[2] for part in owner.answer.text.split("<h2")[1:]]
    assert len(titles) == len(set(titles)), f"{path}: {titles}"
