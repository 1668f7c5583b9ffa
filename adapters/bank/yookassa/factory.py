"""Makes YooKassa's adapter of its settings. Its library is imported only then."""

from ....ports.bank import Bank
from ....ports.settings import AdapterFactory, needed
from ....ports.tools import Tools
from .settings import YooKassaSettings


def _make(tools: Tools, own: YooKassaSettings) -> Bank:
    from .adapter import YooKassaBank
    from .shops import Shop, Shops, read_shops

    shop = gateway = None
    if own.merchants_file is None or own.shop_id is not None or own.secret_key is not None:
        shop = Shop(id=needed(own.shop_id, "shop_id"), key=needed(own.secret_key, "secret_key"))
    if own.payout_id is not None:
        gateway = Shop(id=own.payout_id, key=needed(own.payout_key, "payout_key"))
    return YooKassaBank(
        tools,
        Shops(shop, {} if own.merchants_file is None else read_shops(own.merchants_file)),
        gateway=gateway,
        base_url=own.url,
        by_page=own.confirmation == "redirect",
        mandates=own.mandates,
        receipts=own.receipts,
        max_kopecks=int(own.max_rub.scaleb(2)),
    )


YOOKASSA = AdapterFactory(settings=YooKassaSettings, make=_make, extra="http")
