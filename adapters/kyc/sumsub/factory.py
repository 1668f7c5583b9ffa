"""Makes Sumsub's adapter of its settings. Its library is imported only then."""

from ....ports.kyc import KycVerifier
from ....ports.settings import AdapterFactory
from ....ports.tools import Tools
from .settings import SumsubSettings


def _make(tools: Tools, own: SumsubSettings) -> KycVerifier:
    from .verifier import sumsub

    return sumsub(tools, own)


SUMSUB = AdapterFactory(settings=SumsubSettings, make=_make, extra="http")
