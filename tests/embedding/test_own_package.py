"""The example of a package with adapters (examples/own_package) is found by its entry points, and opens."""

import tomllib
from pathlib import Path

import pytest

import cambist
from cambist.frontends.settings.sources import load

PACKAGE = Path(__file__).parents[2] / "examples" / "own_package"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package, as pip would leave it."""
    groups = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"]
    described = tmp_path / "deskadapters-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: deskadapters\nVersion: 1.0\n")
    listed = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    )
    (described / "entry_points.txt").write_text(listed)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.chdir(tmp_path)


SETTINGS = {
    "CAMBIST_RATE_SOURCES": "desk",
    "CAMBIST_KYC": "desk",
    "CAMBIST_CHAIN": "desk",
    "CAMBIST_DATABASE_URL": "desk://x",
}


@pytest.mark.usefixtures("installed")
async def test_settings_name_its_adapters_and_a_payment_is_taken() -> None:
    own = {"CAMBIST_DESK_URL": "https://desk.example", "CAMBIST_DESK_TOKEN": "token"}
    async with cambist.open(load({**SETTINGS, **own}, {}, Path()).settings) as service:
        ports = service.ports
        assert ([each.name for each in ports.rates.of_mode("live")], ports.kyc.name) == (["desk"], "desk")
        assert ports.chain.__class__.__name__ == "DeskChain"
        merchant = await service.merchant((await service.create_account("My shop")).account_id)
        assert (await merchant.create_payment(490)).status == "pending"


@pytest.mark.usefixtures("installed")
async def test_missing_setting_is_named_with_the_package() -> None:
    given = {**SETTINGS, "CAMBIST_DATABASE_URL": "memory://", "CAMBIST_DESK_URL": "https://desk.example"}
    settings = load(given, {}, Path()).settings
    with pytest.raises(cambist.PluginError, match=r"of deskadapters 1.0 cannot be made: set CAMBIST_DESK_TOKEN"):
        async with cambist.open(settings):
            pass
