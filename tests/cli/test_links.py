"""`cambist link …` (docs/payment-links.md "On the command line")."""

from tests.cli.conftest import Call


def test_operator_makes_shows_and_archives_a_link(call: Call) -> None:
    account = call("account", "create", "Coffee House", "--json").document["account_id"]
    made = call("link", "create", account, "Pottery class", "--amount", "2500.00", "--mode", "test", "--json")
    assert made.status == 0, made.err
    link = made.document
    assert (link["status"], link["amount_rub"], link["payments"]) == ("active", "2500.00", 0)
    assert link["url"].endswith(link["id"])
    assert "Pottery class" in call("link", "list", account, "--mode", "test").out
    assert link["id"] not in call("link", "list", account).out
    assert call("link", "show", account, link["id"]).status != 0
    assert call("link", "create", account, "Class", "--amount", "1").status != 0
    archived = call("link", "archive", account, link["id"], "--mode", "test", "--json").document
    assert archived["status"] == "archived"
    assert call("link", "show", account, link["id"], "--mode", "test", "--json").document == archived
