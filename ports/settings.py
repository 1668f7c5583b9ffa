"""Settings that an adapter declares beside its code (docs/adapters.md "Settings").

A field of `AdapterSettings` is one setting: its type, its default, and a `setting()` with its meaning and its reader.
The installation reads the values, explains them in `cambist config check`, and calls the adapter's factory with them.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec

from .faults import NotConfigured
from .tools import FileTools

V = TypeVar("V")
C = TypeVar("C", bound=str)
S = TypeVar("S", bound="AdapterSettings")
T = TypeVar("T", bound=FileTools)

_DIGITS = re.compile(r"[0-9]{1,9}\Z")
_RUB = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,2})?\Z")
_PROVIDER_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}\Z")
_CREDENTIAL = re.compile(r"[!-~]{1,1024}\Z")
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,255}\Z")
_ADDRESS = re.compile(r"https?://[!-~]{1,2040}\Z")


def setting(
    meaning: str, read: Callable[[Any], Any], *, secret: bool = False, shown: Callable[[Any], Any] | None = None
) -> msgspec.Meta:
    """Describe a setting: `url: Annotated[str, setting("address of the API", read_address)] = "https://api.example"`.

    `read` takes text from the environment or a TOML value and returns the field's value. It raises ValueError with the
    expected form, and never quotes the value. A `secret` may also come from a file named by its variable with `_FILE`,
    and is never shown. `shown` replaces the usual display of a value.
    """
    return msgspec.Meta(description=meaning, extra={"read": read, "secret": secret, "shown": shown})


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of the installation under its full name."""

    name: str
    """As in `cambist.toml`: `tbank_terminal_key`."""
    read: Callable[[Any], Any]
    meaning: str
    secret: bool = False
    """Whether it may also come from a file named by `CAMBIST_…_FILE`."""
    shown: Callable[[Any], Any] | None = None
    """Display of its value; None: hide a secret, and show any other value."""

    @property
    def variable(self) -> str:
        return variable_of(self.name)

    def with_default(self, default: Any) -> "Option":
        """Return the setting with its default, if it has one, at the end of its meaning."""
        if default is msgspec.NODEFAULT or default in (None, "", ()):
            return self
        plain = self.show(default)
        text = ", ".join(plain) if isinstance(plain, list) else str(plain).lower() if isinstance(plain, bool) else plain
        return msgspec.structs.replace(self, meaning=f"{self.meaning}; default {text}")

    def show(self, value: Any) -> Any:
        """Return the value for display. Any value of a secret is `***`."""
        if self.shown is not None:
            return self.shown(value)
        return "***" if self.secret and value is not None else _plain(value)


class AdapterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the settings of an adapter. A field without default must be set. The repr hides all values."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class AdapterFactory(msgspec.Struct, Generic[T, S], frozen=True, kw_only=True):
    """An adapter as an entry point names it: its settings, and the function that makes it of them."""

    settings: type[S]
    make: Callable[[T, S], Any]
    """Called with `Tools` (`FileTools` for a file store) and the settings. Raises: NotConfigured, whose message
    operators see."""
    prefix: str | None = None
    """Begin of the settings' names; None: the adapter's name and an underscore."""
    extra: str = ""
    """Extra of cambist that installs its library. Only shipped adapters have one."""

    def options(self, prefix: str) -> tuple[Option, ...]:
        """Return the settings under their full names, in the order of the fields. Raises: TypeError for a field without
        `setting()`."""
        hints = get_type_hints(self.settings, include_extras=True)
        options: list[Option] = []
        for field in msgspec.structs.fields(self.settings):
            option = option_of(prefix + field.encode_name, hints[field.name])
            if option is None:
                raise TypeError(f"{prefix}{field.encode_name} has no setting(): write Annotated[..., setting(...)]")
            options.append(option.with_default(field.default))
        return tuple(options)

    def read_from(self, prefix: str, values: Mapping[str, Any]) -> S:
        """Return the settings from values by full name. Raises: SettingMissing."""
        fields = {prefix + field.encode_name: field for field in msgspec.structs.fields(self.settings)}
        missing = [field.encode_name for name, field in fields.items() if field.required and name not in values]
        if missing:
            raise SettingMissing(*missing)
        return self.settings(**{field.name: values[name] for name, field in fields.items() if name in values})


class SettingMissing(NotConfigured):
    """Settings of the adapter must be set. The installation names their variables."""

    def __init__(self, *fields: str) -> None:
        super().__init__(f"set {' and '.join(fields)}")
        self.fields = fields


def needed(value: V | None, field: str) -> V:
    """Return the value of a field that another setting makes necessary. Raises: SettingMissing if it is not set."""
    if value is None:
        raise SettingMissing(field)
    return value


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"CAMBIST_{name.upper()}"


def option_of(name: str, hint: Any) -> Option | None:
    """Return the setting that a field's annotation describes, under its full name; None: it has no `setting()`."""
    for meta in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        if isinstance(meta, msgspec.Meta) and meta.extra is not None and "read" in meta.extra:
            return Option(name=name, meaning=meta.description or "", **meta.extra)
    return None


def _plain(value: Any) -> Any:
    """Return a value that JSON has."""
    if isinstance(value, (Path, Decimal)):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def read_text(raw: Any) -> str:
    """Read a text that is not empty."""
    if not isinstance(raw, str) or not raw:
        raise ValueError("must be text")
    return raw


def read_path(raw: Any) -> Path:
    """Read a path; `~` is the home folder."""
    text = raw if isinstance(raw, str) else str(raw) if isinstance(raw, Path) else ""
    if not text or "\0" in text:
        raise ValueError("must be a path")
    return Path(text).expanduser()


def read_host(raw: Any) -> str:
    """Read a host name or an IP address."""
    if not _HOST.match(read_text(raw)):
        raise ValueError("must be a host name or an IP address, without port")
    return str(raw)


def read_integer(low: int, high: int) -> Callable[[Any], int]:
    """Return the reader of a whole number from `low` to `high`."""

    def read(raw: Any) -> int:
        if isinstance(raw, str) and _DIGITS.match(raw):
            raw = int(raw)
        # In Python a boolean is an int, but `port = true` is a mistake.
        if not isinstance(raw, int) or isinstance(raw, bool) or not low <= raw <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return raw

    return read


def read_boolean(raw: Any) -> bool:
    """Read `true` or `false`."""
    if isinstance(raw, bool):
        return raw
    if not isinstance(raw, str) or raw.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return raw.lower() == "true"


def read_choice(*allowed: C) -> Callable[[Any], C]:
    """Return the reader of one of these words, or of the members of a StrEnum."""

    def read(raw: Any) -> C:
        for each in allowed:
            if isinstance(raw, str) and raw.lower() == each:
                return each
        raise ValueError(f"must be one of: {', '.join(allowed)}")

    return read


def read_address(raw: Any) -> str:
    """Read an address of an API, and remove a final slash."""
    text = read_text(raw)
    try:
        parts = urlsplit(text)
        fits = _ADDRESS.match(text) and _HOST.match(parts.hostname or "") and parts.port != 0
    except ValueError:
        fits = False
    if not fits or any(char in text for char in "@?#\\"):
        raise ValueError("must be an http or https URL without user, query and fragment")
    return text.rstrip("/")


def read_provider_key(raw: Any) -> str:
    """Read an id or a key as providers assign them."""
    if not _PROVIDER_KEY.match(read_text(raw)):
        raise ValueError("must be a key as the provider shows it: letters, digits, dots, hyphens and underscores")
    return str(raw)


def read_credential(raw: Any) -> str:
    """Read a secret of any form, on one line."""
    if not _CREDENTIAL.match(read_text(raw)):
        raise ValueError("must be 1 to 1024 printable ASCII characters without spaces")
    return str(raw)


def read_label(raw: Any) -> str:
    """Read a name as the provider's dashboard shows it."""
    text = read_text(raw)
    if len(text) > 100 or not text.isprintable() or text != text.strip():
        raise ValueError("must be a name of printable characters, 100 at most")
    return text


def read_rub(raw: Any) -> Decimal:
    """Read an amount in RUB."""
    text = str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else read_text(raw)
    if not _RUB.match(text):
        raise ValueError("must be an amount in RUB, such as 50000 or 50000.00")
    whole, _, part = text.partition(".")
    return Decimal(f"{whole}.{part:0<2}")
