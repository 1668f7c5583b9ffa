"""Texts of the payer's page of a payment link, one table per language, in addition to the payer window's."""

from collections.abc import Mapping

from .window_texts import EN, RU

_RU: Mapping[str, str] = {
    "title": "{description} — {shop}",
    "active_head": "Оплата",
    "amount_field": "Сумма, ₽",
    "amount_note": "От {low} до {high}",
    "optional": "необязательно",
    "pay": "Перейти к оплате",
    "pay_amount": "Оплатить {amount}",
    "used_up_head": "По этой ссылке больше не платят",
    "used_up_text": "По ней уже пришли все платежи, которых ждал магазин.",
    "paid_head": "Уже оплачено",
    "paid_text": "По этой ссылке платят один раз, и платёж уже прошёл. Платить ещё раз не нужно.",
    "expired_head": "Срок ссылки истёк",
    "expired_text": "Попросите в магазине новую ссылку.",
    "archived_head": "Ссылка больше не действует",
    "archived_text": "Магазин закрыл её. Если вы собирались платить, спросите в магазине.",
    "fault_missing": "Заполните это поле.",
    "fault_too_long": "Слишком длинно, или есть недопустимые знаки.",
    "fault_no_email": "Это не похоже на адрес почты.",
    "fault_no_phone": "Нужен номер телефона, например +7 900 123-45-67.",
    "fault_no_amount": "Нужна сумма, например 1500 или 1500,50.",
    "fault_too_low": "Не меньше {low}.",
    "fault_too_high": "Не больше {high}.",
    "problem_busy": "Слишком много платежей за минуту. Попробуйте ещё раз чуть позже.",
    "problem_full": "По этой ссылке сейчас платят другие. Попробуйте ещё раз через несколько минут.",
    "problem_away": "Сейчас магазин не может принять этот платёж. Попробуйте ещё раз через несколько минут.",
    "link_label": "Номер ссылки",
}

_EN: Mapping[str, str] = {
    "title": "{description} — {shop}",
    "active_head": "Payment",
    "amount_field": "Amount, ₽",
    "amount_note": "From {low} to {high}",
    "optional": "optional",
    "pay": "Continue to the payment",
    "pay_amount": "Pay {amount}",
    "used_up_head": "This link takes no more payments",
    "used_up_text": "The shop has received all the payments that it expected.",
    "paid_head": "Already paid",
    "paid_text": "This link is for one payment, and it was made. You need not pay again.",
    "expired_head": "This link has expired",
    "expired_text": "Ask the shop for a new link.",
    "archived_head": "This link is closed",
    "archived_text": "The shop closed it. If you meant to pay, ask the shop.",
    "fault_missing": "Fill in this field.",
    "fault_too_long": "It is too long, or has characters that are not allowed.",
    "fault_no_email": "This is no e-mail address.",
    "fault_no_phone": "Enter a phone number, such as +7 900 123-45-67.",
    "fault_no_amount": "Enter an amount, such as 1500 or 1500.50.",
    "fault_too_low": "At least {low}.",
    "fault_too_high": "At most {high}.",
    "problem_busy": "Too many payments within a minute. Try again in a moment.",
    "problem_full": "Others are paying by this link at the moment. Try again in a few minutes.",
    "problem_away": "The shop cannot take this payment at the moment. Try again in a few minutes.",
    "link_label": "Link number",
}

LINK_TEXTS: Mapping[str, Mapping[str, str]] = {"ru": {**RU, **_RU}, "en": {**EN, **_EN}}
