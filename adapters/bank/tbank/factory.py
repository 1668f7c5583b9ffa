"""Makes T-Bank's adapter of its settings. Its library is imported only then."""

from ....ports.bank import Bank
from ....ports.settings import AdapterFactory, needed
from ....ports.tools import Tools
from .settings import TBankSettings


def _make(tools: Tools, own: TBankSettings) -> Bank:
    from .adapter import TBank
    from .terminals import Terminal, read_terminals

    terminal = None
    if own.merchants_file is None or own.terminal_key is not None or own.password is not None:
        terminal = Terminal(key=needed(own.terminal_key, "terminal_key"), password=needed(own.password, "password"))
    return TBank(
        tools,
        terminal=terminal,
        by_owner=None if own.merchants_file is None else read_terminals(own.merchants_file),
        base_url=own.url,
        mandates=own.mandates,
        receipts=own.receipts,
        receipt_format=own.receipt_format,
    )


TBANK = AdapterFactory(settings=TBankSettings, make=_make, extra="http")
