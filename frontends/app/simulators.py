"""Warnings about simulators in live mode: they move no real money, or they are refused."""

import logging

from ...core.usecases.operators.findings import Finding, ok, warning
from .compose import App

log = logging.getLogger("cambist.simulators")

ALLOW = "CAMBIST_ALLOW_LIVE_SIMULATORS"


def judge_simulators(app: App) -> Finding:
    """Check for simulators in live mode, which moves no real money with them."""
    names = ", ".join(app.live_simulators)
    if not names:
        return ok("no simulator works in live mode")
    if app.settings.allow_live_simulators:
        return warning(
            f"live mode works on simulators ({names}): no real money moves",
            f"name real providers before real payments are taken; {ALLOW}=false lets nothing simulate",
        )
    return warning(
        f"live mode lacks providers, because simulators are refused there ({names}): what needs them answers "
        "PROVIDER_NOT_CONFIGURED or is not done; test mode works",
        f"name real providers in these settings, or say {ALLOW}=true where no money is meant to move",
    )


def tell_of_simulators(app: App) -> None:
    """Log the warning once, at the start of a process that serves or works."""
    finding = judge_simulators(app)
    if finding.remedy is not None:
        log.warning("%s: %s", finding.message, finding.remedy)
