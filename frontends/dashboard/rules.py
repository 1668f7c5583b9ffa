"""Russian texts of validation errors: the field, and the rule that its value breaks. The rules themselves are in
English, because programs read them in the API."""

import re
from collections.abc import Iterable, Mapping

from ...core.domain.errors import FieldFault, Refusal

_FIELDS: Mapping[str, str] = {
    "actual_amount_rub": "Сумма",
    "alarm_email": "Почта для тревог",
    "amount_rub": "Сумма",
    "auto_return": "Возвращать автоматически",
    "csrf": "Форма",
    "description": "Описание",
    "email": "Эл. почта",
    "event_types": "Какие события",
    "from": "С",
    "headers": "Свои заголовки",
    "outcome": "Исход",
    "payout_wallet": "Кошелёк для выплат",
    "proof_reminders": "Напоминания",
    "reason": "Причина",
    "return_url": "Адрес возврата",
    "seconds": "Часы",
    "shop_id": "Магазин",
    "to": "По",
    "url": "Адрес",
    "webhook_events": "Какие события",
    "webhook_secret": "Секрет",
    "webhook_url": "Адрес",
}
"""Names of the fields, as the pages label them."""

_RULES: tuple[tuple[str, str], ...] = (
    (
        r"must be a decimal string with up to (\d+) decimals(?: and up to 10 digits before the point: .*)?",
        "число, после точки не больше {0} знаков, до точки не больше 10",
    ),
    (r"must be above zero", "больше нуля"),
    (r"must be true or false", "да или нет"),
    (r"must be one of: (.+)", "одно из: {0}"),
    (r"must be some of: (.+)", "некоторые из: {0}"),
    (r"must name at least one type of events", "хотя бы один вид событий"),
    (r"must differ from the payment's amount", "другая, чем сумма платежа"),
    (
        r"must be an http or https URL of at most (\d+) ASCII characters, without user and password",
        "адрес http или https, не длиннее {0} латинских знаков, без имени и пароля",
    ),
    (
        r"must be an http or https URL of at most (\d+) ASCII characters, without user and password; write (.+)",
        "адрес http или https, не длиннее {0} латинских знаков, без имени и пароля; напишите {1}",
    ),
    (r"must be https in live mode", "в боевом режиме только https"),
    (r"must be an e-mail address", "адрес эл. почты, например olga@shop.example"),
    (r"must be an e-mail address in ASCII", "адрес эл. почты латинскими буквами, например olga@shop.example"),
    (
        r"must be 16 to 256 printable ASCII characters without spaces",
        "от 16 до 256 латинских букв, цифр и знаков без пробелов",
    ),
    (
        r"must be an address of TRON, .+",
        "адрес TRON (34 знака, первый T) или Ethereum и BNB Smart Chain (0x и 40 знаков), без опечаток",
    ),
    (
        r"must not be USDT's own contract, or an address to which nobody has the key",
        "не контракт самого USDT и не адрес, ключа к которому ни у кого нет",
    ),
    (
        r"must not be a wallet or a deposit address of this service",
        "не кошелёк и не адрес для пополнения этого сервиса",
    ),
    (r"must be later than from", "позже начала"),
    (r"must be a UUID", "номер вида 01a21ea4-2c55-7c99-82bc-e03e87ee0495"),
    (r"must be ISO 8601 with a time zone, .+", "дата и время с часовым поясом"),
    (r"has at most (\d+) characters", "не длиннее {0} знаков"),
    (r"has at most (\d+) characters, none of control", "не длиннее {0} знаков, без управляющих"),
    (r"has no control characters", "без управляющих знаков"),
    (r"has at most (\d+) headers", "не больше {0} заголовков"),
    (
        r"a name has 1 to (\d+) letters, digits and dashes, like X-Token",
        "название из латинских букв, цифр и дефисов, не длиннее {0}, например X-Token",
    ),
    (r"(.+) is set by the service; choose another name", "{0} задаёт сам сервис, выберите другое название"),
    (r"(.+) occurs twice", "{0} встречается дважды"),
    (
        r"the value of (.+) must be one line of 1 to (\d+) ASCII characters",
        "значение {0}: одна строка, от 1 до {1} латинских знаков",
    ),
    (r"the clock moves forward only", "время идёт только вперёд"),
    (r"at most (\d+) days at once", "не больше {0} дней за раз"),
    (r"at most up to (\S+)", "не позже {0}"),
)
"""Validation messages in English, as patterns that match the whole message, and their Russian texts."""

_SENTENCES: tuple[tuple[str, str], ...] = (
    (
        r"A password has (\d+) to (\d+) characters: take a sentence",
        "Длина пароля от {0} до {1} знаков: возьмите целую фразу.",
    ),
    (
        r"This password consists of what guessing programs try first: .+",
        "Пароль состоит из того, что подбирают первым: частых слов, рядов клавиш, цифр. Придумайте другой, например "
        "четыре случайных слова.",
    ),
    (
        r"This password consists of your address or the account's name: .+",
        "Пароль состоит из вашего адреса или названия аккаунта. Придумайте другой, например четыре случайных слова.",
    ),
    (
        r"This is not an e-mail address: write it like olga@shop\.example",
        "«Эл. почта»: нужен адрес вида olga@shop.example.",
    ),
    (
        r"A key's name has 1 to (\d+) letters, digits, dots, dashes and underscores",
        "«Название» ключа: от 1 до {0} латинских букв, цифр, точек, дефисов и подчёркиваний.",
    ),
    (r"Rights are some of: (.+)", "«Права»: выберите хотя бы одно из: {0}."),
    (r"A key has 1 to (\d+) addresses", "«Адреса» ключа: от 1 до {0}."),
    (
        r"An address is one of IPv4 or IPv6, or a network such as 203\.0\.113\.0/24",
        "«Адреса» ключа: адрес IPv4 или IPv6 либо сеть, например 203.0.113.0/24.",
    ),
    (r".+ name has 1 to (\d+) characters", "«Название»: от 1 до {0} знаков."),
    (r".+ name has no control characters", "«Название»: без управляющих знаков."),
    (
        r"The account has a shop of this name already \(case does not count\)",
        "«Название»: магазин с таким названием уже есть, регистр не важен.",
    ),
    (r"A name has at most (\d+) characters", "«Название»: не длиннее {0} знаков."),
    (r"A reason has 1 to (\d+) printable characters", "«Причина»: от 1 до {0} знаков."),
    (r"A reason has at most (\d+) printable characters", "«Причина»: не длиннее {0} знаков."),
    (r"overlap is from 0 to (\d+) days", "Прежний ключ действует ещё от 0 до {0} дней."),
    (r"The language is en or ru", "«Язык»: русский или английский."),
    (r"Idempotency-Key must be a valid UUID", "Форма устарела: откройте страницу заново."),
    (r"(\S+) is set by the operator of the service", "Это меняет только оператор сервиса: {0}."),
    (r"A note has 1 to (\d+) printable characters", "«Заметка»: от 1 до {0} знаков."),
    (r"The end must be later than the beginning", "Конец периода должен быть позже начала."),
    (r"Events are kept for (\d+) days: choose a later span", "События хранятся {0} дней: выберите период позже."),
    (r"Give a whole number of hours", "«Часы»: целое число, от 1 до 5 цифр."),
    (r"Give either seconds or to", "«Часы»: целое число."),
    (
        r"Write each header once, as a line `Name: value`",
        "«Свои заголовки»: каждый один раз, строкой вида «Название: значение».",
    ),
    (r"(\S+) was sent twice", "Поле {0} пришло дважды: откройте страницу заново."),
    (r"The form cannot be read", "Форму не удалось прочитать: откройте страницу заново."),
    (
        r"The form contains characters that no field accepts",
        "В форме есть знаки, которых не принимает ни одно поле: наберите текст заново.",
    ),
)
"""The same for messages that do not begin with a field's name."""


def in_russian(refusal: Refusal) -> str | None:
    """Return the fields of a VALIDATION_ERROR and the rules that they break, in Russian. None: it has no such text."""
    faults = refusal.details
    if isinstance(faults, list | tuple) and faults:
        return " ".join(f"«{_FIELDS.get(each.path, each.path)}»: {_rule(each)}." for each in faults)
    return _translated(refusal.message, _SENTENCES)


def _rule(fault: FieldFault) -> str:
    return _translated(fault.message, _RULES) or fault.message


def _translated(message: str, pairs: Iterable[tuple[str, str]]) -> str | None:
    for pattern, russian in pairs:
        found = re.fullmatch(pattern, message)
        if found is not None:
            return russian.format(*found.groups())
    return None
