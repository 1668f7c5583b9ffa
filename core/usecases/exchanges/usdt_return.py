"""Returns of USDT to the address that the operator names, by one signed transfer (signed_transfers/; docs/exchanges.md
"Rules").
"""

import msgspec

from ....ports.bundle import Ports
from ....ports.payouts import SignedTransfer
from ....ports.storage import Unit
from ....ports.vault import Vault
from ...domain.exchanges.exchanges import NETWORK
from ...domain.exchanges.funds import ExchangeTransfer, is_under_way
from ...domain.exchanges.returns import ReturnTrigger, return_signed, return_signed_anew
from ...domain.ledger import Currency
from ..common.encrypted import return_fits
from ..signed_transfers.row import Sending, SignedTransfers, stored
from .return_steps import arrive, return_of, with_return_moved
from .steps import read_exchange


class _UsdtReturns(SignedTransfers[ExchangeTransfer]):
    """Transfers of return attempts. A transfer that was never executed is signed again. A transfer that no wallet signs
    is left to the operator.
    """

    record = ExchangeTransfer
    races = ("journal_id",)

    def sending(self, transfer: ExchangeTransfer) -> Sending | None:
        if transfer.currency is not Currency.USDT or not is_under_way(transfer):
            return None
        back = return_of(transfer)
        return Sending(
            operation=back.operation,
            sender=back.sender or "",
            network=NETWORK,
            address=back.address or "",
            units=back.amount,
            signed=stored(back.operation, back),
        )

    def is_as_decided(self, vault: Vault, transfer: ExchangeTransfer) -> bool:
        return return_fits(vault, transfer)

    async def store(
        self, ports: Ports, unit: Unit, transfer: ExchangeTransfer, signed: SignedTransfer
    ) -> ExchangeTransfer:
        back = return_signed(return_of(transfer), signed.tx_hash, signed.blob, signed.expires_at)
        return unit[ExchangeTransfer].save(msgspec.structs.replace(transfer, sent_back=back, went_by=back.tx_hash))

    def replaced(self, transfer: ExchangeTransfer, by: SignedTransfer) -> ExchangeTransfer:
        back = return_signed_anew(return_of(transfer), by.tx_hash, by.blob, by.expires_at)
        return msgspec.structs.replace(transfer, sent_back=back, went_by=back.tx_hash)

    async def final(self, ports: Ports, unit: Unit, transfer: ExchangeTransfer) -> ExchangeTransfer:
        return arrive(ports, unit, await read_exchange(unit, transfer.exchange_id), transfer)

    async def never(self, ports: Ports, unit: Unit, transfer: ExchangeTransfer) -> ExchangeTransfer:
        return unit[ExchangeTransfer].save(with_return_moved(transfer, ReturnTrigger.DISPROVED))

    async def refused(self, ports: Ports, unit: Unit, transfer: ExchangeTransfer, failure: str) -> ExchangeTransfer:
        return unit[ExchangeTransfer].save(with_return_moved(transfer, ReturnTrigger.UNSIGNED, failure))


USDT_RETURNS = _UsdtReturns()
