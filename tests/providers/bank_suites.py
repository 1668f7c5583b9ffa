"""The shipped suites that the adapters of banks keep, listed once. The tests of each bank name the bank's
capabilities."""

from collections.abc import Mapping
from types import ModuleType

from cambist.frontends.conformance import charges, mandates, remittances, reporting
from cambist.frontends.conformance.bank import bank

_SUITES: Mapping[str, tuple[ModuleType, str]] = {
    "invoices": (
        bank,
        "TestWhatItSays TestRequests TestInvoices TestPayments TestRefunds TestExtremes TestLimit TestClosed "
        "TestNotifications",
    ),
    "invoices at faults": (bank, "TestFaults TestCancelledCalls TestTwoOfOneName"),
    "closing": (bank, "TestClosing"),
    "refunds at faults": (bank, "TestRefundsAtFaults TestCancelledRefunds TestTwoRefund"),
    "mandates": (mandates, "TestBinding TestConfirmation TestRevoke TestWhatItSays"),
    "mandates at faults": (mandates, "TestBindingAtFaults TestCancelledBinding TestTwoBind"),
    "charges": (charges, "TestCharges TestMandatesThatAreOver TestWhatItSays"),
    "charges at faults": (charges, "TestChargesAtFaults TestCancelledCharges TestTwoCharge"),
    "remittances": (remittances, "TestRemittances TestFailures TestWhatItSays"),
    "remittances at faults": (remittances, "TestRemittancesAtFaults TestCancelledRemittances TestTwoRemit"),
    "reporting": (reporting, "TestReporting"),
}
_ALL_OF = ("invoices at faults",)
_ONCE = ("test_no_credential_shows_in_faults_and_logs", "test_no_credential_shows_in_faults_and_logs_of_reads")
"""An adapter has one HTTP client, and it reports faults alike for every call: invoices alone are tried."""


def suites(*wanted: str) -> dict[str, type]:
    """The classes of these suites, by names that no two of them share: for the namespace of a test module."""
    classes: dict[str, type] = {}
    for suite in wanted:
        module, names = _SUITES[suite]
        left = {} if suite in _ALL_OF else dict.fromkeys(_ONCE)
        for name in names.split():
            shipped = getattr(module, name)
            own = {each: None for each in left if hasattr(shipped, each)}
            classes[f"{name}_{suite.replace(' ', '_')}"] = type(name, (shipped,), own)
    return classes
