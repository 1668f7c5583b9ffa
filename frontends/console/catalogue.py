"""All kinds that have a screen, in the order of the footer. A new one is a file of its own and one name here."""

from .kind_audit import AUDIT
from .kind_payments import PAYMENTS
from .kind_refunds import REFUNDS
from .kind_settlements import SETTLEMENTS
from .kind_withdrawals import WITHDRAWALS
from .kinds import Kind

KINDS: tuple[Kind, ...] = (PAYMENTS, REFUNDS, WITHDRAWALS, SETTLEMENTS, AUDIT)


def kind_of(name: str) -> Kind | None:
    """The kind of this name; None where no screen shows it."""
    return next((kind for kind in KINDS if kind.name == name), None)
