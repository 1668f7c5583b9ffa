"""Meaning of HTTP answers for channels that use the usual statuses."""

from ...ports.faults import NotConfigured, OutcomeUnknown, Refused, Unavailable
from ..provider_http import Answer

_NOT_TAKEN = (401, 403, 404, 410)
"""The key or the address is wrong or no longer valid."""
_TOO_MANY = 429


def require_taken(answer: Answer) -> None:
    """Raises: NotConfigured, Unavailable or Refused if the message was not delivered; OutcomeUnknown if it may have
    been."""
    status = answer.status
    if 200 <= status < 300:
        return
    told = f"{answer.name}: status {status}"
    if status in _NOT_TAKEN:
        raise NotConfigured(f"{told}: the address or the key is not taken")
    if status == _TOO_MANY or status == 503:
        raise Unavailable(told, retry_after=answer.retry_after())
    if status >= 500:
        raise OutcomeUnknown(told)
    raise Refused(told)
