"""Options of an installation, one row each: how the value is read, whether it is a secret, and its meaning."""

from collections.abc import Iterable, Mapping

from ...adapters.alarms.settings import read_telegram_token
from ...core.domain.operators.guarded import Guarded
from ...ports.settings import Option, read_boolean, read_choice, read_host, read_integer, read_path
from .operator import Names
from .plugins import declared, reads_name, reads_names
from .readers import (
    masked_url,
    read_address,
    read_database,
    read_guarded,
    read_networks,
    read_operator_key,
    read_pepper,
    read_quiet_hours,
    read_redis,
    read_rub,
    read_seconds,
    read_vault_keys,
)
from .shipped import SHIPPED

_ROWS = (
    Option(name="data_dir", read=read_path, meaning="folder of the SQLite database and the key file"),
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
        meaning="redis://… for limits and wake-ups that several processes share; none: this process's memory",
        secret=True,
        shown=lambda url: None if url is None else masked_url(url),
    ),
    Option(name="host", read=read_host, meaning="address to listen on"),
    Option(name="port", read=read_integer(0, 65535), meaning="port to listen on; 0: any free port"),
    Option(name="workers", read=read_integer(1, 1024), meaning="number of concurrent jobs"),
    Option(name="base_url", read=read_address, meaning="public address of the API for merchants"),
    Option(name="pay_url", read=read_address, meaning="public address of the payment window for payers"),
    Option(name="app_url", read=read_address, meaning="public address of hosted pages"),
    Option(
        name="trusted_proxies",
        read=read_networks,
        shown=lambda networks: [str(network) for network in networks],
        meaning="networks whose X-Forwarded-For is trusted",
    ),
    Option(
        name="pages_per_minute",
        read=read_integer(60, 1_000_000),
        meaning="requests of hosted pages (/p, /s, /kyc) allowed per minute and client address",
    ),
    Option(
        name="notifications_per_minute",
        read=read_integer(60, 1_000_000),
        meaning="provider notifications allowed per minute and client address",
    ),
    Option(
        name="daily_mb_live",
        read=read_integer(1, 1_000_000),
        meaning="megabytes that one account may write per UTC day in live mode; above it 429",
    ),
    Option(
        name="daily_mb_test",
        read=read_integer(1, 1_000_000),
        meaning="megabytes that one account may write per UTC day in test mode; above it 429",
    ),
    Option(
        name="test_data_days",
        read=read_integer(0, 3650),
        meaning="days after which test data is deleted automatically; 0: never",
    ),
    Option(
        name="connections_per_address",
        read=read_integer(1, 65536),
        meaning="connections that one address may have open; no limit for trusted proxies",
    ),
    Option(
        name="vault_key",
        read=read_vault_keys,
        secret=True,
        meaning="key that encrypts confidential values in the database; none: the key file in data_dir",
    ),
    Option(
        name="vault_pepper",
        read=read_pepper,
        secret=True,
        meaning="key of the digests of API secrets; none: the key file in data_dir",
    ),
    Option(
        name="rate_sources",
        read=reads_names("rates"),
        meaning="sources of the USDT rate in live mode, in order of use; test mode has its simulator",
    ),
    Option(name="banks", read=reads_names("bank"), meaning="banks of live mode, in order of trial"),
    Option(name="test_banks", read=reads_names("bank"), meaning="banks of test mode"),
    Option(name="kyc", read=reads_name("kyc"), meaning="verifier of clients"),
    Option(
        name="kyc_former",
        read=reads_names("kyc"),
        meaning="former verifiers, still queried about their unfinished checks",
    ),
    Option(name="chain", read=reads_name("chain"), meaning="service that finds delivery proofs on blockchains"),
    Option(name="deposits", read=reads_name("deposits"), meaning="service that receives USDT in live mode"),
    Option(name="payouts", read=reads_name("payouts"), meaning="service that sends USDT in live mode"),
    Option(name="notifier", read=reads_name("notifier"), meaning="service that posts webhooks"),
    Option(name="files", read=reads_name("files"), meaning="store of uploaded documents; local: in data_dir"),
    Option(
        name="alarms",
        read=reads_names("alarms"),
        meaning="channels for alarms to operators; none: no alarms are sent",
    ),
    Option(
        name="alarm_quiet_hours",
        read=read_quiet_hours,
        shown=lambda quiet: None if quiet is None else str(quiet),
        meaning="time in which only urgent alarms are sent, such as 22:00-08:00+03:00; none: never",
    ),
    Option(
        name="alarm_digest_minutes",
        read=read_integer(0, 1440),
        meaning="minutes for which non-urgent alarms are collected after a message",
    ),
    Option(
        name="alarm_backup_hours",
        read=read_integer(0, 8760),
        meaning="age of the last backup, in hours, above which an alarm is sent; 0: never",
    ),
    Option(
        name="notifications_telegram_token",
        read=read_telegram_token,
        secret=True,
        meaning="token of the bot that sends notifications to merchants' people; none: only by e-mail",
    ),
    Option(
        name="notifications_telegram_url",
        read=read_address,
        meaning="address of this bot's API; default https://api.telegram.org",
    ),
    Option(
        name="allow_live_simulators",
        read=read_boolean,
        meaning="whether live mode may use simulators; default: only if base_url, pay_url and app_url are loopback",
    ),
    Option(
        name="allow_loopback_webhooks",
        read=read_boolean,
        meaning="whether webhooks of test mode may go to this machine itself; default as for live simulators",
    ),
    Option(
        name="shutdown_seconds", read=read_seconds, meaning="seconds that the process may take to end after SIGTERM"
    ),
    Option(
        name="lame_duck_seconds",
        read=read_seconds,
        meaning="seconds of these in which `api` still serves while /readyz answers 503",
    ),
    Option(
        name="log_level", read=read_choice("debug", "info", "warning", "error"), meaning="lowest level that is logged"
    ),
    Option(
        name="log_format",
        read=read_choice("auto", "text", "json"),
        meaning="format of log lines; auto: text on a terminal, else JSON",
    ),
    Option(
        name="access_log",
        read=read_choice("off", "errors", "all"),
        meaning="requests that are logged: none, only those answered 5xx or not at all, or all",
    ),
    Option(name="metrics_host", read=read_host, meaning="address at which metrics are served"),
    Option(
        name="metrics_port",
        read=read_integer(0, 65535),
        meaning="port at which this process serves its metrics; 0: any free port; none: no metrics",
    ),
    Option(
        name="four_eyes",
        read=read_guarded,
        meaning=f"actions that wait for a second operator: {', '.join(Guarded)}, or all; none: one operator is enough",
    ),
    Option(
        name="four_eyes_refund_above",
        read=read_rub,
        shown=str,
        meaning="with refunds in four_eyes: sum of a payment's refunds, in RUB, from which it applies; 0: always",
    ),
    Option(
        name="operator_names",
        read=read_choice(*Names),
        meaning="source of an operator's name: given (CAMBIST_OPERATOR, --operator), login, or key",
    ),
    Option(
        name="operator_key",
        read=read_operator_key,
        secret=True,
        meaning="key of the operator of a command or the console, if operator_names is key",
    ),
    Option(
        name="four_eyes_days", read=read_integer(1, 90), meaning="days that an action waits for the second operator"
    ),
    Option(
        name="tracing", read=read_boolean, meaning="whether to trace with OpenTelemetry, as set in the OTEL_* variables"
    ),
)

OPTIONS: Mapping[str, Option] = {row.name: row for row in _ROWS}
"""Settings of the installation itself, in the order of `cambist config check`."""


def with_further(options: Mapping[str, Option], further: Iterable[Option]) -> Mapping[str, Option]:
    """Return the settings with those of an adapter. Adapters may share a setting if they declare it alike.

    Raises: ValueError for a name that means something else already, as one adapter could read another's secret by it.
    """
    every = dict(options)
    for option in further:
        if every.setdefault(option.name, option) != option or _is_ambiguous(option, every):
            raise ValueError(f"declares the setting {option.name}, but this name has another meaning already")
    return every


def _is_ambiguous(option: Option, every: Mapping[str, Option]) -> bool:
    """Return whether its variable, or that of its file, is also another setting's."""
    name = option.name
    of_file = name.endswith("_file") and every.get(name.removesuffix("_file"), option).secret
    return of_file or (option.secret and f"{name}_file" in every) or name.endswith("_notification_networks")


def _all_options() -> Mapping[str, Option]:
    every: Mapping[str, Option] = OPTIONS
    for kind, names in SHIPPED.items():
        for name in names:
            every = with_further(every, declared(kind, name))
    return every


ALL_OPTIONS = _all_options()
"""Settings of the installation and of shipped adapters."""
