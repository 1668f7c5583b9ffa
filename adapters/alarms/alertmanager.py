"""Alarms to a Prometheus Alertmanager over its API version 2 (prometheus.io/docs/alerting). It groups, silences and
repeats by itself, so each check sends it all current alarms."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from ...ports.alarms import Alarm, AlarmLine
from ...ports.faults import NotConfigured, Refused
from ..provider_http import ProviderHttp
from .http import require_taken
from .texts import plain

LASTS = timedelta(minutes=5)
"""Lifetime of an alert that is not sent again: five checks."""


class AlertmanagerAlarms:
    """Implement the port Alarms."""

    name = "alertmanager"
    mirrors = True

    def __init__(self, url: str, *, user: str | None = None, password: str | None = None, limit: float = 15.0) -> None:
        """`url`: base address of the Alertmanager, without `/api`. Raises: NotConfigured for an invalid address."""
        headers = {"Content-Type": "application/json"}
        if user is not None and password is not None:
            headers["Authorization"] = basic(user, password)
        self._http = ProviderHttp("alertmanager", url, limit=limit, headers=headers)

    def __repr__(self) -> str:
        return "<AlertmanagerAlarms>"

    async def tell(self, alarm: Alarm) -> None:
        """Post the current and the ended alarms. Raises: the same as the port."""
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
        """Check that the Alertmanager answers. Raises: NotConfigured; Unavailable."""
        try:
            require_taken(await self._http.call("GET", "/api/v2/status", writes=False))
        except Refused as refused:
            raise NotConfigured(str(refused)) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()


def basic(user: str, password: str) -> str:
    """Return the header of HTTP basic authentication."""
    from base64 import b64encode

    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def _alert(alarm: Alarm, line: AlarmLine, ends: datetime) -> dict[str, Any]:
    return {
        "labels": {
            "alertname": f"Cambist{line.kind.capitalize()}",
            "severity": "critical" if line.urgent else "warning",
            "problem": line.id,
            "installation": alarm.place,
        },
        "annotations": {"summary": plain(line.text)},
        # Without a start, an alert would start when it ends. The Alertmanager keeps the earliest start it has seen.
        "startsAt": min(line.since or alarm.at, alarm.at),
        "endsAt": ends,
        "generatorURL": alarm.place,
    }
