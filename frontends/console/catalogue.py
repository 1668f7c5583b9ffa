"""All kinds that have a screen, in the order of the footer. A new one is a file of its own and one name here."""

from .kind_accounts import ACCOUNTS
from .kind_acts import ACTS
from .kind_audit import AUDIT
from .kind_clients import CLIENTS
from .kind_events import EVENTS
from .kind_exchanges import EXCHANGES
from .kind_gateways import GATEWAYS
from .kind_keys import KEYS
from .kind_ledger import JOURNAL, LEDGER
from .kind_payments import PAYMENTS
from .kind_receivers import RECEIVERS
from .kind_refunds import REFUNDS
from .kind_settlements import SETTLEMENTS
from .kind_shops import SHOPS
from .kind_statements import CORRECTIONS, LINES, STATEMENTS
from .kind_subscriptions import SUBSCRIPTIONS
from .kind_suspense import SUSPENSE
from .kind_terminals import TERMINALS
from .kind_withdrawals import WITHDRAWALS
from .kinds import Kind

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
    ACTS,
    SUSPENSE,
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
)


def kind_of(name: str) -> Kind | None:
    """The kind of this name; None where no screen shows it."""
    return next((kind for kind in KINDS if kind.name == name), None)
