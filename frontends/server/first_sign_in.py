"""The one-time sign-in of a fresh installation on the own machine (docs/cli.md "Serving").

It is written to a terminal and nowhere else: output that goes to a file, a pipe or a service manager's journal may be
kept and read by others.
"""

from ipaddress import ip_address
from typing import TextIO

from ...core.domain.accounts.accounts import Account
from ...core.domain.operators.audit import OperatorAction
from ...core.domain.people.people import User
from ...core.domain.people.roles import Role
from ...core.usecases.accounts.accounts import create_account
from ...core.usecases.actions.audit import acting
from ...core.usecases.people.invitations import invite
from ...ports.bundle import Ports
from ..app.compose import App
from ..app.public_addresses import is_servable
from ..settings.settings import Settings, is_near

ACCOUNT = "My company"
OWNER = "owner@company.example"
_OPERATOR = "serve"


def is_private(settings: Settings) -> bool:
    """Return whether only this machine reaches the service, by the host it listens on and by its addresses, and live
    mode moves no real money."""
    try:
        listens_here = ip_address(settings.host).is_loopback
    except ValueError:
        listens_here = settings.host == "localhost"
    addresses = (settings.base_url, settings.pay_url, settings.app_url)
    is_simulated = bool(settings.allow_live_simulators)
    return listens_here and is_simulated and is_servable(settings.app_url) and all(map(is_near, addresses))


async def first_sign_in(ports: Ports) -> str | None:
    """Make an account in an empty database, and return the link by which its owner signs in to test mode, once. None:
    the database has an account or a person already, so this ran before or was not needed."""
    if not await _is_empty(ports):
        return None
    ports = acting(ports, OperatorAction(operator=_OPERATOR, name="account.create"))
    made = await create_account(ports, ACCOUNT)
    async with ports.storage.unit() as unit:
        if len(await unit[Account].find(order="id", limit=2)) > 1:
            return None  # another process did the same at this moment
    ports = acting(ports, OperatorAction(operator=_OPERATOR, name="user.invite"))
    return (await invite(ports, made.account_id, OWNER, Role.OWNER, live=False, language="en")).link


async def _is_empty(ports: Ports) -> bool:
    async with ports.storage.unit() as unit:
        accounts = await unit[Account].find(order="id", limit=1)
        people = await unit[User].find(order="id", limit=1)
    return not accounts and not people


async def show_first_sign_in(app: App, out: TextIO) -> None:
    """Write the sign-in of a fresh installation to a terminal; do nothing anywhere else."""
    if not out.isatty() or not is_private(app.settings):
        return
    link = await first_sign_in(app.ports)
    if link is None:
        return
    text = (
        f"\nThe database was empty, so it has an account now: {ACCOUNT}.\n"
        f"Dashboard: {link}\n"
        f"This address works once, and for test mode. Choose a password there; you are {OWNER}.\n"
        "It is not shown again. `cambist user invite` invites you with your own address.\n\n"
    )
    out.write(text)
    out.flush()
