"""Texts of refused forms in both languages: the field, and the rule that its value breaks. The API's own messages are
for programs; here they are the patterns by which a text is found."""

import re
from collections.abc import Iterable, Mapping

from ...core.domain.errors import FieldFault, Refusal
from .texts import PAIRS, Texts, add

add(
    {
        "error.ACCOUNT_MOVING": (
            "The account is being moved to other servers: try again in some seconds.",
            "Аккаунт переносят на другие серверы: повторите через несколько секунд.",
        ),
        "error.ACCOUNT_NOT_FOUND": ("There is no such account.", "Такого аккаунта нет."),
        "error.ACTION_NOT_FOUND": ("There is no such request.", "Такого запроса нет."),
        "error.CLIENT_BLOCKED": ("This client is blocked.", "Этот клиент заблокирован."),
        "error.EXCHANGE_NOT_FOUND": (
            "There is no such exchange in this account and mode.",
            "Такого обмена нет в этом аккаунте и режиме.",
        ),
        "error.FEATURE_DISABLED": ("The operator has switched this off.", "Оператор сервиса это выключил."),
        "error.IDEMPOTENCY_KEY_REUSED": (
            "This form was sent before with other values: open the page again.",
            "Форма уже отправлена с другими значениями: откройте страницу заново.",
        ),
        "error.IDEMPOTENCY_TERMINAL": (
            "This form was refused before: open the page again.",
            "Эта форма уже была отклонена: откройте страницу заново.",
        ),
        "error.INTERNAL_ERROR": ("Something broke on our side.", "У нас что-то сломалось."),
        "error.KEY_RIGHT_MISSING": (
            "Your role does not have the right to do this.",
            "У вашей роли нет такого права.",
        ),
        "error.PARTIAL_BEFORE_SETTLEMENT": (
            "Before the settlement this payment can only be refunded whole.",
            "До расчёта этот платёж возвращается только целиком.",
        ),
        "error.PAYLOAD_TOO_LARGE": ("The form is too large.", "Форма слишком большая."),
        "error.PROVIDER_ERROR": ("The bank refused it.", "Банк отказал."),
        "error.PROVIDER_NOT_CONFIGURED": (
            "The operator has connected nothing for this.",
            "Оператор сервиса это ещё не подключил.",
        ),
        "error.PROVIDER_UNAVAILABLE": (
            "The other side does not answer at the moment. Try again in a minute.",
            "Другая сторона сейчас не отвечает. Повторите через минуту.",
        ),
        "error.RATE_LIMIT_EXCEEDED": ("Too many requests: wait a little.", "Слишком много запросов: подождите."),
        "error.RECURRING_NOT_SUPPORTED": (
            "No bank of this account makes subscriptions.",
            "Ни один банк этого аккаунта не делает подписок.",
        ),
        "error.SECOND_PERSON_NEEDED": (
            "Another person of the account has to approve it.",
            "Это должен одобрить другой человек из аккаунта.",
        ),
        "error.SETTLEMENT_NOT_FOUND": (
            "There is no such settlement in this account and mode.",
            "Такого расчёта нет в этом аккаунте и режиме.",
        ),
        "error.STEP_UP_NEEDED": ("Confirm that it is you.", "Подтвердите, что это вы."),
        "error.SUBSCRIPTION_NOT_FOUND": (
            "There is no such subscription in this account and mode.",
            "Такой подписки нет в этом аккаунте и режиме.",
        ),
        "error.Unauthorized": ("Sign in first.", "Сначала войдите."),
        "error.WITHDRAWAL_NOT_FOUND": (
            "There is no such payout in this account and mode.",
            "Такой выплаты нет в этом аккаунте и режиме.",
        ),
    }
)
"""Refusals that several pages can get. A page's own ones stand with the page."""

_FIELDS: Mapping[str, str] = {
    "actual_amount_rub": "amount",
    "alarm_email": "settings.alarm",
    "amount_max_rub": "paylink.amount_max",
    "amount_min_rub": "paylink.amount_min",
    "amount_rub": "amount",
    "brand_color": "brand.color",
    "brand_contact": "brand.contact",
    "brand_success_text": "brand.success",
    "logo": "brand.logo",
    "auto_return": "settings.auto_return",
    "description": "hook.description",
    "email": "people.mail",
    "event_types": "hook.types",
    "expires_at": "paylink.until",
    "external_id": "paylink.own_id",
    **{f"fields[{at}].{part}": "paylink.label" for at in range(5) for part in ("label", "kind")},
    "from": "from",
    "headers": "hook.headers",
    "outcome": "payment.outcome",
    "payer_retry": "settings.retry",
    "payments_max": "paylink.payments_max",
    "payout_wallet": "settings.wallet",
    "proof_reminders": "settings.reminders",
    "reason": "reason",
    "return_url": "shop.return",
    "seconds": "clock.hours",
    "shop_id": "shop",
    "success_text": "paylink.success",
    "to": "to",
    "url": "hook.url",
    "webhook_events": "hook.types",
    "webhook_secret": "hook.secret",
    "webhook_url": "hook.url",
}
"""Fields of the API, and the texts that label them on the pages."""

_ON_PAGE: Mapping[str, str] = {
    "event_types": "types",
    **{f"fields[{at}].{part}": f"label_{min(at, 2)}" for at in range(5) for part in ("label", "kind")},
    "seconds": "hours",
    "webhook_events": "types",
    "webhook_url": "url",
}
"""Fields whose form uses another name."""

_RULES: tuple[tuple[str, str, str], ...] = (
    (r"must be a colour such as #2152d9", "a colour such as #2152d9", "цвет, например #2152d9"),
    (
        r"must have 1 to (\d+) characters, none of them a control character",
        "1 to {0} characters, none of them a control character",
        "от 1 до {0} знаков, без управляющих",
    ),
    (r"must be a PNG, JPEG or WebP picture", "a PNG, JPEG or WebP picture", "картинка PNG, JPEG или WebP"),
    (r"must be a whole picture: this one is cut off", "a whole picture", "картинка целиком: эта обрезана"),
    (r"must not move", "a picture that does not move", "картинка без движения"),
    (r"must have at most (\d+) KB", "at most {0} KB", "не больше {0} КБ"),
    (
        r"must have sides of (\d+) to (\d+) pixels",
        "sides of {0} to {1} pixels",
        "стороны от {0} до {1} точек",
    ),
    (
        r"must be a decimal string with up to (\d+) decimals(?: and up to 10 digits before the point: .*)?",
        "a number with at most {0} digits after the point and 10 before it",
        "число, после точки не больше {0} знаков, до точки не больше 10",
    ),
    (r"must be above zero", "above zero", "больше нуля"),
    (r"has at most (\d+) elements", "at most {0}", "не больше {0}"),
    (r"must not be empty", "not empty", "не пусто"),
    (r"must be from (\S+) to (\S+)", "from {0} to {1}", "от {0} до {1}"),
    (r"excludes amount_min_rub and amount_max_rub", "empty, or without bounds", "пусто либо без границ"),
    (r"must not be above amount_max_rub", "at most the largest amount", "не больше наибольшей"),
    (r"is for reusable links only", "only if it may be paid more than once", "только если платить можно много раз"),
    (
        r"must be in the future, at most (\d+) days ahead",
        "a day from today on, at most {0} days ahead",
        "день начиная с сегодняшнего, не дальше {0} дней",
    ),
    (r"must be ISO 8601 with a time zone", "a date", "дата"),
    (r"must differ from the other labels", "other than the other labels", "не такое, как у других полей"),
    (r"(email|phone) may appear once", "{0} only once", "{0} только один раз"),
    (r"must be true or false", "yes or no", "да или нет"),
    (r"must be one of: (.+)", "one of: {0}", "одно из: {0}"),
    (r"must be some of: (.+)", "some of: {0}", "некоторые из: {0}"),
    (r"must name at least one type of events", "at least one type of events", "хотя бы один вид событий"),
    (r"must differ from the payment's amount", "other than the payment's amount", "другая, чем сумма платежа"),
    (
        r"must be an http or https URL of at most (\d+) ASCII characters, without user and password",
        "an http or https address of at most {0} Latin characters, without user and password",
        "адрес http или https, не длиннее {0} латинских знаков, без имени и пароля",
    ),
    (
        r"must be an http or https URL of at most (\d+) ASCII characters, without user and password; write (.+)",
        "an http or https address of at most {0} Latin characters, without user and password; write {1}",
        "адрес http или https, не длиннее {0} латинских знаков, без имени и пароля; напишите {1}",
    ),
    (r"must be https in live mode", "only https in live mode", "в боевом режиме только https"),
    (
        r"must be an e-mail address",
        "an e-mail address, such as olga@shop.example",
        "адрес эл. почты, например olga@shop.example",
    ),
    (
        r"must be an e-mail address in ASCII",
        "an e-mail address in Latin letters, such as olga@shop.example",
        "адрес эл. почты латинскими буквами, например olga@shop.example",
    ),
    (
        r"must be 16 to 256 printable ASCII characters without spaces",
        "16 to 256 Latin letters, digits and signs without spaces",
        "от 16 до 256 латинских букв, цифр и знаков без пробелов",
    ),
    (
        r"must be an address of TRON, .+",
        "an address of TRON (34 characters, T first) or of Ethereum and BNB Smart Chain (0x and 40 characters), "
        "without a slip",
        "адрес TRON (34 знака, первый T) или Ethereum и BNB Smart Chain (0x и 40 знаков), без опечаток",
    ),
    (
        r"must not be USDT's own contract, or an address to which nobody has the key",
        "not USDT's own contract, and no address to which nobody has the key",
        "не контракт самого USDT и не адрес, ключа к которому ни у кого нет",
    ),
    (
        r"must not be a wallet or a deposit address of this service",
        "not a wallet or deposit address of this service",
        "не кошелёк и не адрес для пополнения этого сервиса",
    ),
    (r"must be later than from", "later than the beginning", "позже начала"),
    (
        r"must be a UUID",
        "an id like 01a21ea4-2c55-7c99-82bc-e03e87ee0495",
        "номер вида 01a21ea4-2c55-7c99-82bc-e03e87ee0495",
    ),
    (r"must be ISO 8601 with a time zone, .+", "date and time with a time zone", "дата и время с часовым поясом"),
    (r"has at most (\d+) characters", "at most {0} characters", "не длиннее {0} знаков"),
    (
        r"has at most (\d+) characters, none of control",
        "at most {0} characters, without control characters",
        "не длиннее {0} знаков, без управляющих",
    ),
    (r"has no control characters", "no control characters", "без управляющих знаков"),
    (r"has at most (\d+) headers", "at most {0} headers", "не больше {0} заголовков"),
    (
        r"a name has 1 to (\d+) letters, digits and dashes, like X-Token",
        "a header's name has 1 to {0} Latin letters, digits and dashes, such as X-Token",
        "название из латинских букв, цифр и дефисов, не длиннее {0}, например X-Token",
    ),
    (
        r"(.+) is set by the service; choose another name",
        "the service itself sets {0}; choose another name",
        "{0} задаёт сам сервис, выберите другое название",
    ),
    (r"(.+) occurs twice", "{0} occurs twice", "{0} встречается дважды"),
    (
        r"the value of (.+) must be one line of 1 to (\d+) ASCII characters",
        "the value of {0} is one line of 1 to {1} Latin characters",
        "значение {0}: одна строка, от 1 до {1} латинских знаков",
    ),
    (r"the clock moves forward only", "time only moves forward", "время идёт только вперёд"),
    (r"at most (\d+) days at once", "at most {0} days at once", "не больше {0} дней за раз"),
    (r"at most up to (\S+)", "at most up to {0}", "не позже {0}"),
)
"""Messages about a field, as patterns that match the whole message, with their English and Russian texts."""

_SENTENCES: tuple[tuple[str, str, str], ...] = (
    (
        r"A password has (\d+) to (\d+) characters: take a sentence",
        "A password has {0} to {1} characters: take a whole sentence.",
        "Длина пароля от {0} до {1} знаков: возьмите целую фразу.",
    ),
    (
        r"This password consists of what guessing programs try first: .+",
        "This password consists of what guessing programs try first: frequent words, rows of keys, digits. "
        "Think of another, such as four random words.",
        "Пароль состоит из того, что подбирают первым: частых слов, рядов клавиш, цифр. "
        "Придумайте другой, например четыре случайных слова.",
    ),
    (
        r"This password consists of your address or the account's name: .+",
        "This password consists of your address or the account's name. Think of another, such as four random words.",
        "Пароль состоит из вашего адреса или названия аккаунта. Придумайте другой, например четыре случайных слова.",
    ),
    (
        r"This is not an e-mail address: write it like olga@shop\.example",
        "E-mail: an address like olga@shop.example.",
        "«Эл. почта»: нужен адрес вида olga@shop.example.",
    ),
    (
        r"A key's name has 1 to (\d+) letters, digits, dots, dashes and underscores",
        "Name of the key: 1 to {0} Latin letters, digits, dots, dashes and underscores.",
        "«Название» ключа: от 1 до {0} латинских букв, цифр, точек, дефисов и подчёркиваний.",
    ),
    (r"Rights are some of: (.+)", "Rights: choose at least one of: {0}.", "«Права»: выберите хотя бы одно из: {0}."),
    (r"A key has 1 to (\d+) addresses", "Allowed addresses of the key: 1 to {0}.", "«Адреса» ключа: от 1 до {0}."),
    (
        r"An address is one of IPv4 or IPv6, or a network such as 203\.0\.113\.0/24",
        "Allowed addresses of the key: an IPv4 or IPv6 address, or a network such as 203.0.113.0/24.",
        "«Адреса» ключа: адрес IPv4 или IPv6 либо сеть, например 203.0.113.0/24.",
    ),
    (r".+ name has 1 to (\d+) characters", "Name: 1 to {0} characters.", "«Название»: от 1 до {0} знаков."),
    (r".+ name has no control characters", "Name: no control characters.", "«Название»: без управляющих знаков."),
    (
        r"The account has a shop of this name already \(case does not count\)",
        "Name: the account has a shop of this name already, whatever its case.",
        "«Название»: магазин с таким названием уже есть, регистр не важен.",
    ),
    (r"A name has at most (\d+) characters", "Name: at most {0} characters.", "«Название»: не длиннее {0} знаков."),
    (r"A reason has 1 to (\d+) printable characters", "Reason: 1 to {0} characters.", "«Причина»: от 1 до {0} знаков."),
    (
        r"A reason has at most (\d+) printable characters",
        "Reason: at most {0} characters.",
        "«Причина»: не длиннее {0} знаков.",
    ),
    (
        r"overlap is from 0 to (\d+) days",
        "The earlier key works for 0 to {0} days more.",
        "Прежний ключ действует ещё от 0 до {0} дней.",
    ),
    (r"The language is en or ru", "Language: Russian or English.", "«Язык»: русский или английский."),
    (
        r"Idempotency-Key must be a valid UUID",
        "The form is out of date: open the page again.",
        "Форма устарела: откройте страницу заново.",
    ),
    (
        r"(\S+) is set by the operator of the service",
        "Only the operator of the service changes this: {0}.",
        "Это меняет только оператор сервиса: {0}.",
    ),
    (r"A note has 1 to (\d+) printable characters", "Note: 1 to {0} characters.", "«Заметка»: от 1 до {0} знаков."),
    (
        r"The end must be later than the beginning",
        "The end of the span must be later than its beginning.",
        "Конец периода должен быть позже начала.",
    ),
    (
        r"Events are kept for (\d+) days: choose a later span",
        "Events are kept for {0} days: choose a later span.",
        "События хранятся {0} дней: выберите период позже.",
    ),
    (
        r"Give a whole number of hours",
        "Hours: a whole number of 1 to 5 digits.",
        "«Часы»: целое число, от 1 до 5 цифр.",
    ),
    (r"Give either seconds or to", "Hours: a whole number.", "«Часы»: целое число."),
    (
        r"Write each header once, as a line `Name: value`",
        "Your own headers: each once, as a line “Name: value”.",
        "«Свои заголовки»: каждый один раз, строкой вида «Название: значение».",
    ),
    (
        r"(\S+) was sent twice",
        "The field {0} came twice: open the page again.",
        "Поле {0} пришло дважды: откройте страницу заново.",
    ),
    (
        r"The form cannot be read",
        "The form could not be read: open the page again.",
        "Форму не удалось прочитать: откройте страницу заново.",
    ),
    (
        r"The form contains characters that no field accepts",
        "The form contains characters that no field accepts: type the text again.",
        "В форме есть знаки, которых не принимает ни одно поле: наберите текст заново.",
    ),
    (r"This is your address already", "This is your address already.", "Это и есть ваш нынешний адрес."),
    (
        r"This service has no e-mail connected: ask its operator",
        "This service has no e-mail connected: ask its operator.",
        "Почта к сервису не подключена: обратитесь к оператору.",
    ),
    (
        r"Another person here has this address: use a different one",
        "Another person here has this address: use a different one.",
        "Этот адрес уже занят другим человеком: возьмите иной.",
    ),
    (
        r"You have (\d+) passkeys already: remove one first",
        "You have {0} passkeys already: remove one first.",
        "У вас уже {0} ключей доступа: сначала удалите один.",
    ),
    (r"This passkey is registered already", "This passkey is registered already.", "Этот ключ доступа уже добавлен."),
    (
        r"This is your last means to sign in: set a password first",
        "This is your last means to sign in: set a password first.",
        "Это ваш последний способ входа: сначала задайте пароль.",
    ),
    (
        r"The client is verified or blocked: a link would change nothing",
        "The client is verified or blocked: a link would change nothing.",
        "Клиент уже проверен или заблокирован: ссылка ничего не изменит.",
    ),
    (
        r"Only owners may approve a wallet: make a second person an owner first",
        "Only owners may approve a wallet: make a second person an owner first.",
        "Кошелёк одобряют только владельцы: сначала назначьте второго владельца.",
    ),
    (
        r"The membership was changed meanwhile: read it again",
        "Somebody changed this person's access meanwhile: open the page again.",
        "Доступ этого человека тем временем изменили: откройте страницу заново.",
    ),
    (
        r"There is nothing left to approve: the change was made otherwise",
        "There is nothing left to approve: the change was made otherwise.",
        "Одобрять нечего: изменение уже сделано иначе.",
    ),
    (
        r"You requested it: another person must approve it",
        "You requested it: another person must approve it.",
        "Это запросили вы: одобрить должен другой.",
    ),
    (
        r"The request has expired or was decided already",
        "The request has expired or was decided already.",
        "Запрос истёк или по нему уже решили.",
    ),
    (
        r"The request was altered in the database: .+",
        "The request was altered in the database: reject it, and tell the operator.",
        "Запрос изменён в базе данных: отклоните его и сообщите оператору.",
    ),
    (
        r"Only the person who requested it can complete it",
        "Only the person who requested it can complete it.",
        "Выполнить может только тот, кто запросил.",
    ),
    (
        r"The request is not approved, (?:was completed already, or has expired|or was completed already)",
        "The request is not approved, was completed already, or has expired.",
        "Запрос не одобрен, уже выполнен или истёк.",
    ),
    (
        r"It changed since it was requested: .+",
        "It changed since it was requested: request it again.",
        "С момента запроса это изменилось: запросите заново.",
    ),
    (
        r"(\d+) of your requests are open: withdraw one first",
        "{0} of your requests are open: withdraw one first.",
        "Ваших открытых запросов уже {0}: сначала отзовите один.",
    ),
    (
        r"The payment can no longer be paid: create a new one",
        "This payment can no longer be paid: create a new one.",
        "Этот платёж уже нельзя оплатить: создайте новый.",
    ),
    (
        r"The payment has (\d+) notes already: .+",
        "The payment has {0} notes already: delete one of yours first.",
        "У платежа уже {0} заметок: сначала удалите одну свою.",
    ),
    (
        r"A view's name has 1 to (\d+) printable characters",
        "Name: 1 to {0} characters.",
        "«Название»: от 1 до {0} знаков.",
    ),
    (
        r"The filter of a view has at most (\d+) characters",
        "The filter is too long to be saved: at most {0} characters.",
        "Фильтр слишком длинный, чтобы его сохранить: не больше {0} знаков.",
    ),
    (
        r"You have (\d+) views already: delete one first",
        "You have {0} views already: delete one first.",
        "У вас уже {0} видов: сначала удалите один.",
    ),
    (
        r"You have another view of this name: choose another name",
        "You have another view of this name: choose another name.",
        "У вас есть другой вид с таким названием: выберите другое.",
    ),
    (
        r"(\d+) exports of the account are being written: wait for one of them",
        "{0} exports of the account are being written: wait until one is ready.",
        "Сейчас пишутся выгрузки аккаунта: {0}. Дождитесь одной из них.",
    ),
    (
        r"You have (\d+) exports: delete those that you do not need",
        "You have {0} exports: delete those that you do not need.",
        "У вас {0} выгрузок: удалите ненужные.",
    ),
    (
        r"A file has at most (\d+) rows, and the filter finds (\d+): narrow it",
        "A file has at most {0} rows, and the filter finds {1}: narrow it.",
        "В файле не больше {0} строк, а фильтр находит {1}: сузьте его.",
    ),
    (r"Request a new secret first", "Set up the app from the beginning.", "Начните подключение приложения сначала."),
    (r"No authenticator app is set up", "No authenticator app is set up.", "Приложение с кодами не подключено."),
    (
        r"Your sign-in changed meanwhile: sign in again",
        "Your sign-in changed meanwhile: sign in again.",
        "Ваш вход тем временем изменился: войдите заново.",
    ),
    (
        r"This person belongs to the account already: change the role instead",
        "This person belongs to the account already: change the role instead.",
        "Этот человек уже в аккаунте: измените его роль.",
    ),
    (
        r"The account has (\d+) people already: remove one first",
        "The account has {0} people already: remove one first.",
        "В аккаунте уже {0} человек: сначала уберите одного.",
    ),
    (
        r"The service has no Telegram bot: ask its operator",
        "The service has no Telegram bot: ask its operator.",
        "У сервиса нет бота в Telegram: обратитесь к оператору.",
    ),
    (
        r"The Telegram bot of the service does not work: ask its operator",
        "The service's Telegram bot does not work: ask its operator.",
        "Бот сервиса в Telegram не работает: обратитесь к оператору.",
    ),
    (
        r"You or a key that you made applied for it: another person must approve it",
        "You or a key that you made applied for it: another person must approve it.",
        "Возврат оформили вы или ваш ключ: одобрить должен другой.",
    ),
    (
        r"The default shop of an account cannot be disabled",
        "The account's default shop cannot be switched off.",
        "Основной магазин выключить нельзя.",
    ),
    (
        r"A key of this name is in force: rotate it, or end it first",
        "A key of this name works already: replace it, or end it first.",
        "Ключ с таким названием уже действует: замените или отзовите его.",
    ),
    (
        r"(\d+) keys are in force in this mode already: end one first",
        "{0} keys work in this mode already: end one first.",
        "В этом режиме уже {0} ключей: сначала отзовите один.",
    ),
    (
        r"It is the mode's own key: rotate it",
        "This is the main key: it can only be replaced.",
        "Это основной ключ режима: его можно только заменить.",
    ),
    (
        r"The key was altered outside of the service: .+",
        "The key was altered outside of the service: end it, and make another.",
        "Ключ изменён в обход сервиса: отзовите его и создайте другой.",
    ),
    (
        r"The bank has executed the refund already",
        "The bank has executed the refund already.",
        "Банк уже выполнил возврат.",
    ),
    (
        r"The refund is (\w+), not pending",
        "The refund no longer waits: its status has changed.",
        "Возврат уже не ждёт: его статус изменился.",
    ),
    (
        r"USDT are on their way to the exchange's address",
        "USDT are on their way to the exchange's address.",
        "USDT уже идут на адрес обмена.",
    ),
    (
        r"The exchange is (\w+); it can only be cancelled before money arrives",
        "An exchange can only be cancelled before money arrives.",
        "Обмен можно отменить, только пока не пришли деньги.",
    ),
    (
        r"The clock is being advanced to (\S+); GET shows its progress",
        "The clock is still moving to {0}: wait a little.",
        "Часы ещё переводятся до {0}: подождите немного.",
    ),
)
"""The same for messages that do not begin with a field's name."""


def sentence_of(t: Texts, refusal: Refusal) -> str:
    """Return what was wrong with a form, in the person's language."""
    faults = _faults(refusal)
    if faults:
        quoted = "«{}»: {}." if t.language == "ru" else "{}: {}."
        return " ".join(quoted.format(_label(t, each), _rule(t, each)) for each in faults)
    found = _translated(t, refusal.message, _SENTENCES)
    if found is not None:
        return found
    # A code without a text is one that no form of the dashboard can cause.
    return t.of("error", refusal.code) if f"error.{refusal.code}" in PAIRS else refusal.message


def faults_of(t: Texts, refusal: Refusal) -> Mapping[str, str]:
    """Return the rule that each field of a form breaks, by the name that the field has in the form."""
    return {_ON_PAGE.get(each.path, each.path): _rule(t, each) for each in _faults(refusal)}


def _faults(refusal: Refusal) -> list[FieldFault]:
    found = refusal.details if refusal.code == "VALIDATION_ERROR" else None
    return [each for each in found if isinstance(each, FieldFault)] if isinstance(found, list | tuple) else []


def _label(t: Texts, fault: FieldFault) -> str:
    return t(_FIELDS[fault.path]) if fault.path in _FIELDS else fault.path


def _rule(t: Texts, fault: FieldFault) -> str:
    return _translated(t, fault.message, _RULES) or fault.message


def _translated(t: Texts, message: str, rows: Iterable[tuple[str, str, str]]) -> str | None:
    for pattern, english, russian in rows:
        found = re.fullmatch(pattern, message)
        if found is not None:
            return (russian if t.language == "ru" else english).format(*found.groups())
    return None
