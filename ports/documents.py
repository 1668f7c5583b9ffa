"""The port that makes documents to print and to sign."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class DocumentTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table: its first column holds text, all others numbers."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A document, from its title down to the signatures."""

    title: str
    language: str
    facts: Sequence[tuple[str, str]]
    """Labels with values."""
    tables: Sequence[DocumentTable]
    notes: Sequence[str]
    signatures: Sequence[str]
    """Names of the parties that sign."""


class Documents(Protocol):
    @property
    def issuer(self) -> str:
        """Name and details of the installation's operator in documents."""
        ...

    async def pdf(self, document: Document, /) -> bytes:
        """Return the document as PDF."""
        ...
