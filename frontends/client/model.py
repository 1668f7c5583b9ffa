"""Base types of all answers: records that ignore unknown fields, and enums that accept unknown values."""

from enum import StrEnum
from typing import Any, Generic, Self, TypeVar

import msgspec

Item = TypeVar("Item")

_PERSONAL = frozenset(
    (
        "address_key",
        "binding_url",
        "body",
        "client_phone",
        "document_key",
        "document_number",
        "file_key",
        "full_name",
        "headers",
        "kyc_url",
        "metadata",
        "nickname",
        "payer_name",
        "payload",
        "payment_url",
        "phone",
        "sbp_link",
        "selfie_key",
        "signing_secret",
        "upload_url",
    )
)
"""Personal data and links that are credentials. A repr hides them, because reprs end up in logs."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An object of the API. Unknown fields of a newer service are ignored. Amounts are `Decimal`, times are aware
    `datetime`, and missing fields are None. The repr hides personal data."""

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        shown = (f"{name}={'…' if value and name in _PERSONAL else repr(value)}" for name, value in values)
        return f"{type(self).__name__}({', '.join(shown)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, "…" if value and name in _PERSONAL else value) for name, value in values]


class OpenEnum(StrEnum):
    """An enum that also accepts values of a newer service. An unknown value becomes a separate member with `is_known`
    False. Members equal their text, so `payment.status == "paid"` holds too."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_, member._value_ = value, value
        return member

    @property
    def is_known(self) -> bool:
        """Whether this version of the client knows the value."""
        return self._name_ in type(self).__members__


class Pagination(Record, frozen=True, kw_only=True):
    """Number of this page and of all pages."""

    page: int
    per_page: int
    total: int
    total_pages: int | None = None


class Page(Record, Generic[Item], frozen=True, kw_only=True):
    """One page of a list."""

    data: list[Item]
    pagination: Pagination

    @property
    def is_last(self) -> bool:
        """Whether this is the last page."""
        seen = self.pagination.page * self.pagination.per_page
        return not self.data or seen >= self.pagination.total
