"""Texts of the dashboard: each key with its English and Russian text, so that neither can be missing."""

from collections.abc import Mapping

LANGUAGES: Mapping[str, str] = {"ru": "Русский", "en": "English"}

PAIRS: dict[str, tuple[str, str]] = {}


def add(pairs: Mapping[str, tuple[str, str]]) -> None:
    """Add the texts of a subject. Raises: ValueError for a key that another subject has."""
    repeated = pairs.keys() & PAIRS.keys()
    if repeated:
        raise ValueError(f"texts with two meanings: {sorted(repeated)}")
    PAIRS.update(pairs)


class Texts:
    """The texts in one language: `t("pages")`, with named values: `t("seen", when="…")`."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._index = 1 if language == "ru" else 0

    def __call__(self, key: str, **values: object) -> str:
        text = PAIRS[key][self._index]
        return text.format(**values) if values else text

    def of(self, prefix: str, code: str) -> str:
        """Return the text of a code, such as a status; the code itself if it has none."""
        found = PAIRS.get(f"{prefix}.{code}")
        return code.replace("_", " ") if found is None else found[self._index]


add(
    {
        "none": ("none", "нет"),
        "skip": ("Skip to content", "К содержанию"),
        "account": ("Account", "Аккаунт"),
        "menu": ("Menu", "Меню"),
        "pages": ("Pages", "Страницы"),
        "crumbs": ("You are here", "Вы здесь"),
        "language": ("Language", "Язык"),
        "zone": ("Times are Moscow time (UTC+3).", "Время московское (UTC+3)."),
        "band": ("Test mode: no real money moves.", "Тестовый режим: настоящие деньги не двигаются."),
        "mode.test": ("Test mode", "Тестовый режим"),
        "mode.live": ("Live mode", "Боевой режим"),
        "switch.test": ("Switch to test", "В тестовый"),
        "switch.live": ("Switch to live", "В боевой"),
        "newer": ("Newer", "Новее"),
        "older": ("Older", "Старше"),
        "filters": ("Filter", "Фильтр"),
        "show": ("Show", "Показать"),
        "hide": ("Hide", "Скрыть"),
        "filter": ("Filter", "Показать"),
        "reset": ("Reset", "Сбросить"),
        "all": ("All", "Все"),
        "yes": ("yes", "да"),
        "no": ("no", "нет"),
        "save": ("Save", "Сохранить"),
        "cancel": ("Cancel", "Отменить"),
        "back": ("Back", "Назад"),
        "copy": ("Copy", "Скопировать"),
        "copied": ("Copied", "Скопировано"),
        "filter.unknown": (
            "There is no “{value}” here: all are shown.",
            "Нет такого значения: «{value}». Показаны все.",
        ),
        "filter.date": ("“{value}” is not a date: all days are shown.", "«{value}» не дата. Показаны все дни."),
        "filter.order": (
            "It is before the first day: nothing can match.",
            "Это раньше первого дня: ничего не найдётся.",
        ),
        "details": ("Show as a table", "Показать таблицей"),
        "done": ("Done.", "Готово."),
        "date": ("Date", "Дата"),
        "status": ("Status", "Статус"),
        "amount": ("Amount", "Сумма"),
        "shop": ("Shop", "Магазин"),
        "order": ("Order", "Заказ"),
        "created": ("Created", "Создано"),
        "from": ("From", "С"),
        "to": ("To", "По"),
        "id": ("Id", "Номер"),
        "name": ("Name", "Название"),
        "reason": ("Reason", "Причина"),
        "set_up": ("Set it up", "Настроить"),
        "nothing": ("Nothing here yet.", "Пока ничего нет."),
        "not_found": ("Nothing matches the filter.", "По этому фильтру ничего не найдено."),
        "total": ("{total} in all", "Всего: {total}"),
        "error.title": ("That did not work", "Не получилось"),
        "error.404": ("Page not found", "Страница не найдена"),
        "error.403": ("No access", "Нет доступа"),
        "error.429": ("Too many requests", "Слишком много запросов"),
        "error.503": ("Temporarily unavailable", "Временно недоступно"),
        "error.503.text": (
            "The service does not answer at the moment. Try again in a minute.",
            "Сервис сейчас не отвечает. Повторите через минуту.",
        ),
        "error.500.text": (
            "Something broke on our side. Quote this request: {request}",
            "У нас что-то сломалось. Назовите этот запрос: {request}",
        ),
        "error.404.text": ("There is nothing at this address.", "По этому адресу ничего нет."),
        "error.who": ("Roles with this right: {roles}.", "Это право есть у ролей: {roles}."),
        "waits": (
            "Nothing was done yet: the service asks a second operator to confirm it.",
            "Пока ничего не сделано: это должен подтвердить второй оператор сервиса.",
        ),
        "home": ("Home", "Главная"),
        "to_home": ("To the home page", "На главную"),
    }
)
