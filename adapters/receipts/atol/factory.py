"""Makes ATOL Online's adapter of its settings. Its library is imported only then."""

from ....ports.receipts import ReceiptRegister
from ....ports.settings import AdapterFactory, needed
from ....ports.tools import Tools
from .settings import AtolSettings


def _make(tools: Tools, own: AtolSettings) -> ReceiptRegister:
    from .register import AtolRegister
    from .tills import Till, Tills, read_tills

    till = None
    if own.merchants_file is None or own.login is not None:
        till = Till(
            login=needed(own.login, "login"),
            password=needed(own.password, "password"),
            group=needed(own.group, "group"),
            inn=needed(own.inn, "inn"),
            email=needed(own.email, "email"),
            site=needed(own.site, "site"),
        )
    merchants = {} if own.merchants_file is None else read_tills(own.merchants_file)
    return AtolRegister(tools, Tills(till, merchants), own)


ATOL = AdapterFactory(settings=AtolSettings, make=_make, extra="http")
"""ATOL Online, protocols v5 (format 1.2) and v4 (format 1.05)."""
