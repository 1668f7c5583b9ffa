"""The configured banks, and the order in which they are tried (docs/adapters.md)."""

from collections.abc import Mapping, Sequence

import msgspec

from .bank import Bank, BankCapabilities
from .faults import NotConfigured


class BankRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """The configured banks, and the order in which each mode tries them."""

    banks: Mapping[str, Bank]
    order: Mapping[str, tuple[str, ...]]
    """Maps a mode (`live`, `test`) to names in `banks`, in the order of attempts."""

    def named(self, name: str) -> Bank:
        """Return the bank of a stored payment. Raises NotConfigured when it is no longer wired."""
        try:
            return self.banks[name]
        except KeyError:
            raise NotConfigured(f"no bank named {name} is wired") from None

    def capabilities_of(self, name: str | None) -> BankCapabilities | None:
        """Return the capabilities of a stored payment's bank; None when it has no bank, or the bank is no longer
        wired."""
        bank = self.banks.get(name or "")
        return None if bank is None else bank.capabilities

    def of_mode(self, mode: str, names: Sequence[str] = ()) -> tuple[Bank, ...]:
        """Return the banks of a mode in the order of attempts; if `names` are given, in their order.

        Names that are not of this mode are skipped, so that test mode never uses a live bank, and a bank that is no
        longer wired is simply not tried.
        """
        usual = self.order.get(mode, ())
        return tuple(map(self.banks.__getitem__, [name for name in names if name in usual] if names else usual))
