"""Operation ids as the house makes them, at their full length and with all their characters: what the suites send
(docs/adapters.md "Operation ids")."""

LONGEST = 40
"""Characters of `[a-z0-9_-]`, in every kind."""
_PACKED = "agmmh4t5dj7exh3aaaaaaaaaai"


def operation_id(prefix: str, number: int = 1) -> str:
    """`pay_` and a UUID: of an invoice, a refund, a charge."""
    return f"{prefix}_0198c3f2-7d1a-7e4b-9f60-{number:012x}"


def exchange_invoice_id(number: int = 1) -> str:
    """Of an exchange's invoice."""
    return operation_id("inv", number)


def binding_id(number: int = 1) -> str:
    """The binding payment's UUID."""
    return operation_id("bnd", number)


def part_id(number: int = 1) -> str:
    """A part of an exchange's payout: the exchange's UUID in 26 characters, and a number."""
    return f"rem_{_PACKED}_{100_000_000 + number}"


def check_id(number: int = 1) -> str:
    """The client's UUID in 26 characters, and the number of the check."""
    return f"kyc_{_PACKED}_{100_000_000 + number}"


def return_ids() -> tuple[str, str]:
    """Two attempts to send the same RUB of an exchange back: they differ in their last character alone."""
    return f"ret_{_PACKED}_mzxw6ytb1", f"ret_{_PACKED}_mzxw6ytb2"


def suspense_ids() -> tuple[str, str]:
    """Two attempts to send the same suspended money back, alike."""
    return f"sus_{_PACKED}_mzxw6ytb1", f"sus_{_PACKED}_mzxw6ytb2"
