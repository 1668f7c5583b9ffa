"""The table of roles and rights (docs/dashboard.md "Roles")."""

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.accounts.key_terms import Right
from cambist.core.domain.people.roles import PersonRight, Role, api_rights, grant, holders, key_rights, may_manage
from tests.tables import table

ORDER = (Role.OWNER, Role.ADMIN, Role.FINANCE, Role.SUPPORT, Role.DEVELOPER, Role.VIEWER)

TABLE: dict[PersonRight, str] = {
    PersonRight.READ: "x x x x x x",
    PersonRight.PAYMENTS: "x x - x t -",
    PersonRight.REFUNDS: "x x x x t -",
    PersonRight.EXCHANGES: "x x x - - -",
    PersonRight.KYC: "x x - x - -",
    PersonRight.WEBHOOKS: "W W - - W -",
    PersonRight.SANDBOX: "x x x x x -",
    PersonRight.MONEY: "x x x - - -",
    PersonRight.PAYER_DATA: "W W - W - -",
    PersonRight.EXPORT: "W W W - - -",
    PersonRight.APPROVE: "W W W - - -",
    PersonRight.PAYOUT_DETAILS: "W - - - - -",
    PersonRight.KEYS: "W W - - W -",
    PersonRight.LOGS: "x x - - x -",
    PersonRight.SHOPS: "W W - - - -",
    PersonRight.PEOPLE: "W W - - - -",
    PersonRight.AUDIT: "x x x - - -",
    PersonRight.NOTES: "x x x x t -",
    PersonRight.OWNER: "W - - - - -",
}
"""x: yes; W: after a confirmation; t: in test mode only; -: no."""


def mark(role: Role, right: PersonRight) -> str:
    live, test = grant(role, right, Mode.LIVE), grant(role, right, Mode.TEST)
    if live is None:
        return "-" if test is None else "t"
    return "W" if live.step_up else "x"


def test_every_cell_of_the_table_is_as_decided() -> None:
    found = {right: " ".join(mark(role, right) for role in ORDER) for right in PersonRight}
    assert found == TABLE


def test_each_api_right_is_a_right_of_people() -> None:
    assert {each.value for each in Right} <= {each.value for each in PersonRight}


@table(
    ("role", "mode", "rights"),
    [
        (Role.VIEWER, Mode.LIVE, ("read",)),
        (Role.FINANCE, Mode.LIVE, ("read", "refunds", "exchanges", "sandbox")),
        (Role.DEVELOPER, Mode.LIVE, ("read", "webhooks", "sandbox")),
        (Role.DEVELOPER, Mode.TEST, ("read", "payments", "refunds", "webhooks", "sandbox")),
    ],
)
def test_role_gives_rights_of_the_api(role: Role, mode: Mode, rights: tuple[str, ...]) -> None:
    assert api_rights(role, mode) == rights


def test_developer_makes_no_live_key_that_moves_money_or_reads_clients() -> None:
    assert not {"refunds", "exchanges", "kyc"} & set(key_rights(Role.DEVELOPER, Mode.LIVE))
    assert set(key_rights(Role.DEVELOPER, Mode.TEST)) == {each.value for each in Right}


@table(
    ("actor", "other", "allowed"),
    [
        (actor, other, actor is Role.OWNER or (actor is Role.ADMIN and other is not Role.OWNER))
        for actor in Role
        for other in Role
    ],
)
def test_only_owners_touch_owners(actor: Role, other: Role, allowed: bool) -> None:
    assert may_manage(actor, other) is allowed


def test_page_of_a_denied_person_can_name_the_roles_that_may() -> None:
    assert holders(PersonRight.PAYOUT_DETAILS, Mode.LIVE) == (Role.OWNER,)
