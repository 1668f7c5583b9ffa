"""Identity of the operator of a command or the console: the owner of the presented key, or else the given name."""

import os

from ...core.usecases.operators.operators import sign_in
from ...ports.bundle import Ports
from ..settings.operator import Names, login_name, operator_name
from ..settings.settings import Settings


async def signed_in(ports: Ports, settings: Settings, given: str | None = None) -> str:
    """Return the operator's name: the name of the operator's key if operators sign in, else that of `operator_name`.
    `given` is a name from the command line.

    Raises: Refusal Unauthorized; Unavailable.
    """
    if settings.operator_names != Names.KEY:
        return given or operator_name(os.environ, settings.operator_names)
    found = await sign_in(ports, settings.operator_key)
    return login_name() if found is None else found.name
