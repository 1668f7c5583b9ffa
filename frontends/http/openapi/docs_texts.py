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
