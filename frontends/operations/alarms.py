"""Check of the alarm channels for `cambist doctor` (docs/alarms.md "A channel that does not work")."""

from ...core.domain.days import iso_or_none
from ...core.usecases.alarms.channels import list_channels
from ...core.usecases.alarms.problems import CHANNEL_DEAD
from ...core.usecases.operators.findings import Finding, failed, ok, warning
from ...ports.bundle import Ports
from ..settings.settings import is_near


async def judge_alarms(ports: Ports) -> Finding:
    """Check that alarms reach somebody."""
    channels = await list_channels(ports)
    names = ", ".join(each.name for each in channels)
    if not channels:
        message = "nobody is told of problem: no alarm channel is set"
        near = is_near(ports.urls.base_url)
        return ok(message) if near else warning(message, "set CAMBIST_ALARMS (docs/alarms.md)")
    now = ports.clock.now()
    since = {each: each.failing_since for each in channels if each.failing_since is not None}
    if not since:
        return ok(f"problem is told by: {names}")
    told = "; ".join(f"{each.name} since {iso_or_none(each.failing_since)}: {each.fault}" for each in since)
    judged = failed if any(now - began >= CHANNEL_DEAD for began in since.values()) else warning
    return judged(f"alarms do not arrive: {told}", "see docs/alarms.md; `cambist alarm test` tries them")
