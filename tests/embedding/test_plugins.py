"""Adapters of other packages, found by entry points and named by settings (docs/adapters.md)."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import pytest
from click.testing import CliRunner

import cambist
from cambist import Mode
from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.adapters.clock import VirtualClock
from cambist.core.usecases.operators.findings import Level
from cambist.core.usecases.payments.payments import get_payment
from cambist.frontends.app import providers
from cambist.frontends.app.compose import open_app
from cambist.frontends.cli.main import cli
from cambist.frontends.conformance.uploads import Uploads
from cambist.frontends.operations.doctor import Examined, check_secrets
from cambist.frontends.settings import plugins
from cambist.frontends.settings.plugins import KINDS, NotInstalled, PluginError, all_installed, named_by
from cambist.frontends.settings.settings import Settings, SettingsError
from cambist.frontends.settings.shipped import SHIPPED
from cambist.frontends.settings.sources import load
from cambist.ports.settings import (
    AdapterFactory,
    AdapterSettings,
    needed,
    read_credential,
    read_provider_key,
    setting,
)
from cambist.ports.tools import StorageTools, Tools
from examples.own_bank.bank import ExampleBank
from tests.tables import table

MEMORY: dict[str, Any] = {"database_url": "memory://"}

Package = Callable[..., None]

GOOD = """
from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.ports.faults import NotConfigured

closed = []


class Bank(SimulatedBank):
    async def close(self):
        closed.append(self.name)


def make(tools):
    return Bank(f"theirs-{tools.mode}", tools.storage, tools.clock, tools.ids)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """Installs a package with one module and one entry point."""

    def install(module: str, code: str, points: str, group: str = "cambist.banks") -> None:
        folder = tmp_path / module
        described = folder / f"{module}-1.0.dist-info"
        described.mkdir(parents=True)
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (described / "entry_points.txt").write_text(f"[{group}]\n{points}\n")
        (folder / f"{module}.py").write_text(code)
        monkeypatch.syspath_prepend(str(folder))

    return install


async def test_a_bank_that_a_setting_names_takes_the_payments_and_is_closed(package: Package) -> None:
    package("theirs_good", GOOD, "theirs = theirs_good:make")
    settings = load({"CAMBIST_TEST_BANKS": "theirs, simulator", "CAMBIST_DATABASE_URL": "memory://"}, {}, Path())
    async with cambist.open(settings.settings) as service:
        merchant = await service.merchant((await service.create_account("My shop")).account_id)
        payment = await merchant.create_payment(490)
        assert (await merchant.do(get_payment, payment.id)).bank == "theirs-test"
        assert service.ports.banks.order == {"live": ("simulator-live",), "test": ("theirs-test", "simulator-test")}
    assert __import__("theirs_good").closed == ["theirs-test"]


BROKEN = {
    "its module is gone": ("", "theirs = nowhere_{0}:make", ["cannot be imported", "nowhere_"]),
    "its name is gone": ("", "theirs = {0}:make", ["cannot be imported", "make"]),
    "no function": ("make = 5", "theirs = {0}:make", ["no factory"]),
    "it says what it lacks": (
        "from cambist.ports.faults import NotConfigured\ndef make(tools): raise NotConfigured('set THEIR_TOKEN')",
        "theirs = {0}:make",
        ["cannot be made", "set THEIR_TOKEN"],
    ),
    "a variable is missing": ("import os\ndef make(tools): os.environ['THEIR_TOKEN_X']", "theirs = {0}:make", ["X'"]),
    "it is no bank": ("def make(tools): return object()", "theirs = {0}:make", ["lacks", "create_invoice", "name"]),
    "its name cannot be stored": (
        f"{GOOD}\n\nclass Named(Bank):\n    name = 'a:b'\n\n\n"
        "def named(tools):\n    return Named('a', tools.storage, tools.clock, tools.ids)\n",
        "theirs = {0}:named",
        ["no good `name`"],
    ),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_bad_plugin_is_named_with_its_package_at_the_start(package: Package, case: str) -> None:
    code, point, said = BROKEN[case]
    module = f"broken_{list(BROKEN).index(case)}"
    package(module, code, point.format(module))
    with pytest.raises(PluginError) as caught:
        async with open_app(Settings(**MEMORY, test_banks=("theirs",))):
            pass
    for text in ("'theirs'", f"{module} 1.0", *said):
        assert text in str(caught.value)


async def test_unexpected_error_of_a_factory_is_not_quoted(package: Package) -> None:
    """It may hold a credential."""
    package("broken_secret", "def make(tools): raise ValueError('hunter2 is no token')", "theirs = broken_secret:make")
    with pytest.raises(PluginError, match="ValueError") as caught:
        async with open_app(Settings(**MEMORY, banks=("theirs",))):
            pass
    assert "hunter2" not in str(caught.value)


class DeskSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings as an adapter declares them."""

    shop_id: Annotated[str, setting("the shop's id", read_provider_key)]
    token: Annotated[str | None, setting("the token", read_credential, secret=True)] = None


class TestShipped:
    """Adapters of real providers that come along, of which a setting names one (docs/providers/index.md)."""

    def ship(self, monkeypatch: pytest.MonkeyPatch, make: Callable[[Any, DeskSettings], object]) -> None:
        desk = AdapterFactory(settings=DeskSettings, make=make, extra="desk")
        monkeypatch.setitem(cast("dict[str, AdapterFactory[Any, Any]]", SHIPPED["bank"]), "desk", desk)

    async def test_settings_of_an_adapter_reach_it_alone_and_never_show(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made: list[DeskSettings] = []

        def make(tools: Tools, own: DeskSettings) -> object:
            made.append(own)
            return SimulatedBank(f"desk-{tools.mode}", tools.storage, tools.clock, tools.ids)

        self.ship(monkeypatch, make)
        providers = {"desk_shop_id": "hunter2", "desk_token": "hunter3", "tbank_password": "other"}
        async with open_app(Settings(**MEMORY, banks=("desk",), providers=providers, allow_live_simulators=True)):
            pass
        [own] = made
        assert (own.shop_id, own.token) == ("hunter2", "hunter3")
        assert "hunter" not in f"{own!r} {own.__rich_repr__()}"

    @pytest.mark.parametrize(("given", "missing"), [({}, "SHOP_ID"), ({"desk_shop_id": "7"}, "TOKEN")])
    async def test_missing_setting_stops_the_start_and_is_named(
        self, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], missing: str
    ) -> None:
        self.ship(monkeypatch, lambda _, own: needed(own.token, "token"))
        with pytest.raises(PluginError, match=f"the bank 'desk' cannot be made: set CAMBIST_DESK_{missing}$"):
            async with open_app(Settings(**MEMORY, banks=("desk",), providers=given)):
                pass

    async def test_missing_library_is_reported_with_its_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def make(_: object, __: DeskSettings) -> object:
            raise ModuleNotFoundError(name="deskwire")

        self.ship(monkeypatch, make)
        with pytest.raises(NotInstalled, match=r"'deskwire': pip install 'cambist\[desk\]'"):
            async with open_app(Settings(**MEMORY, banks=("desk",), providers={"desk_shop_id": "7"})):
                pass

    def test_each_kind_has_its_row_and_no_name_twice(self) -> None:
        assert SHIPPED.keys() == KINDS.keys()
        for kind, known in KINDS.items():
            assert not set(known.built_in) & SHIPPED[kind].keys()


DECLARING = """
from typing import Annotated

from cambist.adapters.bank.simulator.simulator import SimulatedBank
from cambist.ports import AdapterFactory, AdapterSettings, read_credential, read_integer, setting

given = []


class Own(AdapterSettings, frozen=True, kw_only=True):
    token: Annotated[str, setting("token of the API", read_credential, secret=True)]
    calls: Annotated[int, setting("calls in a minute", read_integer(1, 100))] = 60


def make(tools, own):
    given.append((own.token, own.calls))
    return SimulatedBank(f"theirs-{tools.mode}", tools.storage, tools.clock, tools.ids)


theirs = AdapterFactory(settings=Own, make=make)
"""


class TestSettingsOfAPackage:
    """A package declares its settings as shipped adapters do (docs/adapters.md "Settings")."""

    async def test_are_read_from_all_sources_explained_and_handed_over(
        self, package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        package("theirs_declaring", DECLARING, "their-bank = theirs_declaring:theirs")
        monkeypatch.chdir(tmp_path)
        (tmp_path / "cambist.toml").write_text('test_banks = ["their-bank"]\ntheir_bank_calls = 7\n')
        (tmp_path / "token").write_text("hunter2\n")
        env = {"CAMBIST_THEIR_BANK_TOKEN_FILE": str(tmp_path / "token"), "CAMBIST_DATABASE_URL": "memory://"}
        loaded = load(env, {}, tmp_path)
        assert loaded.warnings == ()
        async with cambist.open(loaded.settings) as service:
            assert service.ports.banks.order["test"] == ("theirs-test",)
        assert __import__("theirs_declaring").given == [("hunter2", 7)]
        done = CliRunner(env=env).invoke(cli, ["config", "check", "--json"], standalone_mode=False)
        shown = {each["name"]: each for each in json.loads(done.stdout)["settings"]}
        assert shown["their_bank_token"]["value"] == "***"
        assert shown["their_bank_calls"]["value"] == 7
        assert shown["their_bank_calls"]["meaning"] == "calls in a minute; default 60"

    def test_are_explained_before_they_are_set(self, package: Package) -> None:
        package("theirs_unset", DECLARING, "theirs = theirs_unset:theirs")
        loaded = load({"CAMBIST_BANKS": "theirs, tbank", "CAMBIST_TBANK_PASSWORD": "hunter2"}, {}, Path())
        shown = {each.name: (each.value, each.origin) for each in loaded.explained}
        assert shown["theirs_token"] == shown["theirs_calls"] == shown["tbank_url"] == (None, "not set")
        assert shown["tbank_password"] == ("***", "CAMBIST_TBANK_PASSWORD")
        assert "yookassa_url" not in shown

    @pytest.mark.parametrize("mode", [0o600, 0o644])
    async def test_file_of_a_secret_is_examined_by_doctor(self, package: Package, tmp_path: Path, mode: int) -> None:
        package("theirs_examined", DECLARING, "theirs = theirs_examined:theirs")
        (tmp_path / "token").write_text("hunter2")
        (tmp_path / "token").chmod(mode)
        (tmp_path / "vault.key").touch(0o600)
        env = {"CAMBIST_BANKS": "theirs", "CAMBIST_THEIRS_TOKEN_FILE": str(tmp_path / "token")}
        env["CAMBIST_DATA_DIR"] = str(tmp_path)
        finding = await check_secrets(Examined(loaded=load(env, {}, tmp_path), environ=env))
        assert finding.level is (Level.OK if mode == 0o600 else Level.FAILED)

    def test_wrong_value_is_a_fault_and_not_quoted(self, package: Package) -> None:
        package("theirs_wrong", DECLARING, "theirs = theirs_wrong:theirs")
        with pytest.raises(SettingsError, match="CAMBIST_THEIRS_CALLS: must be a whole number from 1 to 100") as caught:
            load({"CAMBIST_BANKS": "theirs", "CAMBIST_THEIRS_CALLS": "hunter2"}, {}, Path())
        assert "hunter2" not in str(caught.value)

    def test_are_unknown_while_no_setting_names_the_adapter(self, package: Package) -> None:
        """The package is not even imported then."""
        package("theirs_unnamed", "raise RuntimeError", "theirs = theirs_unnamed:theirs")
        [warning] = load({"CAMBIST_THEIRS_TOKEN": "hunter2"}, {}, Path()).warnings
        assert warning.startswith("CAMBIST_THEIRS_TOKEN is no setting")

    def test_of_a_broken_package_are_a_warning_so_that_other_commands_run(self, package: Package) -> None:
        package("theirs_no_import", "import nowhere_at_all", "theirs = theirs_no_import:theirs")
        [warning] = load({"CAMBIST_BANKS": "theirs"}, {}, Path()).warnings
        assert "theirs_no_import 1.0 cannot be imported" in warning
        assert warning.endswith("its settings are not read")

    def test_field_without_a_description_is_reported_with_the_package(self, package: Package) -> None:
        bare = 'Annotated[int, setting("calls in a minute", read_integer(1, 100))]'
        package("theirs_bare", DECLARING.replace(bare, "int"), "theirs = theirs_bare:theirs")
        [warning] = load({"CAMBIST_BANKS": "theirs"}, {}, Path()).warnings
        assert "theirs_bare 1.0 declares no good settings: TypeError: theirs_calls has no setting()" in warning

    @pytest.mark.parametrize("name", ["tbank", "vault", "s3"])
    def test_name_of_another_setting_is_refused(self, package: Package, name: str) -> None:
        """Otherwise a package could read the secret of another adapter."""
        field = {"tbank": "password", "vault": "key", "s3": "secret_key_file"}[name]
        code = DECLARING.replace("token:", f"{field}:").replace("own.token", f"own.{field}")
        module = f"theirs_taking_{name}"
        package(module, code, f"{name} = {module}:theirs", "cambist.kyc")
        with pytest.raises(
            SettingsError, match=f"the kyc '{name}': declares the setting {name}_{field}, but this name"
        ):
            load({"CAMBIST_KYC": name}, {}, Path())


async def test_two_packages_with_one_name_are_refused(package: Package) -> None:
    package("theirs_one", GOOD, "theirs = theirs_one:make")
    package("theirs_two", GOOD, "theirs = theirs_two:make")
    with pytest.raises(PluginError, match=r"theirs_\w+ 1.0 and theirs_\w+ 1.0"):
        async with open_app(Settings(**MEMORY, banks=("theirs",))):
            pass


@table("name", [name for kind in KINDS.values() for name in kind.settings])
def test_a_name_that_is_not_installed_is_a_wrong_setting_and_not_quoted(name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({f"CAMBIST_{name.upper()}": "hunter2"}, {}, Path())
    assert "further ones come with packages" in str(caught.value)
    assert "hunter2" not in str(caught.value)


STORAGE = """
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.ports.faults import Unavailable

opened = []


async def make(tools):
    if tools.url.endswith("/away"):
        raise Unavailable("the repository does not answer")
    opened.append(tools.url)
    return MemoryStorage(tools.clock, tools.wake_up)


def at_once(tools):
    return MemoryStorage(tools.clock, tools.wake_up)


async def bare(tools):
    return object()


class Half:
    async def close(self):
        opened.append("closed")
        raise RuntimeError("even so")


async def half(tools):
    return Half()
"""


async def test_a_database_url_of_a_package_s_scheme_opens_its_storage(
    package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package("theirs_repository", STORAGE, "repository = theirs_repository:make", "cambist.storages")
    monkeypatch.chdir(tmp_path)
    environment = {"CAMBIST_DATABASE_URL": "repository://user:hunter2@host/name"}
    settings = load(environment, {}, Path()).settings
    async with cambist.open(settings, migrated=True) as service:
        merchant = await service.merchant((await service.create_account("My shop")).account_id)
        await merchant.create_payment(490)
        assert await service.run_due() > 0
    assert __import__("theirs_repository").opened == ["repository://user:hunter2@host/name"]
    assert "hunter2" not in repr(StorageTools(url="repository://hunter2", clock=VirtualClock(), wake_up=print))  # type: ignore[arg-type]
    shown = CliRunner(env=environment).invoke(cli, ["config", "check", "--json"], standalone_mode=False)
    adapters = {(each["kind"], each["name"]): each for each in json.loads(shown.stdout)["adapters"]}
    assert adapters["storage", "repository"]["used_by"] == ["database_url"]
    assert "hunter2" not in shown.output


@pytest.mark.parametrize(
    ("factory", "path", "fault", "said"),
    [
        ("make", "away", cambist.Unavailable, "the repository does not answer"),
        ("at_once", "", PluginError, "must be a coroutine function"),
        ("bare", "", PluginError, "lacks check, claim, close"),
    ],
)
async def test_a_storage_that_does_not_open_says_why(
    package: Package, factory: str, path: str, fault: type[Exception], said: str
) -> None:
    package("theirs_repository_bad", STORAGE, f"repository = theirs_repository_bad:{factory}", "cambist.storages")
    with pytest.raises(fault, match=said):
        async with open_app(Settings(database_url=f"repository://{path or 'x'}/{path}")):
            pass


async def test_a_storage_that_lacks_something_is_closed_again(package: Package) -> None:
    """The check had to open it."""
    package("theirs_repository_half", STORAGE, "repository = theirs_repository_half:half", "cambist.storages")
    with pytest.raises(PluginError, match=r"\(Half\) lacks check, claim") as caught:
        async with open_app(Settings(database_url="repository://x/")):
            pass
    assert caught.value.__notes__ == ["and it could not be closed: RuntimeError"]
    assert __import__("theirs_repository_half").opened == ["closed"]


@table("url", ["repository://host", "mysql://host/name", "memory://x", "sqlite://x", "://x", "repository:x"])
def test_a_database_url_of_no_known_scheme_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({"CAMBIST_DATABASE_URL": url}, {}, Path())
    assert "cambist.storages" in str(caught.value)
    assert url not in str(caught.value)


def test_config_check_shows_what_is_installed_and_what_names_it(
    package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package("theirs_shown", GOOD, "theirs = theirs_shown:make")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cambist.toml").write_text('banks = ["theirs"]\n')
    done = CliRunner().invoke(cli, ["config", "check", "--json"], standalone_mode=False)
    shown = {(each["kind"], each["name"]): each for each in json.loads(done.stdout)["adapters"]}
    assert shown["bank", "theirs"]["comes_from"] == "theirs_shown 1.0"
    assert shown["bank", "theirs"]["used_by"] == ["banks"]
    assert shown["bank", "simulator"]["used_by"] == ["test_banks"]


def test_every_kind_names_its_settings() -> None:
    shown = all_installed(named_by(Settings()))
    assert {each.kind for each in shown if each.used_by} == set(KINDS) - {"alarms"}, "which has none unless one is set"


async def test_a_built_in_bank_that_nothing_makes_is_never_a_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an adapter named in plugins.py but missing in providers.py would only simulate payments."""
    known = KINDS["bank"]
    built_in = (*known.built_in, "forgotten")
    monkeypatch.setattr(plugins, "KINDS", {**KINDS, "bank": msgspec.structs.replace(known, built_in=built_in)})
    monkeypatch.setattr(providers, "KINDS", plugins.KINDS)
    with pytest.raises(PluginError, match="forgotten"):
        async with open_app(Settings(**MEMORY, banks=("forgotten",), allow_live_simulators=True)):
            pass


async def test_tools_are_those_of_the_app_and_of_the_mode_that_is_asked_for() -> None:
    """A plugin gets these tools for its adapters. They include the files, which a verifier has to read."""
    async with cambist.open(base_url="https://pay.example") as service:
        tools, ports = service.tools("test"), service.ports
        assert (tools.mode, tools.base_url) == ("test", "https://pay.example")
        assert (tools.storage, tools.clock, tools.ids) == (ports.storage, ports.clock, ports.ids)
        assert tools.files is ports.files
        assert service.tools().mode == "live"


class Fixed:
    """A source of rates that is handed over."""

    name = "fixed"

    async def quote(self) -> Any:
        raise NotImplementedError


FILES = """
from cambist.conformance import Uploads

made = []


class Repository(Uploads):
    async def close(self):
        made.append("closed")


def make(tools):
    made.append(sorted(tools.__struct_fields__))
    return Repository()
"""


async def test_a_file_store_that_the_setting_names_is_what_adapters_read_from(package: Package) -> None:
    package("theirs_files", FILES, "repository = theirs_files:make", "cambist.files")
    settings = load({"CAMBIST_FILES": "repository", "CAMBIST_DATABASE_URL": "memory://"}, {}, Path()).settings
    async with cambist.open(settings) as service:
        files = service.tools().files
        assert await files.stat("selfie") is not None
        assert [part async for part in files.read("selfie")] != []
    assert __import__("theirs_files").made == [["base_url", "clock", "ids", "storage"], "closed"]


async def test_a_file_store_that_was_given_stays_its_giver_s_to_close() -> None:
    class Repository(Uploads):
        async def close(self) -> None:
            raise AssertionError

    async with cambist.open(adapters=cambist.Adapters(files=Repository())) as service:
        assert await service.tools().files.stat("selfie") is not None


def test_every_kind_can_be_given_as_an_object() -> None:
    given = {"bank": "banks"}
    assert {given.get(kind, kind) for kind in KINDS} == set(cambist.Adapters.__struct_fields__)


@table(
    "given", [{"rates": [object()]}, {"kyc": object()}, {"files": object()}, {"banks": {cambist.Mode.TEST: [Fixed()]}}]
)
async def test_an_object_that_does_not_fill_its_port_is_refused_at_the_start(given: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match="that was given"):
        async with cambist.open(adapters=cambist.Adapters(**given)):
            pass


class Sunrise(ExampleBank):
    """A bank that is only wired here."""

    def __init__(self) -> None:
        """Without connections."""


BANK = Sunrise()


@table("banks", [[BANK], (BANK,), {"live": [BANK]}, {Mode.LIVE: [BANK]}, {Mode.LIVE: (BANK,)}])
async def test_banks_given_are_those_of_live_mode(banks: Any) -> None:
    """A list was ignored in silence, and a simulator took the live payments."""
    async with cambist.open(adapters=cambist.Adapters(banks=banks)) as service:
        assert service.ports.banks.order["live"] == (BANK.name,)
        assert service.ports.banks.order["test"] == ("simulator-test",)


@table(
    ("given", "message"),
    [
        ({"banks": BANK}, "`banks` of Adapters must be a list, not Sunrise"),
        ({"banks": "sunrise"}, "`banks` of Adapters must be a list, not str"),
        ({"banks": [object()]}, "the bank that was given (object) lacks"),
        ({"banks": {"prod": [BANK]}}, "names no mode 'prod': the modes are 'live' and 'test'"),
        ({"banks": {None: [BANK]}}, "names no mode 'None'"),
        ({"banks": {Mode.LIVE: BANK}}, "`banks['live']` of Adapters must be a list, not Sunrise"),
        ({"banks": {"live": None}}, "`banks['live']` of Adapters must be a list, not NoneType"),
        ({"rates": Fixed()}, "`rates` of Adapters must be a list, not Fixed"),
        ({"rates": [BANK]}, "the source of rates that was given (Sunrise) lacks quote"),
        ({"alarms": object()}, "`alarms` of Adapters must be a list, not object"),
        ({"alarms": [Fixed()]}, "the alarm channel that was given (Fixed) lacks"),
        ({"storage": "memory://"}, "`storage` of Adapters must be an async function"),
        *(
            ({kind: Fixed()}, f"the {kind} that was given (Fixed) lacks")
            for kind in ("kyc", "chain", "deposits", "payouts", "notifier", "files")
        ),
    ],
)
def test_adapters_refuse_what_fills_no_port(given: dict[str, Any], message: str) -> None:
    """When they are made, in words that say what to write."""
    with pytest.raises(PluginError) as refused:
        cambist.Adapters(**given)
    assert message in str(refused.value)


async def test_objects_go_in_place_of_what_the_settings_name() -> None:
    async with cambist.open(adapters=cambist.Adapters(rates=[Fixed()])) as service:
        names: Sequence[str] = [source.name for source in service.ports.rates.of_mode("live")]
        assert names == ["fixed"]
        assert [source.name for source in service.ports.rates.of_mode("test")] == ["simulator-rates-test"]
