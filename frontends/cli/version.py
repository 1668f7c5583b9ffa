"""`cambist version`: the installed version."""

import platform
from importlib import metadata

import click

from .output import Answer, fields, give


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def version(*, as_json: bool) -> None:
    """Print the versions of cambist and Python."""
    document = {"cambist": metadata.version("cambist"), "python": platform.python_version()}
    give(Answer(document=document, text=fields(document)), as_json=as_json)
