"""Mutants of the foundations: keys, jobs and their leases, webhooks, the storage's units."""

from tests.mutants import Mutant
from tests.simulation.mutants.slips import Slip, at, domain, slip, usecase

_MEMORY = "adapters/storage/memory/memory.py"
_LOOP = "frontends/worker/loop.py"

KEYS: dict[str, Slip] = {
    "a key is not written down": usecase(
        "payments/payments",
        "            unit[IdempotencyKey].add(lock(payment.id))\n            add_payment",
        "            lock(payment.id)\n            add_payment",
    ),
    "the key of a refund is not written down": usecase(
        "refunds/refunds",
        "            unit[IdempotencyKey].add(key_record)\n            applicant =",
        "            key_record.id.strip()\n            applicant =",
    ),
    "the key of a charge is not written down": usecase(
        "subscriptions/charges", "    unit[IdempotencyKey].add(key)\n    cart, private", "    cart, private"
    ),
    "the later of two requests with one key fails": usecase(
        "common/idempotency", "if conflict.rule not in (KEY_TAKEN, id_rule):", "if conflict.rule == KEY_TAKEN:"
    ),
    "a repeat does not wait for the request that creates": usecase(
        "common/idempotency", "if found is None or is_made(found):", "if found is None or found is not None:"
    ),
    "the keys of all merchants are one": domain(
        "accounts/idempotency", 'blake2b(f"{account_id}:{mode}"', 'blake2b(f"{mode}"'
    ),
    "a payment is shown to every merchant who knows its id": usecase(
        "payments/payments",
        "    if payment is None or payment.account_id != caller.account_id or payment.mode is not caller.mode:",
        "    if payment is None:",
    ),
    "a refund is shown to every merchant who knows its id": usecase(
        "refunds/refunds",
        "    if refund is None or (refund.account_id, refund.mode) != (caller.account_id, caller.mode):",
        "    if refund is None:",
    ),
    "test keys see what is live": usecase(
        "payments/payments",
        "payment.account_id != caller.account_id or payment.mode is not caller.mode:",
        "payment.account_id != caller.account_id:",
    ),
}

JOBS: dict[str, Slip] = {
    "a notification is answered and not kept": usecase(
        "notification_intake", "    await _keep(ports, adapter, operations)\n    return", "    return"
    ),
    "a save overwrites what others saved": at(
        "adapters/storage/memory/rows.py",
        'if row is None or (version is not None and row[self.mapped.codec.index["version"]] != version):',
        "if row is None:",
    ),
    "a lost commit is done again": usecase(
        "common/units", "            except Stale as stale:\n", "            except (Stale, Unavailable) as stale:\n"
    ),
    "a worker ends a job that it lost": usecase(
        "common/schedule",
        "return present is not None and (present.version, present.created_at) == (job.version, job.created_at)",
        "return present is not None",
    ),
    "a claim leaves no mark": at(
        _MEMORY,
        '            row[index["attempts"]] += 1\n            row[index["version"]] += 1\n',
        '            row[index["attempts"]] += 1\n',
    ),
    "a lease is never renewed": at(
        _LOOP,
        "                await self._ports.storage.renew(jobs, WORKER_LEASE)\n",
        "                jobs.sort(key=lambda job: job.id)\n",
    ),
    "a job that failed is gone": usecase(
        "jobs", "                set_due(unit, present, due)\n", "                set_due(unit, present, None)\n"
    ),
    "a job is acknowledged before its work": slip(
        Mutant(
            "core/usecases/operations/engine.py",
            "    begun = await begin(row, ports, job.argument)\n",
            "    await reschedule_at(ports, job, None)\n    begun = await begin(row, ports, job.argument)\n",
        ),
        Mutant(
            "core/usecases/operations/engine.py",
            "import reschedule\n",
            "import reschedule, reschedule_at\n",
        ),
    ),
    "a job that was tried three times is not due again": usecase(
        "common/schedule",
        "        set_due(unit, present, await next_due(unit), anew=anew)\n",
        "        set_due(unit, present, None if job.attempts > 2 else await next_due(unit), anew=anew)\n",
    ),
}

WEBHOOKS: dict[str, Slip] = {
    "every answer of a receiver is good": domain(
        "webhooks/delivery",
        "probe, good, status, delivered_at = outcome.probe, outcome.good,",
        "probe, good, status, delivered_at = outcome.probe, True,",
    ),
    "each attempt has another webhook id": domain(
        "webhooks/signing", '"X-Webhook-Id": event_id,', '"X-Webhook-Id": f"{event_id}-{timestamp}",'
    ),
    "a webhook that failed is not tried again": domain(
        "webhooks/delivery", "    if made <= len(FAST_BACKOFF):\n", "    if made < 1:\n"
    ),
    "a worker that leaves a receiver misses a request made meanwhile": usecase(
        "webhooks/results",
        "        if left:\n            unit[Job].remove(job)\n",
        "        if left and (present := await unit[Job].get(job.id)) is not None:\n"
        "            unit[Job].remove(present)\n",
    ),
    "the timer forgets what is due later": usecase(
        "webhooks/results", "        if next_due:\n", "        if next_due and next_due[0].attempts > 1:\n"
    ),
    "a failure sets no timer": usecase(
        "webhooks/results",
        "            if after.due is not None and after.due > each.outcome.ended_at:\n",
        "            if after.due is not None and after.due > each.outcome.ended_at and after.attempts > 1:\n",
    ),
    "a breaker that is open stays so": domain(
        "webhooks/breaker",
        "    if not breaker.failures and by_hand_at is None:\n        return breaker\n",
        "    if (not breaker.failures or breaker.is_open) and by_hand_at is None:\n        return breaker\n",
    ),
}
