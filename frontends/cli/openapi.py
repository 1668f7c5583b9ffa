"""`cambist openapi`: the OpenAPI document, and the collections made of it."""

from pathlib import Path

import click

from .output import Answer, fields, give, printed
from .session import guarded, loaded_settings


@click.command()
@click.option("--base-url", metavar="URL", help="Address of the service in the document. Default: from the settings.")
@click.option("--postman", "as_postman", is_flag=True, help="Print a collection for Postman instead.")
@click.option(
    "--bruno",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write a collection for Bruno to a new folder instead.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; without --bruno it always does.")
def openapi(base_url: str | None, as_postman: bool, folder: Path | None, as_json: bool) -> None:
    """Print the API and its webhooks as an OpenAPI 3.1 document, as in GET /openapi.json."""
    if as_postman and folder is not None:
        raise click.UsageError("--postman or --bruno, not both")

    def run() -> bytes | Answer:
        address = base_url or loaded_settings().settings.base_url
        from ..http.openapi.openapi import openapi_document

        document = openapi_document(address.rstrip("/"))
        if not as_postman and folder is None:
            return printed(document)
        from ..http.openapi.collections import bruno, postman
        from ..http.openapi.docs_model import reference

        if folder is None:
            return printed(postman(reference(document)))
        files = bruno(reference(document))
        folder.mkdir(parents=True)
        for path, text in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, "utf-8")
        done = {"folder": str(folder), "files": len(files)}
        return Answer(document=done, text=fields(done))

    made = guarded(run, as_json=as_json)
    if isinstance(made, Answer):
        give(made, as_json=as_json)
    else:
        click.echo(made)
