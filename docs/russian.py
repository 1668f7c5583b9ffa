"""Russian words for what docs/generate.py makes of the code: meanings of errors, triggers of moves. A text
without an entry stays English on the pages, and a test names it."""

from collections.abc import Mapping

from cambist.core.domain.errors import Retry

DO: Mapping[Retry, str] = {
    Retry.NEVER: "исправить запрос",
    Retry.SAME_KEY: "позже, с тем же ключом",
    Retry.NEW_KEY: "заново, с новым ключом",
}

MEANINGS: Mapping[str, str] = {
    "VALIDATION_ERROR": "Тело, заголовок или параметр запроса не той формы, что описана; с 422: форма верна, "
    "но значение нарушает своё правило",
    "MISSING_IDEMPOTENCY_KEY": "Создающему запросу нужен заголовок Idempotency-Key",
    "INVALID_AMOUNT": "Сумма равна нулю, отрицательна или больше допустимой",
    "AMOUNT_BELOW_MINIMUM": "Разовый платёж — не меньше 30 RUB",
    "AMOUNT_TOO_LOW": "Обмен — не меньше 1000 RUB",
    "AMOUNT_TOO_HIGH": "Обмен — не больше 1000000 RUB",
    "FEATURE_NOT_ENABLED": "Возможность не подключена аккаунту или недоступна для этого объекта",
    "SHOP_NOT_FOUND": "У аккаунта нет магазина с таким идентификатором",
    "KYC_REQUIRED": "Перед этим платежом клиент должен пройти проверку",
    "KYC_PROCESSING": "Проверка клиента ещё идёт",
    "KYC_FAILED": "Клиент не прошёл проверку",
    "KYC_NOT_REQUIRED": "KYC для аккаунта не требуется, регистрировать нечего",
    "SANDBOX_NOT_SUPPORTED": "KYC работает только в боевом режиме",
    "UPLOAD_LIMIT": "Слишком много документов, которые ещё не понадобились проверке",
    "METHOD_NOT_AVAILABLE": "У аккаунта нет терминала с таким method_id",
    "METHOD_SELECTION_DISABLED": "Выбор терминала для аккаунта выключен",
    "PAYMENT_ROUTE_UNAVAILABLE": "Для этого платежа нет рабочего маршрута; с 503: проверить сейчас не удалось",
    "OVER_REMAINING": "Возврат больше остатка платежа, или остатка нет",
    "PARTIAL_BEFORE_SETTLEMENT": "Платёж через этот терминал возвращают частично только после расчёта",
    "Unauthorized": "Пара ключей недействительна",
    "KEY_ADDRESS_NOT_ALLOWED": "С этого адреса ключом пользоваться нельзя",
    "PERSON_RIGHT_MISSING": "У роли нет права: `details.right`; только в кабинете",
    "SECOND_FACTOR_NEEDED": "Роли в боевом режиме нужно приложение с кодами; только в кабинете",
    "STEP_UP_NEEDED": "Сначала нужно подтвердить пароль; только в кабинете",
    "CURSOR_INVALID": "Адрес страницы списка повреждён: начните с начала списка; только в кабинете",
    "FORM_REFUSED": "Форма не с этой страницы: откройте страницу заново; только в кабинете",
    "LIVE_MODE_DENIED": "Человеку доступен только тестовый режим; только в кабинете",
    "NO_ACCOUNT": "Человек не состоит ни в одном аккаунте или в этом; только в кабинете",
    "SIGN_IN_FAILED": "Адрес, пароль или код неверны; только в кабинете",
    "USER_NOT_FOUND": "Человека с таким id или адресом нет; только в кабинете и у оператора",
    "INVITATION_NOT_FOUND": "Приглашение принято, отозвано или истекло; только в кабинете",
    "VIEW_NOT_FOUND": "У человека нет такого сохранённого вида; только в кабинете",
    "RESEND_NOT_FOUND": "В этом аккаунте и режиме нет такой повторной отправки; только в кабинете",
    "RESEND_BUSY": "В этом режиме уже идёт повторная отправка вебхуков; только в кабинете",
    "RESEND_TOO_LARGE": "За это время событий больше, чем можно отправить за один раз; только в кабинете",
    "NOTE_NOT_FOUND": "У человека нет такой заметки к этому платежу; только в кабинете",
    "RESET_VOID": "Ссылка из письма использована или истекла; только в кабинете",
    "EXPORT_NOT_FOUND": "У человека нет такого файла, или его срок истёк; только в кабинете",
    "REPORT_NOT_FOUND": "Отчёта с таким идентификатором нет, или его срок истёк",
    "REPORT_NOT_READY": "Отчёт ещё пишется",
    "EXPORTS_BUSY": "У аккаунта или человека столько выгрузок, сколько можно; только в кабинете",
    "EXPORT_TOO_LARGE": "Строк больше, чем помещается в файл; только в кабинете",
    "UNSUBSCRIBE_VOID": "Ссылка для отписки использована или неполна; только в кабинете",
    "LAST_OWNER": "В аккаунте не осталось бы владельца; только в кабинете",
    "LINK_LIMIT": "За час отправлено по почте слишком много ссылок на платежи; только в кабинете",
    "TOO_MANY_GUESSES": "Слишком много неверных паролей или кодов либо запросов нового адреса; только в кабинете",
    "KEY_RIGHT_MISSING": "У ключа нет права, которого требует операция: `details.right`",
    "SHOP_DISABLED": "Магазин не принимает новых платежей",
    "DIRECT_LINK_NOT_ALLOWED": "Собственная ссылка банка на этот платёж мерчанту не выдаётся",
    "PROVIDER_DISABLED": "KYC для аккаунта выключен",
    "CLIENT_BLOCKED": "Клиент обмена заблокирован",
    "UPLOAD_FORBIDDEN": "Адрес загрузки не выдавался, был изменён или истёк",
    "NOT_FOUND": "Неизвестный путь или возможность, которая аккаунту не включена",
    "EVENT_NOT_FOUND": "В этом аккаунте и режиме нет события с таким идентификатором",
    "EXCHANGE_NOT_FOUND": "В этом аккаунте и режиме нет обмена с таким идентификатором",
    "GATEWAY_NOT_FOUND": "В этом режиме нет шлюза с таким идентификатором",
    "PAYMENT_NOT_FOUND": "В этом аккаунте и режиме нет платежа с таким идентификатором",
    "PAYMENT_LINK_NOT_FOUND": "В этом аккаунте и режиме нет платёжной ссылки с таким идентификатором",
    "RECEIPT_NOT_FOUND": "В этом аккаунте и режиме нет чека с таким идентификатором",
    "REFUND_NOT_FOUND": "В этом аккаунте и режиме нет возврата с таким идентификатором",
    "SUBSCRIPTION_NOT_FOUND": "В этом аккаунте и режиме нет подписки с таким идентификатором",
    "WEBHOOK_ENDPOINT_NOT_FOUND": "В этом аккаунте и режиме нет дополнительного адреса вебхуков с таким "
    "идентификатором",
    "EXCHANGE_RATE_NOT_SUPPORTED": "Собственного курса у терминалов нет; см. GET /rates",
    "SETTLEMENT_NOT_FOUND": "В этом аккаунте и режиме нет расчёта с таким идентификатором",
    "WITHDRAWAL_NOT_FOUND": "В этом аккаунте и режиме нет выплаты с таким идентификатором",
    "SUSPENSE_NOT_FOUND": "Нет невыясненной суммы с таким идентификатором; встречается только операторам",
    "TERMINAL_NOT_FOUND": "Нет терминала с таким идентификатором; встречается только операторам",
    "ACCOUNT_NOT_FOUND": "Нет аккаунта с таким идентификатором; встречается только операторам",
    "KEY_NOT_FOUND": "Нет действующего ключа с таким идентификатором или именем; встречается только операторам",
    "ACTION_NOT_FOUND": "Нет действия с таким идентификатором, которое ждёт или ждало второго оператора; "
    "встречается только операторам",
    "CLIENT_NOT_FOUND": "Нет конечного клиента с таким идентификатором; только в кабинете и у оператора",
    "METHOD_NOT_ALLOWED": "Путь не знает этого метода; см. заголовок Allow",
    "IDEMPOTENCY_KEY_REUSED": "Ключ уже принадлежит объекту другого рода или подписке другого магазина",
    "IDEMPOTENCY_TERMINAL": "Обмен с этим ключом уже завершён",
    "EXCHANGE_IN_PROGRESS": "У клиента есть активный обмен; ключ не занят",
    "INVALID_STATE": "Объект не в том состоянии, в котором это возможно",
    "SECOND_PERSON_NEEDED": "Изменение должен одобрить другой человек аккаунта; только в кабинете",
    "REQUEST_NOT_FOUND": "Запроса на одобрение с таким номером нет; только в кабинете",
    "SECOND_OPERATOR_NEEDED": "Действие ждёт подтверждения другого оператора; встречается только операторам",
    "INVALID_STATUS": "Платёж не в том статусе, в котором это возможно",
    "DELIVERY_PROOF_LOCKED": "Перевод подтверждён; его хеш заменить нельзя",
    "DELIVERY_PROOF_CONFLICT": "Тем временем хеш изменил другой запрос; прочитайте и повторите",
    "LIMIT_PER_PAYMENT": "По платежу поданы все заявки на возврат, какие возможны",
    "WEBHOOK_ENDPOINT_LIMIT": "У аккаунта в этом режиме уже все адреса вебхуков, какие возможны",
    "UPLOAD_EXISTS": "Файл уже загружен; адрес принимает один файл один раз",
    "CHARGE_MANDATE_INACTIVE": "Подписка не активна, либо её мандат не привязан или отозван",
    "CHARGE_BEFORE_WINDOW": "Слишком рано; см. `details.next_allowed_at`",
    "RECURRING_CHARGE_EXHAUSTED": "Попытки или часы периода исчерпаны; следующий период начинается в "
    "`details.next_allowed_at`",
    "CHARGE_PERIOD_OCCUPIED": "В периоде уже есть списание с другим external_id",
    "CAP_EXCEEDED": "Сумма больше предела одного списания или периода",
    "WITHDRAWAL_DISCONTINUED": "Выплаты идут автоматически; ручных выводов нет",
    "PAYLOAD_TOO_LARGE": "Тело больше 100 KB, или загружаемый файл больше своего предела",
    "SHOP_MARKUP_NOT_SET": "Наценка магазина ещё не задана",
    "PAYER_DATA_REQUIRED": "Не хватает полей, которых требует терминал или чек: `details.missing_fields`",
    "PAYMENT_UNAVAILABLE": "Приём платежей для аккаунта выключен",
    "CLIENT_NOT_REGISTERED": "Клиент обмена не прошёл KYC",
    "RATE_LIMIT_EXCEEDED": "Слишком много запросов; см. Retry-After",
    "HEADERS_TOO_LARGE": "Заголовки запроса больше 32 KB, или их больше 100",
    "INTERNAL_ERROR": "Ошибка на нашей стороне; назовите идентификатор запроса",
    "KYC_PERSIST_FAILED": "Проверяющий принял клиента, но запись не сохранилась; не повторяйте",
    "RECURRING_NOT_SUPPORTED": "Аккаунту нельзя списывать по мандату; платёж не создан",
    "PROVIDER_ERROR": "Провайдер не дал определённого ответа; за ключом останется этот ответ",
    "RATE_INVALID": "Нет курса для обмена; ничего не создано",
    "FEATURE_DISABLED": "Это направление обмена сейчас выключено для всех мерчантов; ничего не создано",
    "RATE_UNAVAILABLE": "Ни один источник не даёт курса, которому можно верить; ничего не сделано",
    "KYC_UNAVAILABLE": "KYC требуется, но сейчас недоступен",
    "PROVIDER_NOT_CONFIGURED": "Сейчас это некому выполнить; ничего не создано, и период свободен",
    "ACCOUNT_MOVING": "Аккаунт переносят на другие серверы, и он несколько секунд не меняется; см. Retry-After",
    "PROVIDER_UNAVAILABLE": "Провайдер или часть сервиса сейчас недоступны",
}
"""By code."""

ERRORS_HEAD = """# Ошибки

У каждой ошибки один вид, что бы ни случилось:

```json
{"error": {"code": "AMOUNT_BELOW_MINIMUM", "message": "A one-off payment is at least 30 RUB"}}
```

- Опирайтесь на `code` и на HTTP-статус. `message` — для людей, он может измениться; плательщикам его не показывайте.
- `details` есть только там, где он что-то добавляет: массив `{path, message}` по полям или объект (`missing_fields`,
  `next_allowed_at`, `right` либо `payment_id` и `failure_reason` отклонённого списания).
- `X-Request-Id` есть в каждом ответе. Называйте его, когда обращаетесь к оператору сервиса.
- Заголовок `Link` ведёт к строке этого кода ниже: `<https://…/docs/errors#CODE>; rel="help"`, по адресу самого сервиса.
  В клиенте для Python это `doc_url` исключения, командная строка его печатает.
- Незнакомый код обрабатывайте по статусу. 4xx: исправьте запрос. 429 и 5xx: тот же запрос позже, с тем же
  `Idempotency-Key`.

«С тем же ключом»: ключ не израсходован, и повтор не может создать второй объект. «С новым ключом»: за ключом навсегда
останется этот ответ. «Исправить запрос»: повтор даст тот же ответ, пока что-то не изменится; если в таблице не сказано
иное, ключ свободен, и с ним можно отправить исправленный запрос.

«Позже» — это столько, сколько говорит `Retry-After`. Если заголовка нет: через 30–60 секунд для 5xx, а в остальных
случаях — когда произойдёт то, что названо в сообщении. Отсутствие ответа (тайм-аут, обрыв соединения) — то же, что 500:
запрос мог быть выполнен, поэтому отправьте его же с тем же ключом. [Клиент для Python](client.md#ошибки) делает всё
это сам.

## Все коды

| HTTP | Код | Значение | Что делать |
|---|---|---|---|
"""
ERRORS_BY_CALL = """

## По вызовам

Кроме перечисленного, любой вызов может получить `VALIDATION_ERROR`, `Unauthorized`, `KEY_ADDRESS_NOT_ALLOWED` и
`KEY_RIGHT_MISSING` ([ключи с ограниченными правами](concepts.md#ключи-с-ограниченными-правами)), `RATE_LIMIT_EXCEEDED`,
`HEADERS_TOO_LARGE`, `INTERNAL_ERROR` и, при [перегрузке](limits.md#перегрузка), `PROVIDER_UNAVAILABLE`; `POST` —
`PAYLOAD_TOO_LARGE`; создающий вызов — `MISSING_IDEMPOTENCY_KEY` и `IDEMPOTENCY_KEY_REUSED`; [песочница](sandbox.md) с
боевым ключом — `NOT_FOUND`.

| Вызов | Коды |
|---|---|
"""

STATES_HEAD = """# Состояния

Что может произойти с каждым объектом. Перехода, которого здесь нет, не бывает. Толстой рамкой отмечено состояние, из
которого выхода нет.
"""
STATES_COLUMNS = "| Из | В | Когда |"
STATES_MORE = "Подробнее"
STATES: Mapping[str, tuple[str, str, str]] = {
    "payment": ("Платёж", "Платежи", "payments.md"),
    "refund": ("Возврат", "Возвраты", "refunds.md"),
    "receipt": ("Чек", "Чеки", "receipts.md"),
    "subscription": ("Подписка", "Подписки", "subscriptions.md"),
    "exchange-usdt-rub": ("Обмен USDT на RUB", "Обмены", "exchanges.md"),
    "exchange-rub-usdt": ("Обмен RUB на USDT", "Обмены", "exchanges.md"),
    "withdrawal": ("Выплата", "Расчёт, выплаты, сверка", "settlement.md"),
    "delivery-proof": ("Подтверждение перевода", "Подтверждения перевода", "payments.md#подтверждения-перевода"),
    "kyc": ("Проверка конечного клиента (внутри)", "KYC", "kyc.md"),
}
"""By table: the title, and the page that explains it."""

TRIGGERS: Mapping[str, str] = {
    "the bank started on it": "банк начал обработку",
    "the payer paid": "плательщик заплатил",
    "another amount came": "пришла другая сумма",
    "the bank refused": "банк отказал",
    "cancelled at the bank": "отменён в банке",
    "its subscription was cancelled": "отменена его подписка",
    "nobody paid in time": "никто не заплатил вовремя",
    "the operator accepts what came": "оператор принимает пришедшее",
    "the operator sends it back": "оператор отправляет деньги обратно",
    "daily settlement": "ежедневный расчёт",
    "refunded in full": "возвращён полностью",
    "the cash register wrote it": "касса пробила чек",
    "the cash register or the bank rejected it": "касса или банк отклонили чек",
    "somebody tries it again": "чек отправлен ещё раз",
    "refund reversed before settlement": "возврат отменён до расчёта",
    "refund reversed after settlement": "возврат отменён после расчёта",
    "sent to the bank": "отправлен в банк",
    "an operator or a rule refused": "отказал оператор или правило",
    "the merchant cancelled": "отменил мерчант",
    "the payer has the money": "деньги у плательщика",
    "the money came back": "деньги вернулись",
    "the payer confirmed": "плательщик подтвердил",
    "no link came": "ссылка не пришла",
    "nobody confirmed in time": "никто не подтвердил вовремя",
    "the bank accepts the token no more": "банк больше не принимает токен",
    "the payer's consent ended": "закончилось согласие плательщика",
    "the token is valid again": "токен снова действует",
    "paused for too long": "слишком долго на паузе",
    "deposit address obtained": "получен адрес для перевода",
    "called off before funds came": "отменён до прихода денег",
    "client sent all of it": "клиент отправил всё",
    "client sent less than requested": "клиент отправил меньше запрошенного",
    "15 minutes passed": "прошло 15 минут",
    "SBP payout started": "начата выплата через СБП",
    "client received RUB": "клиент получил RUB",
    "technical error, or refused for good": "техническая ошибка или окончательный отказ",
    "SBP invoice created": "создан счёт СБП",
    "payer's bank took RUB back during the hold": "банк плательщика отозвал RUB во время удержания",
    "hold is over": "удержание закончилось",
    "USDT confirmed on chain": "USDT подтверждены в блокчейне",
    "signed, and its hash stored": "подписана, хеш сохранён",
    "called off by the operator, or not signed": "отозвана оператором или не подписана",
    "the network took it": "сеть приняла",
    "proven that it never takes effect": "доказано, что она не вступит в силу",
    "final on chain": "окончательна в блокчейне",
    "a hash is submitted": "передан хеш",
    "looked at without an end": "проверено, но без результата",
    "seen in a block that is not final": "виден в блоке, который ещё не окончателен",
    "final, and the amount fits": "окончателен, сумма сходится",
    "final, and the amount does not fit": "окончателен, сумма не сходится",
    "used already, without effect on the chain, or not final for too long": "уже использован, не подействовал в "
    "блокчейне или слишком долго не окончателен",
    "merchant registers": "мерчант регистрирует",
    "merchant registers, and the verifier is not set any more": (
        "мерчант регистрирует, а проверяющий больше не настроен"
    ),
    "verifier gives a form": "проверяющий даёт форму",
    "verifier refuses to begin": "проверяющий отказывается начинать",
    "verifier begins": "проверяющий начинает",
    "verifier accepts the client": "проверяющий принимает клиента",
    "verifier refuses the client": "проверяющий отказывает клиенту",
    "verifier refuses to begin another check": "проверяющий отказывается начинать новую проверку",
}
"""When a move is made, by the English words of its row."""

PAYLOADS_HEAD = """# Тела событий

Тело каждого [события](webhooks.md#события) — объект JSON с этими полями и никакими другими. Необязательного поля нет,
если сказать нечего; «или null» значит, что оно есть и равно null. У текста, значения которого не перечислены, могут
появиться новые.
"""
PAYLOADS_COLUMNS = "| Поле | Обязательно | Тип | |"
YES, NO = "да", "нет"
OR = "или"
BETWEEN = "от {} до {}"
PAYLOADS: Mapping[str, str] = {
    "Payment": "Платёж",
    "Delivery proof reminder": "Напоминание о подтверждении перевода",
    "Refund": "Возврат",
    "Subscription": "Подписка",
    "Charge exhausted": "Попытки списания исчерпаны",
    "Exchange": "Обмен",
    "Payout": "Выплата",
    "KYC": "KYC",
    "Gateway": "Шлюз",
}
"""Titles of event bodies, by their English titles."""

FIELDS: Mapping[str, str] = {
    "Type of the event": "Тип события",
    "Id of the payment": "Платёж",
    "Your own id of the object": "Ваш собственный идентификатор",
    "Status": "Статус",
    "Previous status; the same where only a flag or a link changed": "Предыдущий статус; такой же, если изменился "
    "только признак или ссылка",
    "RUB: up to 2 decimals in requests, always 2 in answers": "RUB, до 2 знаков после точки в запросах, всегда 2 в "
    "ответах",
    "The amount really paid; null until money arrives": "Сколько заплачено на самом деле; null, если деньги не пришли",
    "USDT, 8 decimals; set on a payment when it is settled": "USDT, 8 знаков после точки; у платежа заполняется "
    "при расчёте",
    "`sbp`, or `recurring` for bindings and charges": "`sbp` или, для привязок и списаний, `recurring`",
    "Whether a refund is under way; the status does not change": "Идёт возврат; статус не меняется",
    "Time of the event": "Когда это произошло",
    "Your own keys; reserved keys are dropped": "Ваши собственные ключи; служебные отбрасываются",
    "Name of the payer as reported by the bank; absent if the bank reports none": "Плательщик по данным банка; поля "
    "нет, если банк его "
    "не сообщил",
    "Id of the subscription": "Подписка",
    "Id of the subscription period that the charge is for": "Период подписки, к которому относится",
    "Reason of the failure; only on failed objects": "Причина неудачи; только тогда",
    "True in test mode, absent in live mode": "True в тестовом режиме, в боевом поля нет",
    "Id of the shop; your default shop if absent": "Магазин; если поля нет — магазин по умолчанию",
    "Name of the shop": "Имя магазина",
    "Time of payment, by the bank's clock": "Когда пришли деньги, по часам банка",
    "1, 2 or 3: 24, 48 and 72 hours after the payment": "1, 2 или 3: через 24, 48 и 72 часа после платежа",
    "Reason of the last rejection; only after one": "Почему отклонён последний хеш; только тогда",
    "Id of the refund": "Возврат",
    "Whether the mandate is overdue at the bank; the status does not change": "Мандат в банке просрочен; статус не "
    "меняется",
    "Page where the payer confirms the mandate": "Где плательщик подтверждает мандат",
    "The link is not ready yet; an event follows": "Ссылки ещё нет; придёт событие",
    "Whether the mandate is lost; present only when true": "Мандат утрачен; поле есть, только когда true",
    "Whether this is test mode": "Тестовый режим",
    "Attempts made in the period": "Сколько попыток сделано",
    "Attempts allowed in the period": "Сколько попыток было у периода",
    "Hours for further attempts, counted from the first": "Часов от первой попытки",
    "Time from which a charge is allowed": "Когда списание будет принято",
    "Id of the exchange": "Обмен",
    "`usdt_to_rub` or `rub_to_usdt`": "`usdt_to_rub` или `rub_to_usdt`",
    "The amount that the client sent; null until a final status": "Сколько отправил клиент; null до окончательного "
    "статуса",
    "RUB per USDT for the client": "Сколько RUB за один USDT для клиента",
    "`+` and 10 to 15 digits": "`+` и от 10 до 15 цифр",
    "Address to which the client sends USDT": "Куда клиент отправляет USDT",
    "Blockchain network": "Блокчейн",
    "Deadline": "Крайний срок",
    "Id of the payout": "Выплата",
    "Address of your wallet": "Ваш кошелёк",
    "Hash of the transaction on the blockchain": "Транзакция в блокчейне",
    "Id of the end client": "Конечный клиент",
    "`+7` and 10 digits": "`+7` и 10 цифр",
    "`verified` or `failed`": "`verified` или `failed`",
    "Time of the verifier's decision": "Когда проверяющий принял решение",
    "Id of the gateway": "Шлюз",
    "Reason of the status": "Почему так",
}
"""Meanings of fields, by the English meanings."""
