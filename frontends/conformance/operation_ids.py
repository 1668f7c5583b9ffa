"""Operation ids for the suites, with the full length and all characters of the service's ids (docs/adapters.md
"Operation ids")."""

LONGEST = 40
"""Maximum length of an operation id, in characters of `[a-z0-9_-]`."""
_PACKED = "agmmh4t5dj7exh3aaaaaaaaaai"


def operation_id(prefix: str, number: int = 1) -> str:
    """Return `pay_`, `ref_` or another prefix with a UUID: the id of an invoice, a refund or a charge."""
    return f"{prefix}_0198c3f2-7d1a-7e4b-9f60-{number:012x}"


def exchange_invoice_id(number: int = 1) -> str:
    """Return the id of an exchange's invoice."""
    return operation_id("inv", number)


def binding_id(number: int = 1) -> str:
    """Return the id of a binding: the UUID of its binding payment."""
    return operation_id("bnd", number)


def part_id(number: int = 1) -> str:
    """Return the id of a part of an exchange's payout: the exchange's UUID in 26 characters, and a number."""
    return f"rem_{_PACKED}_{100_000_000 + number}"


def check_id(number: int = 1) -> str:
    """Return the id of a check: the client's UUID in 26 characters, and the number of the check."""
    return f"kyc_{_PACKED}_{100_000_000 + number}"


def return_ids() -> tuple[str, str]:
    """Return the ids of two attempts to return the RUB of one exchange. They differ only in the last character."""
    return f"ret_{_PACKED}_mzxw6ytb1", f"ret_{_PACKED}_mzxw6ytb2"


def suspense_ids() -> tuple[str, str]:
    """Return the ids of two attempts to return one suspense entry, which also differ only in the last character."""
    return f"sus_{_PACKED}_mzxw6ytb1", f"sus_{_PACKED}_mzxw6ytb2"
