"""Who handed in a file: the student's name from its path, by a stated rule.

The rules, the first that fits:

1. **Moodle**: a folder or file ``Full Name_12345_assignsubmission_file…``; the number is the
   participant's.
2. **Canvas**: a file ``lastnamefirstname_LATE_12345_67890_name.ipynb`` (``LATE`` where it was
   late); the first number is the student's, the second the upload's. Anonymous: ``anon_x_67890_…``.
3. **nbgrader**: ``submitted/<student>/<assignment>/…``.
4. **A folder a student**: the first folder below what is graded; a zip counts as a folder of its
   name. One folder round the whole class is looked through.
5. **A flat folder**: the file's name without its extension, the lesson's name and what browsers and
   editors add to copies (`` (1)``, ``-Copy1``, ``副本``).

With a roster, a part of the path that names one of its students goes before rules 4 and 5.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_(?P<type>[a-z]+)(?:_(?P<file>.*))?", re.DOTALL
)
_CANVAS = re.compile(
    r"(?P<name>\w*?[^\W\d_]\w*?)(?P<late>_LATE)?_(?P<number>\d+)_(?P<upload>\d{3,})_(?P<file>.+)",
    re.DOTALL,
)
_CANVAS_TEXT = re.compile(r"(?P<name>\w+?)(?P<late>_LATE)?_(?P<number>\d+)_(?:text|link)\.html")
_CANVAS_ANONYMOUS = re.compile(
    r"(?P<late>LATE_)?anon_(?P<code>[0-9A-Za-z]+)_(?P<upload>\d{3,})_(?P<file>.+)", re.DOTALL
)
_ENDINGS = re.compile(r"(?:\.(?:ipynb|zip|json|txt|html?|py|pdf|docx?|rar|7z|tar|gz|tgz))+$", re.I)
_COPY = re.compile(
    r"(?:[\s_-]*(?:\(\d{1,3}\)|（\d{1,3}）|-\s*copy(?:\s*\(\d+\))?|-copy\d*|(?<=[\s_-])copy\d*|的?副本\d*"
    r"|-\s*副本(?:\s*\(\d+\))?))+$|^copy of\s+|^副本[\s_-]*",
    re.I,
)
_COPY_NUMBER = re.compile(r"(\d+)\D*$")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.I)
_MAX_NAME = 80  # bytes of a student's key in UTF-8


@dataclass(frozen=True)
class Identity:
    """Whose a file is.

    Attributes:
        rule: ``moodle``, ``canvas``, ``nbgrader``, ``folders`` or ``flat``.
        name: the student's name as the path has it.
        number: the LMS's own number, "" where there is none.
        late: whether the LMS marked it as late.
        upload: Canvas's number of the upload, which grows; 0 where there is none.
        file: the file's own name, as the student called it where that is known.
    """

    rule: str
    name: str
    number: str = ""
    late: bool = False
    upload: int = 0
    file: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The same for all files of one student, different for two students."""
        if self.number:
            return self.rule, self.number
        return "name", " ".join(unicodedata.normalize("NFC", self.name).split())


def identify(parts: Sequence[str], lessons: Iterable[str], submitted: bool = False) -> Identity:
    """The identity that a path gives by the rules above.

    Args:
        parts: the path below what is graded, not empty.
        lessons: names of the course's lessons, which are no part of a student's name.
        submitted: whether what is graded is nbgrader's ``submitted`` folder itself.
    """
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        found = _lms(part, last, parts[-1])
        if found:
            return found
    for place, part in enumerate(parts[:-1]):
        if part == "submitted" or submitted:
            student = parts[place] if submitted else parts[min(place + 1, len(parts) - 1)]
            return Identity("nbgrader", student, file=parts[-1])
    if len(parts) > 1:
        return Identity("folders", _ENDINGS.sub("", parts[0]) or parts[0], file=parts[-1])
    return Identity("flat", flat_name(parts[0], lessons), file=parts[0])


def flat_name(file: str, lessons: Iterable[str]) -> str:
    """A student's name from a file's: without extension, lesson's name and copy marks."""
    stem = _ENDINGS.sub("", file)
    name = stem
    for _ in range(4):
        name = _COPY.sub("", name).strip(" _-.")
        for lesson in lessons:
            name = re.sub(re.escape(lesson), "", name, flags=re.I).strip(" _-.")
    name = re.sub(r"[_\-. ]{2,}", "_", name)
    return name or _COPY.sub("", stem).strip() or stem or file


def copy_number(file: str) -> int:
    """The number of a copy, ``name (2).ipynb`` or Canvas's ``name-2.ipynb``; 0 for none."""
    stem = _ENDINGS.sub("", file)
    mark = _COPY.search(stem) or re.search(r"-\d{1,2}$", stem)
    number = _COPY_NUMBER.search(mark[0]) if mark else None
    return int(number[1]) if number else int(bool(mark))


def safe_name(text: str) -> str:
    """A name that is safe as a file's on every system, and in a URL: letters, digits, ``-_.@+``.

    Two different texts may get the same name; ``unique_names`` keeps students apart.
    """
    text = unicodedata.normalize("NFC", text)
    kept = "".join(
        char if unicodedata.category(char)[0] in "LNM" or char in "-_.@+" else "_" for char in text
    )
    kept = re.sub(r"_{2,}", "_", kept).strip("_.")
    if kept.startswith(("-", "+", "@")) or _RESERVED.match(kept):
        kept = f"_{kept}"
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    if not kept:
        return f"student-{digest}"
    raw = kept.encode("utf-8")
    if len(raw) > _MAX_NAME:
        kept = raw[: _MAX_NAME - 9].decode("utf-8", "ignore") + f"-{digest}"
    return kept


def show_name(text: str) -> str:
    """A name for people: no control, bidi or private characters, at most 120 characters."""
    text = unicodedata.normalize("NFC", text)
    shown = "".join("�" if unicodedata.category(char)[0] == "C" else char for char in text)
    return " ".join(shown.split())[:120] or "–"


def unique_names(names: Sequence[tuple[str, str]]) -> list[str]:
    """Keys for students, all different even where upper and lower case are the same.

    Args:
        names: each student's name and number ("" where there is none).
    """
    first = [safe_name(name) for name, _ in names]
    taken = [name.casefold() for name in first]
    used: set[str] = set()
    keys = []
    for (_, number), key, folded in zip(names, first, taken, strict=True):
        if taken.count(folded) > 1 and number:
            key = safe_name(f"{key[:60]}_{number}")
        base, count = key, 1
        while key.casefold() in used:
            count += 1
            key = f"{base}-{count}"
        used.add(key.casefold())
        keys.append(key)
    return keys


def _lms(part: str, last: bool, file: str) -> Identity | None:
    """The identity that Moodle or Canvas has written into one part of a path."""
    found = _MOODLE.fullmatch(part)
    if found:
        name = found["name"] if found["name"] else found["number"]
        return Identity("moodle", name, found["number"], file=found["file"] or file)
    if not last and not part.lower().endswith(".zip"):
        return None
    found = _CANVAS_ANONYMOUS.fullmatch(part)
    if found:
        late, upload = bool(found["late"]), int(found["upload"][:18])
        name = f"anon_{found['code']}"
        return Identity("canvas", name, found["code"], late, upload, found["file"])
    found = _CANVAS.fullmatch(part)
    if found:
        late, upload = bool(found["late"]), int(found["upload"][:18])
        return Identity("canvas", found["name"], found["number"], late, upload, found["file"])
    found = _CANVAS_TEXT.fullmatch(part)
    if found:
        return Identity("canvas", found["name"], found["number"], bool(found["late"]), 0, part)
    return None
