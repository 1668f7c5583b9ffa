"""All kinds with a screen, in the order of the footer. A new kind is one file and one name here."""

from .kinds.accounts import ACCOUNTS
from .kinds.actions import ACTIONS
from .kinds.audit import AUDIT
from .kinds.clients import CLIENTS
from .kinds.differences import DIFFERENCES
from .kinds.events import EVENTS
from .kinds.exchanges import EXCHANGES
from .kinds.gateways import GATEWAYS
from .kinds.keys import KEYS
from .kinds.kinds import Kind
from .kinds.ledger import JOURNAL, LEDGER
from .kinds.movements import MOVEMENTS
from .kinds.payments import PAYMENTS
from .kinds.payout_lines import PAYOUT_LINES
from .kinds.receipts import RECEIPTS
from .kinds.receivers import RECEIVERS
from .kinds.refunds import REFUNDS
from .kinds.settlements import SETTLEMENTS
from .kinds.shops import SHOPS
from .kinds.statements import CORRECTIONS, LINES, STATEMENTS
from .kinds.subscriptions import SUBSCRIPTIONS
from .kinds.suspense import SUSPENSE
from .kinds.terminals import TERMINALS
from .kinds.withdrawals import WITHDRAWALS

KINDS: tuple[Kind, ...] = (
    PAYMENTS,
    REFUNDS,
    WITHDRAWALS,
    SETTLEMENTS,
    SUBSCRIPTIONS,
    EXCHANGES,
    CLIENTS,
    EVENTS,
    AUDIT,
    ACTIONS,
    SUSPENSE,
    DIFFERENCES,
    GATEWAYS,
    RECEIVERS,
    ACCOUNTS,
    STATEMENTS,
    CORRECTIONS,
    LEDGER,
    JOURNAL,
    KEYS,
    SHOPS,
    TERMINALS,
    LINES,
    MOVEMENTS,
    PAYOUT_LINES,
    RECEIPTS,
)


def kind_of(name: str) -> Kind | None:
    """Return the kind of this name, or None if no screen shows it."""
    return next((kind for kind in KINDS if kind.name == name), None)
