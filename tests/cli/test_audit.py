"""Commands that write are recorded as operator actions; commands that only read are not."""

import asyncio

from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.usecases.actions.audit import list_audit
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from tests.cli.conftest import Call


def rows() -> list[AuditEntry]:
    async def read() -> list[AuditEntry]:
        async with open_app(Settings()) as app:
            return (await list_audit(app.ports, limit=100))[::-1]

    return asyncio.run(read())


def test_actions_are_audited_with_name_and_reason(call: Call) -> None:
    who = {"CAMBIST_OPERATOR": "olga"}
    account_id = call("account", "create", "Shop", "--json", env=who).document["account_id"]
    assert call("account", "set", account_id, "refunds=true", "--reason", "they asked", env=who).status == 0
    assert call("account", "list", env=who).status == 0
    assert call("account", "show", account_id).status == 0
    assert call("refund", "approve", "ref_none", env=who).status == 1
    made, changed = rows()
    assert (made.operator, made.action, made.object_id, made.reason) == ("olga", "account.create", account_id, "")
    assert (changed.action, changed.object_id, changed.reason) == ("account.set", account_id, "they asked")
    assert "refunds=true" in changed.after
    assert "refunds=false" in changed.before
