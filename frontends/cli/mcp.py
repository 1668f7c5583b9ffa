"""`cambist mcp`: the API as tools for language models."""

import asyncio

import click

from ...core.domain.accounts.accounts import KEY_PREFIXES, Mode
from .listen import web_address
from .session import guarded, loaded_settings


def _key(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001 - click's signature
    if not value.startswith(tuple(KEY_PREFIXES.values())):
        raise click.BadParameter(f"must be an API key: {' or '.join(f'{each}…' for each in KEY_PREFIXES.values())}")
    return value


@click.command()
@click.option(
    "--api-key", envvar="CAMBIST_API_KEY", required=True, callback=_key, help="A test key, or a live key to read with."
)
@click.option(
    "--api-secret",
    envvar="CAMBIST_API_SECRET",
    required=True,
    help="The secret of the key; better set in CAMBIST_API_SECRET.",
)
@click.option(
    "--base-url",
    metavar="URL",
    envvar="CAMBIST_URL",
    callback=web_address,
    help="Address of the service, or CAMBIST_URL. Default: from the settings.",
)
def mcp(api_key: str, api_secret: str, base_url: str | None) -> None:
    """Serve the API's operations as tools of the Model Context Protocol, on standard input and output.

    A test key gets all operations, a live key only those that read. docs/mcp.md.
    """

    def run() -> None:
        from ..client import AsyncClient
        from ..mcp.server import serve

        address = base_url or loaded_settings().settings.base_url
        client = AsyncClient(address, api_key, api_secret)
        asyncio.run(serve(client, is_live=not api_key.startswith(KEY_PREFIXES[Mode.TEST])))

    guarded(run)
