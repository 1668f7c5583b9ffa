"""Alarms to a Prometheus Alertmanager, by its API of version 2. It groups, silences and repeats by itself, so it hears
at every look all that goes on (prometheus.io/docs/alerting)."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from ...ports.alarms import Alarm, AlarmLine
from ...ports.faults import NotConfigured, Refused
from ..provider_http import ProviderHttp
from .http import require_taken
from .texts import plain

LASTS = timedelta(minutes=5)
"""For which an alert stands that is not told again: five looks."""


class AlertmanagerAlarms:
    """Fills the port Alarms."""

    name = "alertmanager"
    mirrors = True

    def __init__(self, url: str, *, user: str | None = None, password: str | None = None, limit: float = 15.0) -> None:
        """`url`: of the Alertmanager, without `/api`. Raises: NotConfigured for an address that is none."""
        headers = {"Content-Type": "application/json"}
        if user is not None and password is not None:
            headers["Authorization"] = basic(user, password)
        self._http = ProviderHttp("alertmanager", url, limit=limit, headers=headers)

    def __repr__(self) -> str:
        return "<AlertmanagerAlarms>"

    async def tell(self, alarm: Alarm) -> None:
        """Post what goes on, and what is over. Raises: as the port."""
        lasting = alarm.at + LASTS
        lines = (*alarm.begun, *alarm.going_on)
        alerts = [_alert(alarm, line, lasting) for line in lines] + [
            _alert(alarm, line, alarm.at) for line in alarm.over
        ]
        if alarm.is_test:
            test = AlarmLine(id="test", kind="test", text="This is a test: alarms arrive here")
            alerts.append(_alert(alarm, test, lasting))
        if not alerts:
            return
        answer = await self._http.call("POST", "/api/v2/alerts", writes=True, body=msgspec.json.encode(alerts))
        require_taken(answer)

    async def check(self) -> None:
        """It answers. Raises: NotConfigured; Unavailable."""
        try:
            require_taken(await self._http.call("GET", "/api/v2/status", writes=False))
        except Refused as refused:
            raise NotConfigured(str(refused)) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()


def basic(user: str, password: str) -> str:
    """The header of HTTP's basic authentication."""
    from base64 import b64encode

    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def _alert(alarm: Alarm, line: AlarmLine, ends: datetime) -> dict[str, Any]:
    return {
        "labels": {
            "alertname": f"Cambist{line.kind.capitalize()}",
            "severity": "critical" if line.urgent else "warning",
            "trouble": line.id,
            "installation": alarm.place,
        },
        "annotations": {"summary": plain(line.text)},
        # Without one it would begin when it ends; of several the Alertmanager keeps the earliest.
        "startsAt": min(line.since or alarm.at, alarm.at),
        "endsAt": ends,
        "generatorURL": alarm.place,
    }
