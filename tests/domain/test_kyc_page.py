"""Where the hosted page may send a client back to (docs/kyc.md "A page that does it"): a table of attacks."""

from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.payer.kyc_page import return_address, shop_origins, typed_phone
from tests.tables import table

MERCHANT = "https://shop.example/cabinet?x=1"
HOME = "https://shop.example/"

GOOD = [
    ("https://shop.example", HOME),
    ("https://shop.example/", HOME),
    ("https://shop.example/done", "https://shop.example/done"),
    ("https://shop.example/done?a=1&b=2#c", "https://shop.example/done?a=1&b=2#c"),
    ("https://shop.example?a=1", "https://shop.example/?a=1"),
    ("https://shop.example#c", "https://shop.example/#c"),
    ("HTTPS://SHOP.example/Done", "https://shop.example/Done"),
    ("https://shop.example:443/done", "https://shop.example/done"),
    ("https://shop.example//evil.example", "https://shop.example//evil.example"),
    ("https://shop.example/?next=https://evil.example", "https://shop.example/?next=https://evil.example"),
    ("https://shop.example/@evil.example", "https://shop.example/@evil.example"),
    ("https://shop.example/%2e%2e/a", "https://shop.example/%2e%2e/a"),
]

BAD = [
    "",
    "/",
    "/done",
    "done",
    "//",
    "///",
    "//evil.example",
    "///evil.example",
    "////evil.example",
    "/\\evil.example",
    "\\/evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "\t//evil.example",
    "https:evil.example",
    "https:/evil.example",
    "https:///evil.example",
    "https:\\\\evil.example",
    "https:/\\evil.example",
    "https://\\evil.example",
    "https:shop.example",
    "https:/shop.example",
    "https:///shop.example",
    "https:\\\\shop.example",
    "http://shop.example/",
    "HTTP://shop.example/",
    "ftp://shop.example/",
    "ws://shop.example/",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    " javascript:alert(1)",
    "\x01javascript:alert(1)",
    "javascript://shop.example/%0aalert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "blob:https://shop.example/1",
    "file:///etc/passwd",
    "about:blank",
    "https://evil.example",
    "https://evil.example/shop.example",
    "https://evil.example?shop.example",
    "https://evil.example#shop.example",
    "https://evil.example#@shop.example",
    "https://evil.example?@shop.example",
    "https://evil.example\\@shop.example",
    "https://evil.example\\.shop.example",
    "https://shop.example\\@evil.example",
    "https://shop.example@evil.example",
    "https://shop.example:443@evil.example",
    "https://shop.example:pw@evil.example",
    "https://user@shop.example/",
    "https://user:pw@shop.example/",
    "https://@shop.example/",
    "https://shop.example.evil.example/",
    "https://evilshop.example/",
    "https://evil.shop.example/",
    "https://www.shop.example/",
    "https://shop.example./",
    "https://shop.example:8443/",
    "https://shop.example:80/",
    "https://shop.example:0/",
    "https://shop.example:/",
    "https://shop.example:99999/",
    "https://shop.example:x/",
    "https://shop.example%2eevil.example/",
    "https://shop.example%00.evil.example/",
    "https://shop%2eexample/",
    "https://shop。example/",
    "https://shop.ехample/",
    "https://ſhop.example/",
    "https://shop.example\uff0f.evil.example/",
    "https://shop.example/\r\nSet-Cookie: a=b",
    "https://shop.example/\n",
    "https://shop.example/ x",
    "https://shop.example/\x00",
    "https://shop.example/\x7f",
    "https://shop.example/<script>",
    'https://shop.example/"onclick=',
    "https://[shop.example]/",
    "https://[::1",
    "https://[::1]/",
    "https://127.0.0.1/",
    "https://shop.example/" + "a" * 2048,
    "https://",
    "https:",
    "://shop.example",
    "shop.example",
]


@table(("wish", "expected"), GOOD)
def test_an_address_of_the_merchant_is_kept(wish: str, expected: str) -> None:
    assert return_address(wish, MERCHANT) == expected


@table("wish", [None, *BAD])
def test_anything_else_leads_to_the_merchant_s_first_page(wish: str | None) -> None:
    assert return_address(wish, MERCHANT) == HOME


@table(
    "merchant",
    [
        None,
        "http://shop.example/",
        "https://user@shop.example/",
        "https://shop.example:/",
        "https://shop.example./",
        "",
    ],
)
def test_page_has_no_way_back_without_an_https_address_of_the_merchant(merchant: str | None) -> None:
    assert return_address("https://shop.example/", merchant) is None


def test_the_merchant_s_port_is_part_of_the_origin() -> None:
    merchant = "https://shop.example:8443/x"
    assert return_address("https://shop.example:8443/a", merchant) == "https://shop.example:8443/a"
    assert return_address("https://shop.example/a", merchant) == "https://shop.example:8443/"


@given(st.one_of(st.text(), st.text().map(lambda text: f"https://shop.example{text}"), st.sampled_from(BAD)))
def test_no_wish_leads_elsewhere(wish: str) -> None:
    back = return_address(wish, MERCHANT)
    assert back is not None
    assert back.startswith(HOME)
    parts = urlsplit(back)
    assert (parts.scheme, parts.netloc) == ("https", "shop.example")


PHONE = "+79001234567"


@table(
    ("typed", "phone"),
    [
        ("+79001234567", PHONE),
        (" 79001234567", PHONE),  # a + in an address that nobody escaped
        ("89001234567", PHONE),
        ("89001234560", "+79001234560"),
        ("19001234567", None),
        ("9001234567", PHONE),
        ("8 (900) 123-45-67", PHONE),
        ("+7\u00a0900\u2013123\u201145.67", PHONE),
        ("7001234567", "+77001234567"),
        ("+7900123456", None),
        ("+89001234567", None),
        ("+7+9001234567", None),
        ("7+9001234567", None),
        ("+15551234567", None),
        ("900123456", None),
        ("990012345678", None),
        ("\u0669001234567", None),
        ("900123456a", None),
        ("9001234567\n", None),
        ("", None),
        (" " * 41, None),
        ("-", None),
    ],
)
def test_a_phone_is_read_as_people_type_it(typed: str, phone: str | None) -> None:
    assert typed_phone(typed) == phone


@table(
    ("typed", "origin"),
    [
        ("shop.example", "https://shop.example"),
        (" Shop.Example ", "https://shop.example"),
        ("https://shop.example/cart?x=1#y", "https://shop.example"),
        ("http://shop.example", "https://shop.example"),
        ("shop.example:8443", "https://shop.example:8443"),
        ("", None),
        ("https://", None),
        ("https://user@shop.example", None),
        ("\\shop.example", None),
        ("javascript:alert(1)", None),
        ("shop .example", None),
        ("x" * 5000, None),
    ],
)
def test_a_shop_s_address_is_read_as_people_type_it(typed: str, origin: str | None) -> None:
    """With or without `www.`, because people do not know which of the two they mean."""
    assert (shop_origins(typed) or (None,))[0] == origin
    if origin is not None:
        assert shop_origins(typed)[1] == origin.replace("https://", "https://www.")
        assert shop_origins(f"www.{typed.strip()}" if "//" not in typed else typed)[-1]


@given(st.text(max_size=60))
def test_any_text_reads_as_a_phone_or_none(text: str) -> None:
    phone = typed_phone(text)
    assert phone is None or (
        len(phone) == 12 and phone.startswith("+7") and phone[1:].isascii() and phone[1:].isdigit()
    )
