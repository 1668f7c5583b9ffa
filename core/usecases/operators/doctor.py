"""Checks of `cambist doctor` on the storage, each with a name, a result and a remedy.

They write nothing and may run beside a working service. Each is quick however much is stored; the slow ones are in
thorough.py.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured
from ....ports.payouts import FindingSender
from ....ports.receipts import ReceiptNeed
from ....ports.storage import AtLeast
from ....ports.vault import VaultError
from ...domain.accounts.accounts import Account, Mode
from ...domain.accounts.written_bytes import MEGABYTE, WrittenBytes, day_of_bytes
from ...domain.payments.payments import Payment
from ...domain.webhooks.endpoints import EndpointKey
from ...domain.webhooks.events import DeliveryStatus
from ..common.encrypted import ENCRYPTED_FIELDS, EncryptedField
from ..common.quarantine import read_hold
from ..ledger.watch import ledger_faults
from ..recurring_jobs import missing_recurring_jobs
from ..vault_checks import vault_misfits
from .findings import Finding, failed, ok, warning
from .probes import CLOCK_OFF, clock_offset
from .provider_checks import check_providers, shortages
from .review import list_suspense
from .settlement_items import unsettled
from .unreadable import count_unreadable

CLOCK_WARNING = timedelta(seconds=1)
"""Maximum difference between two clocks without a warning."""
LATE_WARNING, LATE_FAILED = timedelta(seconds=30), timedelta(minutes=5)
"""Lateness of the oldest due job that causes a warning or a failure. Workers poll every second, and jobs of a dead
worker are reclaimed after 8 s."""
SAMPLE = 200
"""Number of records of each kind to decrypt, from both ends. `thorough` decrypts all."""

_MANY = 1000
_NAMED = 3
"""Maximum number of accounts that a finding names."""


Progress = Callable[[str], None]
"""Receives the progress of a long check, as text."""
Check = Callable[[Ports], Awaitable[Finding]]


def clocks_apart(ours: str, theirs: str, apart: timedelta) -> Finding:
    """Return the finding for this difference between two clocks."""
    seconds = abs(apart.total_seconds())
    message = f"{theirs} and {ours} are {seconds:.1f} s apart"
    remedy = "let both take their time from NTP (timedatectl, chronyc tracking)"
    if abs(apart) > CLOCK_OFF:
        return failed(message, remedy)
    return warning(message, remedy) if abs(apart) > CLOCK_WARNING else ok(message)


async def check_clock(ports: Ports) -> Finding:
    """Compare this machine's clock with the storage's, which decides when jobs are due."""
    return clocks_apart("this machine's clock", "the database's clock", await clock_offset(ports))


async def check_vault(ports: Ports) -> Finding:
    """Compare the pepper and keys with the database's, encrypt and decrypt a probe, and decrypt a sample of the stored
    values."""
    aad = "doctor.probe"
    if ports.vault.decrypt(ports.vault.encrypt(b"probe", aad), aad) != b"probe":
        return failed("what the vault seals, it opens as something else", "check CAMBIST_VAULT_KEY")
    differs = await vault_misfits(ports.storage, ports.vault)
    if differs:
        return failed(
            f"not those of this database: {listed(differs)}",
            "give CAMBIST_VAULT_KEY and CAMBIST_VAULT_PEPPER (or vault.key) as other processes have them, and restart",
        )
    opened: Counter[int] = Counter()
    for field in ENCRYPTED_FIELDS:
        for sealed, where in await _sample(ports, field):
            try:
                ports.vault.decrypt(sealed, where)
            except VaultError as error:
                return failed(
                    f"a stored {field.record.__name__}.{field.name} does not open: {error}",
                    "give CAMBIST_VAULT_KEY (or vault.key) all keys that were ever used; see `cambist vault status`",
                )
            opened[ports.vault.key_of(sealed)] += 1
    old = sorted(set(opened) - {ports.vault.current})
    message = f"key {ports.vault.current} seals, and {opened.total()} stored values that were looked at open"
    if old:
        return warning(f"{message}, some by older keys ({listed(old)})", "run `cambist vault reencrypt`")
    return ok(message)


async def _sample(ports: Ports, field: EncryptedField) -> list[tuple[bytes, str]]:
    async with ports.storage.unit() as unit:
        first = await unit[field.record].find(limit=SAMPLE, readable=True)
        last = await unit[field.record].find(order="-id", limit=SAMPLE, readable=True)
    found = {record.id: record for record in (*first, *last)}
    sealed = ((field.value(record), field.aad(record_id)) for record_id, record in found.items())
    return [(value, aad) for value, aad in sealed if value is not None]


async def check_jobs(ports: Ports) -> Finding:
    """Check that due jobs are being run."""
    due = await ports.storage.next_due()
    late = timedelta(0) if due is None else await ports.storage.now() - due
    if late <= LATE_WARNING:
        return ok("no job is late")
    message = f"the oldest due job waits for {late.total_seconds():.0f} s"
    remedy = "start a worker (`cambist serve` or `cambist worker`), or more of them; look for failing jobs in its log"
    return failed(message, remedy) if late > LATE_FAILED else warning(message, remedy)


async def check_standing(ports: Ports) -> Finding:
    """Check that all recurring jobs exist."""
    missing = await missing_recurring_jobs(ports)
    if not missing:
        return ok("every recurring job is there")
    message = f"recurring jobs are missing ({listed(missing)}): what they do is not done"
    remedy = "start a worker (`cambist serve` or `cambist worker`): it writes them within a minute, or logs why not"
    async with ports.storage.unit() as unit:
        unused = not await unit[Payment].find(limit=1)
    return warning(message, remedy) if unused else failed(message, remedy)


async def check_rows(ports: Ports) -> Finding:
    """Check that no row is known to be unreadable."""
    return of_rows(await count_unreadable(ports))


def of_rows(count: int) -> Finding:
    if not count:
        return ok("no row is known that cannot be read")
    return failed(
        f"{count} rows cannot be read: what they are about stands still, all else goes on",
        "`cambist unreadable list` names them; a newer version may read them, or a backup has them whole",
    )


async def check_deliveries(ports: Ports) -> Finding:
    """Check for failed deliveries: events that no receiver accepted."""
    given_up = 0
    async for batch in ports.storage.scan(Account, readable=True):
        async with ports.storage.unit() as unit:
            for account in batch:
                for mode in Mode:
                    for further in (None, *(ref.id for ref in account.further(mode))):
                        endpoint = EndpointKey(account.id, mode, further)
                        given_up += await unit[endpoint.deliveries].total(**endpoint.of_status(DeliveryStatus.FAILED))
    if not given_up:
        return ok("no delivery of the last 30 days was given up")
    return warning(
        f"{given_up} deliveries of the last 30 days were given up",
        "have the receivers fixed, then `cambist event resend`, for a further endpoint with --endpoint",
    )


async def check_suspense(ports: Ports) -> Finding:
    """Check for suspended transfers that wait for an operator."""
    waiting = len(await list_suspense(ports, limit=_MANY))
    if not waiting:
        return ok("no money waits in suspense")
    count = f"{waiting} or more" if waiting == _MANY else str(waiting)
    return warning(f"{count} transfers wait in suspense", "see `cambist payment suspense`, and return or resolve them")


async def check_settlement(ports: Ports) -> Finding:
    """Check that settlements passed over no paid payment."""
    async with ports.storage.unit() as unit:
        found = await unsettled(ports, unit)
    if not found:
        return ok("no paid payment was passed over")
    named = listed([each.object_id for each in found[:_NAMED]])
    remedy = "see the log and `cambist console`; run `cambist ledger verify` and stop payouts if it names them"
    text = f"{len(found)} paid payments are not settled, {named} first"
    return failed(text, remedy) if any(each.urgent for each in found) else warning(text, remedy)


async def check_ledger(ports: Ports) -> Finding:
    """Check the sum of all balances, and the newest entries."""
    faults = await ledger_faults(ports)
    if faults:
        remedy = "run `cambist ledger verify`, and stop payouts; if the vault's keys were lost, `cambist ledger retag`"
        return failed(f"the books do not hold: {'; '.join(faults)}", remedy)
    return ok("the balances sum to zero and the newest entries are as they were sealed")


async def check_webhooks(ports: Ports) -> Finding:
    """Check that webhook addresses are encrypted. Events contain what payers bought."""
    plain = [
        account.id
        async for batch in ports.storage.scan(Account, readable=True)
        for account in batch
        if (account.settings.webhook_url or "https://").startswith("http://")
    ]
    if not plain:
        return ok("every webhook address is https")
    shown = listed(plain[:5]) + (f" and {len(plain) - 5} more" if len(plain) > 5 else "")
    return warning(f"webhooks go unencrypted to {len(plain)} accounts: {shown}", "ask them for an https address")


async def check_wallets(ports: Ports) -> Finding:
    """Check that the wallet can report what it sent. Otherwise a restored database could send it again."""
    try:
        wallet = ports.senders.of_mode(Mode.LIVE.value)
    except NotConfigured:
        return ok("no wallet pays out in live mode")
    if isinstance(wallet, FindingSender):
        return ok(f"the wallet {wallet.name} can be asked what it sent")
    return warning(
        f"the wallet {wallet.name} cannot be asked what it sent: after a restore it may be made to pay a second time",
        "compare its payouts by hand before `cambist resume`, or give its adapter `find` (ports/payouts.py)",
    )


async def check_hold(ports: Ports) -> Finding:
    """Check for a quarantine. A copy sends no money until it has been compared with the providers."""
    installation = await read_hold(ports)
    if installation is None:
        return ok("money is sent")
    return failed(
        f"no live money is sent or settled since {installation.held_since:%Y-%m-%d %H:%M} UTC: {installation.told}",
        "stop whatever else works on another copy, compare with `cambist resume --dry-run`, then `cambist resume`",
    )


async def check_credentials(ports: Ports) -> Finding:
    """Check that the live providers accept our credentials."""
    checked = await check_providers(ports)
    told = "; ".join(f"{each}: {each.fault}" for each in checked if each.fault is not None)
    if any(isinstance(each.fault, NotConfigured) for each in checked):
        return failed(
            f"a provider does not take our credentials: {told}",
            "set those that it gave you for live mode, then restart; its gateway is down until it takes them",
        )
    if told:
        return warning(f"a provider did not say whether it takes our credentials: {told}", "look whether it is away")
    well = [str(each) for each in checked if each.is_checkable]
    unasked = [str(each) for each in checked if not each.is_checkable]
    message = f"our credentials are taken by {listed(well)}" if well else "no provider was asked"
    return ok(f"{message}; without a check: {listed(unasked)}" if unasked else message)


async def check_nodes(ports: Ports) -> Finding:
    """Check that enough nodes of each network answer. With several nodes configured, no single node is trusted, so
    money waits until enough of them agree."""
    few = await shortages(ports)
    if not few:
        return ok("of every network as many nodes answer as have to agree")
    told = "; ".join(f"{each.of}: {each.told}" for each in few)
    return failed(
        f"deposits, delivery proofs and payouts wait: {told}",
        "repair the nodes that are named, or set others: three of different owners go on when one is away",
    )


async def check_receipts(ports: Ports) -> Finding:
    """Check the accounts' receipt settings. A bank that requires receipts by 54-FZ refuses payments of an account
    without them."""
    banks = ports.banks.of_mode(Mode.LIVE)
    strict = [bank.name for bank in banks if bank.capabilities.receipts is ReceiptNeed.REQUIRED]
    if not strict:
        return ok("no bank of live mode requires receipts")
    lacking: list[str] = []
    async for batch in ports.storage.scan(Account, readable=True):
        lacking += [account.id for account in batch if account.settings.receipt_lacks(has_contact=True)]
    if not lacking:
        return ok(f"every account has settings for the receipts that {listed(strict)} requires")
    named = listed(lacking[:_NAMED]) + (f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else "")
    fate = "are refused" if len(strict) == len(banks) else "pass it by"
    return warning(
        f"{listed(strict)} requires receipts, for which accounts lack settings: {named}; their live payments {fate}",
        "`cambist account set ACCOUNT_ID receipt_tax_system=… receipt_vat=… receipt_subject=… receipt_mode=…`, as the"
        " merchant's bookkeeper says",
    )


async def check_data(ports: Ports) -> Finding:
    """Name the accounts that have written most since yesterday."""
    since = day_of_bytes(ports.clock.real() - timedelta(days=1))
    written: Counter[tuple[str, str]] = Counter()
    async for batch in ports.storage.scan(WrittenBytes, readable=True, id=AtLeast(since)):
        for row in batch:
            written[row.account_id, row.mode] += row.bytes
    if not written:
        return ok("no account has written anything since yesterday")
    most = [
        f"{account_id} {-(-size // MEGABYTE)} MB in {mode} mode" for (account_id, mode), size in written.most_common(3)
    ]
    return ok(f"requests have written {-(-written.total() // MEGABYTE)} MB since yesterday, most: {listed(most)}")


CHECKS: Mapping[str, Check] = {
    "hold": check_hold,
    "clock": check_clock,
    "vault": check_vault,
    "jobs": check_jobs,
    "standing": check_standing,
    "rows": check_rows,
    "deliveries": check_deliveries,
    "suspense": check_suspense,
    "settlement": check_settlement,
    "ledger": check_ledger,
    "webhooks": check_webhooks,
    "wallets": check_wallets,
    "credentials": check_credentials,
    "nodes": check_nodes,
    "receipts": check_receipts,
    "data": check_data,
}


def listed(values: "list[str] | list[int] | tuple[str, ...] | tuple[int, ...]") -> str:
    return ", ".join(str(value) for value in values)
