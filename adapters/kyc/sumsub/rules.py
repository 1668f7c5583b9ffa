"""Operator settings for checks at Sumsub, and the personal data sent there (docs/providers/sumsub.md "Settings")."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ....ports.faults import Refused
from ....ports.kyc import CheckRequest, Document, Purpose

_LEGAL_ENTITY = "legal_entity"


class SumsubRules(msgspec.Struct, frozen=True, kw_only=True):
    """Operator settings for checks at Sumsub."""

    level: str
    """Level for people."""
    company_level: str | None = None
    """Level for legal entities; None: they are refused."""
    country: str = "RUS"
    """Country of uploaded documents, in three letters."""
    document: str = "PASSPORT"
    """`idDocType` of the identity document."""
    address: str = "UTILITY_BILL"
    """`idDocType` of the proof of address."""

    def kind(self, document: Document) -> str:
        """Return the `idDocType` of a document."""
        return {Purpose.SELFIE: "SELFIE", Purpose.DOCUMENT: self.document, Purpose.ADDRESS: self.address}[
            document.purpose
        ]

    def level_of(self, request: CheckRequest) -> str:
        """Return the level of the request. Raises: Refused if Sumsub would need more data."""
        purposes = {document.purpose for document in request.documents}
        if request.redirect:
            is_whole = request.email is not None and request.user_type is not None
        else:
            is_whole = {Purpose.SELFIE, Purpose.DOCUMENT} <= purposes
        if not is_whole:
            raise Refused("sumsub: a form needs e-mail and user type, documents a selfie too", reason="incomplete")
        if request.user_type != _LEGAL_ENTITY:
            return self.level
        if self.company_level is None:
            raise Refused("sumsub: no level for legal entities is set", reason="incomplete")
        return self.company_level


def person_of(request: CheckRequest) -> Mapping[str, Any]:
    """Return the personal data sent in addition to the documents."""
    told: dict[str, Any] = {"phone": request.phone}
    if request.email is not None:
        told["email"] = request.email
    if request.user_type == _LEGAL_ENTITY:
        told["type"] = "company"
    return told
