"""Authentication of API requests. Every path under /api/v1 except the health check requires it (docs/concepts.md
"Accounts, keys, modes")."""

from collections.abc import Collection

from litestar.types import HTTPScope

from ....core.domain.accounts.accounts import TEST, Caller
from ....core.domain.accounts.rate_limit import Network
from ....core.domain.errors import Refusal
from ....core.usecases.accounts.access import authenticate, moving, require_address
from ....core.usecases.common.account_time import test_clock_of
from ....ports.bundle import Ports
from ...telemetry.logs import of_account
from .origin import whole_address_of

_PAIR = {"X-Api-Key": "svc_test_... or svc_live_...", "X-Api-Secret": "its secret, 64 hex characters"}
_SCHEMES = {"basic": "Basic", "bearer": "Bearer"}
"""Authorization schemes of other APIs. A client that migrates from one may send them, so the refusal mentions them."""


async def enter(
    ports: Ports, scope: HTTPScope, known: dict[bytes, bytes], sandbox: bool, trusted_proxies: Collection[Network]
) -> Caller:
    """Authenticate the key pair and return the caller. The request then runs in the account's time. Live keys get
    NOT_FOUND on sandbox paths (docs/sandbox.md "The calls"). Raises: Refusal Unauthorized, KEY_ADDRESS_NOT_ALLOWED,
    NOT_FOUND."""
    api_key, secret = known.get(b"x-api-key", b""), known.get(b"x-api-secret", b"")
    if not (api_key and secret):
        raise _incomplete(known)
    caller = await authenticate(ports, api_key.decode("latin-1"), secret.decode("latin-1"))
    if caller.account.moving_to is not None and scope["method"] not in ("GET", "HEAD"):
        raise moving()
    scope["auth"] = caller
    of_account(caller.account_id, caller.mode)
    ports.clock.enter(test_clock_of(caller.account, caller.mode))
    if caller.terms.addresses is not None:
        require_address(caller, whole_address_of(scope, known, trusted_proxies))
    if sandbox and caller.mode is not TEST:
        raise Refusal("NOT_FOUND", "Endpoint not found: the sandbox takes test keys (svc_test_...) only")
    return caller


def _incomplete(known: dict[bytes, bytes]) -> Refusal:
    """Return the refusal of a request without a whole key pair. It names the missing header and its format, and reveals
    nothing about existing keys."""
    missing = [f"{name} ({form})" for name, form in _PAIR.items() if not known.get(name.lower().encode())]
    text = f"The API key or secret is not given: send the header {' and the header '.join(missing)}"
    scheme = known.get(b"authorization", b"").decode("latin-1").partition(" ")[0].lower()
    if scheme in _SCHEMES:
        text = f"{text}; Authorization: {_SCHEMES[scheme]} is not read"
    return Refusal("Unauthorized", text)
