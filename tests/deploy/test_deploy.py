"""The files in `deploy/` match the program: names of settings, commands, times, secrets, versions."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from cambist.frontends.cli.main import COMMANDS
from cambist.frontends.settings.options import ALL_OPTIONS
from cambist.frontends.settings.settings import OPTIONS, for_many_processes
from cambist.frontends.settings.sources import CONFIG, load
from tests.redis_servers import own_redis
from tests.tables import table

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
OPERATORS = DEPLOY / "operators" / "cambist"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
DRAIN = 20
"""Seconds beyond CAMBIST_SHUTDOWN_SECONDS: the database's connections are let go of within 15."""
KNOWN = {CONFIG} | {
    variable
    for name, option in ALL_OPTIONS.items()
    for variable in (f"CAMBIST_{name.upper()}", *([f"CAMBIST_{name.upper()}_FILE"] if option.secret else []))
}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return document


def unit(path: Path) -> dict[str, list[str]]:
    """A unit's settings by name; several of one name are kept in order."""
    found: dict[str, list[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def example() -> dict[str, str]:
    lines = (DEPLOY / "cambist.env.example").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def ours(compose: Mapping[str, Any]) -> dict[str, Any]:
    """The services that are cambist."""
    return {name: each for name, each in compose["services"].items() if each["image"].startswith("cambist:")}


def test_only_settings_that_exist_are_named() -> None:
    for path in sorted(DEPLOY.rglob("*")):
        if path.is_file() and not {"secrets", "__pycache__"} & set(path.parts):
            named = set(re.findall(r"CAMBIST_[A-Z_]+[A-Z]", path.read_text("utf-8")))
            assert named <= KNOWN, path


def test_the_example_holds_no_secret_and_every_value_is_read(tmp_path: Path) -> None:
    given = example()
    assert not any(OPTIONS[name.removeprefix("CAMBIST_").lower()].secret for name in given)
    loaded = load(given, {}, tmp_path)
    assert loaded.warnings == ()


def test_the_compose_file_gives_every_process_what_several_of_them_need(
    compose: dict[str, Any], tmp_path: Path
) -> None:
    """As `cambist api` and `cambist worker` themselves judge it, with the secrets that the script makes."""
    script = [str(DEPLOY / "make-secrets.sh"), str(tmp_path / "secrets")]
    subprocess.run(["sh", *script], check=True, capture_output=True)
    assert {path.name for path in (tmp_path / "secrets").iterdir()} == set(compose["secrets"])
    redis_word = (tmp_path / "secrets" / "redis_conf").read_text().split()
    assert redis_word[0] == "requirepass"
    assert re.fullmatch("[0-9a-f]{48}", redis_word[1])
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "secrets").iterdir())
    assert subprocess.run(["sh", *script], check=False, capture_output=True).returncode == 1, "never written over"
    for name, service in ours(compose).items():
        environ = {
            key: str(value).replace("/run/secrets", str(tmp_path / "secrets"))
            for key, value in service["environment"].items()
            if not str(value).startswith("${")
        }
        environ["CAMBIST_BASE_URL"] = "https://api.example.com"
        loaded = load(environ, {}, tmp_path)
        assert loaded.warnings == (), name
        settings = for_many_processes(loaded.settings)
        password = (tmp_path / "secrets" / "postgres_password").read_text()
        assert settings.database_url == f"postgresql://cambist:{password}@postgres:5432/cambist"
        assert settings.redis_url == f"redis://:{redis_word[1]}@redis:6379/0"
        assert service["command"][0] in COMMANDS


def test_there_are_two_of_each_half_and_the_schema_comes_first(compose: dict[str, Any]) -> None:
    commands = [service["command"] for service in ours(compose).values()]
    assert sorted(commands) == [["api"], ["api"], ["migrate"], ["worker"], ["worker"]]
    for name, service in ours(compose).items():
        if name != "migrate":
            assert service["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
            assert "data:/var/lib/cambist" in service["volumes"], "uploads are shared"


def test_containers_facing_strangers_do_not_reach_the_stores(compose: dict[str, Any]) -> None:
    """nginx and the stores share no network, and the stores have no route to the internet."""
    joined = {name: set(service["networks"]) for name, service in compose["services"].items()}
    assert joined["nginx"] == {"front"}
    assert joined["postgres"] == joined["redis"] == {"stores"}
    assert compose["networks"]["stores"] == {"internal": True}
    for name, service in ours(compose).items():
        assert ("front" in joined[name]) is (service["command"] == ["api"])
        assert "stores" in joined[name]
    assert joined["worker-1"] == joined["worker-2"] == {"stores", "outside"}, "receivers are reached"


def test_redis_has_a_password_that_stands_in_no_argument(compose: dict[str, Any], tmp_path: Path) -> None:
    """A server started by that command admits nobody without the password; the health check's line contains it."""
    service = compose["services"]["redis"]
    assert not any("requirepass" in each for each in service["command"])
    assert service["secrets"] == ["redis_conf"]
    assert "environment" not in service
    subprocess.run(["sh", str(DEPLOY / "make-secrets.sh"), str(tmp_path)], check=True, capture_output=True)
    command = [str(tmp_path / "redis_conf") if "/run/secrets" in each else each for each in service["command"][1:]]
    with own_redis(command) as server:
        with redis.Redis.from_url(server.url) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        url = (tmp_path / "redis_url").read_text().replace("redis:6379", server.url.split("/")[2])
        with redis.Redis.from_url(url) as known:
            assert known.ping() is True
            assert known.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_containers_hold_no_right_that_they_do_not_need(compose: dict[str, Any]) -> None:
    for service in ours(compose).values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["init"] is True
        grace = int(service["stop_grace_period"].removesuffix("s"))
        assert grace >= int(service["environment"]["CAMBIST_SHUTDOWN_SECONDS"]) + DRAIN
    dockerfile = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER 10001:10001$", dockerfile, re.MULTILINE)
    assert '\nENTRYPOINT ["cambist"]\n' in dockerfile, "exec form: signals reach the service"
    assert "/readyz" in dockerfile


def test_the_image_is_built_from_all_that_the_package_is_made_of() -> None:
    """The targets of the links in the folder `cambist` must be copied as well."""
    copied = " ".join(
        re.findall(r"^COPY (?!--from)(.*)$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    ).split()
    let_in = {
        line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")
    }
    needed = {
        "pyproject.toml",
        "setup.py",
        "README.md",
        "LICENSE",
        "cambist",
        *(each.name for each in (ROOT / "cambist").iterdir() if each.is_symlink()),
    }
    assert needed <= set(copied)
    assert needed <= let_in


@table("path", UNITS, ids=lambda path: path.name)
def test_units_are_confined_and_take_their_secrets_as_credentials(path: Path) -> None:
    said = unit(path)
    for name, value in {
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "PrivateDevices": "yes",
        "CapabilityBoundingSet": "",
        "StateDirectory": "cambist",
        "User": "cambist",
    }.items():
        assert said[name] == [value], name
    handed = {each.split(":")[0] for each in said["LoadCredential"]}
    read = dict(each.split("=%d/") for each in said["Environment"] if "%d" in each)
    assert read == {f"CAMBIST_{name.upper()}_FILE": name for name in handed}
    of_a_person = {"operator_key"}  # no service acts as an operator
    optional = {
        "database_direct_url",
        "notifications_telegram_token",
    }  # a unit does not start where the file of a credential is missing
    assert {name for name, option in OPTIONS.items() if option.secret} - handed == of_a_person | optional
    program, command, *_ = said["ExecStart"][0].split()
    assert program == "/opt/cambist/bin/cambist"
    assert command in COMMANDS
    if said["Type"] != ["oneshot"]:
        assert said["Restart"] == ["on-failure"]
        assert float(said["TimeoutStopSec"][0]) >= float(example()["CAMBIST_SHUTDOWN_SECONDS"]) + DRAIN


class TestNginx:
    text = (DEPLOY / "nginx" / "cambist.conf").read_text("utf-8")

    def test_nginx_balances_the_api_processes_and_is_the_trusted_proxy(self, compose: dict[str, Any]) -> None:
        apis = {name for name, service in ours(compose).items() if service["command"] == ["api"]}
        assert {f"{name}:8080" for name in apis} == set(re.findall(r"server (\S+:\d+) ", self.text))
        trusted = {each["environment"]["CAMBIST_TRUSTED_PROXIES"] for each in ours(compose).values()}
        assert trusted == {compose["services"]["nginx"]["networks"]["front"]["ipv4_address"]}
        assert "proxy_set_header X-Forwarded-For $remote_addr;" in self.text, "what clients wrote there is not kept"

    def test_streams_are_unbuffered_and_uploads_pass_whole(self) -> None:
        [streams] = [each for each in re.findall(r"location ~ (\S+) \{([^}]*)\}", self.text) if "events" in each[0]]
        assert re.search(streams[0], "/p/pay_1/events")
        assert re.search(streams[0], "/s/sub_1/events")
        assert not re.search(streams[0], "/api/v1/events")
        assert "proxy_buffering off;" in streams[1]
        [uploads] = re.findall(r"location /uploads/ \{([^}]*)\}", self.text)
        assert "client_max_body_size 10m;" in uploads
        assert "proxy_request_buffering off;" in uploads

    def test_nginx_sends_hsts_keeps_connections_and_logs_no_query(self) -> None:
        assert "Strict-Transport-Security" in self.text
        assert re.search(r"^\s+keepalive \d+;", self.text, re.MULTILINE)
        assert 'proxy_set_header Connection "";' in self.text
        [form] = re.findall(r"log_format cambist (.*?);", self.text, re.DOTALL)
        assert not re.search(r"\$(request|request_uri|args|query_string|http_\w+|arg_\w+)\b", form)


class TestOperators:
    """The script by which operators run `cambist` with settings that they cannot choose."""

    def test_script_takes_no_option_before_the_command(self) -> None:
        for option in ("--config=/tmp/mine.toml", "--data-dir", "-h"):
            done = subprocess.run([OPERATORS, option, "x"], capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (2, "cambist: no options before the command\n")

    def test_script_passes_no_variable_on(self, tmp_path: Path) -> None:
        program = tmp_path / "program"
        program.write_text('#!/bin/sh\necho "$@"\nenv\n')
        program.chmod(0o755)
        script = tmp_path / "cambist"
        script.write_text(OPERATORS.read_text().replace("/opt/cambist/bin/cambist", str(program)))
        script.chmod(0o755)
        environ = {"CAMBIST_FOUR_EYES": "", "CAMBIST_OPERATOR": "ivan", "PYTHONPATH": "/tmp", "PATH": "/usr/bin:/bin"}
        done = subprocess.run([script, "action", "list"], env=environ, capture_output=True, text=True, check=True)
        said, *variables = done.stdout.splitlines()
        assert said == "--config /etc/cambist/cambist.toml action list"
        assert {each.partition("=")[0] for each in variables} <= {"PATH", "HOME", "LANG", "TERM", "PWD", "SHLVL", "_"}
