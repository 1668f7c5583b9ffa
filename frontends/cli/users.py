"""`cambist user …`: merchants' people who sign in to the dashboard (docs/dashboard.md "People")."""

from typing import Any

import click

from ...core.domain.days import iso, iso_or_none
from ...core.domain.people.people import Membership, User
from ...core.domain.people.roles import Role
from ...core.usecases.people import invitations, members
from ...ports.bundle import Ports
from .groups import group
from .output import Answer, fields, table
from .session import answering, reasoned, run_in_app


@group()
def user() -> None:
    """Manage the people who sign in to merchants' dashboards."""


@user.command("invite")
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("email")
@click.option(
    "--role", type=click.Choice([each.value for each in Role]), required=True, help="Role of the person in the account."
)
@click.option("--shop", "shops", multiple=True, metavar="SHOP", help="Limit the person to this shop; repeatable.")
@click.option("--test-only", is_flag=True, help="The person may enter test mode only.")
@click.option("--language", type=click.Choice(["ru", "en"]), default="ru", show_default=True, help="Of the letter.")
@answering
@reasoned
def invite(account_id: str, email: str, *, role: str, shops: tuple[str, ...], test_only: bool, language: str) -> Answer:
    """Invite a person to an account. The link is shown once, and sent if e-mail is connected."""
    made = run_in_app(
        lambda ports: invitations.invite(
            ports, account_id, email, Role(role), shops=shops or None, live=not test_only, language=language
        )
    )
    found = made.invitation
    document = {
        "invitation_id": found.id,
        "account_id": found.account_id,
        "role": found.role.value,
        "expires_at": iso(found.expires_at),
        "mailed": made.is_mailed,
        "invite_url": made.link,
    }
    return Answer(document=document, text=fields(document))


@user.command("list")
@click.option("--account", "account_id", metavar="ID", help="Only members of this account.")
@answering
def list_all(account_id: str | None) -> Answer:
    """List people with their accounts and roles, oldest first."""

    async def read(ports: Ports) -> list[tuple[User, str, list[Membership]]]:
        return await members.list_users(ports)

    found = [
        _document(person, email, memberships)
        for person, email, memberships in run_in_app(read)
        if account_id is None or any(each.account_id == account_id for each in memberships)
    ]
    titles = ("user_id", "email", "accounts", "second_factor", "disabled_at")
    rows = [
        (
            each["user_id"],
            each["email"],
            ", ".join(f"{one['account_id']} {one['role']}" for one in each["memberships"]),
            "yes" if each["second_factor"] else "no",
            each["disabled_at"],
        )
        for each in found
    ]
    return Answer(document={"data": found}, text=table(titles, rows))


@user.command("disable")
@click.argument("person", metavar="USER")
@answering
@reasoned
def disable(person: str) -> Answer:
    """Disable a person, named by id or address, in all accounts. All sessions end."""
    return _switched(person, enabled=False)


@user.command("enable")
@click.argument("person", metavar="USER")
@answering
@reasoned
def enable(person: str) -> Answer:
    """Enable a disabled person again."""
    return _switched(person, enabled=True)


@user.command("reset")
@click.argument("person", metavar="USER")
@answering
@reasoned
def reset(person: str) -> Answer:
    """Remove a person's password and second factor, and print a link to set a new password."""
    found, link = run_in_app(lambda ports: members.reset_user(ports, person))
    document = {"user_id": found.id, "reset_url": link}
    return Answer(document=document, text=fields(document))


def _switched(person: str, *, enabled: bool) -> Answer:
    found = run_in_app(lambda ports: members.switch_user(ports, person, enabled=enabled))
    document = {"user_id": found.id, "disabled_at": iso_or_none(found.disabled_at)}
    return Answer(document=document, text=fields(document))


def _document(person: User, email: str, memberships: list[Membership]) -> dict[str, Any]:
    return {
        "user_id": person.id,
        "email": email,
        "created_at": iso(person.created_at),
        "second_factor": person.has_second_factor,
        "disabled_at": iso_or_none(person.disabled_at),
        "memberships": [
            {
                "account_id": each.account_id,
                "role": each.role.value,
                "shops": None if each.shops is None else list(each.shops),
                "live": each.live,
                "seen_at": iso_or_none(each.seen_at),
            }
            for each in memberships
        ],
    }
