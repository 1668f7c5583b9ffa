"""What can go wrong beyond a port, in the few words that the core decides by.

An operation at a provider has three ends: done, refused for certain, unknown. The faults keep them apart, because only
the middle one may be tried again elsewhere (ARCHITECTURE.md "Three ends").
"""


class Fault(Exception):
    """A port could not do what it was asked. The message is for operators, never for merchants."""


class Refused(Fault):
    """A definite no: nothing happened, no money moved. `reason` is a word of the port's own vocabulary."""

    def __init__(self, message: str, *, reason: str = "unknown") -> None:
        super().__init__(message)
        self.reason = reason


class OutcomeUnknown(Fault):
    """It may have happened. Only the same operation id may be repeated, or asked for; never another route."""


class Unavailable(Fault):
    """It was certainly not executed: no connection, a limit, a failed read. `retry_after` in seconds, when known."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BulkheadFull(Unavailable):
    """So many calls wait for this provider already that this one was not begun."""


class Held(Unavailable):
    """Nothing that sends money runs, because the database is a copy that nobody has compared with the world yet
    (core/domain/installation.py): not executed, and of no provider's doing."""


class NotConfigured(Fault):
    """The adapter has no credentials or the feature is off at the provider."""


class NotSupported(Fault):
    """The adapter cannot do this at all."""


class Forged(Fault):
    """A notice that the provider did not send: its signature is wrong, or it is no notice at all."""


NO_ANSWER = (Unavailable, NotConfigured, NotSupported, Refused, OutcomeUnknown)
"""A read that failed, for whatever reason, a refusal among them, says nothing about what was asked for. Of an operation
the same holds, once `Refused` was told apart: nobody knows, or it is tried again."""


class Unreadable(Fault):
    """A stored record cannot be read: a newer program wrote it, or it was damaged. It names the field, and never what
    is in it."""

    def __init__(self, record: str, record_id: str, why: str) -> None:
        super().__init__(f"{record} {record_id} cannot be read: {why}")
        self.record_id = record_id
        self.why = why


class Stale(Fault):
    """A record changed since it was read; the use case reads again and decides again."""


class Conflict(Fault):
    """A unique rule would be broken. `rule` names it as the storage's catalogue does."""

    def __init__(self, rule: str) -> None:
        super().__init__(f"unique rule {rule} would be broken")
        self.rule = rule
