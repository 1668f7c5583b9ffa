"""GET /docs and the pages below it: the whole interface, a page for each subject, which load nothing from other
servers."""

import re

import pytest

from cambist.core.domain.errors import CATALOGUE
from cambist.frontends.http.openapi.openapi import openapi_document
from tests.apps import TestApp

_LOADED = re.compile(r"""(?:src|href)="([^"#][^"]*)"|url\(([^)]*)\)|@import|XMLHttpRequest""")


async def test_docs_need_no_key_and_are_not_counted(app: TestApp) -> None:
    response = await app.http.get("/docs")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "x-ratelimit-limit" not in response.headers
    assert (await app.http.head("/docs")).status_code == 200


async def pages(app: TestApp) -> dict[str, str]:
    """The pages of all subjects by path, which the first page links to."""
    first = (await app.http.get("/docs")).text
    paths = sorted(set(re.findall(r'href="docs/reference/(\w+)"', first)))
    return {path: (await app.http.get(f"/docs/reference/{path}")).text for path in paths}


@pytest.mark.parametrize("path", ["/docs", "/docs/reference/payments"])
async def test_nothing_from_elsewhere_may_run_or_be_loaded(app: TestApp, path: str) -> None:
    response = await app.http.get(path)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    texts = [response.text]
    found = {each[1] for each in _LOADED.finditer(response.text) if each[1]}
    loaded = {address.removeprefix("../" * (path.count("/") - 1)) for address in found}
    for address in loaded - {"openapi.json", "docs/cambist.postman_collection.json", "docs/cambist-bruno.zip"}:
        if not address.startswith("docs/assets/"):
            assert re.match(r"docs(/[a-z]+)*(#\w+)?\Z", address), address
            continue
        asset = await app.http.get(f"/{address}")
        assert asset.status_code == 200, address
        assert "immutable" in asset.headers["cache-control"]
        texts.append(asset.text)
    assert len(texts) == (5 if path.count("/") > 1 else 4)
    for text in texts[1:]:
        assert not _LOADED.search(text)
    assert "<script>" not in response.text
    assert " style=" not in response.text


async def test_docs_show_every_operation_with_its_codes_and_every_event(app: TestApp) -> None:
    document = openapi_document(app.ports.urls.base_url)
    found = await pages(app)
    assert len(found) == len(document["tags"]) + 1
    articles = dict(re.findall(r'<article id="(\w+)">(.*?)</article>', "".join(found.values()), re.DOTALL))
    first = (await app.http.get("/docs")).text
    linked = {anchor: path for path, anchor in re.findall(r'href="docs/reference/(\w+)#(\w+)"', first)}
    assert linked.keys() == articles.keys()
    assert all(f'<article id="{anchor}">' in found[path] for anchor, path in linked.items())
    for methods in document["paths"].values():
        for operation in methods.values():
            article = articles.pop(operation["operationId"])
            for parameter in operation["parameters"]:
                assert f"<code>{parameter['name']}</code>" in article
            for response in operation["responses"].values():
                for code in response["content"].get("application/json", {}).get("examples", ()):
                    assert f"<code>{code}</code>" in article
                    assert CATALOGUE[code].status
    assert len(articles) == len(document["webhooks"])


async def test_objects_in_objects_are_spelled_out(app: TestApp) -> None:
    page = "".join((await pages(app)).values())
    assert "<code>payer.<wbr>full_name</code>" in page
    assert "<code>data[].<wbr>payment_url</code>" in page


@pytest.mark.parametrize("name", ["window.html", "..%2Fopenapi.py", "none.css"])
async def test_only_its_own_files_are_served(app: TestApp, name: str) -> None:
    assert (await app.http.get(f"/docs/assets/{name}")).status_code == 404


async def test_an_asset_asked_for_without_its_hash_is_not_kept(app: TestApp) -> None:
    assert (await app.http.get("/docs/assets/docs.css")).headers["cache-control"] == "no-cache"


async def test_a_code_of_two_statuses_has_the_advice_of_each(app: TestApp) -> None:
    """PAYMENT_ROUTE_UNAVAILABLE: no route is for good, a check that failed is not (docs/errors.md "All codes")."""
    page = "".join((await pages(app)).values())
    row = r"<tr><td>{}</td><td><a [^>]*><code>PAYMENT_ROUTE_UNAVAILABLE</code></a></td><td>.*?<em>(.*?)</em>"
    assert set(re.findall(row.format(400), page)) == {"Change the request."}
    assert set(re.findall(row.format(503), page)) == {"Try again later, with the same key."}


async def test_sidebar_names_the_operations_of_the_page(app: TestApp) -> None:
    page = (await pages(app))["refunds"]
    sidebar = page.partition("<nav")[2].partition("</nav>")[0]
    assert re.findall(r'href="#(\w+)"><span>(.*?)</span>', sidebar) == [
        ("create_refund", "Request a refund of the whole remainder or of a part"),
        ("list_refunds", "List refunds"),
        ("get_refund", "Get a refund"),
        ("cancel_refund", "Cancel a refund while it is pending"),
    ]


async def test_subject_that_is_not_there_is_not_found(app: TestApp) -> None:
    assert (await app.http.get("/docs/reference/none")).json()["error"]["code"] == "NOT_FOUND"
