"""Your own requests (docs/concepts.md "Your requests")."""

from datetime import datetime

from .model import Page, Record
from .operations import Face, Group, operation
from .requests import Request, get


class LoggedRequest(Record, frozen=True, kw_only=True):
    """One request of the last thirty days. Its body and query are not stored."""

    request_id: str
    method: str
    path: str
    """The path's template: `/api/v1/payments/{payment_id}`."""
    object_id: str | None
    status: int
    code: str | None
    api_key: str
    took_ms: int
    created_at: datetime
    sandbox: bool = False


class LoggedRequests(Page[LoggedRequest], frozen=True, kw_only=True):
    """One page of requests."""

    not_kept: int = 0
    """Number of requests in the period that are missing from the list, because too many arrived to store."""


class RequestLog(Group[Face]):
    """`client.request_log`"""

    @operation
    def list(
        self,
        *,
        status: int | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
        page: int | None = None,
        per_page: int | None = None,
    ) -> Request[LoggedRequests]:
        """List requests, newest first. `created_from` is inclusive, `created_to` exclusive."""
        return get(
            "/requests",
            LoggedRequests,
            status=status,
            created_from=created_from,
            created_to=created_to,
            page=page,
            per_page=per_page,
        )
