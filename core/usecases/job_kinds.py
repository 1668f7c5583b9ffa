"""Kinds of durable jobs, one row each, with their handlers and the records they follow. jobs.py builds its handlers
from these rows, and sandbox/forgetting.py its deletions.

The job that advances a test clock is in jobs.py, because it runs other jobs. So is the job that sends alarms, because
it reads everything.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from ...ports.bundle import Ports
from ...ports.jobs import Job
from ..domain.exchanges.exchanges import Exchange
from ..domain.exchanges.funds import ExchangeTransfer
from ..domain.payments.payments import Payment
from ..domain.refunds.refunds import Refund
from ..domain.settlement.withdrawals import Withdrawal
from ..domain.subscriptions.subscriptions import Subscription
from .accounts.request_pruning import PRUNE, prune
from .exchanges.progress import watch_exchange
from .exchanges.return_progress import carry_return
from .exchanges.return_steps import RETURN_EXCHANGE
from .exchanges.steps import WATCH_EXCHANGE
from .exports.exports import WRITE
from .exports.writing import write_export
from .gateways.announcements import HOLD, TELL, tell_accounts, tell_if_held
from .gateways.members import READ_MEMBERS, read_members
from .kyc.uploads import TIDY_UPLOAD, tidy_upload
from .ledger.ledger import EXTEND_CHAINS, extend_chains
from .notification_intake import HEAR, follow_notification
from .operation_kinds import FOLLOWED
from .operations.engine import follow as follow_operation
from .payments.charge_effects import EXHAUST, tell_if_exhausted
from .payments.opening import WATCH
from .payments.progress import watch
from .payments.proof_checks import check
from .payments.proof_reminders import REMIND, remind
from .payments.proofs import CHECK
from .people.letters import SEND, send_letter
from .people.notifications import NOTIFY
from .people.notifying import begin_daily_sums, send_notifications, spread_event
from .people.resets import RESET, send_reset
from .people.telegram import ASK_BOT, ask_bot
from .person_events import SPREAD
from .reconciliation.nightly import COMPARE, NIGHTLY, begin_night, compare_day
from .recurring_jobs import DAILY_HEADS, DAILY_REPORTS, DAILY_SUMS
from .refunds.giving_up import give_up
from .refunds.steps import GIVE_UP
from .reports.proofs import make_heads
from .reports.writing import CLOSE_DAYS, WRITE_REPORT, close_days, open_daily_reports, write_report
from .retention import RETAIN, retain
from .settlement.days import OWN_DAILY, open_own_daily
from .settlement.settlement import DAILY, SETTLE, open_daily, settle_job
from .settlement.withdrawal_progress import EXECUTE, execute
from .subscriptions.binding_progress import watch_binding
from .subscriptions.binding_withdrawal import WITHDRAW, withdraw
from .subscriptions.bindings import WATCH_BINDING
from .subscriptions.mandate_end import REVOKE, revoke
from .subscriptions.watch import WATCH_SUBSCRIPTION, watch_subscription
from .webhooks.dispatcher import deliver
from .webhooks.endpoints import DROP, drop_rest
from .webhooks.feed import TIDY, tidy
from .webhooks.outbox import DELIVER, RELEASE, RELEASE_TO, release_held, release_held_to
from .webhooks.resends import RESEND, RESEND_TO, resend_batch
from .webhooks.results import TIMER, ring

Handler = Callable[[Ports, Job], Awaitable[None]]
"""Runs a claimed job in its time. At the end it reschedules or removes the job."""


class JobKind(msgspec.Struct, frozen=True):
    """A kind of job and its handler. `follows`: the kind of record with one job each, whose id ends in the record's id.
    Such a job is deleted with an account's test data. None: the job follows no merchant's object, and ends by itself or
    never."""

    kind: str
    handler: Handler
    follows: type[Any] | None = None


JOB_KINDS = (
    *(JobKind(row.follow_up.kind, partial(follow_operation, row), row.record) for row in FOLLOWED),
    JobKind(GIVE_UP.kind, give_up, Refund),
    JobKind(WATCH.kind, watch, Payment),
    JobKind(WATCH_BINDING.kind, watch_binding, Payment),
    JobKind(WITHDRAW.kind, withdraw, Payment),
    JobKind(CHECK.kind, check, Payment),
    JobKind(REMIND.kind, remind, Payment),
    JobKind(WATCH_SUBSCRIPTION.kind, watch_subscription, Subscription),
    JobKind(EXHAUST.kind, tell_if_exhausted, Subscription),
    JobKind(REVOKE.kind, revoke, Subscription),
    JobKind(EXECUTE.kind, execute, Withdrawal),
    JobKind(WATCH_EXCHANGE.kind, watch_exchange, Exchange),
    JobKind(RETURN_EXCHANGE.kind, carry_return, ExchangeTransfer),
    JobKind(HEAR.kind, follow_notification),
    JobKind(DELIVER, deliver),
    JobKind(TIMER, ring),
    JobKind(RELEASE.kind, release_held),
    JobKind(RELEASE_TO.kind, release_held_to),
    JobKind(DROP.kind, drop_rest),
    JobKind(RESEND, resend_batch),
    JobKind(RESEND_TO, resend_batch),
    JobKind(RETAIN, retain),
    JobKind(PRUNE, prune),
    JobKind(TIDY, tidy),
    JobKind(HOLD.kind, tell_if_held),
    JobKind(TELL, tell_accounts),
    JobKind(READ_MEMBERS.kind, read_members),
    JobKind(EXTEND_CHAINS, extend_chains),
    JobKind(DAILY, open_daily),
    JobKind(SETTLE, settle_job),
    JobKind(NIGHTLY, begin_night),
    JobKind(COMPARE.kind, compare_day),
    JobKind(OWN_DAILY.kind, open_own_daily),
    JobKind(TIDY_UPLOAD, tidy_upload),
    JobKind(SEND.kind, send_letter),
    JobKind(RESET.kind, send_reset),
    JobKind(WRITE.kind, write_export),
    JobKind(DAILY_REPORTS, open_daily_reports),
    JobKind(DAILY_HEADS, make_heads),
    JobKind(CLOSE_DAYS.kind, close_days),
    JobKind(WRITE_REPORT.kind, write_report),
    JobKind(SPREAD.kind, spread_event),
    JobKind(NOTIFY.kind, send_notifications),
    JobKind(DAILY_SUMS, begin_daily_sums),
    JobKind(ASK_BOT.kind, ask_bot),
)
"""All kinds. A new kind is a new row here."""
