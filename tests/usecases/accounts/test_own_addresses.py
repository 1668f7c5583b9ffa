"""The service pays nothing to itself, nor to where nobody can fetch it back (docs/settlement.md "Payouts")."""

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.common.own_addresses import refuse_own_address
from cambist.core.usecases.exchanges.creation import create_rub_usdt
from cambist.ports.deposits import DepositWatchers
from cambist.ports.payouts import Senders
from tests.apps import TestApp

OURS, THEIRS = "TLyqzVGLV1srkB7dToTAEqgDSfPtXRJZYH", "TP2XF6cQrytbPzkiympYZe7ptUkDacptok"


class Owner:
    """A wallet, or a watcher of deposits, of which one address is known."""

    name = "tron"

    async def owns(self, address: str) -> bool:
        return address == OURS


@pytest.fixture(params=["senders", "deposits"])
def owning(request: pytest.FixtureRequest, app: TestApp) -> TestApp:
    of_senders = Senders(senders={"tron": Owner()}, modes={})  # type: ignore[dict-item]
    of_deposits = DepositWatchers(watchers={"tron": Owner()}, modes={})  # type: ignore[dict-item]
    one = {"senders": of_senders} if request.param == "senders" else {"deposits": of_deposits}
    app.ports = msgspec.structs.replace(app.ports, **one)
    return app


async def test_a_payout_wallet_of_the_service_s_own_is_refused(owning: TestApp) -> None:
    account = owning.account.account_id
    with pytest.raises(Refusal, match="a wallet or a deposit address of this service"):
        await set_settings(owning.ports, account, {"payout_wallet": OURS})
    assert (await set_settings(owning.ports, account, {"payout_wallet": THEIRS})).settings.payout_wallet == THEIRS
    assert (await set_settings(owning.ports, account, {"payout_wallet": ""})).settings.payout_wallet is None


async def test_an_exchange_pays_usdt_to_no_address_of_the_service(owning: TestApp) -> None:
    order = {"amount_rub": "10000.00", "client_phone": "+70000000001", "address": OURS}
    with pytest.raises(Refusal, match="client_wallet: must not be a wallet or a deposit address of this service"):
        await create_rub_usdt(owning.ports, owning.account.account_id, Mode.TEST, **order)


async def test_no_address_is_the_service_s_own_by_its_spelling_alone(app: TestApp) -> None:
    for address in (OURS, THEIRS, "", "x"):
        await refuse_own_address(app.ports, address, "address")
