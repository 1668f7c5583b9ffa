"""Texts of letters to merchants' people and to payers, by language and kind: subject and body."""

from collections.abc import Mapping

Texts = Mapping[str, tuple[str, str]]

_EN: Texts = {
    "invitation": (
        "Invitation to {account}",
        "You are invited to work with {account} as {role}.\n\n"
        "Open this link within 7 days, and choose a password:\n{link}\n\n"
        "If you do not know {account}, ignore this letter.\n",
    ),
    "reset": (
        "A new password for the dashboard",
        "Somebody asked for a new password for your address.\n\n"
        "Open this link within 30 minutes, and choose one:\n{link}\n\n"
        "If it was not you, ignore this letter: nothing changes.\n",
    ),
    "email_link": (
        "Confirm your new address",
        "Somebody asked to sign in to the dashboard with this address from now on.\n\n"
        "Open this link within 30 minutes, in a browser in which you are signed in, and confirm:\n{link}\n\n"
        "If it was not you, ignore this letter: nothing changes.\n",
    ),
    "email_asked": (
        "Your e-mail address is about to change",
        "Somebody asked to change the address of your sign-in to {address}.\n\n"
        "It changes when a link in a letter to that address is confirmed.\n"
        "If it was not you, change your password and end all sessions now: {link}\n",
    ),
    "new_device": (
        "New sign-in to the dashboard",
        "Somebody signed in with your account.\n\nWhen: {when}\nBrowser: {device}\nNetwork: {network}\n\n"
        "If it was not you, change your password and end all sessions: {link}\n",
    ),
    "security": (
        "Your sign-in changed",
        "{what}\n\nWhen: {when}\n\nIf it was not you, reset your password and end all sessions: {link}\n",
    ),
    "role": ("Your role in {account} changed", "Your role in {account} is now {role}.\n\n{link}\n"),
    "removed": ("You left {account}", "You no longer have access to {account}.\n"),
    "approval": (
        "{account}: a change waits for your approval",
        "{person} requested: {what}.\n\n"
        "Check with {person} by another way before you approve or reject it:\n{link}\n\n"
        "The request is void after 3 days.\n",
    ),
    "payment_link": (
        "Payment to {shop}: {amount} RUB",
        "{shop} asks you to pay {amount} RUB.\n\n"
        "Open this link before {until}, Moscow time:\n{link}\n\n"
        "If you ordered nothing there, ignore this letter.\n\n{seller}",
    ),
    "payment_request": (
        "{shop} asks you to pay{sum}",
        "{shop} asks you to pay{sum}: {description}\n\n"
        "Open this link and pay:\n{link}\n\n"
        "If you ordered nothing there, ignore this letter.\n\n{seller}",
    ),
    "confirmation": (
        "Your payment to {shop}: {amount} RUB",
        "You paid {amount} RUB to {shop} on {when}, Moscow time.\n\n"
        "The confirmation, also to print:\n{link}\n\n"
        "It is not a fiscal receipt: the shop sends that separately.\n"
        "Number for the shop's support: {number}\n{seller}",
    ),
}

_RU: Texts = {
    "invitation": (
        "Приглашение в {account}",
        "Вас приглашают работать с {account}, роль: {role}.\n\n"
        "Откройте ссылку в течение 7 дней и задайте пароль:\n{link}\n\n"
        "Если вы не знаете {account}, ничего не делайте.\n",
    ),
    "reset": (
        "Новый пароль для кабинета",
        "Кто-то запросил новый пароль для вашего адреса.\n\n"
        "Откройте ссылку в течение 30 минут и задайте пароль:\n{link}\n\n"
        "Если это были не вы, ничего не делайте: пароль останется прежним.\n",
    ),
    "email_link": (
        "Подтвердите новый адрес",
        "Кто-то попросил входить в кабинет с этим адресом.\n\n"
        "Откройте ссылку в течение 30 минут в браузере, где вы вошли, и подтвердите:\n{link}\n\n"
        "Если это были не вы, ничего не делайте: адрес останется прежним.\n",
    ),
    "email_asked": (
        "Ваш адрес эл. почты скоро изменится",
        "Кто-то попросил сменить адрес для входа на {address}.\n\n"
        "Он сменится, когда подтвердят ссылку из письма на тот адрес.\n"
        "Если это были не вы, сейчас же смените пароль и завершите все сеансы: {link}\n",
    ),
    "new_device": (
        "Новый вход в кабинет",
        "Кто-то вошёл под вашим именем.\n\nКогда: {when}\nБраузер: {device}\nСеть: {network}\n\n"
        "Если это были не вы, смените пароль и завершите все сеансы: {link}\n",
    ),
    "security": (
        "Изменился способ входа",
        "{what}\n\nКогда: {when}\n\nЕсли это были не вы, задайте новый пароль и завершите все сеансы: {link}\n",
    ),
    "role": ("Ваша роль в {account} изменилась", "Ваша роль в {account} теперь: {role}.\n\n{link}\n"),
    "removed": ("Доступ к {account} закрыт", "У вас больше нет доступа к {account}.\n"),
    "approval": (
        "{account}: изменение ждёт вашего одобрения",
        "{person} просит: {what}.\n\n"
        "Прежде чем одобрить или отклонить, уточните у {person} другим способом:\n{link}\n\n"
        "Через 3 дня запрос потеряет силу.\n",
    ),
    "payment_link": (
        "Оплата: {shop}, {amount} ₽",
        "{shop} просит оплатить {amount} ₽.\n\n"
        "Откройте ссылку до {until} по московскому времени:\n{link}\n\n"
        "Если вы там ничего не заказывали, ничего не делайте.\n\n{seller}",
    ),
    "payment_request": (
        "{shop}: к оплате{sum}",
        "{shop} просит оплатить{sum}: {description}\n\n"
        "Откройте ссылку и заплатите:\n{link}\n\n"
        "Если вы там ничего не заказывали, ничего не делайте.\n\n{seller}",
    ),
    "confirmation": (
        "Ваш платёж: {shop}, {amount} ₽",
        "Вы заплатили {amount} ₽, получатель — {shop}, {when} по московскому времени.\n\n"
        "Подтверждение, его можно распечатать:\n{link}\n\n"
        "Это не кассовый чек: чек магазин пришлёт отдельно.\n"
        "Номер для поддержки магазина: {number}\n{seller}",
    ),
}

TO_PAYERS: Mapping[str, Mapping[str, str]] = {
    "en": {"order": "Order number: {order}\n", "contact": "Questions about your order: {contact}\n"},
    "ru": {"order": "Номер заказа: {order}\n", "contact": "Вопросы по заказу: {contact}\n"},
}
"""Lines at the end of letters to payers, each if its value is known."""

TEXTS: Mapping[str, Texts] = {"en": _EN, "ru": _RU}

CHANGES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "password": "Your password was changed.",
        "totp": "An authenticator app was set up.",
        "totp_removed": "The authenticator app was removed.",
        "recovery": "A recovery code was used.",
        "reset": "An operator reset your sign-in.",
        "email": "Your e-mail address was changed.",
        "passkey": "A passkey was added.",
        "passkey_removed": "A passkey was removed.",
    },
    "ru": {
        "password": "Пароль изменён.",
        "totp": "Подключено приложение с кодами.",
        "totp_removed": "Приложение с кодами отключено.",
        "recovery": "Использован запасной код.",
        "reset": "Оператор сбросил ваш способ входа.",
        "email": "Адрес эл. почты изменён.",
        "passkey": "Добавлен ключ доступа.",
        "passkey_removed": "Ключ доступа удалён.",
    },
}
"""Sentences of the letter `security`."""

REQUESTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "key.create": "a new API key",
        "key.rotate": "a new secret of an API key",
        "account.set": "a change of the account's settings",
        "webhook.secret": "a new webhook secret",
        "endpoint.secret": "a new webhook secret",
        "person.role": "a change of a person's role",
        "person.invite": "an invitation",
    },
    "ru": {
        "key.create": "новый ключ API",
        "key.rotate": "замену ключа API",
        "account.set": "изменение настроек аккаунта",
        "webhook.secret": "новый секрет вебхуков",
        "endpoint.secret": "новый секрет вебхуков",
        "person.role": "изменение роли человека",
        "person.invite": "приглашение",
    },
}
"""Changes in the letter `approval`."""
