"""Faults of the ports, in the few classes by which the core decides.

An operation at a provider has three outcomes: done, certainly refused, unknown. The faults keep them apart, because
only a refused one may be tried again elsewhere (ARCHITECTURE.md "Three outcomes").
"""

from typing import Any


class Fault(Exception):
    """A port could not do its work. The message is for operators, never for merchants."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the state, because the arguments are not those of Exception."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class Refused(Fault):
    """A definite no: nothing happened, no money moved. `reason` is a value from the port's own vocabulary."""

    def __init__(self, message: str, *, reason: str = "unknown") -> None:
        super().__init__(message)
        self.reason = reason


class OutcomeUnknown(Fault):
    """The operation may have happened. The core may only repeat or query the same operation id, and never use another
    route."""


class Unavailable(Fault):
    """Certainly not executed: no connection, a limit, a failed read. `retry_after` is in seconds, when known."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BulkheadFull(Unavailable):
    """Too many calls are already waiting for this provider, so this one was not started."""


class Held(Unavailable):
    """Nothing that sends money runs, because the database is a copy that nobody has compared with the providers yet
    (core/domain/installation.py): not executed, and not the provider's fault."""


class NotConfigured(Fault):
    """The adapter has no credentials, or the feature is off at the provider."""


class NotSupported(Fault):
    """The adapter cannot do this at all."""


class Forged(Fault):
    """A notification that the provider did not send: its signature is wrong, or it is not a notification at all."""


NO_ANSWER = (Unavailable, NotConfigured, NotSupported, Refused, OutcomeUnknown)
"""Faults of a failed read. A read that failed for any reason, even a refusal, says nothing about the object. For a
writing call, handle `Refused` first; after the others the outcome is unknown, or the call is tried again."""


class Unreadable(Fault):
    """A stored record cannot be read: a newer version of the program wrote it, or it was damaged. The message names the
    field, and never its content."""

    def __init__(self, record: str, record_id: str, why: str) -> None:
        super().__init__(f"{record} {record_id} cannot be read: {why}")
        self.record_id = record_id
        self.why = why


class Stale(Fault):
    """A record changed since it was read; the use case reads and decides again."""


class Conflict(Fault):
    """The write would violate a unique rule. `rule` is its name in the storage's catalogue."""

    def __init__(self, rule: str) -> None:
        super().__init__(f"unique rule {rule} would be broken")
        self.rule = rule
