"""The banks at hand, and in which order they are tried (docs/adapters.md)."""

from collections.abc import Mapping, Sequence

import msgspec

from .bank import Bank, BankCapabilities
from .faults import NotConfigured


class BankRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """The banks at hand, and in which order a mode tries them."""

    banks: Mapping[str, Bank]
    order: Mapping[str, tuple[str, ...]]
    """By mode (`live`, `test`): names in `banks`, the first tried first."""

    def named(self, name: str) -> Bank:
        """The bank that a stored payment went to. Raises NotConfigured when it is no longer wired."""
        try:
            return self.banks[name]
        except KeyError:
            raise NotConfigured(f"no bank named {name} is wired") from None

    def capabilities_of(self, name: str | None) -> BankCapabilities | None:
        """What the bank of a stored payment can do; None where it has none, or one that is no longer wired."""
        bank = self.banks.get(name or "")
        return None if bank is None else bank.capabilities

    def of_mode(self, mode: str, names: Sequence[str] = ()) -> tuple[Bank, ...]:
        """The banks of a mode, the first tried first: in the order of `names`, where any are given.

        A name of no bank of this mode is passed over, so that test mode never meets a live bank, and a bank that is
        no longer wired is simply not tried.
        """
        usual = self.order.get(mode, ())
        return tuple(map(self.banks.__getitem__, [name for name in names if name in usual] if names else usual))
