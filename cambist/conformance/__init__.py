"""What adapters must do, as tests for whoever writes one, and the benches on which they are tried (docs/adapters.md).

pytest -o asyncio_mode=auto --pyargs cambist.conformance.bank
"""

from cambist.adapters.clock import VirtualClock as VirtualClock
from cambist.frontends.conformance.bank_bench import BankBench as BankBench
from cambist.frontends.conformance.benches import AlarmsBench as AlarmsBench
from cambist.frontends.conformance.benches import ChainBench as ChainBench
from cambist.frontends.conformance.benches import DepositsBench as DepositsBench
from cambist.frontends.conformance.benches import FilesBench as FilesBench
from cambist.frontends.conformance.benches import KycBench as KycBench
from cambist.frontends.conformance.benches import NotifierBench as NotifierBench
from cambist.frontends.conformance.benches import PayoutsBench as PayoutsBench
from cambist.frontends.conformance.benches import RatesBench as RatesBench
from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE as KIT_CATALOGUE
from cambist.frontends.conformance.storage.kit import StoragePlace as StoragePlace
from cambist.frontends.conformance.uploads import Uploads as Uploads
