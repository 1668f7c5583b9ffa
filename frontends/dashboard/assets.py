"""Files of the dashboard that browsers cache."""

from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent

ASSETS: Mapping[str, str] = {
    "dashboard.css": "text/css",
    "dashboard.js": "text/javascript",
    "mark.svg": "image/svg+xml",
}
