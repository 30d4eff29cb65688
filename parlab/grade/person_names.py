"""Names of people: in plain form, in every order that they are written."""

import re
import unicodedata


def plain(text: str) -> str:
    """A name's letters and digits: no case, accents, blanks or punctuation."""
    spread = unicodedata.normalize("NFKD", text).casefold()
    return "".join(char for char in spread if char.isalnum())


def name_forms(full: str, first: str = "", last: str = "") -> frozenset[str]:
    """A name in plain form, in the orders that people and LMSs write it."""
    forms = {plain(full), plain(first + last), plain(last + first)}
    head, comma, tail = full.partition(",")
    if comma:  # "Last, First"
        forms |= {plain(tail + head)}
    words = full.replace(",", " ").split()
    if len(words) == 2:
        forms |= {plain(words[1] + words[0])}
    elif len(words) > 2:  # "Mary Ann Smith" and "Smith, Mary Ann"
        forms |= {plain(words[-1] + "".join(words[:-1])), plain("".join(words[1:]) + words[0])}
    return frozenset(form for form in forms if form)


def in_order(full: str) -> str:
    """``Last, First`` as people say it; any other name as it is."""
    head, comma, tail = full.partition(",")
    return f"{tail.strip()} {head.strip()}".strip() if comma else full


def together(first: str, last: str) -> str:
    """A name of two columns as people say it: a Chinese surname first."""
    if first and last and not (first + last).isascii() and re.match(r"[\u4e00-\u9fff]", last):
        return last + first
    return " ".join(filter(None, (first, last)))
