"""`cambist openapi`: the OpenAPI document."""

import click

from .output import printed
from .session import guarded, loaded_settings


@click.command()
@click.option("--base-url", metavar="URL", help="Address of the service in the document. Default: from the settings.")
@click.option("--json", is_flag=True, expose_value=False, help="Print one JSON document; it always does.")
def openapi(base_url: str | None) -> None:
    """Print the API and its webhooks as an OpenAPI 3.1 document, as in GET /openapi.json."""

    def run() -> bytes:
        address = base_url or loaded_settings().settings.base_url
        from ..http.openapi.openapi import openapi_document

        return printed(openapi_document(address.rstrip("/")))

    click.echo(guarded(run))
