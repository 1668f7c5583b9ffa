"""Every setting: the installation's own, and those of its adapters."""

from collections.abc import Iterable, Mapping

from ...ports.settings import Option
from .plugins import declared
from .settings import OPTIONS
from .shipped import SHIPPED


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
