"""What all answers are made of: records that ignore fields they do not know, and enums that take any value."""

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
"""Who somebody is, and links that are keys themselves: not for logs, so not in a repr."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An object of the interface. Fields that a newer service adds are ignored. Amounts are `Decimal`, moments aware
    `datetime`. A field that the service leaves out is None. The repr hides personal data."""

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        shown = (f"{name}={'…' if value and name in _PERSONAL else repr(value)}" for name, value in values)
        return f"{type(self).__name__}({', '.join(shown)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, "…" if value and name in _PERSONAL else value) for name, value in values]


class OpenEnum(StrEnum):
    """Values that are known today. One that a newer service adds becomes a member of its own: it equals its text, and
    `is_known` is False. Members equal their texts, so `payment.status == "paid"` holds too."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_, member._value_ = value, value
        return member

    @property
    def is_known(self) -> bool:
        """This version of the client has a name for it."""
        return self._name_ in type(self).__members__


class Pagination(Record, frozen=True, kw_only=True):
    """Which page this is, and of how many."""

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
        """Nothing lies behind it."""
        seen = self.pagination.page * self.pagination.per_page
        return not self.data or seen >= self.pagination.total
