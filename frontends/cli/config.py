"""`cambist config …`"""

import click

from .output import Answer, table
from .session import answering, loaded_settings


@click.group()
def config() -> None:
    """The settings of this installation."""


@config.command("check")
@answering
def check() -> Answer:
    """Every setting, its value and where it comes from. Exits 1 when one is wrong."""
    loaded = loaded_settings()
    file = None if loaded.config_file is None else str(loaded.config_file)
    rows = [(each.name, each.value, each.origin, each.meaning) for each in loaded.explained]
    text = table(("setting", "value", "from", "meaning"), rows)
    return Answer(
        document={"config_file": file, "settings": list(loaded.explained), "warnings": list(loaded.warnings)},
        text=text,
    )
