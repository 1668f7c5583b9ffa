"""Proofs of days' registers, checked by the script of docs/reports.md in a process of its own."""

import json
import random
import subprocess
import sys
from pathlib import Path

from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.recurring_jobs import start_recurring_jobs
from tests.apps import TestApp
from tests.docs.test_blocks import ROOT

DAY = 24 * 3600
SCRIPTS = [
    (ROOT / page).read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    for page in ("docs/reports.md", "docs/ru/reports.md")
]


def checked(folder: Path, csv: bytes, proof: object, key: str) -> bool:
    (folder / "verify.py").write_text(SCRIPTS[0])
    (folder / "register.csv").write_bytes(csv)
    (folder / "proof.json").write_text(json.dumps(proof))
    command = [sys.executable, "-I", "verify.py", "register.csv", "proof.json", key]
    return subprocess.run(command, cwd=folder, capture_output=True).returncode == 0


async def test_strangers_can_check_a_day_and_notice_every_forgery(app: TestApp, tmp_path: Path) -> None:
    assert SCRIPTS[0] == SCRIPTS[1]
    assert len(SCRIPTS[0].splitlines()) <= 80
    await start_recurring_jobs(app.ports)
    await create_account(app.ports, "Another")
    for number in range(4):
        await app.simulate((await app.created({"external_id": f"заказ, {number}"}))["id"], outcome="paid")
    await app.work(4 * DAY)
    heads = (await app.http.get("/api/v1/report-heads")).json()["data"]
    assert len({head["day"] for head in heads}) == len(heads) >= 3
    key = heads[0]["key"]
    days = (await app.get("/reports?kind=day")).json()["data"][::-1]
    for report in days[:3]:
        csv = (await app.get(f"/reports/{report['id']}/file")).content
        proof = (await app.get(f"/reports/{report['id']}/proof")).json()
        assert proof["head"] in {head["head"] for head in heads}
        assert checked(tmp_path, csv, proof, key), report
    csv = (await app.get(f"/reports/{days[0]['id']}/file")).content
    proof = (await app.get(f"/reports/{days[0]['id']}/proof")).json()
    lines = csv.split(b"\r\n")
    drawn = random.Random(7)
    forged = [
        (b"\r\n".join(lines[:1] + lines[2:]), proof, key),
        (b"\r\n".join(lines[:-2] + lines[-1:]), proof, key),
        (b"\r\n".join([lines[0], lines[2], lines[1], *lines[3:]]), proof, key),
        (csv.replace(b",receipt,", b",refund_taken,", 1), proof, key),
        (csv, proof, "00" * 32),
    ]
    for name in ("account", "day", "head", "signature", "salt", "link", "before"):
        text = proof[name]
        place = drawn.randrange(len(text))
        other = "1" if text[place] != "1" else "2"
        forged.append((csv, {**proof, name: text[:place] + other + text[place + 1 :]}, key))
    forged += [(csv, {**proof, "number": proof["number"] + 1}, key), (csv, {**proof, "index": proof["index"] ^ 1}, key)]
    forged.append((csv, {**proof, "path": proof["path"][:-1]}, key))
    for _ in range(12):
        row = drawn.randrange(1, len(lines) - 1)
        place = drawn.randrange(len(lines[row]))
        changed = bytes([lines[row][place] ^ 1])
        line = lines[row][:place] + changed + lines[row][place + 1 :]
        forged.append((b"\r\n".join([*lines[:row], line, *lines[row + 1 :]]), proof, key))
    assert [each for each in forged if checked(tmp_path, *each)] == []
