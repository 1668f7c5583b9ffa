"""The options of an installation, one row each: how its text is read, whether it is a secret, what it means."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..core.domain.operators.guarded import Guarded
from .alarm_readers import read_quiet_hours
from .operator import Names
from .option_readers import (
    masked_url,
    read_address,
    read_boolean,
    read_choice,
    read_database,
    read_guarded,
    read_host,
    read_integer,
    read_networks,
    read_operator_key,
    read_path,
    read_pepper,
    read_redis,
    read_rub,
    read_seconds,
    read_vault_keys,
)
from .plugins import reads_name, reads_names


def _as_it_is(value: Any) -> Any:
    return value


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option."""

    name: str
    read: Callable[[Any], Any]
    meaning: str
    secret: bool = False
    """May also come from a file named by `CAMBIST_…_FILE`."""
    shown: Callable[[Any], Any] | None = _as_it_is
    """How its value may be shown; None: never, only whether it is set."""

    def named(self, name: str) -> "Option":
        """The same under another name."""
        return msgspec.structs.replace(self, name=name)


_ROWS = (
    Option(name="data_dir", read=read_path, shown=str, meaning="the folder of the SQLite database and the key file"),
    Option(
        name="database_url",
        read=read_database,
        meaning="postgresql://…, sqlite:///path, memory:// or a package's own; none: SQLite in data_dir",
        secret=True,
        shown=lambda url: None if url is None else masked_url(url),
    ),
    Option(
        name="redis_url",
        read=read_redis,
        meaning="redis://…: limits and wake-ups that several processes share; none: in this process's memory",
        secret=True,
        shown=lambda url: None if url is None else masked_url(url),
    ),
    Option(name="host", read=read_host, meaning="the address to listen on"),
    Option(name="port", read=read_integer(0, 65535), meaning="the port to listen on; 0: any free one"),
    Option(name="workers", read=read_integer(1, 1024), meaning="how many jobs run side by side"),
    Option(name="base_url", read=read_address, meaning="where merchants reach the API"),
    Option(name="pay_url", read=read_address, meaning="where payers reach the payment window"),
    Option(name="app_url", read=read_address, meaning="where hosted pages are reached"),
    Option(
        name="trusted_proxies",
        read=read_networks,
        shown=lambda networks: [str(network) for network in networks],
        meaning="networks whose X-Forwarded-For is believed",
    ),
    Option(
        name="pages_per_minute",
        read=read_integer(60, 1_000_000),
        meaning="requests of hosted pages (/p, /s, /kyc) that one client address may make in a minute",
    ),
    Option(
        name="notices_per_minute",
        read=read_integer(60, 1_000_000),
        meaning="notices of providers that one client address may post in a minute",
    ),
    Option(
        name="daily_mb_live",
        read=read_integer(1, 1_000_000),
        meaning="megabytes that one account may write in a UTC day in live mode; then 429",
    ),
    Option(
        name="daily_mb_test",
        read=read_integer(1, 1_000_000),
        meaning="the same in test mode",
    ),
    Option(
        name="test_data_days",
        read=read_integer(0, 3650),
        meaning="test data older than so many days is forgotten by itself; 0: never",
    ),
    Option(
        name="connections_per_address",
        read=read_integer(1, 65536),
        meaning="how many connections one address may have open; trusted proxies: any number",
    ),
    Option(
        name="vault_key",
        read=read_vault_keys,
        secret=True,
        shown=None,
        meaning="seals what must not be readable in the database; none: the key file in data_dir",
    ),
    Option(
        name="vault_pepper",
        read=read_pepper,
        secret=True,
        shown=None,
        meaning="keys the digests of API secrets; none: the key file in data_dir",
    ),
    Option(
        name="rate_sources",
        read=reads_names("rates"),
        shown=list,
        meaning="where live mode asks for the rate of USDT, in this order; test mode has its simulator",
    ),
    Option(name="banks", read=reads_names("bank"), shown=list, meaning="the banks of live mode, the first tried first"),
    Option(name="test_banks", read=reads_names("bank"), shown=list, meaning="the banks of test mode"),
    Option(name="kyc", read=reads_name("kyc"), meaning="who verifies clients"),
    Option(
        name="kyc_former",
        read=reads_names("kyc"),
        shown=list,
        meaning="who verified them before, and is asked about the checks that were begun there",
    ),
    Option(name="chain", read=reads_name("chain"), meaning="who looks for delivery proofs on the chains"),
    Option(name="deposits", read=reads_name("deposits"), meaning="who takes USDT in, in live mode"),
    Option(name="payouts", read=reads_name("payouts"), meaning="who sends USDT, in live mode"),
    Option(name="notifier", read=reads_name("notifier"), meaning="who posts webhooks"),
    Option(name="files", read=reads_name("files"), meaning="where uploaded documents lie; local: in data_dir"),
    Option(
        name="alarms",
        read=reads_names("alarms"),
        shown=list,
        meaning="by which channels operators are told of trouble; none: nobody is",
    ),
    Option(
        name="alarm_quiet_hours",
        read=read_quiet_hours,
        shown=lambda quiet: None if quiet is None else str(quiet),
        meaning="when only what is urgent is told: 22:00-08:00+03:00; none: never",
    ),
    Option(
        name="alarm_digest_minutes",
        read=read_integer(0, 1440),
        meaning="how long what is not urgent is gathered after a message",
    ),
    Option(
        name="alarm_backup_hours",
        read=read_integer(0, 8760),
        meaning="how old the last backup may be until it alarms; 0: nobody watches",
    ),
    Option(
        name="allow_live_simulators",
        read=read_boolean,
        meaning="whether live mode may work on simulators; by itself only where base_, pay_ and app_url are loopback",
    ),
    Option(
        name="allow_loopback_webhooks",
        read=read_boolean,
        meaning="whether webhooks of test mode may go to this machine itself; by itself only there, too",
    ),
    Option(name="shutdown_seconds", read=read_seconds, meaning="how long the process may take to end on SIGTERM"),
    Option(
        name="lame_duck_seconds",
        read=read_seconds,
        meaning="how much of it `api` serves on while /readyz says 503, before it closes the door",
    ),
    Option(name="log_level", read=read_choice("debug", "info", "warning", "error"), meaning="the least level logged"),
    Option(
        name="log_format",
        read=read_choice("auto", "text", "json"),
        meaning="how log lines are written; auto: as text on a terminal, else as JSON",
    ),
    Option(
        name="access_log",
        read=read_choice("off", "errors", "all"),
        meaning="which requests get a line: none, those answered 5xx or not at all, or every one",
    ),
    Option(name="metrics_host", read=read_host, meaning="the address at which metrics are served"),
    Option(
        name="metrics_port",
        read=read_integer(0, 65535),
        meaning="the port at which this process serves its metrics; 0: any free one; none: it serves none",
    ),
    Option(
        name="four_eyes",
        read=read_guarded,
        shown=list,
        meaning=f"which acts wait for a second operator: {', '.join(Guarded)}, or all; none: one is enough",
    ),
    Option(
        name="four_eyes_refund_above",
        read=read_rub,
        shown=str,
        meaning="with refunds in four_eyes: from which sum of a payment's refunds on, in RUB; 0: each",
    ),
    Option(
        name="operator_names",
        read=read_choice(*Names),
        meaning="what names an operator: given (CAMBIST_OPERATOR, --operator), login (who logged in), or key",
    ),
    Option(
        name="operator_key",
        read=read_operator_key,
        secret=True,
        meaning="the key of the operator who runs a command or the console, where operator_names is key",
    ),
    Option(
        name="four_eyes_days", read=read_integer(1, 90), meaning="how many days an act waits for the second operator"
    ),
    Option(
        name="tracing", read=read_boolean, meaning="whether to trace with OpenTelemetry, as the OTEL_* variables say"
    ),
)

OPTIONS: Mapping[str, Option] = {row.name: row for row in _ROWS}
"""All options in the order in which `cambist config check` explains them; those of shipped adapters come after them
(provider_options.py)."""
