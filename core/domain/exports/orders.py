"""Orders of files by programs (docs/concepts.md "Exports")."""

from typing import Annotated

import msgspec
from msgspec import Meta

from .. import shared_fields as shared
from .exports import ExportFormat, ExportKind


class ExportOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /exports, field by field."""

    kind: Annotated[ExportKind, Meta(description="List that the file contains"), shared.among(ExportKind)]
    format: Annotated[ExportFormat, Meta(description="Format of the file"), shared.among(ExportFormat)]
    filter: Annotated[
        dict[str, Annotated[str, shared.limits(maxLength=256)]],
        Meta(description="Filters of the list by name, as in its query; all records if absent"),
    ] = {}
