"""Texts of the pages under `/docs` around their content, in each language of the guides."""

from collections.abc import Mapping

import msgspec


class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of one language."""

    name: str
    """Name of the language, in that language."""
    guides: str
    reference: str
    contents: str
    here: str
    skip: str
    search: str
    search_label: str
    nothing: str
    light: str
    copy: str
    copied: str
    not_copied: str
    selected: str
    before: str
    after: str
    language: str
    groups: Mapping[str, str]


TEXTS: Mapping[str, Texts] = {
    "en": Texts(
        name="English",
        guides="Guides",
        reference="API reference",
        contents="Contents",
        here="On this page",
        skip="Skip to the text",
        search="Search: refund, AMOUNT_BELOW_MINIMUM, payer_name",
        search_label="Search guides, operations, fields and error codes",
        nothing="Nothing found.",
        light="Light or dark",
        copy="Copy",
        copied="Copied",
        not_copied="Not copied",
        selected="Selected",
        before="Before",
        after="Next",
        language="Language",
        groups={
            "start": "Start",
            "money": "Take money",
            "events": "Know what happens",
            "build": "Build and test",
        },
    ),
    "ru": Texts(
        name="Русский",
        guides="Руководство",
        reference="Справочник",
        contents="Содержание",
        here="На этой странице",
        skip="Перейти к тексту",
        search="Поиск: возврат, AMOUNT_BELOW_MINIMUM, payer_name",
        search_label="Поиск по руководству, операциям, полям и кодам ошибок",
        nothing="Ничего не найдено.",
        light="Светлая или тёмная тема",
        copy="Копировать",
        copied="Скопировано",
        not_copied="Не удалось",
        selected="Выделено",
        before="Назад",
        after="Далее",
        language="Язык",
        groups={
            "start": "Начало работы",
            "money": "Приём денег",
            "events": "Что происходит с деньгами",
            "build": "Разработка и проверка",
        },
    ),
}

SYNONYMS: Mapping[str, str] = {
    "client": "sdk library package клиент библиотека",
    "concepts#amounts-and-times": "currency currencies roubles kopecks cents валюта копейки",
    "concepts#idempotency": "duplicate twice double retry дважды повтор",
    "concepts#keys-with-fewer-rights": "permission restricted scope права",
    "coming-from-stripe": "migrate migration",
    "coming-from-yookassa": "migrate migration переезд",
    "limits": "throttle quota rate limit 429 лимит",
    "mcp": "ai agent assistant llm",
    "payments#how-it-ends": "cancel payment void abort отменить отмена платежа",
    "payments#receipts": "54-fz vat tax fiscal чек ндс",
    "quickstart": "install getting started tutorial установка",
    "receipts": "54-fz vat tax fiscal cash register чек ндс касса",
    "refunds#asking-for-one": "money back return chargeback вернуть деньги",
    "sandbox#amounts-that-act-by-themselves": "test card cards number decline тестовая карта",
    "settlement#payouts": "withdraw withdrawal вывод",
    "subscriptions": "recurring autopayment mandate автоплатёж рекуррентный",
    "subscriptions#changing-and-ending": "cancel subscription unsubscribe отменить подписку",
    "versioning#the-api": "postman bruno insomnia collection openapi swagger",
    "webhooks": "notification callback уведомления",
    "webhooks#the-signature": "verify signature hmac authentic secret проверить подпись",
    "webhooks#when-nothing-comes": "missing lost not received debug не приходит",
}
"""Words for which readers search beside those of the text, in both languages: by page, or by page and section."""
