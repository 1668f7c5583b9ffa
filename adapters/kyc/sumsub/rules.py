"""Operator settings for checks at Sumsub, and the personal data sent there (docs/providers/sumsub.md "Settings")."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from ....ports.faults import Refused
from ....ports.kyc import CheckRequest, Document, Purpose
from ....ports.settings import AdapterSettings, read_label, read_provider_key, read_text, setting

_COUNTRY = re.compile(r"[A-Z]{3}\Z")
_LEGAL_ENTITY = "legal_entity"


def read_country(raw: Any) -> str:
    """Read a country by ISO 3166-1 alpha-3."""
    if not _COUNTRY.match(read_text(raw)):
        raise ValueError("must be a country in three capital letters, such as RUS")
    return str(raw)


class SumsubRules(AdapterSettings, frozen=True, kw_only=True):
    """Operator settings for checks at Sumsub."""

    level: Annotated[str, setting("verification level for people", read_label)]
    company_level: Annotated[
        str | None, setting("verification level for legal entities; none: they are refused", read_label)
    ] = None
    country: Annotated[str, setting("country of uploaded documents", read_country)] = "RUS"
    document: Annotated[str, setting("type of an identity document", read_provider_key)] = "PASSPORT"
    """Sumsub's `idDocType`."""
    address: Annotated[str, setting("type of a proof of address", read_provider_key)] = "UTILITY_BILL"
    """Sumsub's `idDocType`."""

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
