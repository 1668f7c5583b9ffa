"""The receiver of webhooks."""

import logging
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from ..client.webhooks import NotVerified, verify_webhook
from . import conf
from .events import handle

log = logging.getLogger("cambist.django")


@csrf_exempt
@require_POST
def hook(request: HttpRequest) -> HttpResponse:
    """Verify a webhook and handle its event. 400: the signature is wrong; 500, so that it comes again: a receiver
    failed."""
    headers: dict[str, Any] = dict(request.headers)
    try:
        webhook = verify_webhook(headers, request.body, conf.read()["WEBHOOK_SECRETS"])
    except NotVerified as fault:
        log.warning("a webhook was not accepted: %s", fault)
        return HttpResponse(status=400)
    handle(webhook.id, webhook.sequence, webhook.event.event, webhook.event)
    return HttpResponse(status=200)
