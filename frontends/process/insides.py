"""Warnings about libraries whose installed version was not tested, so that only their public interface is used."""

import logging

from ...core.usecases.operators.findings import Finding, ok, warning
from ...ports.insides import Insides

log = logging.getLogger("cambist.serve")


def judge_insides(*, serves: bool = True) -> Finding:
    """Check the versions of the libraries whose private names the service uses."""
    # Imported here: an embedded service may work without either library.
    from ...adapters.aiohttp_insides import INSIDES as AIOHTTP

    used = [AIOHTTP]
    if serves:
        from .uvicorn_insides import INSIDES

        used.append(INSIDES)
    return judged(used)


def judged(used: list[Insides]) -> Finding:
    """Return the finding about these libraries."""
    unknown = [each for each in used if not each.is_known]
    if not unknown:
        return ok(", ".join(f"{each.package} {each.version}" for each in used))
    return warning(
        "; ".join(f"{each.complaint}, so {_LOST[each.package]}" for each in unknown),
        f"pip install {' '.join(repr(each.tested) for each in unknown)}",
    )


_LOST = {
    "aiohttp": "each webhook takes a new connection, and an endless answer of a provider is not cut short",
    "uvicorn": "heads of requests have no limit, nothing is refused under load, and a stop has no lame duck phase",
}


def tell_of_insides(*, serves: bool = True) -> None:
    """Log the warning once, at the start of a process that serves or works."""
    finding = judge_insides(serves=serves)
    if finding.remedy is not None:
        log.warning("%s: %s", finding.message, finding.remedy)
