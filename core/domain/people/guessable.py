"""Passwords that guessing programs try first (docs/dashboard.md "Sign-in").

No list of leaked passwords is included. A password is weighed instead: by the fewest words of a small vocabulary, rows
of keys, years and single signs of which it can be put together.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

ENOUGH = 9
"""Smallest weight of an accepted password: a letter and a known word weigh 2, a digit or another sign 1."""

_LETTER, _WORD, _RUN, _SIGN, _YEAR, _OWN = 2, 2, 2, 1, 1, 0
_RUN_SHORTEST = 3
_OWN_SHORTEST = 3

_SERVICE = (
    "cambist payment payments pay sbp kassa merchant shop store dashboard cabinet kabinet money dengi rubl ruble "
    "rubles usdt tron bank banka wallet terminal refund webhook service oplata magazin vozvrat касса оплата "
    "платеж платежи магазин деньги рубль рубли банк кошелек возврат кабинет сервис"
)
_SIGN_IN = (
    "password passwort passwd passw pass parol login logon signin admin administrator root user username guest "
    "owner manager support developer finance test testing demo default master secret private access welcome hello "
    "letmein changeme change please open enter key code qwe qwer qwert pwd temp new пароль логин админ вход "
    "привет тест секрет доступ владелец ключ код"
)
_LIKED = (
    "iloveyou love you lover lovely baby angel princess prince queen king sunshine sunny summer winter spring "
    "autumn flower rose star moon dragon monkey tiger lion wolf bear eagle dog cat kitty puppy horse football "
    "soccer hockey baseball basketball superman batman spider ninja pirate hunter killer shadow ghost magic "
    "matrix computer internet samsung apple google android coffee cookie cheese chocolate banana orange pepper "
    "sugar happy lucky freedom forever family friend mother father sister brother god jesus russia moscow london "
    "america trust life good best cool super mega black white red green blue gold silver любовь люблю солнце "
    "солнышко котик кошка собака зайка лапочка принцесса ангел малыш весна лето осень зима звезда дракон тигр "
    "волк медведь футбол хоккей россия москва мама папа семья друг счастье удача привет lubov solnce kotik zaika "
    "spartak zenit rossiya moskva"
)
_NAMES = (
    "alex alexey aleksey alexander anna andrey andrew anton artem boris daniel daria dasha denis dima dmitry egor "
    "elena evgeny igor ilya irina ivan john kate katya kirill lena maria marina mark masha max maxim michael mike "
    "misha natasha nastya nikita nikolay oleg olga pavel petr peter roman sasha sergey sofia svetlana tanya vera "
    "victor vika vlad vladimir yana yulia андрей александр алексей анна антон дарья даша дима дмитрий елена иван "
    "игорь ирина катя лена максим мария маша михаил миша наташа настя никита олег ольга павел роман саша сергей "
    "света таня юля"
)
_WORDS = tuple({word for text in (_SERVICE, _SIGN_IN, _LIKED, _NAMES) for word in text.split()})

_LATIN, _CYRILLIC = "qwertyuiop[]asdfghjkl;'zxcvbnm,.`", "йцукенгшщзхъфывапролджэячсмитьбюё"
_TO_LATIN, _TO_CYRILLIC = str.maketrans(_CYRILLIC, _LATIN), str.maketrans(_LATIN, _CYRILLIC)
_OTHER_LAYOUT = tuple(word.translate(_TO_LATIN).translate(_TO_CYRILLIC if word.isascii() else {}) for word in _WORDS)
"""The same words typed while the keyboard has the other layout: `gfhjkm` is `пароль`."""

_ROWS = (
    *("1234567890", "!@#$%^&*()_+", "qwertyuiop[]", "asdfghjkl;'", "zxcvbnm,./", "йцукенгшщзхъ", "фывапролджэ"),
    *("ячсмитьбю.", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.", "qazwsxedcrfvtgbyhnujmikolp", "abcdefghijklmnopqrstuvwxyz"),
    *("абвгдежзийклмнопрстуфхцчшщъыьэюя", "0987654321"),
)
_LINES = (*_ROWS, *(row[::-1] for row in _ROWS))

_LOOK_ALIKES = {"@": "a", "4": "a", "3": "e", "0": "o", "5": "s", "$": "s", "7": "t", "8": "b", "9": "g", "6": "b"}
_FOLDS = tuple(str.maketrans({**_LOOK_ALIKES, "1": one, "!": one, "|": one}) for one in ("i", "l"))
_YEAR_TEXT = re.compile(r"(?:19|20)[0-9]{2}")
_REPEATED = re.compile(r"(.+?)\1+\Z", re.DOTALL)


def _by_first(words: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for word in words:
        found.setdefault(word[0], []).append(word)
    return {first: tuple(each) for first, each in found.items()}


_KNOWN = _by_first({*_WORDS, *_OTHER_LAYOUT})


def own_words(names: Iterable[str]) -> tuple[str, ...]:
    """Return the parts of a person's names and addresses, of which a password must not consist."""
    parts = (part for name in names for part in re.split(r"[\W_]+", name.casefold()))
    return tuple(sorted({part for part in parts if len(part) >= _OWN_SHORTEST}))


def is_guessable(password: str, own: Iterable[str] = ()) -> bool:
    """Return whether the password weighs too little. `own`: words that weigh nothing."""
    text = password.casefold()
    repeated = _REPEATED.match(text)
    if repeated is not None:
        text = repeated[1]
    return text.isdigit() or _weight(text, _by_first(own)) < ENOUGH


def _weight(text: str, own: Mapping[str, tuple[str, ...]]) -> int:
    """Return the weight of the lightest way to put the text together."""
    shapes = (text, *(text.translate(fold) for fold in _FOLDS))
    best = [0, *(len(text) * _LETTER,) * len(text)]
    for start in range(len(text)):
        for length, weight in _pieces(text, shapes, start, own):
            end = start + length
            best[end] = min(best[end], best[start] + weight)
    return best[-1]


def _pieces(
    text: str, shapes: tuple[str, ...], start: int, own: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[int, int]]:
    """Yield length and weight of each piece that begins here."""
    yield 1, _LETTER if text[start].isalpha() else _SIGN
    for shape in shapes:
        for words, weight in ((_KNOWN, _WORD), (own, _OWN)):
            for word in words.get(shape[start], ()):
                if shape.startswith(word, start):
                    yield len(word), weight
    if _YEAR_TEXT.match(text, start):
        yield 4, _YEAR
    for line in _LINES:
        length = _shared(text, start, line)
        if length >= _RUN_SHORTEST:
            yield length, _RUN
    same = len(text) - start - len(text[start:].lstrip(text[start]))
    if same >= _RUN_SHORTEST:
        yield same, _RUN


def _shared(text: str, start: int, line: str) -> int:
    """Return how many signs of the text follow one another in the row."""
    at = line.find(text[start])
    length = 0
    while (
        at >= 0 and at + length < len(line) and start + length < len(text) and text[start + length] == line[at + length]
    ):
        length += 1
    return length
