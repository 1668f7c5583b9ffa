"""Web addresses that are accepted, by the same rule for every input (docs/limits.md "Addresses")."""

import pytest

from cambist.core.domain.account_settings import read_settings
from cambist.core.domain.errors import Refusal
from cambist.core.domain.payer.kyc_page import return_address
from cambist.core.domain.payer.window import web_link
from cambist.core.domain.web_addresses import WEB_ADDRESS, in_punycode, is_web_address, web_address_fault
from cambist.core.usecases.accounts.shops import SHOP_SETTINGS
from tests.tables import table

TAKEN = (
    "https://shop.example", "HTTPS://Shop.Example/", "http://shop.example:8080/back?order=1&x={id}#top",
    "https://shop.example./", "https://xn--80a1acny.xn--p1ai/%D0%B4%D0%B0", "http://127.0.0.1:3000/hooks",
    "https://[::1]/", "https://[2001:db8::1]:8443/", "https://my_shop/", "https://shop.example:443",
    "https://1shop.example/", "https://shop.example/@user:1", "https://shop.example/a//b/../c", "https://shop.example:/",
    f"https://{'a.' * 126}a", "https://shop.example/".ljust(2048, "x"),
)  # fmt: skip

REFUSED = (
    "", "shop.example", "//shop.example", "/path", "https:", "https:/shop.example", "https://", "https:///path", "https://?x",
    "ftp://shop.example", "javascript:alert(1)", "JaVaScRiPt://shop.example/%0aalert(1)", "data:text/html,x", "file:///etc/passwd",
    "bank100000000111://qr", "blob:https://shop.example/x", "view-source:https://shop.example",
    # a user or a password
    "http://a@b/", "https://a:b@c", "https://@shop.example", "https://:@shop.example/", "https://shop.example@evil.example",
    "https://shop.example%40evil.example/",
    # addresses that browsers read in another way
    "https://shop.example\\@evil.example", "https:\\\\shop.example", "https://shop.example/\\evil", " https://shop.example",
    "https://shop.example ", "https://shop example", "https://shop.example\n", "java\nscript:alert(1)", "https://sh\top.example",
    "https://shop.example/\r\nSet-Cookie: a=b", "https://shop.example/\0", "https://shop.example/\x7f", "https://shop.example/\x85",
    # no host
    "http://%00", "https://%73hop.example", "https://.", "https://..", "https://.shop.example", "https://shop..example",
    "https://shop,example", "https://shop!/", "https://<b>/", "https://sh*p.example", f"https://{'a' * 64}.example",
    f"https://{'a.' * 126}aa", "https://кофе.example", "https://shop.example/кофе", "https://ⓢhop.example", "https://shop。example",
    # an IPv4 address in another form
    "http://2130706433", "http://127.1", "http://0x7f.1", "http://127.0.0.0x1", "http://0177.0.0.1",
    "http://127.0.0.256", "http://1.2.3.4.5",
    "http://127.0.0.1.1", "http://127.0.0.08",
    # an invalid IPv6 address
    "https://[::1", "https://::1/", "https://[]/", "https://[::1]x/", "https://x[::1]/", "https://[v1.x]/", "https://[::1%25lo]/",
    "https://[fe80::1%lo]/", "https://[shop.example]/", "https://[1:2]/",
    # a port
    "https://shop.example:0", "https://shop.example:00", "https://shop.example:65536", "https://shop.example:port",
    "https://shop.example:-1", "https://shop.example:8 0", "https://shop.example:1:2",
    "https://shop.example/".ljust(2049, "x"),
)  # fmt: skip


@table("address", TAKEN, ids=ascii)
def test_a_plain_address_is_taken_as_it_is(address: str) -> None:
    assert is_web_address(address)
    assert web_link(address) == address
    assert read_settings({"webhook_url": address, "return_url": address}) == {
        "webhook_url": address,
        "return_url": address,
    }
    assert SHOP_SETTINGS["return_url"].read(address) == address


@table("address", REFUSED, ids=ascii)
def test_an_odd_address_is_taken_nowhere(address: str) -> None:
    assert not is_web_address(address)
    assert web_link(address) is None
    if in_punycode(address) is not None:
        return  # an operator's entry is converted
    if address:  # empty, it takes the setting away
        for name in ("webhook_url", "return_url"):
            with pytest.raises(Refusal, match=name):
                read_settings({name: address})
    with pytest.raises(ValueError, match="http or https URL"):
        SHOP_SETTINGS["return_url"].read(address)
    assert return_address(None, address) is None
    assert return_address(address, "https://shop.example") == "https://shop.example/"


@table(
    ("written", "address"),
    [
        ("https://пример.рф", "https://xn--e1afmkfd.xn--p1ai"),
        ("https://ПРИМЕР.рф:8443/hook?a=%2F#b", "https://xn--e1afmkfd.xn--p1ai:8443/hook?a=%2F#b"),
        ("http://müller.example/", "http://xn--mller-kva.example/"),
    ],
)
def test_a_host_of_another_script_is_offered_in_punycode(written: str, address: str) -> None:
    """An operator's entry is converted; a merchant's request is refused with the form to write."""
    assert read_settings({"webhook_url": written})["webhook_url"] == address
    assert not is_web_address(written)
    assert web_address_fault(written).endswith(f"; write {address}")


@table(
    "written",
    [
        "https://faß.example/", "https://σας.example/", "https://a\u200db.example/", "https://１２７.1/", "https://пример.рф/путь",
        "https://user@пример.рф/", "https://a@пример.рф/", "ftp://пример.рф/", "https://пример..рф/", "https://пример.рф\\@b/",
        "https://a⁄b.example/", "https://a。example/", "https://ⓢhop.example/", "https://" + "ф" * 70 + ".рф/",
    ],
)  # fmt: skip
def test_an_address_without_one_punycode_form_is_not_converted(written: str) -> None:
    assert in_punycode(written) is None
    with pytest.raises(Refusal, match="webhook_url"):
        read_settings({"webhook_url": written})
    assert web_address_fault(written) == WEB_ADDRESS
