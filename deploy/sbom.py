"""The software bill of materials of the image, in CycloneDX' JSON: what the lock file names, and who asked for it.

`python deploy/sbom.py FILE` writes it (`nox -s sbom`; the image has its own in /opt/cambist). It says the same for the
same lock: no clock and no chance are in it.
"""

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "deploy" / "requirements.lock"
OWN = "cambist"

_PIN = re.compile(r"([a-z0-9-]+)==([A-Za-z0-9.!+]+)(?: ; (.+?))? \\\Z")
_HASH = re.compile(r" {4}--hash=sha256:([0-9a-f]{64})(?: \\)?\Z")
_WANTED_BY = re.compile(r" {4}#(?: via)?(?: {1,3}([a-z0-9-]+)(?: \(.+\))?)?\Z")


class Pin(NamedTuple):
    """One package of the lock."""

    name: str
    version: str
    marker: str
    hashes: list[str]
    """SHA-256 of each file that may be installed."""
    wanted_by: list[str]
    """Names of packages, `cambist` among them."""


def read_lock(text: str) -> list[Pin]:
    """The pins of a lock file. Raises: ValueError for a line that is none of one, an address of an index among them."""
    pins: list[Pin] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if found := _PIN.match(line):
            pins.append(Pin(found[1], found[2], found[3] or "", [], []))
        elif pins and (found := _HASH.match(line)):
            pins[-1].hashes.append(found[1])
        elif pins and (found := _WANTED_BY.match(line)):
            pins[-1].wanted_by.extend(filter(None, [found[1]]))
        else:
            raise ValueError(f"no line of a lock file: {line!r}")
    return pins


def bill(pins: Sequence[Pin], version: str) -> dict[str, Any]:
    """The document, of what is installed for this version of the service."""

    def reference(name: str, version: str) -> str:
        return f"pkg:pypi/{name}@{version}"

    own = reference(OWN, version)
    references = {OWN: own, **{pin.name: reference(pin.name, pin.version) for pin in pins}}
    needs: dict[str, list[str]] = {each: [] for each in references}
    for pin in pins:
        for asker in references.keys() & pin.wanted_by:  # others are left out of the lock
            needs[asker].append(references[pin.name])
    what = "\n".join([own, *(f"{references[pin.name]} {' '.join(pin.hashes)}" for pin in pins)])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, what)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": OWN,
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": references[pin.name],
                "name": pin.name,
                "version": pin.version,
                "purl": references[pin.name],
            }
            for pin in pins
        ],
        "dependencies": [{"ref": references[name], "dependsOn": sorted(asked)} for name, asked in needs.items()],
    }


def main(into: Path) -> None:
    """Write the bill of the lock beside this file."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    document = bill(read_lock(LOCK.read_text("utf-8")), version)
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_text(f"{json.dumps(document, indent=2)}\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
