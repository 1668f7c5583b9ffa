"""Texts of notifications by language and kind: a headline, which is the subject of a single one, and a line below."""

from collections import Counter
from collections.abc import Mapping, Sequence

from ..accounts.accounts import Mode
from .notifications import Notification

LINES = 20
"""Notifications that a summary lists one by one; of the others it says how many there are."""

Texts = Mapping[str, tuple[str, str]]

_EN: Texts = {
    "refund_done": ("Refund of {amount} is done", "Refund {object} of payment {payment}"),
    "payout_sent": ("Payout of {amount} was sent", "Payout {object}, network {network}, transaction {transaction}"),
    "mismatch": ("{amount} is under review", "{object}: {reason}"),
    "endpoint_dead": (
        "A webhook endpoint does not accept webhooks",
        "Endpoint {endpoint}, since {since}. Events wait up to a week; check your receiver.",
    ),
    "daily_sum": (
        "{day}: {taken}, payments: {payments}",
        "Refunds: {refunds}. Payouts: {payouts}, {paid_out}. Available: {available}. Awaiting settlement: {pending}.\n"
        "Register: {register}",
    ),
}

_RU: Texts = {
    "refund_done": ("Возврат на {amount} выполнен", "Возврат {object} по платежу {payment}"),
    "payout_sent": ("Выплата {amount} отправлена", "Выплата {object}, сеть {network}, транзакция {transaction}"),
    "mismatch": ("{amount} на проверке", "{object}: {reason}"),
    "endpoint_dead": (
        "Адрес вебхуков не принимает вебхуки",
        "Адрес {endpoint}, с {since}. События ждут до недели; проверьте приёмник.",
    ),
    "daily_sum": (
        "{day}: {taken}, платежей: {payments}",
        "Возвраты: {refunds}. Выплаты: {payouts}, {paid_out}. Доступно: {available}. Ждёт зачисления: {pending}.\n"
        "Реестр: {register}",
    ),
}

TEXTS: Mapping[str, Texts] = {"en": _EN, "ru": _RU}

KINDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "refund_done": "refunds done",
        "payout_sent": "payouts sent",
        "mismatch": "amounts under review",
        "endpoint_dead": "dead webhook endpoints",
        "daily_sum": "daily sums",
    },
    "ru": {
        "refund_done": "выполнено возвратов",
        "payout_sent": "отправлено выплат",
        "mismatch": "сумм на проверке",
        "endpoint_dead": "недоступных адресов вебхуков",
        "daily_sum": "итогов за день",
    },
}
"""Kinds in summaries."""

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "amount": "the payer sent another amount than the payment's",
        "suspense": "the money fits no open payment; the operator of the service reviews it",
        "difference": "the bank's list differs from our records",
        "own": "of the account",
    },
    "ru": {
        "amount": "плательщик перевёл не ту сумму",
        "suspense": "деньги не подходят к открытому платежу; их проверяет оператор сервиса",
        "difference": "список банка расходится с нашими записями",
        "own": "аккаунта",
    },
}
"""Details of notifications that are words, in the record as `=name`."""

_FRAME: Mapping[str, Mapping[str, str]] = {
    "en": {
        "test": "[test] ",
        "summary": "{account}: {count} notifications",
        "more": "and {count} more",
        "shops": "By shop (payments in brackets):",
        "settings": "Choose what you get: {link}",
        "stop": "No more such messages about {account}: {link}",
    },
    "ru": {
        "test": "[тест] ",
        "summary": "{account}: уведомлений {count}",
        "more": "и ещё {count}",
        "shops": "По магазинам (в скобках платежи):",
        "settings": "Выбрать уведомления: {link}",
        "stop": "Больше не присылать уведомления об аккаунте «{account}»: {link}",
    },
}


def message_of(
    language: str, account: str, rows: Sequence[Notification], *, settings: str, stop: str
) -> tuple[str, str]:
    """Return subject and text of one message about these notifications. `settings` and `stop`: addresses of the page of
    preferences, and of the one that unsubscribes."""
    frame = _FRAME[language]
    parts = [_lines(language, row) for row in rows]
    if len(rows) == 1:
        subject = f"{account}: {parts[0][0]}"
        body = parts[0][1]
    else:
        subject = frame["summary"].format(account=account, count=len(rows))
        counts = Counter(row.kind for row in rows)
        totals = [f"{KINDS[language][kind]}: {count}" for kind, count in counts.items()]
        listed = ["\n".join(part) for part in parts[:LINES]]
        more = [frame["more"].format(count=len(rows) - LINES)] if len(rows) > LINES else []
        body = "\n\n".join(["\n".join(totals), *listed, *more])
    foot = [frame["settings"].format(link=settings), frame["stop"].format(account=account, link=stop)]
    return subject, "\n\n".join([body, "\n".join(foot)]) + "\n"


def _lines(language: str, row: Notification) -> tuple[str, str]:
    words = WORDS[language]
    values = {
        name: words.get(value.removeprefix("="), value) if value.startswith("=") else value
        for name, value in row.details.items()
    }
    test = _FRAME[language]["test"] if row.mode is Mode.TEST else ""
    first, further = TEXTS[language][row.kind]
    shops = f"\n{_FRAME[language]['shops']}\n{values['shops']}" if values.get("shops") else ""
    return test + first.format(**values), further.format(**values) + shops
