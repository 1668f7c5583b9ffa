"""Settings: their sources, the order of these, and the messages about wrong values (docs/cli.md "Settings")."""

from ipaddress import ip_network
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cambist.core.domain.operators.guarded import Guarded
from cambist.frontends.settings.options import ALL_OPTIONS
from cambist.frontends.settings.readers import masked_url
from cambist.frontends.settings.settings import OPTIONS, Settings, SettingsError, for_many_processes
from cambist.frontends.settings.sources import Loaded, load
from tests.cli.conftest import Call
from tests.tables import table

KEY, OTHER_KEY, PEPPER = "ab" * 32, "cd" * 32, "ef" * 32
URL = "postgresql://cambist:hunter2@db.example:5432/cambist"


def _load(
    env: dict[str, str] | None = None, flags: dict[str, Any] | None = None, folder: Path = Path("/nonexistent")
) -> Loaded:
    return load(env or {}, flags or {}, folder)


def _faults(env: dict[str, str], **more: Any) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        _load(env, **more)
    return {fault.origin: fault.message for fault in caught.value.faults}


def _origin(loaded: Loaded, name: str) -> str:
    return next(each.origin for each in loaded.explained if each.name == name)


class TestPrecedence:
    def test_defaults(self) -> None:
        settings = _load().settings
        assert settings == Settings()
        assert (settings.host, settings.port, settings.data_dir) == ("127.0.0.1", 8080, Path("cambist-data"))
        assert settings.database_url is None
        assert settings.storage_url == "sqlite:///cambist-data/cambist.db"
        assert settings.trusted_proxies == ()

    def test_file_over_defaults_environment_over_file_flags_over_environment(self, folder: Path) -> None:
        """The file, the environment, then flags; the last has the last word (docs/cli.md "Settings")."""
        (folder / "cambist.toml").write_text('port = 1001\nhost = "10.0.0.1"\nlog_level = "debug"\n')
        loaded = _load({"CAMBIST_PORT": "1002", "CAMBIST_HOST": "10.0.0.2"}, {"port": 1003, "host": None}, folder)
        settings = loaded.settings
        assert (settings.port, settings.host, settings.log_level, settings.log_format) == (
            1003,
            "10.0.0.2",
            "debug",
            "auto",
        )
        assert _origin(loaded, "port") == "--port"
        assert _origin(loaded, "host") == "CAMBIST_HOST"
        assert _origin(loaded, "log_level").endswith("cambist.toml: log_level")
        assert _origin(loaded, "log_format") == "default"

    def test_the_file_is_named_by_flag_or_variable_before_the_usual_one(self, folder: Path) -> None:
        for name, port in (("cambist.toml", 1), ("by-variable.toml", 2), ("by-flag.toml", 3)):
            (folder / name).write_text(f"port = {port}\n")
        variable = {"CAMBIST_CONFIG": str(folder / "by-variable.toml")}
        assert _load(folder=folder).settings.port == 1
        assert _load(variable, folder=folder).settings.port == 2
        assert _load(variable, {"config": str(folder / "by-flag.toml")}, folder).settings.port == 3

    def test_an_empty_variable_counts_as_absent(self, folder: Path) -> None:
        (folder / "cambist.toml").write_text("port = 1001\n")
        env = {"CAMBIST_PORT": "", "CAMBIST_DATABASE_URL_FILE": "", "CAMBIST_CONFIG": ""}
        assert _load(env, folder=folder).settings.port == 1001

    def test_a_wrong_value_that_is_overridden_does_no_harm(self) -> None:
        assert _load({"CAMBIST_PORT": "wrong"}, {"port": 7}).settings.port == 7


class TestAddresses:
    @table(
        ("host", "url"),
        [
            ("127.0.0.1", "http://127.0.0.1:9000"),
            ("0.0.0.0", "http://127.0.0.1:9000"),
            ("::", "http://[::1]:9000"),
            ("::1", "http://[::1]:9000"),
            ("localhost", "http://localhost:9000"),
        ],
    )
    def test_the_addresses_follow_host_and_port(self, host: str, url: str) -> None:
        settings = _load({"CAMBIST_HOST": host, "CAMBIST_PORT": "9000"}).settings
        assert (settings.base_url, settings.pay_url, settings.app_url) == (url, url, url)

    def test_pay_and_app_follow_base_unless_given(self) -> None:
        env = {"CAMBIST_BASE_URL": "https://api.example/", "CAMBIST_PAY_URL": "https://pay.example"}
        settings = _load(env).settings
        assert settings.base_url == "https://api.example"
        assert settings.pay_url == "https://pay.example"
        assert settings.app_url == "https://api.example"

    def test_a_port_that_the_system_chose_reaches_the_addresses_made_of_it(self) -> None:
        settings = _load({"CAMBIST_PORT": "0", "CAMBIST_APP_URL": "https://app.example"}).settings.listening_on(54321)
        assert (settings.port, settings.base_url, settings.pay_url) == (
            54321,
            "http://127.0.0.1:54321",
            "http://127.0.0.1:54321",
        )
        assert settings.app_url == "https://app.example"


class TestReading:
    @pytest.mark.parametrize("line", ['port = "8081"', "port = 8081"])
    def test_toml_gives_text_or_its_own_types(self, folder: Path, line: str) -> None:
        (folder / "cambist.toml").write_text(
            f'{line}\ntrusted_proxies = ["10.0.0.0/8", "::1"]\nshutdown_seconds = 2.5\n'
        )
        settings = _load(folder=folder).settings
        assert (settings.port, settings.shutdown_seconds) == (8081, 2.5)
        assert settings.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("::1/128"))

    @table("text", ["10.0.0.0/8,::1", "10.0.0.0/8, ::1", " 10.0.0.0/8 ::1 ", "10.0.0.0/8,::1,"])
    def test_networks_are_separated_by_commas_or_spaces(self, text: str) -> None:
        networks = _load({"CAMBIST_TRUSTED_PROXIES": text}).settings.trusted_proxies
        assert networks == (ip_network("10.0.0.0/8"), ip_network("::1/128"))

    @table(
        ("given", "kept"),
        [
            (URL, URL),
            ("postgres://h/db", "postgresql://h/db"),
            ("postgresql+asyncpg://h/db", "postgresql://h/db"),
            ("sqlite:///relative.db", "sqlite:///relative.db"),
            ("sqlite:////absolute.db", "sqlite:////absolute.db"),
            ("memory://", "memory://"),
        ],
    )
    def test_a_database_address_is_one_of_three_kinds(self, given: str, kept: str) -> None:
        settings = _load({"CAMBIST_DATABASE_URL": given}).settings
        assert settings.database_url == settings.storage_url == kept

    @table("options", ["?timeout=30", "?mode=rw", "?cache=shared&mode=rwc", "#x"])
    def test_sqlite_url_with_options_makes_no_second_database(self, call: Call, folder: Path, options: str) -> None:
        env = {"CAMBIST_DATABASE_URL": f"sqlite:///{folder}/shop.db"}
        call("account", "create", "Tea", env=env)
        files = sorted(path.name for path in folder.iterdir())
        refused = call("account", "list", env={"CAMBIST_DATABASE_URL": f"sqlite:///{folder}/shop.db{options}"})
        assert (refused.status, "takes no options" in refused.err) == (1, True)
        assert sorted(path.name for path in folder.iterdir()) == files

    @pytest.mark.parametrize(
        "url",
        [
            *("redis://h", "rediss://:p@h:6380/3", "unix:///run/redis.sock?db=1"),
            *("redis+sentinel://s1,s2:26380,[::1]:3/cambist", "rediss+sentinel://u:p@s1/cambist/3?sentinel_password=q"),
        ],
    )
    def test_a_redis_address_is_kept(self, url: str) -> None:
        assert _load({"CAMBIST_REDIS_URL": url}).settings.redis_url == url

    def test_first_of_several_vault_keys_encrypts(self) -> None:
        env = {"CAMBIST_VAULT_KEY": f"2:{OTHER_KEY},1:{KEY}", "CAMBIST_VAULT_PEPPER": PEPPER}
        vault = _load(env).settings.vault
        assert vault is not None
        assert vault.current == 2
        assert vault.keys == {1: bytes.fromhex(KEY), 2: bytes.fromhex(OTHER_KEY)}
        assert vault.pepper == bytes.fromhex(PEPPER)

    def test_a_single_vault_key_has_the_id_1(self) -> None:
        vault = _load({"CAMBIST_VAULT_KEY": KEY, "CAMBIST_VAULT_PEPPER": PEPPER}).settings.vault
        assert vault is not None
        assert (vault.current, list(vault.keys)) == (1, [1])

    @pytest.mark.parametrize("text", ["coingecko,simulator", " coingecko, simulator ", "coingecko simulator,"])
    def test_rate_sources_are_names_in_order(self, folder: Path, text: str) -> None:
        assert _load().settings.rate_sources == ("simulator",)
        assert _load({"CAMBIST_RATE_SOURCES": text}).settings.rate_sources == ("coingecko", "simulator")
        (folder / "cambist.toml").write_text('rate_sources = ["rapira", "coingecko"]\n')
        assert _load(folder=folder).settings.rate_sources == ("rapira", "coingecko")

    @pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
    def test_a_secret_may_come_from_a_file(self, folder: Path, ending: str) -> None:
        """Secrets may come from files; the closing newline is not part of it
        (docs/operations.md "Settings and secrets")."""
        (folder / "secret").write_bytes(f"{URL}{ending}".encode())
        loaded = _load({"CAMBIST_DATABASE_URL_FILE": str(folder / "secret")})
        assert loaded.settings.database_url == URL
        assert _origin(loaded, "database_url") == "CAMBIST_DATABASE_URL_FILE"

    def test_every_secret_may_and_nothing_else(self, folder: Path) -> None:
        """Secrets in a file of their own stay out of the environment, which children and crash reports see."""
        values = {
            "database_url": URL,
            "database_direct_url": URL,
            "redis_url": "redis://:hunter2@redis.example:6379/0",
            "vault_key": f"2:{KEY},1:{OTHER_KEY}",
            "vault_pepper": PEPPER,
            **{
                name: f"{name}-hunter2" for name, option in ALL_OPTIONS.items() if option.secret and name not in OPTIONS
            },
            **{f"{network}_nodes": "https://hunter2@node.example/jsonrpc" for network in ("tron", "evm", "bsc")},
            "atol_callback_url": "https://hunter2.example/hook",
            "operator_key": f"hunter2:{KEY}",
            "deposit_xpub_tron": f"xpub{'hunter2' * 15}",
            "telegram_token": "123456:AAhunter2hunter2hunter2",
            "notifications_telegram_token": "654321:AAhunter2hunter2hunter2",
            "tron_api": "https://hunter2@node.example",
            **{f"{network}_key": KEY for network in ("tron", "evm", "bsc")},
        }
        assert set(values) == {name for name, option in ALL_OPTIONS.items() if option.secret}
        for name, value in values.items():
            (folder / name).write_text(f"{value}\n")
        loaded = _load({f"CAMBIST_{name.upper()}_FILE": str(folder / name) for name in values})
        plain = _load({f"CAMBIST_{name.upper()}": value for name, value in values.items()})
        assert loaded.settings == plain.settings
        assert loaded.settings.vault is not None
        assert {name: _origin(loaded, name) for name in values} == {n: f"CAMBIST_{n.upper()}_FILE" for n in values}
        for name in ALL_OPTIONS:
            if name not in values:
                assert _load({f"CAMBIST_{name.upper()}_FILE": str(folder / "none")}).warnings


class TestFaults:
    @table(
        ("variable", "value"),
        [
            *(("CAMBIST_PORT", value) for value in ("x", "-1", "65536", "80.5", "8_0", "٨٠", " 80", "1e3", "9" * 50)),
            *(("CAMBIST_WORKERS", value) for value in ("0", "1025", "two")),
            *(("CAMBIST_HOST", value) for value in ("a b", "http://a", "a/b", "h\n")),
            *(("CAMBIST_SHUTDOWN_SECONDS", value) for value in ("-1", "3601", "ten", "nan", "inf", "1e3")),
            *(("CAMBIST_RATE_SOURCES", value) for value in ("bank", "rapira,rapira", ",", "rapira;x", "Rapira")),
            *(("CAMBIST_COINGECKO_KEY", value) for value in ("a b", "CG-key\n", "ключ", "x" * 201)),
            *(("CAMBIST_LOG_LEVEL", value) for value in ("loud", "trace")),
            *(("CAMBIST_LOG_FORMAT", value) for value in ("xml", "json ")),
            *(("CAMBIST_TRUSTED_PROXIES", value) for value in ("10.0.0.1/8", "localhost", "10.0.0.0/33", "*", "1;2")),
            *(("CAMBIST_BASE_URL", value) for value in ("api.example", "ftp://a", "https://u:p@a", "https://a?x=1")),
            *(("CAMBIST_BASE_URL", value) for value in ("https://a#x", "https://", "https://a b", "https://a:0", "https://[")),
            *(("CAMBIST_DATABASE_URL", value) for value in ("mysql://a/b", "/tmp/x.db", "sqlite://x.db", "sqlite:///")),
            *(("CAMBIST_DATABASE_DIRECT_URL", value) for value in ("sqlite:///x", "postgresql://h/c", "memory://")),
            *(("CAMBIST_REDIS_URL", value) for value in ("http://h", "redis:h", "redis://", "redis://h:port", "unix://")),
            *(("CAMBIST_REDIS_URL", value) for value in ("redis://h/cambist", "redis://h/0\n", "redis://h:0/0")),
            *(("CAMBIST_REDIS_URL", f"redis+sentinel://{value}") for value in ("s1", "/c", "s:0/c", "s1,/c", "s1/c/x")),
            *(("CAMBIST_REDIS_URL", f"redis+sentinel://s1/c{value}") for value in ("?sentinel_password=", "#x", " d")),
            *(("CAMBIST_DATABASE_URL", value) for value in ("memory://x", "postgresql:h/db", "postgresql://h:port/db")),
        ],
    )  # fmt: skip
    def test_a_wrong_value_is_named_with_its_variable(self, variable: str, value: str) -> None:
        faults = _faults({variable: value})
        assert list(faults) == [variable]
        assert faults[variable].startswith("must be")

    @table("value", ["xx", KEY[:-1], KEY + "00", f"256:{KEY}", f"1:{KEY},1:{OTHER_KEY}", f"{KEY},", "g" * 64])
    def test_a_wrong_vault_key_is_refused(self, value: str) -> None:
        assert list(_faults({"CAMBIST_VAULT_KEY": value, "CAMBIST_VAULT_PEPPER": PEPPER})) == ["CAMBIST_VAULT_KEY"]

    @pytest.mark.parametrize("value", ["xx", PEPPER[:-2], PEPPER + "0"])
    def test_a_pepper_has_at_least_32_bytes(self, value: str) -> None:
        assert list(_faults({"CAMBIST_VAULT_KEY": KEY, "CAMBIST_VAULT_PEPPER": value})) == ["CAMBIST_VAULT_PEPPER"]

    def test_key_and_pepper_come_together(self) -> None:
        assert "CAMBIST_VAULT_PEPPER" in _faults({"CAMBIST_VAULT_KEY": KEY})["CAMBIST_VAULT_KEY"]
        assert "CAMBIST_VAULT_KEY" in _faults({"CAMBIST_VAULT_PEPPER": PEPPER})["CAMBIST_VAULT_PEPPER"]

    def test_a_secret_both_plain_and_in_a_file_is_refused(self, folder: Path) -> None:
        (folder / "secret").write_text(URL)
        faults = _faults({"CAMBIST_DATABASE_URL": URL, "CAMBIST_DATABASE_URL_FILE": str(folder / "secret")})
        assert "keep one" in faults["CAMBIST_DATABASE_URL_FILE"]

    def test_a_secret_file_that_cannot_be_read_is_named(self, folder: Path) -> None:
        (folder / "binary").write_bytes(b"\xff\xfe")
        for path in (folder / "none", folder, folder / "binary"):
            assert "cannot be read" in _faults({"CAMBIST_VAULT_KEY_FILE": str(path)})["CAMBIST_VAULT_KEY_FILE"]

    def test_all_faults_are_reported_at_once(self) -> None:
        assert set(_faults({"CAMBIST_PORT": "x", "CAMBIST_LOG_LEVEL": "x"})) == {"CAMBIST_PORT", "CAMBIST_LOG_LEVEL"}

    @pytest.mark.parametrize("content", [b"port = ", b"port = 1\nport = 2", b"\xff", b"[port"])
    def test_a_file_that_is_no_toml_is_refused_by_name(self, folder: Path, content: bytes) -> None:
        path = folder / "cambist.toml"
        path.write_bytes(content)
        assert "is not" in _faults({}, folder=folder)[str(path)]

    def test_a_named_file_that_is_not_there_is_refused(self, folder: Path) -> None:
        path = str(folder / "none.toml")
        assert "cannot be read" in _faults({"CAMBIST_CONFIG": path})[path]

    @pytest.mark.parametrize(
        "line",
        [
            "port = true",
            "port = 80.5",
            "port = [80]",
            "host = 1",
            "shutdown_seconds = true",
            "rate_sources = [1]",
            "rate_sources = []",
            "rate_sources = 1",
            "coingecko_key = 1",
        ],
    )
    def test_a_toml_value_of_another_type_is_refused(self, folder: Path, line: str) -> None:
        path = folder / "cambist.toml"
        path.write_text(line)
        assert list(_faults({}, folder=folder)) == [f"{path}: {line.split()[0]}"]


class TestManyProcesses:
    """`api` and `worker` need what several processes can share (docs/cli.md "Serving")."""

    SHARED: ClassVar[dict[str, str]] = {
        "CAMBIST_DATABASE_URL": URL,
        "CAMBIST_REDIS_URL": "redis://h",
        "CAMBIST_VAULT_KEY": KEY,
        "CAMBIST_VAULT_PEPPER": PEPPER,
    }

    def test_all_of_it_is_enough(self) -> None:
        settings = _load(self.SHARED).settings
        assert for_many_processes(settings) is settings

    @table(
        ("without", "changed"),
        [
            ("CAMBIST_DATABASE_URL", {"CAMBIST_DATABASE_URL": ""}),
            ("CAMBIST_DATABASE_URL", {"CAMBIST_DATABASE_URL": "sqlite:////data/cambist.db"}),
            ("CAMBIST_DATABASE_URL", {"CAMBIST_DATABASE_URL": "memory://"}),
            ("CAMBIST_REDIS_URL", {"CAMBIST_REDIS_URL": ""}),
            ("CAMBIST_VAULT_KEY", {"CAMBIST_VAULT_KEY": "", "CAMBIST_VAULT_PEPPER": ""}),
        ],
    )
    def test_one_thing_less_is_refused_by_name(self, without: str, changed: dict[str, str]) -> None:
        with pytest.raises(SettingsError) as caught:
            for_many_processes(_load({**self.SHARED, **changed}).settings)
        assert [fault.origin for fault in caught.value.faults] == [without]


class TestWarnings:
    def test_unknown_variable_is_reported_with_the_nearest_name(self) -> None:
        assert _load({"CAMBIST_DATABSE_URL": "x"}).warnings == (
            "CAMBIST_DATABSE_URL is no setting; did you mean CAMBIST_DATABASE_URL?",
        )

    def test_only_secrets_come_from_files(self) -> None:
        [warning] = _load({"CAMBIST_PORT_FILE": "/x"}).warnings
        assert "CAMBIST_PORT_FILE is no setting" in warning

    def test_unknown_name_in_the_file_is_reported(self, folder: Path) -> None:
        (folder / "cambist.toml").write_text("prot = 1\n[database]\nurl = 'x'\n")
        warnings = _load(folder=folder).warnings
        assert len(warnings) == 2
        assert "'prot' is no setting; did you mean port?" in warnings[0]

    def test_foreign_variables_are_ignored(self) -> None:
        assert _load({"PATH": "/bin", "CAMBISTRO": "x"}).warnings == ()


class TestSecrets:
    def test_no_repr_and_no_explanation_holds_a_secret(self) -> None:
        url = f"{URL}?password=hunter3"
        keys = {"CAMBIST_VAULT_KEY": KEY, "CAMBIST_VAULT_PEPPER": PEPPER, "CAMBIST_COINGECKO_KEY": "CG-hunter4"}
        keys["CAMBIST_REDIS_URL"] = "redis://:hunter5@redis.example:6379/1"
        keys["CAMBIST_OPERATOR_KEY"] = f"olga:{OTHER_KEY}"
        keys["CAMBIST_NOTIFICATIONS_TELEGRAM_TOKEN"] = "123456:AAhunter6hunter6hunter6"
        loaded = _load({"CAMBIST_DATABASE_URL": url, **keys})
        assert loaded.settings.providers["coingecko_key"] == "CG-hunter4"
        text = f"{loaded!r} {loaded.settings!r} {loaded.settings} {list(loaded.settings.__rich_repr__())}"
        raw = (repr(bytes.fromhex(KEY)), repr(bytes.fromhex(PEPPER)))
        for secret in ("hunter2", "hunter3", "hunter4", "hunter5", "hunter6", KEY, OTHER_KEY, PEPPER, *raw):
            assert secret not in text
        shown = {each.name: each.value for each in loaded.explained}
        assert shown["database_url"] == "postgresql://cambist:***@db.example:5432/cambist?***"
        assert shown["redis_url"] == "redis://:***@redis.example:6379/1"
        assert (shown["vault_key"], shown["vault_pepper"], shown["coingecko_key"]) == ("***", "***", "***")

    def test_no_fault_quotes_a_value(self) -> None:
        """A secret that stands in the wrong variable must not reach a log through the message about it."""
        for name in ALL_OPTIONS:
            with pytest.raises(SettingsError) as caught:
                _load({f"CAMBIST_{name.upper()}": "hunter2 \0"})
            assert "hunter2" not in f"{caught.value} {caught.value.faults!r}"

    @table(
        ("url", "masked"),
        [
            ("postgresql://h/db", "postgresql://h/db"),
            ("postgresql://u@h/db", "postgresql://u@h/db"),
            ("postgresql://u:p@h:5/db", "postgresql://u:***@h:5/db"),
            ("postgresql://u:p@ss@h/db", "postgresql://u:***@h/db"),
            ("postgresql:///db?host=/run", "postgresql:///db?***"),
            ("redis+sentinel://:p@s1,[::1]:3/c/0?sentinel_password=q", "redis+sentinel://:***@s1,[::1]:3/c/0?***"),
            ("sqlite:///a/b.db", "sqlite:///a/b.db"),
            ("sqlite:////a/b.db", "sqlite:////a/b.db"),
            ("memory://", "memory://"),
        ],
    )
    def test_a_database_address_is_shown_without_its_password(self, url: str, masked: str) -> None:
        assert masked_url(url) == masked


KEYS = {"CAMBIST_OPERATOR_NAMES": "key"}


class TestFourEyes:
    def test_all_names_every_kind(self) -> None:
        assert _load(KEYS | {"CAMBIST_FOUR_EYES": "all"}).settings.four_eyes == tuple(Guarded)

    @table("names", [{}, {"CAMBIST_OPERATOR_NAMES": "given"}])
    def test_given_names_are_refused_where_two_operators_are_needed(self, names: dict[str, str]) -> None:
        [message] = _faults(names | {"CAMBIST_FOUR_EYES": "refunds"}).values()
        assert message == "a name that anybody may give is no second person: set operator_names to key or login"

    def test_the_actions_and_the_sum(self) -> None:
        env = KEYS | {"CAMBIST_FOUR_EYES": "refunds, payout_wallet", "CAMBIST_FOUR_EYES_REFUND_ABOVE": "50000"}
        settings = _load(env).settings
        assert settings.four_eyes == ("payout_wallet", "refunds")
        assert str(settings.four_eyes_refund_above) == "50000.00"
        assert settings.four_eyes_days == 3
        shown = {each.name: each.value for each in _load(env).explained}
        assert (shown["four_eyes"], shown["four_eyes_refund_above"]) == (["payout_wallet", "refunds"], "50000.00")

    def test_settings_of_the_file_are_read_too(self, folder: Path) -> None:
        (folder / "cambist.toml").write_text(
            'operator_names = "key"\nfour_eyes = ["suspense", "refunds"]\n'
            "four_eyes_refund_above = 100\nfour_eyes_days = 7\n"
        )
        settings = _load({}, folder=folder).settings
        assert (settings.four_eyes, str(settings.four_eyes_refund_above), settings.four_eyes_days) == (
            ("refunds", "suspense"),
            "100.00",
            7,
        )

    @table(
        ("name", "text"),
        [
            ("FOUR_EYES", "refund"),
            ("FOUR_EYES", "payout_wallet;refunds"),
            ("FOUR_EYES_REFUND_ABOVE", "-1"),
            ("FOUR_EYES_REFUND_ABOVE", "50 000"),
            ("FOUR_EYES_REFUND_ABOVE", "1.001"),
            ("FOUR_EYES_DAYS", "0"),
            ("FOUR_EYES_DAYS", "91"),
        ],
    )
    def test_wrong_values_are_reported(self, name: str, text: str) -> None:
        assert set(_faults(KEYS | {"CAMBIST_FOUR_EYES": "refunds", f"CAMBIST_{name}": text})) == {f"CAMBIST_{name}"}

    def test_a_sum_without_refunds_says_nothing(self) -> None:
        faults = _faults(KEYS | {"CAMBIST_FOUR_EYES": "suspense", "CAMBIST_FOUR_EYES_REFUND_ABOVE": "1"})
        assert faults == {"CAMBIST_FOUR_EYES_REFUND_ABOVE": "says nothing without refunds in CAMBIST_FOUR_EYES"}


@table(
    ("environ", "fault"),
    [
        ({}, None),
        ({"CAMBIST_APP_URL": "https://app.example"}, None),
        ({"CAMBIST_APP_URL": "http://localhost:8080"}, None),
        ({"CAMBIST_APP_URL": "http://app.example"}, "the dashboard is not served"),
        ({"CAMBIST_APP_URL": "http://shop.localhost"}, "the dashboard is not served"),
        ({"CAMBIST_APP_URL": "https://203.0.113.7"}, "browsers offer no passkeys"),
        ({"CAMBIST_BASE_URL": "http://api.example"}, "base_url is http"),
    ],
)
def test_config_check_warns_of_an_address_without_a_dashboard(
    call: Call, environ: dict[str, str], fault: str | None
) -> None:
    done = call("config", "check", "--json", env=environ)
    assert done.status == 0
    found = [each for each in done.document["warnings"] if fault is None or fault in each]
    assert bool(found) is (fault is not None), done.document["warnings"]
    assert all(f"warning: {each}" in done.err for each in found)
