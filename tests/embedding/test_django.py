"""The Django app, by its example shop and its commands: docs/django.md."""

import os
import subprocess
import sys
from pathlib import Path

SHOP = Path(__file__).parents[2] / "examples" / "django_shop"


def manage(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of the shop's project. Deprecations of Django are errors."""
    program = [sys.executable, "-W", "error::DeprecationWarning:django", "manage.py", *arguments]
    return subprocess.run(
        program, cwd=SHOP, env={**os.environ, **environ}, capture_output=True, text=True, timeout=120, check=False
    )


def test_shop_passes_its_own_tests_and_checks(tmp_path: Path) -> None:
    done = manage("test", SHOP_DB=str(tmp_path / "shop.sqlite3"))
    assert done.returncode == 0, done.stderr
    assert "Ran 10 tests" in done.stderr
    missing = manage("makemigrations", "--check", "--dry-run", SHOP_DB=":memory:")
    assert missing.returncode == 0, missing.stdout


WRONG: list[tuple[dict[str, str], list[str]]] = [
    ({}, ["cambist.E001"]),
    ({"URL": "http://x", "DATABASE": "memory://"}, ["cambist.E001"]),
    ({"URL": "http://x", "API_KEY": "k"}, ["cambist.E001"]),
    ({"URI": "http://x"}, ["cambist.E001"]),
    ({"DATABASE": "memory://"}, ["cambist.E001"]),
    ({"DATABASE": "memory://", "ACCOUNT": "acc_1"}, ["cambist.W001", "cambist.W002"]),
]
CHECKS = f"""
from django.core.checks import run_checks
from django.test import override_settings
for given in {[given for given, _ in WRONG]}:
    with override_settings(CAMBIST=given):
        print(">", *(each.id for each in run_checks() if each.id.startswith("cambist.")))
"""


def test_check_reports_a_wrong_setting() -> None:
    """All in one process: each start takes half a second."""
    done = manage("shell", "-c", CHECKS)
    told = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith(">")]
    assert told == [codes for _, codes in WRONG], done.stderr


STORY = """
from wsgiref.util import setup_testing_defaults
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
import asyncio, logging
import httpx
from cambist.django.embedded import asgi, service, wsgi
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from shop.models import Order

order = Order.objects.create(price="490.00")
page = order.pay()
account = service().merchant(settings.CAMBIST["ACCOUNT"])
account.simulate(order.payment_id, "paid")
service().run_due()
order.refresh_from_db()
assert (order.payment_status, order.shipped) == ("paid", True), order.payment_status
order.refund("90.00")
application = wsgi(get_wsgi_application())
told = []
environ = {"PATH_INFO": "/pay" + page.partition("/pay")[2], "HTTP_HOST": "shop.example"}
setup_testing_defaults(environ)
body = b"".join(application(environ, lambda status, *_: told.append(status)))
assert told == ["200 OK"], told


async def asked() -> None:
    application = asgi(get_asgi_application(), prefix="/pay/")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://shop.example") as http:
        assert "490,00" in (await http.get(page)).text
        assert (await http.get("/payments")).status_code == 404, "a path of Django's"
    messages = iter(["lifespan.startup", "lifespan.shutdown"])
    sent = []

    async def receive() -> dict[str, str]:
        return {"type": next(messages)}

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    await application({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


logging.disable()
asyncio.run(asked())
print("done")
"""


def test_embedded_service_sells_and_tells_the_project(tmp_path: Path) -> None:
    """One process: the service, its events in the project's database, and the payer window under WSGI."""
    database = f"sqlite:///{tmp_path}/pay.db"
    given = {
        "DATABASE": database,
        "BASE_URL": "http://shop.example/pay",
        "VAULT_KEY": "ab" * 32,
        "VAULT_PEPPER": "cd" * 32,
    }
    lines = (
        "from settings import *",
        f"CAMBIST = {given!r}",
        f"DATABASES['default']['NAME'] = {str(tmp_path / 'shop.sqlite3')!r}",
    )
    (tmp_path / "other_settings.py").write_text("\n".join(lines))
    environ = {"DJANGO_SETTINGS_MODULE": "other_settings", "PYTHONPATH": os.pathsep.join((str(tmp_path), str(SHOP)))}
    made = [manage("cambist_account", "Shop", **environ) for _ in range(2)]
    [account] = {each.stdout.strip() for each in made}
    assert account.startswith("acc_"), made[0].stderr
    (tmp_path / "other_settings.py").write_text("\n".join((*lines, f"CAMBIST['ACCOUNT'] = {account!r}")))
    story = f"from django.conf import settings\n{STORY}"
    done = subprocess.run(
        [sys.executable, "-c", story],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("done", "")
