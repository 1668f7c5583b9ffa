"""The API as collections of API clients: one file for Postman, a folder for Bruno (docs/versioning.md "The API").

Both have every operation with its example, in the groups of the reference. Addresses, keys and ids are variables; a
script after each answer keeps the id of a new object for the requests that follow.
"""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from .docs_model import Reference, Shown
from .samples import pretty

_SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_KEYS = ("api_key", "api_secret")
_HEADERS = {"X-Api-Key": "{{api_key}}", "X-Api-Secret": "{{api_secret}}"}
_NEW_KEY = "{{$guid}}"
"""A new UUID for each request, in both programs."""
_NO_ID = "none"
"""First value of an id. An empty one would lead to another operation's path."""
_NAMED = re.compile(r"\{(\w+)\}")
_SANDBOX = "/sandbox"
_ABOUT = (
    "Set the variables base_url, api_key and api_secret; take a test key. A request that creates something sends a new "
    "Idempotency-Key each time: write a UUID in its place to repeat the request safely. Ids of new objects are kept in "
    "variables, so that the requests below find them."
)
_UNSAFE_NAME = re.compile(r"[^\w ,()'-]+")


class _Sent(msgspec.Struct, frozen=True, kw_only=True):
    """One request of both collections."""

    name: str
    method: str
    path: str
    """Path with `{{variables}}`."""
    headers: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    """Names and meanings of the query's parameters, none of which is required."""
    body: str
    """JSON with `{{variables}}`; empty: none."""
    about: str
    statuses: Sequence[int]
    """Documented statuses of an answer."""
    keeps: str | None
    """Variable that keeps the id of the answer's object."""


def postman(reference: Reference) -> dict[str, Any]:
    """Return the collection in Postman's format 2.1."""
    groups = [{"name": name, "item": [_item(each) for each in sent]} for name, sent in _groups(reference)]
    return {
        "info": {"name": reference.title, "description": _ABOUT, "schema": _SCHEMA},
        "item": groups,
        "variable": [{"key": name, "value": value} for name, value in _variables(reference).items()],
    }


def bruno(reference: Reference) -> dict[str, str]:
    """Return the files of Bruno's collection by path."""
    about = {"version": "1", "name": reference.title, "type": "collection", "ignore": []}
    variables = "\n".join(f"  {name}: {value}" for name, value in _variables(reference).items() if name not in _KEYS)
    secrets = ",\n".join(f"  {name}" for name in _KEYS)
    files = {
        "bruno.json": pretty(about) + "\n",
        "collection.bru": _text_block("docs", _ABOUT),
        "environments/cambist.bru": f"vars {{\n{variables}\n}}\n\nvars:secret [\n{secrets}\n]\n",
    }
    for place, (name, sent) in enumerate(_groups(reference), 1):
        files[f"{name}/folder.bru"] = f"meta {{\n  name: {name}\n  seq: {place}\n}}\n"
        for number, each in enumerate(sent, 1):
            files[f"{name}/{number:02} {_UNSAFE_NAME.sub('', each.name)}.bru"] = _bru(each, number)
    return files


def bruno_zip(reference: Reference) -> bytes:
    """Return Bruno's collection as a folder in a ZIP file, the same bytes each time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in bruno(reference).items():
            archive.writestr(zipfile.ZipInfo(f"{reference.title}-bruno/{path}"), text, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _variables(reference: Reference) -> dict[str, str]:
    """Return the variables with their first values: address, keys, and the ids in paths."""
    paths = " ".join(each.path for _, sent in _groups(reference) for each in sent)
    ids = dict.fromkeys(re.findall(r"{{(\w+)}}", paths), _NO_ID)
    return {"base_url": reference.base_url, **dict.fromkeys(_KEYS, ""), **ids}


def _groups(reference: Reference) -> Iterator[tuple[str, Sequence[_Sent]]]:
    operations = [each for group in reference.groups for each in group.shown if each.calls]
    lists = [(each.path.replace(_SANDBOX, "").rpartition("/{")[0], _NAMED.findall(each.path)) for each in operations]
    named = {path: found[-1] for path, found in lists if found}
    ids = {name for each in operations for name in _NAMED.findall(each.path)}
    for group in reference.groups:
        # Deletions come last, so that a run in this order finds its objects.
        shown = sorted(group.shown, key=lambda each: each.method == "DELETE")
        sent = [_sent(each, named, ids) for each in shown if each.calls]
        if sent:
            yield group.name, sent


def _sent(shown: Shown, named: Mapping[str, str], ids: set[str]) -> _Sent:
    headers = dict(_HEADERS) if shown.is_keyed else {}
    if shown.creates:
        headers["Idempotency-Key"] = _NEW_KEY
    if shown.request:
        headers["Content-Type"] = "application/json"
    statuses = [*(each.status for each in shown.good), *(each.status for each in shown.problems)]
    return _Sent(
        name=shown.summary.replace("`", ""),
        method=shown.method,
        path=_NAMED.sub(r"{{\1}}", shown.path),
        headers=headers,
        query=[(each.name, each.meaning) for each in shown.parameters if each.where == "query"],
        body=_with_ids(shown.request, ids),
        about=f"{shown.method} {shown.path}: `{shown.id}` in the reference at {{{{base_url}}}}/docs",
        statuses=sorted({int(status) for status in statuses}),
        keeps=named.get(shown.path.replace(_SANDBOX, "")),
    )


def _with_ids(body: str, ids: set[str]) -> str:
    """Put variables in the place of the ids of an example."""
    names = "|".join(sorted(ids))
    return re.sub(rf'"({names})": "[^"]*"', r'"\1": "{{\1}}"', body)


def _script(sent: _Sent, answer: str, keep: str) -> list[str]:
    """Return the lines that keep an id: the new object's, or that of a list's first object."""
    if sent.keeps is None:
        return []
    found = answer if sent.method == "POST" else f"({answer}.data || [])[0]"
    id_ = f"found && (found.id || found.{sent.keeps})"
    return [f"const found = {found};", f"const id = {id_};", f"if (id) {keep.format(sent.keeps, 'id')};"]


def _item(sent: _Sent) -> dict[str, Any]:
    statuses = ", ".join(map(str, sent.statuses))
    script = [f'pm.test("the status is documented", () => pm.expect(pm.response.code).to.be.oneOf([{statuses}]));']
    kept = _script(sent, "pm.response.json()", 'pm.collectionVariables.set("{}", {})')
    if kept:
        script += ["if (pm.response.code < 300) {", *(f"  {line}" for line in kept), "}"]
    raw = f"{{{{base_url}}}}{sent.path}"
    request: dict[str, Any] = {
        "method": sent.method,
        "header": [{"key": name, "value": value} for name, value in sent.headers.items()],
        "url": {"raw": raw, "host": ["{{base_url}}"], "path": sent.path.split("/")[1:]},
        "description": sent.about,
    }
    if sent.query:
        query = [{"key": name, "value": "", "description": about, "disabled": True} for name, about in sent.query]
        request["url"]["query"] = query
    if sent.body:
        request["body"] = {"mode": "raw", "raw": sent.body, "options": {"raw": {"language": "json"}}}
    event = {"listen": "test", "script": {"type": "text/javascript", "exec": script}}
    return {"name": sent.name, "event": [event], "request": request, "response": []}


def _bru(sent: _Sent, number: int) -> str:
    body = "json" if sent.body else "none"
    blocks = [
        f"meta {{\n  name: {sent.name}\n  type: http\n  seq: {number}\n}}\n",
        f"{sent.method.lower()} {{\n  url: {{{{base_url}}}}{sent.path}\n  body: {body}\n  auth: none\n}}\n",
    ]
    if sent.query:
        blocks.append(_pairs("params:query", {f"~{name}": "" for name, _ in sent.query}))
    if sent.headers:
        blocks.append(_pairs("headers", sent.headers))
    if sent.body:
        blocks.append(_text_block("body:json", sent.body))
    kept = _script(sent, "res.body", 'bru.setVar("{}", {})')
    if kept:
        lines = ["if (res.status < 300) {", *(f"  {line}" for line in kept), "}"]
        blocks.append(_text_block("script:post-response", "\n".join(lines)))
    statuses = ", ".join(map(str, sent.statuses))
    test = f'test("the status is documented", () => expect([{statuses}]).to.include(res.status));'
    blocks.append(_text_block("tests", test))
    blocks.append(_text_block("docs", "\n".join([sent.about, *(f"\n- {name}: {about}" for name, about in sent.query)])))
    return "\n".join(blocks)


def _pairs(name: str, values: Mapping[str, str]) -> str:
    lines = "\n".join(f"  {key}: {value}".rstrip() for key, value in values.items())
    return f"{name} {{\n{lines}\n}}\n"


def _text_block(name: str, text: str) -> str:
    lines = "\n".join(f"  {line}".rstrip() for line in text.splitlines())
    return f"{name} {{\n{lines}\n}}\n"
