"""Who acts by a command or the console: the operator whose key is presented, else the name that is given."""

import os

from ..core.usecases.operators.operators import sign_in
from ..ports.bundle import Ports
from .operator import Names, login_name, operator_name
from .settings import Settings


async def signed_in(ports: Ports, settings: Settings, given: str | None = None) -> str:
    """Return the name of who acts: of the operator's key where operators sign in, else as `operator_name` has it.
    `given`: a name from the command line.

    Raises: Refusal Unauthorized; Unavailable.
    """
    if settings.operator_names != Names.KEY:
        return given or operator_name(os.environ, settings.operator_names)
    found = await sign_in(ports, settings.operator_key)
    return login_name() if found is None else found.name
