"""What an operator decides of checks at Sumsub, and what is told there of a person
(docs/providers/sumsub.md "Settings")."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ....ports.faults import Refused
from ....ports.kyc import CheckRequest, Document, Purpose

_LEGAL_ENTITY = "legal_entity"


class SumsubRules(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator decides of checks at Sumsub."""

    level: str
    """By which people are checked."""
    company_level: str | None = None
    """By which legal entities are; None: they are refused."""
    country: str = "RUS"
    """Of the documents that merchants' pages upload, in three letters."""
    document: str = "PASSPORT"
    """`idDocType` of what proves who the person is."""
    address: str = "UTILITY_BILL"
    """Of what proves the address."""

    def kind(self, document: Document) -> str:
        """`idDocType` of a document."""
        return {Purpose.SELFIE: "SELFIE", Purpose.DOCUMENT: self.document, Purpose.ADDRESS: self.address}[
            document.purpose
        ]

    def level_of(self, request: CheckRequest) -> str:
        """The level that the request is checked by. Raises: Refused where Sumsub would need more."""
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
    """What is told of the person, beyond the documents."""
    told: dict[str, Any] = {"phone": request.phone}
    if request.email is not None:
        told["email"] = request.email
    if request.user_type == _LEGAL_ENTITY:
        told["type"] = "company"
    return told
