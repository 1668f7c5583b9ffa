"""`cambist config …`: settings of the installation."""

from ..app.public_addresses import unsafe_addresses
from ..settings.plugins import all_installed, named_by
from .groups import group
from .notifications import address_document, address_table, known_addresses
from .output import Answer, table, warn
from .session import answering, loaded_settings


@group()
def config() -> None:
    """Check the settings of this installation."""


@config.command("check")
@answering
def check() -> Answer:
    """Show every setting with its value and origin, and warn of unsafe addresses. Exit 1 when a setting is invalid."""
    loaded = loaded_settings()
    unsafe = unsafe_addresses(loaded.settings)
    for fault in unsafe:
        warn(fault)
    file = None if loaded.config_file is None else str(loaded.config_file)
    rows = [(each.name, each.value, each.origin, each.meaning) for each in loaded.explained]
    adapters = all_installed(named_by(loaded.settings))
    of_adapters = [(each.kind, each.name, each.comes_from, ", ".join(each.used_by)) for each in adapters]
    addresses, why_not = known_addresses(loaded.settings)
    tables = [
        table(("setting", "value", "from", "meaning"), rows),
        table(("adapter", "name", "from", "named by"), of_adapters),
    ]
    if addresses or why_not:
        tables.append(why_not or address_table(addresses))
    return Answer(
        document={
            "config_file": file,
            "settings": list(loaded.explained),
            "warnings": [*loaded.warnings, *unsafe],
            "adapters": adapters,
            "notifications": None if why_not else [address_document(each) for each in addresses],
        },
        text="\n\n".join(tables),
    )
