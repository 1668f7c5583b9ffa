"""Shapes of single fields that several kinds of orders have."""

from .errors import shape_error
from .ids import canonical_uuid


def check_length(name: str, text: str | None, longest: int) -> None:
    """Raises: Refusal VALIDATION_ERROR."""
    if text is not None and len(text) > longest:
        raise shape_error(name, f"has at most {longest} characters")


def check_uuid(name: str, value: str | None) -> None:
    """Raises: Refusal VALIDATION_ERROR for what is no UUID."""
    if value is not None and canonical_uuid(value) is None:
        raise shape_error(name, "must be a UUID")
