"""What adapters must do, as tests for whoever writes one, and the harnesses on which they are tried (docs/adapters.md).

pytest -o asyncio_mode=auto --pyargs cambist.conformance.bank
"""

from types import FunctionType as _FunctionType

from cambist.adapters.clock import VirtualClock as VirtualClock
from cambist.frontends.conformance.bank_harness import Asked as Asked
from cambist.frontends.conformance.bank_harness import BankHarness as BankHarness
from cambist.frontends.conformance.harnesses import AlarmsHarness as AlarmsHarness
from cambist.frontends.conformance.harnesses import AskedCheck as AskedCheck
from cambist.frontends.conformance.harnesses import ChainHarness as ChainHarness
from cambist.frontends.conformance.harnesses import DepositsHarness as DepositsHarness
from cambist.frontends.conformance.harnesses import FilesHarness as FilesHarness
from cambist.frontends.conformance.harnesses import KycHarness as KycHarness
from cambist.frontends.conformance.harnesses import NotifierHarness as NotifierHarness
from cambist.frontends.conformance.harnesses import PayoutsHarness as PayoutsHarness
from cambist.frontends.conformance.harnesses import RatesHarness as RatesHarness
from cambist.frontends.conformance.storage.kit import KIT_CATALOGUE as KIT_CATALOGUE
from cambist.frontends.conformance.storage.kit import StorageLocation as StorageLocation
from cambist.frontends.conformance.uploads import Uploads as Uploads

# Tracebacks and reprs name the public module, which stays when a class moves.
for _found in list(vars().values()):
    if isinstance(_found, type | _FunctionType) and _found.__module__.startswith("cambist."):
        _found.__module__ = __name__
