"""Texts of the audit log: each action, and each field that a row may contain, in people's words."""

import re

from .texts import PAIRS, add
from .web import Ask

add(
    {
        "action.account.create": ("account created", "создан аккаунт"),
        "action.account.headers": ("webhook headers changed", "изменены заголовки вебхуков"),
        "action.account.set": ("account settings changed", "изменены настройки аккаунта"),
        "action.action.confirm": ("operator's action confirmed", "подтверждено действие оператора"),
        "action.action.reject": ("operator's action rejected", "отклонено действие оператора"),
        "action.client.block": ("client blocked", "клиент заблокирован"),
        "action.client.forget": ("client's data deleted", "удалены данные клиента"),
        "action.client.link": ("verification link made", "создана ссылка на проверку"),
        "action.client.unblock": ("client unblocked", "клиент разблокирован"),
        "action.difference.settle": ("difference from the bank settled", "закрыто расхождение с банком"),
        "action.endpoint.change": ("webhook endpoint changed", "изменён адрес вебхуков"),
        "action.endpoint.create": ("webhook endpoint created", "добавлен адрес вебхуков"),
        "action.endpoint.delete": ("webhook endpoint deleted", "удалён адрес вебхуков"),
        "action.endpoint.headers": ("webhook headers changed", "изменены заголовки вебхуков"),
        "action.endpoint.secret": ("webhook secret replaced", "заменён секрет вебхуков"),
        "action.endpoint.test": ("test webhook sent", "отправлен проверочный вебхук"),
        "action.event.resend": ("event sent again", "событие отправлено ещё раз"),
        "action.exchange.cancel": ("exchange cancelled", "обмен отменён"),
        "action.exchange.create-rub-usdt": ("exchange created", "создан обмен"),
        "action.exchange.return": ("exchange's money sent back", "деньги обмена возвращены"),
        "action.export.delete": ("export deleted", "выгрузка удалена"),
        "action.export.download": ("export downloaded", "выгрузка скачана"),
        "action.export.order": ("export ordered", "заказана выгрузка"),
        "action.key.create": ("API key created", "создан ключ API"),
        "action.key.end": ("API key ended", "ключ API отозван"),
        "action.key.rotate": ("API key replaced", "заменён ключ API"),
        "action.key.set": ("API key changed", "изменён ключ API"),
        "action.notification.rotate": ("bank's notification address replaced", "заменён адрес уведомлений банка"),
        "action.operation.end": ("operation at the bank decided", "решён исход операции в банке"),
        "action.payment.note": ("note written", "написана заметка"),
        "action.payment.note_delete": ("note deleted", "удалена заметка"),
        "action.payment.resolve": ("payment with another amount decided", "решено по платежу с другой суммой"),
        "action.payment.return": ("unapplied money sent back", "возвращены незачтённые деньги"),
        "action.payment.reveal": ("payer's data viewed", "просмотрены данные плательщика"),
        "action.payment.send_link": ("payment link sent", "отправлена ссылка на оплату"),
        "action.payout.accept": ("payout accepted as sent", "выплата признана отправленной"),
        "action.payout.cancel": ("payout cancelled", "выплата отменена"),
        "action.payout.now": ("payout started", "запущена выплата"),
        "action.payout.retry": ("payout tried again", "выплата повторена"),
        "action.person.email": ("e-mail address changed", "сменён адрес эл. почты"),
        "action.person.invite": ("person invited", "приглашён человек"),
        "action.person.passkey": ("passkey added", "добавлен ключ доступа"),
        "action.person.passkey_off": ("passkey removed", "удалён ключ доступа"),
        "action.person.password": ("password changed", "сменён пароль"),
        "action.person.recovery_codes": ("recovery codes renewed", "созданы новые запасные коды"),
        "action.counter.take": ("payment taken at the counter", "платёж создан на кассе"),
        "action.paylink.archive": ("payment link archived", "платёжная ссылка в архиве"),
        "action.paylink.create": ("payment link created", "создана платёжная ссылка"),
        "action.person.remove": ("person removed", "человек убран из аккаунта"),
        "action.person.revoke_invitation": ("invitation revoked", "приглашение отозвано"),
        "action.person.role": ("person's role changed", "изменена роль человека"),
        "action.person.totp": ("authenticator app set up", "подключено приложение с кодами"),
        "action.person.totp_off": ("authenticator app removed", "отключено приложение с кодами"),
        "action.receiver.ask": ("webhook endpoint tried again", "адрес вебхуков проверен ещё раз"),
        "action.refund.approve": ("refund approved", "возврат одобрен"),
        "action.refund.cancel": ("refund cancelled", "возврат отменён"),
        "action.refund.create": ("refund applied for", "оформлен возврат"),
        "action.refund.reject": ("refund rejected", "возврат отклонён"),
        "action.refund.reverse": ("refund reversed", "возврат отозван банком"),
        "action.refund.settled": ("difference of a refund settled", "закрыто расхождение по возврату"),
        "action.settle": ("settlement started", "запущен расчёт"),
        "action.shop.create": ("shop created", "создан магазин"),
        "action.shop.disable": ("shop switched off", "магазин выключен"),
        "action.shop.enable": ("shop switched on", "магазин включён"),
        "action.shop.rename": ("shop renamed", "магазин переименован"),
        "action.shop.set": ("shop's settings changed", "изменены настройки магазина"),
        "action.subscription.cancel": ("subscription cancelled", "подписка отменена"),
        "action.subscription.rebind": ("new consent requested", "запрошено новое согласие"),
        "action.suspense.return": ("unapplied money sent back", "возвращены незачтённые деньги"),
        "action.terminal.add": ("terminal added", "добавлен терминал"),
        "action.terminal.disable": ("terminal switched off", "терминал выключен"),
        "action.terminal.enable": ("terminal switched on", "терминал включён"),
        "action.user.disable": ("person disabled", "человек отключён"),
        "action.user.enable": ("person enabled", "человек включён"),
        "action.user.invite": ("person invited", "приглашён человек"),
        "action.user.reset": ("person's sign-in reset", "сброшен вход человека"),
        "action.webhook.resend_range": ("span of events sent again", "события за период отправляются ещё раз"),
        "action.webhook.resend_stop": ("resending stopped", "повторная отправка остановлена"),
        "action.webhook.test": ("test webhook sent", "отправлен проверочный вебхук"),
    }
)
"""A front end may know more actions, but only these leave rows about an account."""

add(
    {
        "field.acceptance": ("new payments", "новые платежи"),
        "field.accepted_at": ("accepted", "принято"),
        "field.actual_amount": ("amount received", "получено"),
        "field.addresses": ("addresses", "адреса"),
        "field.alarm_email": ("mail for alarms", "почта для тревог"),
        "field.amount": ("amount", "сумма"),
        "field.amount_rub": ("amount, RUB", "сумма, ₽"),
        "field.amount_rub_max": ("largest payment", "наибольший платёж"),
        "field.amount_usdt": ("amount, USDT", "сумма, USDT"),
        "field.approved_at": ("approved", "одобрено"),
        "field.attempt": ("attempt", "попытка"),
        "field.attempts": ("attempts", "попытки"),
        "field.auto_return": ("leads payers back by itself", "возвращает плательщика сам"),
        "field.blocked": ("blocked", "заблокирован"),
        "field.contradicted_at": ("bank's contradiction", "расхождение с банком"),
        "field.contradiction_seen": ("difference settled", "расхождение закрыто"),
        "field.currency": ("currency", "валюта"),
        "field.cutoff": ("up to", "по"),
        "field.direct_links": ("direct bank links", "прямые ссылки банков"),
        "field.direction": ("direction", "направление"),
        "field.disabled_at": ("switched off", "выключено"),
        "field.email": ("e-mails", "письма"),
        "field.enabled": ("switched on", "включено"),
        "field.endpoint_id": ("endpoint", "адрес"),
        "field.ends_at": ("works until", "действует до"),
        "field.exchange": ("exchanges", "обмены"),
        "field.exchange_markup_percent": ("fee of exchanges, %", "комиссия обменов, %"),
        "field.failure_reason": ("reason", "причина"),
        "field.former_until": ("old one works until", "прежний действует до"),
        "field.header_names": ("headers", "заголовки"),
        "field.kind": ("kind", "вид"),
        "field.kyc": ("verification", "проверка клиентов"),
        "field.kyc_flow": ("way of verification", "способ проверки"),
        "field.kyc_open_page": ("verification page", "страница проверки"),
        "field.label": ("name", "название"),
        "field.links": ("links sent", "отправлено ссылок"),
        "field.live": ("live mode", "боевой режим"),
        "field.markup": ("fee", "комиссия"),
        "field.metadata_kb_max": ("metadata, KB", "метаданные, КБ"),
        "field.mode": ("mode", "режим"),
        "field.name": ("name", "название"),
        "field.network": ("network", "сеть"),
        "field.next_probe_at": ("next try", "следующая попытка"),
        "field.notes": ("notes", "заметок"),
        "field.payout_wallet": ("wallet for payouts", "кошелёк для выплат"),
        "field.pending_reason": ("waits because of", "ждёт из-за"),
        "field.probes": ("tries", "попыток"),
        "field.proof_reminders": ("reminders of delivery proofs", "напоминания о доставке"),
        "field.quiet_from": ("quiet from", "тишина с"),
        "field.quiet_to": ("quiet to", "тишина до"),
        "field.rate_market": ("rate", "курс"),
        "field.reason": ("reason", "причина"),
        "field.rebind_required": ("needs new consent", "нужно новое согласие"),
        "field.receipt_email": ("mail for receipts", "почта для чеков"),
        "field.receipt_mode": ("receipt: way of payment", "чек: способ расчёта"),
        "field.receipt_subject": ("receipt: subject", "чек: предмет"),
        "field.receipt_tax_system": ("receipt: tax system", "чек: система налогов"),
        "field.receipt_vat": ("receipt: VAT", "чек: НДС"),
        "field.recurring": ("charges of subscriptions", "списания по подпискам"),
        "field.refund_approval": ("approval of refunds", "одобрение возвратов"),
        "field.refund_overdraft_usdt": ("overdraft for refunds, USDT", "в долг на возвраты, USDT"),
        "field.refund_pending": ("being refunded", "возвращается"),
        "field.refund_reserve": ("reserve for refunds", "резерв на возвраты"),
        "field.refunds": ("refunds by API", "возвраты по API"),
        "field.resolved_at": ("decided", "решено"),
        "field.return_url": ("return address", "адрес возврата"),
        "field.revoked_at": ("revoked", "отозвано"),
        "field.rights": ("rights", "права"),
        "field.role": ("role", "роль"),
        "field.second_person": ("second person", "второй человек"),
        "field.security": ("version of the sign-in", "версия входа"),
        "field.sent": ("sent", "отправлено"),
        "field.shops": ("shops", "магазины"),
        "field.status": ("status", "статус"),
        "field.stopped": ("stopped", "остановлено"),
        "field.subscription_scheme": ("kind of subscriptions", "вид подписок"),
        "field.suspended": ("waits for an operator", "ждёт оператора"),
        "field.telegram": ("Telegram", "Telegram"),
        "field.terminals": ("choice of terminals", "выбор терминала"),
        "field.test": ("test mode, too", "и тестовый режим"),
        "field.total": ("of", "из"),
        "field.ttl_minutes_max": ("longest life of a payment, minutes", "срок платежа, минут"),
        "field.type": ("type", "тип"),
        "field.webhook_events": ("types of events", "типы событий"),
        "field.webhook_header_names": ("headers", "заголовки"),
        "field.webhook_secret_set": ("webhook secret set", "секрет вебхуков задан"),
        "field.webhook_url": ("webhook address", "адрес вебхуков"),
    }
)
"""Fields of the records in core/domain/operators/audit.py that belong to an account."""

_FIELD = re.compile(r"(?:^| )([a-z_]+)=")
_WORDS = {"true": "yes", "false": "no", "test": "mode.test", "live": "mode.live"}


def described(ask: Ask, text: str) -> str | None:
    """Return the fields of a row of the audit log in people's words. `text`: as the log has it,
    `role=viewer live=true`."""
    parts = _FIELD.split(text)
    found = [
        f"{ask.t.of('field', name)}: {word_of(ask, name, value)}"
        for name, value in zip(parts[1::2], parts[2::2], strict=True)
    ]
    return "; ".join(found) or text or None


def word_of(ask: Ask, name: str, value: str) -> str:
    """Return the value of a field in people's words."""
    if value in _WORDS:
        return ask.t(_WORDS[value])
    if name == "rights":
        return ", ".join(ask.t.of("right", each) for each in value.split(","))
    key = f"{name}.{value}"
    return ask.t.of(name, value) if key in PAIRS else "–" if value == "-" else value
