"""Operation ids as the house makes them, at their full length and with all their characters: what the suites send
(docs/adapters.md "Operation ids")."""


def operation_id(prefix: str, number: int = 1) -> str:
    """`pay_` and a UUID: of an invoice, a refund, a charge."""
    return f"{prefix}_0198c3f2-7d1a-7e4b-9f60-{number:012x}"


def binding_id(number: int = 1) -> str:
    """The subscription's, and the payment's UUID."""
    return f"{operation_id('sub')}:{operation_id('pay', number)[4:]}"


def part_id(number: int = 1) -> str:
    """A part of an exchange's payout."""
    return f"{operation_id('exch')}/{number}"


def check_id(number: int = 1) -> str:
    """The client's UUID, and the number of the check."""
    return f"kyc_{operation_id('')[1:]}_{number}"


def suspense_ids(bank: str) -> tuple[str, str]:
    """Two attempts to send the same suspended money back: the bank's own id of the transfer is in them."""
    return f"sus_{bank}:B60221234567890000000100/11750201", f"sus_{bank}:B60221234567890000000100/11750201#2"
