"""What every adapter of this package makes of an answer that says nothing."""

import httpx

from cambist.ports import NotConfigured, Unavailable


def check_taken(answer: httpx.Response) -> None:
    """Raises: NotConfigured where the provider does not take our token; Unavailable where it did not look at the call,
    because it is asked too often."""
    if answer.status_code in (401, 403):
        raise NotConfigured("the provider does not take DESK_TOKEN")
    if answer.status_code == 429:
        said = answer.headers.get("Retry-After", "")
        raise Unavailable("the provider is busy", retry_after=float(said) if said.isdecimal() else None)
