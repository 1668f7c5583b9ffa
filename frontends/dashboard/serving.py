"""Requests that belong to the dashboard. Its pages are imported when the first of them is opened."""

from urllib.parse import urlsplit

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

SECTIONS = frozenset(
    (
        *("login", "logout", "invite", "reset", "confirm", "accounts", "switch", "home", "payments", "refunds"),
        *("subscriptions", "exchanges", "balance", "payouts", "settlements", "developers", "shops", "settings"),
        *(
            "audit",
            "people",
            "profile",
            "dashboard",
            "stream",
            "exports",
            "clients",
            "unsubscribe",
            "approvals",
            "links",
        ),
        *("counter", "receipts", "reports"),
    )
)
"""First parts of the paths of its pages, below the path of `app_url`."""


class WithDashboard:
    """ASGI application that answers requests for the dashboard, and passes all others to the next one."""

    def __init__(self, app: ASGIApp, dashboard: ASGIApp, app_url: str) -> None:
        self._app = app
        self._dashboard = dashboard
        self._root = urlsplit(app_url).path.rstrip("/") + "/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        path = scope["path"] if scope["type"] == ScopeType.HTTP else ""
        below = path.startswith(self._root) and path.removeprefix(self._root).partition("/")[0] in SECTIONS
        await (self._dashboard if below else self._app)(scope, receive, send)
