"""Questions about a piece of text that several rules ask."""

import re
from collections import Counter

# Ideographs, kana and hangul with their punctuation and full-width forms. The dashes, quotation
# marks and middle dot that Chinese shares with English are left out on purpose.
_CJK = re.compile(
    "[\u2e80-\u2fdf\u3000-\u30ff\u3130-\u318f\u31a0-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]+"
)
_NUMBER = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)*")


def cjk_run(text: str) -> str | None:
    """The first run of Chinese, Japanese or Korean characters in ``text``, if there is one."""
    found = _CJK.search(text)
    return found.group() if found else None


def numbers(text: str) -> Counter[str]:
    """How often each number stands in ``text``; thousands commas do not count."""
    return Counter(token.replace(",", "") for token in _NUMBER.findall(text))


def one_sided(here: Counter[str], there: Counter[str]) -> str:
    """What only one side of a Chinese-English comparison holds, in words; empty if nothing."""
    sides = {"only in Chinese": here - there, "only in English": there - here}
    return "; ".join(
        f"{side}: {', '.join(sorted(extra.elements()))}" for side, extra in sides.items() if extra
    )
