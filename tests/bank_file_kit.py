"""Files as banks write them: 1CClientBankExchange, CAMT.053 and CSV, made of rows."""

from collections.abc import Callable, Sequence
from datetime import date

import msgspec

ACCOUNT = "40702810000000000017"
PAYER = "30232810000000000042"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An operation in a bank's file. `time`: as HH:MM:SS, for files that give it."""

    name: str
    day: date
    time: str
    kopecks: int
    purpose: str
    is_in: bool = True
    fee: int | None = None

    @property
    def amount(self) -> str:
        return f"{self.kopecks // 100}.{self.kopecks % 100:02}"


def _sum(lines: Sequence[Line]) -> int:
    return sum(each.kopecks if each.is_in else -each.kopecks for each in lines)


def _rub(kopecks: int) -> str:
    return f"{kopecks // 100}.{kopecks % 100:02}"


def exchange(lines: Sequence[Line], first: date, last: date) -> bytes:
    """1CClientBankExchange 1.03 in cp1251, with days alone."""
    begin, end = f"{first:%d.%m.%Y}", f"{last:%d.%m.%Y}"
    text = [
        *("1CClientBankExchange", "ВерсияФормата=1.03", "Кодировка=Windows", "Получатель=1С:Предприятие"),
        *(f"ДатаНачала={begin}", f"ДатаКонца={end}", f"РасчСчет={ACCOUNT}", "СекцияРасчСчет"),
        *(f"ДатаНачала={begin}", f"РасчСчет={ACCOUNT}", "НачальныйОстаток=500000.00"),
        *(f"КонечныйОстаток={_rub(50_000_000 + _sum(lines))}", "КонецРасчСчет"),
    ]
    for each in lines:
        sides = (PAYER, ACCOUNT) if each.is_in else (ACCOUNT, PAYER)
        moved = "ДатаПоступило" if each.is_in else "ДатаСписано"
        text += [
            *("СекцияДокумент=Платежное поручение", f"Номер={each.name}", f"Дата={each.day:%d.%m.%Y}"),
            *(f"Сумма={each.amount}", f"ПлательщикСчет={sides[0]}", f"ПолучательСчет={sides[1]}"),
            *(f"{moved}={each.day:%d.%m.%Y}", f"НазначениеПлатежа={each.purpose}", "КонецДокумента"),
        ]
    return "\r\n".join([*text, "КонецФайла", ""]).encode("cp1251")


def camt(version: int) -> Callable[[Sequence[Line], date, date], bytes]:
    """CAMT.053.001.02 to .08, with times."""

    def write(lines: Sequence[Line], first: date, last: date) -> bytes:
        status = "<Sts>BOOK</Sts>" if version < 7 else "<Sts><Cd>BOOK</Cd></Sts>"
        entries = "".join(
            f'<Ntry><Amt Ccy="RUB">{each.amount}</Amt><CdtDbtInd>{"CRDT" if each.is_in else "DBIT"}</CdtDbtInd>{status}'
            f"<BookgDt><DtTm>{each.day}T{each.time}</DtTm></BookgDt><AcctSvcrRef>{each.name}</AcctSvcrRef>"
            "<NtryDtls><TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs>"
            f"<RmtInf><Ustrd>{each.purpose}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>"
            for each in lines
        )
        balances = "".join(
            f"<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp><Amt Ccy='RUB'>{_rub(kopecks)}</Amt>"
            "<CdtDbtInd>CRDT</CdtDbtInd></Bal>"
            for code, kopecks in (("OPBD", 50_000_000), ("CLBD", 50_000_000 + _sum(lines)))
        )
        space = f"urn:iso:std:iso:20022:tech:xsd:camt.053.001.0{version}"
        return (
            f'<?xml version="1.0" encoding="UTF-8"?><Document xmlns="{space}">'
            f"<BkToCstmrStmt><Stmt><FrToDt><FrDtTm>{first}T00:00:00</FrDtTm><ToDtTm>{last}T23:59:59</ToDtTm></FrToDt>"
            f"{balances}{entries}</Stmt></BkToCstmrStmt></Document>"
        ).encode()

    return write


CSV_COLUMNS = {"date": "Дата операции", "amount": "Сумма", "text": "Назначение", "entry": "Референс", "fee": "Комиссия"}


def table(lines: Sequence[Line], first: date, last: date) -> bytes:
    """A Russian bank's CSV: a heading above the table, a semicolon, a decimal comma, cp1251, totals below."""
    rows = [f"Выписка за период;{first:%d.%m.%Y};{last:%d.%m.%Y}", "", ";".join(CSV_COLUMNS.values())]
    for each in lines:
        amount = f"{'' if each.is_in else '-'}{each.amount.replace('.', ',')}"
        fee = "" if each.fee is None else _rub(each.fee).replace(".", ",")
        rows.append(f'{each.day:%d.%m.%Y} {each.time};{amount};"{each.purpose}";{each.name};{fee}')
    return "\r\n".join([*rows, "", f"Итого;{len(lines)}", ""]).encode("cp1251")
