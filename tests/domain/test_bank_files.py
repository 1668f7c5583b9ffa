"""Reading of banks' files: every form and encoding, batches, and files that are refused whole
(docs/reconciliation.md "A bank's file")."""

import random
from datetime import date

import pytest

from cambist.core.domain.errors import Refusal
from cambist.core.domain.reconciliation.bank_files import BankFile, days_of, read_bank_file
from tests.bank_file_kit import CSV_COLUMNS, Line, camt, exchange, table
from tests.tables import table as rows

DAY = date(2026, 11, 26)
LINES = [
    Line(name="812", day=DAY, time="10:00:05", kopecks=970_00, purpose="Оплата ref-77, НДС не облагается"),
    Line(name="813", day=DAY, time="23:59:59", kopecks=1_50, purpose="Комиссия", is_in=False),
]
WRITTEN = {"1c": exchange(LINES, DAY, DAY), "camt2": camt(2)(LINES, DAY, DAY), "camt8": camt(8)(LINES, DAY, DAY)}
CSV = table(LINES, DAY, DAY)


def _moves(file: BankFile) -> list[tuple[int, bool, date]]:
    return [(row.kopecks, row.is_in, row.day) for row in file.rows]


@rows(
    "body",
    [
        *WRITTEN.values(),
        CSV,
        b"\xef\xbb\xbf" + WRITTEN["1c"].decode("cp1251").encode(),
        WRITTEN["1c"].decode("cp1251").replace("=Windows", "=DOS").encode("cp866"),
        WRITTEN["1c"].replace(b"\r\n", b"\n"),
        CSV.decode("cp1251").encode("utf-8-sig"),
        CSV.decode("cp1251").replace(";", "\t").encode(),
        CSV.replace(b"970,00", b"970.00 "),
        WRITTEN["camt8"].replace(b"T10:00:05", b"T07:00:05Z"),
        WRITTEN["camt8"].decode().replace("UTF-8", "windows-1251").encode("cp1251"),
    ],
)
def test_same_operations_are_read_from_every_form_and_encoding(body: bytes) -> None:
    file = read_bank_file(body, CSV_COLUMNS)
    assert _moves(file) == [(970_00, True, DAY), (1_50, False, DAY)]
    assert (file.first, file.last) == (DAY, DAY)
    assert "ref-77" in file.rows[0].text
    assert len({row.id for row in file.rows}) == 2


def test_batch_becomes_its_operations_with_their_own_references() -> None:
    parts = "".join(
        f"<TxDtls><Refs><EndToEndId>pay-{number}</EndToEndId></Refs>"
        f"<AmtDtls><TxAmt><Amt Ccy='RUB'>{amount}</Amt></TxAmt></AmtDtls></TxDtls>"
        for number, amount in ((1, "400.00"), (2, "570.00"))
    )
    one = WRITTEN["camt8"].decode()
    begin, end = one.index("<TxDtls>"), one.index("</TxDtls>") + len("</TxDtls>")
    batch = one[:begin] + parts + one[end:]
    file = read_bank_file(batch.encode())
    assert [(row.kopecks, row.id) for row in file.rows[:2]] == [(400_00, "812/1"), (570_00, "812/2")]
    assert "pay-1" in file.rows[0].text
    assert "pay-2" not in file.rows[0].text
    with pytest.raises(Refusal, match="do not add up"):
        read_bank_file(batch.replace("570.00", "571.00").encode())


def test_twins_of_a_file_without_ids_stay_two_operations() -> None:
    body = table([Line(name="", day=DAY, time="10:00:00", kopecks=500, purpose="Перевод")] * 2, DAY, DAY)
    assert len({row.id for row in read_bank_file(body, CSV_COLUMNS).rows}) == 2


@rows("lag, days", [(0, 3), (1, 2), (3, 0), (5, 0)])
def test_last_days_of_a_bank_that_books_later_wait_for_the_next_file(lag: int, days: int) -> None:
    file = BankFile(form="CSV", first=DAY, last=date(2026, 11, 28), rows=())
    assert len(days_of(file, lag)) == days


_BOMB = b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><Document>&b;</Document>'


@rows(
    "body, says",
    [
        (_BOMB, "document type"),
        (_BOMB.decode().encode("utf-16"), "document type"),
        (b'<!DOCTYPE d SYSTEM "file:///etc/passwd"><Document/>', "document type"),
        (b"<a>" * 500, "nested too deep"),
        (b"<Document>", "well-formed"),
        (b"<Document/>", "no statement"),
        (WRITTEN["camt8"].replace(b">970.00<", b">971.00<", 1), "closing balance"),
        (WRITTEN["camt8"].replace(b'Ccy="RUB"', b'Ccy="USD"'), "not in roubles"),
        (WRITTEN["1c"].replace(b"=970.00", b"=971.00"), "closing balance"),
        (WRITTEN["1c"].replace("КонецФайла".encode("cp1251"), b""), "end is missing"),
        (WRITTEN["1c"].replace(b"=970.00", b"=9e9999"), "no amount"),
        (WRITTEN["1c"].replace(b"=26.11.2026", b"=26.13.2026"), "no date"),
        (CSV.replace(b"970,00", b"970,001"), "no amount"),
        (CSV.replace("Сумма".encode("cp1251"), b"Sum"), "heads"),
        (b"", "heads"),
        (b"a" * (25 * 1024 * 1024 + 1), "25 MB"),
    ],
)
def test_file_that_cannot_be_read_whole_is_refused(body: bytes, says: str) -> None:
    with pytest.raises(Refusal, match=says):
        read_bank_file(body, CSV_COLUMNS)


def test_damaged_files_are_read_or_refused_and_nothing_else() -> None:
    draw = random.Random(5)
    refused = 0
    for _ in range(3000):
        body = bytearray(draw.choice([*WRITTEN.values(), CSV]))
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(body))
            if draw.random() < 0.5:
                body[at] = draw.randrange(256)
            else:
                del body[at : at + draw.randrange(1, 40)]
        try:
            read_bank_file(bytes(body), CSV_COLUMNS)
        except Refusal as refusal:
            refused += refusal.code == "VALIDATION_ERROR"
    assert refused > 500
