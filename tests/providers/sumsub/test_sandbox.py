"""A pair of keys of Sumsub's sandbox in live mode. Its owner could decide which clients count as verified
(docs/providers/sumsub.md "From the contract to the first verified client")."""

from pathlib import Path
from typing import Any

import pytest

from cambist.frontends.app.compose import open_app
from cambist.frontends.app.simulators import judge_simulators
from cambist.frontends.settings.settings import Settings
from cambist.ports.faults import NotConfigured
from tests.providers.sumsub.fake import LEVEL, NOTIFICATION_SECRET, SECRET
from tests.providers.sumsub.kit import OPERATION


def settings(folder: Path, token: str, **more: Any) -> Settings:
    providers = {
        "sumsub_token": token,
        "sumsub_secret": SECRET,
        "sumsub_notification_secret": NOTIFICATION_SECRET,
        "sumsub_level": LEVEL,
        "sumsub_url": "http://127.0.0.1:1",
    }
    given: dict[str, Any] = {
        "database_url": "memory://",
        "data_dir": folder,
        "base_url": "https://pay.example",
        "kyc": "sumsub",
    }
    return Settings(**given, providers=providers, **more)


async def test_live_mode_has_no_sandbox_unless_it_may_have_simulators(tmp_path: Path) -> None:
    async with open_app(settings(tmp_path, "sbx:token", allow_live_simulators=False)) as app:
        with pytest.raises(NotConfigured, match="sandbox"):
            await app.ports.kyc.find_check(OPERATION)
        assert "kyc: sumsub, a sandbox" in judge_simulators(app).message


async def test_allowed_sandbox_in_live_mode_is_reported(tmp_path: Path) -> None:
    async with open_app(settings(tmp_path, "sbx:token", allow_live_simulators=True)) as app:
        assert app.ports.kyc.name == "sumsub"
        assert "no real money moves" in judge_simulators(app).message
        assert "kyc: sumsub, a sandbox" in app.live_simulators


async def test_a_production_pair_is_no_simulator(tmp_path: Path) -> None:
    async with open_app(settings(tmp_path, "prd:token", allow_live_simulators=False)) as app:
        assert not [each for each in app.live_simulators if each.startswith("kyc")]
