"""Every command of README.md on a new Debian that has Python and what README asks for, and nothing else.

`nox -s bare` runs it; `BARE_TESTS=all` runs README's second command with the whole suite instead of a folder.
"""

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.bare_debian import HOME, Debian, Ran, bare_debian, on_disk, require_root_and_debootstrap
from tests.distributions import ROOT, build, copy_of_sources
from tests.docs.test_blocks import ALL, Block
from tests.patience import drill_of, promised

FIRST_LINE_WITHIN = 10.0
"""Seconds from the installation to the first line of the tour."""
README = (ROOT / "README.md").read_text("utf-8")
PAGE = ALL["README.md"]
SHELL = [block for block in PAGE if block.language == "sh"]
PROGRAMS = {"python3", "curl", "cambist", ".", ".venv/bin/cambist", ".venv/bin/pip", ".venv/bin/pytest", "umask"}
"""What a reader of README can start: Debian's packages that it names, the shell, and its own environment."""
FOLLOWS = {"cambist serve", "cambist listen", "cambist mcp"}
"""Commands that work until they are stopped; README shows them in a block, or they have stories of their own."""
ARGUMENTS = {"cambist backup": "../first-backup"}
"""What a sentence leaves out of a command."""
RECEIVER = """
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(receive(dict(self.headers), body))
        self.end_headers()


HTTPServer(("127.0.0.1", 3000), Handler).handle_request()
"""


def debian_packages() -> list[str]:
    """Return the packages that README tells a reader to install."""
    [named] = re.findall(r"on Debian also `apt install ([a-z0-9 -]+)`", README)
    return str(named).split()


def inline_commands() -> set[str]:
    """Return the commands in README's sentences, without their options."""
    found = re.findall(r"`(cambist(?:\s[a-z]+)+)[^`]*`", README)
    return {" ".join(each.split()) for each in found}


def programs_of(block: Block) -> set[str]:
    """Return the first words of a block's commands."""
    text = re.sub(r"#.*|\\\n|'[^']*'|\"(?:[^\"$]|\$\([^)]*\))*\"", " ", block.text)
    commands = re.split(r"\n|&&|;", text)
    return {words[0].lstrip("(") for each in commands if (words := each.split())}


def test_readme_s_commands_need_what_it_names_and_no_more() -> None:
    assert {"python3-venv", "curl"} == set(debian_packages())
    started = set[str]().union(*map(programs_of, SHELL))
    assert {"python3", "curl", "cambist"} <= started <= PROGRAMS


@drill_of("the test above")
@pytest.mark.timeout(3600)
def test_readme_s_commands_run_on_a_debian_with_python_alone() -> None:
    require_root_and_debootstrap()
    with on_disk() as folder:
        _try(folder)


def _try(folder: Path) -> None:
    debian = bare_debian(folder / "debian", debian_packages())
    print(f"\nDebian with {' and '.join(debian_packages())}: {debian.megabytes('/')} MB")
    copy_of_sources(folder / "source")
    build(folder / "source", folder / "dist")
    home = debian.root / HOME.lstrip("/")
    [wheel] = (folder / "dist").glob("*.whl")
    shutil.copy(wheel, home)
    for leftover in ("build", "cambist.egg-info"):
        shutil.rmtree(folder / "source" / leftover)
    shutil.copytree(folder / "source", home / "cambist", symlinks=True)
    assert debian.run(f"chown -R reader: {HOME}", user="root").status == 0

    _from_the_wheel(debian, wheel.name)
    _first_command(debian)
    _second_command(debian)
    _service(debian)
    _client(debian)


def _from_the_wheel(debian: Debian, wheel: str) -> None:
    """docs/installation.md "pip"."""
    installed = debian.run(f"python3 -m venv venv && venv/bin/pip install -q './{wheel}[server]'", network=True)
    assert installed.status == 0, installed.output
    tour = debian.run("venv/bin/cambist demo")
    _check_tour(tour)
    size = debian.megabytes(f"{HOME}/venv")
    print(f"from the wheel: installed in {installed.seconds:.0f} s, {size} MB; the tour's first line after "
          f"{tour.first_line:.1f} s, its last after {tour.seconds:.1f} s")  # fmt: skip
    assert tour.first_line <= promised(FIRST_LINE_WITHIN)


def _first_command(debian: Debian) -> None:
    [block] = [each for each in SHELL if "cambist demo" in each.text]
    done = debian.run(f"cd cambist\n{block.text}", network=True)
    _check_tour(done)
    assert done.first_line > 0
    print(f"README's first command: {done.seconds:.0f} s, {debian.megabytes(f'{HOME}/cambist/.venv')} MB; its first "
          f"line after {done.first_line:.0f} s")  # fmt: skip


def _second_command(debian: Debian) -> None:
    """In a folder of its own, so that the service later runs in the environment of the first command."""
    [block] = [each for each in SHELL if "pytest" in each.text]
    tests = "" if os.environ.get("BARE_TESTS") == "all" else " -q tests/domain tests/http/test_refunds.py"
    text = block.text.replace("pytest -n auto", f"pytest -n auto{tests}")
    done = debian.run(f"cp -r cambist tested && cd tested && rm -rf .venv\n{text}", network=True)
    closing = done.output.rstrip().rpartition("\n")[2]
    assert done.status == 0, done.output[-5000:]
    print(f"README's second command{tests}: {closing}; {debian.megabytes(f'{HOME}/tested/.venv')} MB")


def _service(debian: Debian) -> None:
    """README from "Run it" on, without a network but the loopback's."""
    [program] = [block.text for block in PAGE if block.language == "python"]
    (debian.root / HOME.lstrip("/") / "receiver.py").write_text(program + RECEIVER, "utf-8")
    blocks = [each.text for each in SHELL if "cambist demo" not in each.text and "pytest" not in each.text]
    assert any("cambist serve" in each for each in blocks)
    parts = ["cd cambist && . .venv/bin/activate && set -e"]
    for text in blocks:
        if "curl" in text:
            parts += [f"payment=$({text})", 'echo "$payment"', _PAY_LATER]
        elif "--generate-secret" in text:
            parts += [f"told=$({text})", _RECEIVE]
        else:
            parts.append(re.sub(r"^cambist serve.*$", _SERVE, text, flags=re.MULTILINE))
    others = sorted(inline_commands() - FOLLOWS - {"cambist demo"})
    assert {"cambist backup", "cambist config check", "cambist doctor", "cambist ledger verify"} <= set(others)
    parts += [f'echo "== {each}"; {each} {ARGUMENTS.get(each, "")} || echo "{each}: exit $?"' for each in others]
    done = debian.run("\n".join(parts), limit=300)
    assert done.status == 0, done.output
    assert '"status":"pending"' in done.output.replace(": ", ":"), done.output
    assert "invite_url" in done.output
    assert "new, or seen before? " in done.output, done.output
    refused = re.findall(r"^(cambist .+): exit (\d+)$", done.output, re.MULTILINE)
    assert not [each for each in refused if each[0] != "cambist doctor"], done.output
    print(f'README from "Run it" on, {len(blocks)} blocks and {", ".join(others)}: {done.seconds:.0f} s')


def _client(debian: Debian) -> None:
    """The client in a program's own environment."""
    assert "pip install '/path/to/clone[client]'" in README
    installed = debian.run("python3 -m venv mine && mine/bin/pip install -q './cambist[client]'", network=True)
    assert installed.status == 0, installed.output
    # From elsewhere: the folder of the clone has the package's name.
    used = debian.run("cd /tmp && ~/mine/bin/python -c 'import cambist.client'")
    assert used.status == 0, used.output
    print(f"the client: installed in {installed.seconds:.0f} s, {debian.megabytes(f'{HOME}/mine')} MB")


_SERVE = (
    "cambist serve >serve.log 2>&1 &\n"
    "curl -s -o /dev/null --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:8080/readyz"
)
_PAY_LATER = 'id=$(echo "$payment" | python3 -c \'import json, sys; print(json.load(sys.stdin)["id"])\')'
_RECEIVE = """
export WEBHOOK_SECRET=$(echo "$told" | awk '$1 == "webhook_secret" {print $2}' | tail -n 1)
python3 ../receiver.py &
receiver=$!
curl -s -o /dev/null http://127.0.0.1:8080/api/v1/sandbox/payments/$id/simulate \\
  -H "X-Api-Key: $API_KEY" -H "X-Api-Secret: $API_SECRET" -H 'Content-Type: application/json' -d '{"outcome": "paid"}'
wait $receiver
"""


def _check_tour(done: Ran) -> None:
    assert done.status == 0, done.output
    assert "The tour is over" in done.output, done.output
