"""Makes Raiffeisenbank's adapter of its settings. Its library is imported only then."""

from ....ports.bank import Bank
from ....ports.receipts import ReceiptNeed
from ....ports.settings import AdapterFactory, needed
from ....ports.tools import Tools
from .settings import RaiffeisenSettings


def _make(tools: Tools, own: RaiffeisenSettings) -> Bank:
    from .adapter import RaiffeisenBank
    from .merchants import Merchants, Pair, PayoutPair, read_pairs
    from .payouts import read_aliases
    from .register import Register

    pair = payouts = None
    if own.merchants_file is None or own.merchant_id is not None or own.secret_key is not None:
        pair = Pair(needed(own.merchant_id, "merchant_id"), needed(own.secret_key, "secret_key"))
    if own.payout_account is not None:
        payouts = PayoutPair.of_account(own.payout_account, needed(own.payout_secret_key, "payout_secret_key"))
    writes_receipts = own.receipts is not ReceiptNeed.NONE
    return RaiffeisenBank(
        tools,
        merchants=Merchants(pair, {} if own.merchants_file is None else read_pairs(own.merchants_file)),
        base_url=own.url,
        payouts=payouts,
        aliases=None if own.banks_file is None else read_aliases(own.banks_file),
        subscriptions=own.subscriptions,
        register=Register(
            need=own.receipts,
            email=needed(own.receipt_email, "receipt_email") if writes_receipts else "",
            is_former=own.receipt_words == "2021",
        ),
    )


RAIFFEISEN = AdapterFactory(settings=RaiffeisenSettings, make=_make, extra="http")
