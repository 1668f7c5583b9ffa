"""Clients by other authors work with our fake, so it follows Sumsub's protocol (docs/providers/sumsub.md "Tested and
untested").

The npm package is looked for where an earlier run put it, and else installed there, without running anything of it.
Where node or npm are missing the test is left out, but fails when CI is `true`, as in tests/servers.py."""

import asyncio
import fcntl
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import requests

from cambist.adapters.clock import SystemClock
from tests.kyc_kit import JPEG
from tests.patience import HANGS
from tests.providers.sumsub.fake import LEVEL, SECRET, TOKEN, FakeSumsub

EXTERNAL = "user-of-others"
SDK = "sumsub-node-sdk@2.0.0"
PROGRAM = """
const { sdk } = require("sumsub-node-sdk");
const [baseURL, appToken, secretKey, external, level, photo] = process.argv.slice(1);
(async () => {
  const sumsub = sdk({ baseURL, appToken, secretKey });
  const { data: made } = await sumsub.createApplicant(external, level, { phone: "+79001234567" });
  const images = [];
  for (const idDocType of ["PASSPORT", "SELFIE"]) {
    const image = Buffer.concat([Buffer.from(photo, "base64"), Buffer.from(idDocType)]);
    images.push((await sumsub.addIdDocument(made.id, { idDocType, country: "RUS" }, image)).data.imageId);
  }
  const found = (await sumsub.getApplicantByExternalUserId(external)).data.id;
  const steps = Object.keys((await sumsub.getRequiredIdDocsStatus(made.id)).data);
  const status = (await sumsub.getReviewStatus(made.id)).data.reviewStatus;
  const levels = (await sumsub.getApplicantLevels()).data.list.items.map((each) => each.name);
  const token = (await sumsub.generateAccessToken(external, level)).data.userId;
  const link = (await sumsub.generateWebSDKLink({ userId: external, levelName: level })).data.url;
  const twice = await sumsub.createApplicant(external, level, {}).catch((error) => error.response.status);
  const stranger = await sdk({ baseURL, appToken, secretKey: "another" }).getApplicant(made.id)
    .catch((error) => error.response.status);
  console.log(JSON.stringify({ id: made.id, images, found, steps, status, levels, token, link, twice, stranger }));
})();
"""


@pytest.fixture
async def fake() -> AsyncIterator[FakeSumsub]:
    async with FakeSumsub(SystemClock().now) as opened:
        yield opened


class ByRequests:
    """Signs as Sumsub's own Python example does: `requests` prepares the request, its path and body are signed."""

    def __init__(self, base: str) -> None:
        self._base = base

    def send(self, method: str, path: str, **more: Any) -> requests.Response:
        prepared = requests.Request(method, f"{self._base}{path}", **more).prepare()
        body = prepared.body or b""
        if isinstance(body, str):
            body = body.encode()
        assert isinstance(body, bytes), "what is sent in parts cannot be signed"
        seconds = str(int(time.time()))
        said = seconds.encode() + method.encode() + prepared.path_url.encode() + body
        prepared.headers["X-App-Token"] = TOKEN
        prepared.headers["X-App-Access-Ts"] = seconds
        prepared.headers["X-App-Access-Sig"] = hmac.new(SECRET.encode(), said, hashlib.sha256).hexdigest()
        with requests.Session() as session:
            session.trust_env = False
            return session.send(prepared, timeout=HANGS)


async def test_requests_signed_as_in_sumsub_s_python_example_are_taken(fake: FakeSumsub) -> None:
    client = ByRequests(fake.url)

    def example() -> tuple[requests.Response, ...]:
        json_type = {"Content-Type": "application/json", "Content-Encoding": "utf-8"}
        made = client.send(
            "POST",
            f"/resources/applicants?levelName={LEVEL}",
            params={"levelName": LEVEL},  # named twice there, too
            data=json.dumps({"externalUserId": EXTERNAL}),
            headers=json_type,
        )
        document = client.send(
            "POST",
            f"/resources/applicants/{made.json()['id']}/info/idDoc",
            data={"metadata": '{"idDocType":"PASSPORT", "country":"USA"}'},
            files=[("content", JPEG)],
        )
        status = client.send("GET", f"/resources/applicants/{made.json()['id']}/requiredIdDocsStatus")
        token = client.send(
            "POST",
            "/resources/accessTokens/sdk",
            data=json.dumps({"userId": EXTERNAL, "levelName": LEVEL}),
            headers=json_type,
        )
        return made, document, status, token

    made, document, status, token = await asyncio.to_thread(example)
    applicant = fake.world.named(EXTERNAL)
    assert made.json()["id"] == applicant.id
    assert document.headers["X-Image-Id"] == str(applicant.images[0].id)
    assert status.json()["IDENTITY"]["imageIds"] == [applicant.images[0].id]
    assert token.json()["token"].startswith("_action-")


async def test_the_npm_client_is_understood_and_a_wrong_secret_is_not(fake: FakeSumsub) -> None:
    folder = await asyncio.to_thread(_sdk)
    photo = "/9j/4AAA"
    arguments = (fake.url, TOKEN, SECRET, EXTERNAL, LEVEL, photo)
    node = await asyncio.create_subprocess_exec(
        "node", "-e", PROGRAM, *arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await asyncio.wait_for(node.communicate(), HANGS)
    assert node.returncode == 0, err.decode()
    applicant = fake.world.named(EXTERNAL)
    assert json.loads(out) == {
        "id": applicant.id,
        "images": [str(image.id) for image in applicant.images],
        "found": applicant.id,
        "steps": ["IDENTITY", "SELFIE"],
        "status": "init",
        "levels": list(fake.world.levels),
        "token": EXTERNAL,
        "link": "https://in.sumsub.com/websdk/p/sbx_00000001",
        "twice": 409,
        "stranger": 401,
    }
    assert [image.kind for image in applicant.images] == ["PASSPORT", "SELFIE"]


@cache
def _sdk() -> Path:
    """Return where the package is installed."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cambist-tests"
    folder = place / SDK.replace("@", "-")
    try:
        if shutil.which("node") is None:
            raise FileNotFoundError("node")
        place.mkdir(parents=True, exist_ok=True)
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                _install(folder)
    except (OSError, subprocess.SubprocessError) as error:
        reason = f"no {SDK}: it needs node, and npm to fetch it ({error})"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


def _install(folder: Path) -> None:
    """Install the package with its dependencies, completely or not at all. Raises: OSError,
    subprocess.SubprocessError."""
    fresh = folder.with_suffix(".fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    command = ["npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(fresh), SDK]
    subprocess.run(command, cwd=fresh, check=True, capture_output=True, timeout=HANGS)
    fresh.rename(folder)
