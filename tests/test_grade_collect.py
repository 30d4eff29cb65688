"""Collecting a class: every layout, every broken file, names, rosters, and nothing lost."""

import io
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))
import make_class as make_class_sample
from grade_students import LAYOUTS, Pupil, make_class, roster, shuffled, write_class
from lessons import ROOT

from parlab.grade import archives
from parlab.grade.archives import MAX_DEPTH, safe_parts
from parlab.grade.collect import Collection, NothingToCollect, collect
from parlab.grade.course import NoLesson, load_course
from parlab.grade.notes_in import NOTES_IN
from parlab.grade.rebuild import rebuild
from parlab.grade.roster import RosterUnreadable, decode, load_roster, parse_roster
from parlab.grade.students import flat_name, identify, safe_name, show_name, unique_names
from parlab.grade.types import MAX_NOTEBOOK_BYTES, Submission

COURSE = load_course(ROOT, "04")
EXERCISE = (ROOT / "notebooks" / f"{COURSE.name}.ipynb").read_bytes()


@pytest.fixture(scope="module")
def pupils() -> list[Pupil]:
    return shuffled(make_class(COURSE, 70, seed=2))


def one(collection: Collection) -> Submission:
    (submission,) = collection.submissions
    return submission


def keys(submission: Submission) -> list[str]:
    return [key for key, _ in submission.notes]


def put(folder: Path, *files: str, content: bytes = EXERCISE) -> None:
    for file in files:
        place = folder / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


# ------------------------------------------------------------ whole classes
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_pupil_has_one_row_in_every_layout(
    pupils: list[Pupil], layout: str, tmp_path: Path
) -> None:
    target = write_class(pupils, tmp_path / "class", layout)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    found = collect(target, COURSE)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert len(found.submissions) == len(pupils)
    assert len({s.student.casefold() for s in found.submissions}) == len(pupils)
    assert found.layout == layout.removesuffix("_flat")
    for pupil in pupils:
        mine = [s for s in found.submissions if str(pupil.number) in s.path]
        (submission,) = mine or [s for s in found.submissions if pupil.login in s.path]
        unreadable = pupil.status == "unreadable"
        assert (submission.content is None) == unreadable == (submission.problem is not None)
        if layout == "canvas":
            assert found.people[submission.student].late == pupil.late
        for key, _ in (*submission.notes, *filter(None, [submission.problem])):
            assert key in NOTES_IN


@pytest.mark.parametrize(
    ("layout", "kind", "encoding"),
    [
        ("moodle", "moodle", "utf-8-sig"),
        ("canvas", "canvas", "utf-16"),
        ("nbgrader", "nbgrader", "gb18030"),
        ("folders", "list", "gb18030"),
        ("flat", "canvas", "utf-8-sig"),
        ("flat", "nbgrader", "utf-8"),
    ],
)
def test_a_roster_finds_every_pupil(
    pupils: list[Pupil], layout: str, kind: str, encoding: str, tmp_path: Path
) -> None:
    here, absent = pupils[:40], pupils[40:]
    target = write_class(here, tmp_path / "class", layout)
    names = {"ł": "l", "Ł": "L", "ü": "u"} if encoding == "gb18030" else {}
    table = roster(pupils, kind).decode()
    for letter, other in names.items():
        table = table.replace(letter, other)
    file = tmp_path / "roster.csv"
    file.write_bytes(table.encode(encoding, "replace"))
    found = collect(target, COURSE, file)
    assert found.roster and len(found.roster.entries) == len(pupils)
    by_key = {index: key for index, key in found.key_of.items()}
    submissions = {s.student: s for s in found.submissions}
    assert len(by_key) == len(pupils) == len(submissions)
    for index, pupil in enumerate(pupils):
        submission = submissions[by_key[index]]
        if pupil in absent:
            assert submission.problem == ("no_submission", {})
        else:
            assert str(pupil.number) in submission.path or pupil.login in submission.path
            assert found.people[submission.student].row
    assert dict(found.notes)["without_submission"]["count"] == len(absent)


def test_memory_is_bounded_by_the_sources_not_the_files(tmp_path: Path) -> None:
    padding = b'{"outputs": ["' + b"x" * 6_000_000 + b'"], "cell_type": "code", "source": ""}, '
    content = EXERCISE.replace(b'"cells": [', b'"cells": [' + padding, 1)
    put(tmp_path, *(f"pupil{i}.ipynb" for i in range(12)), content=content)
    tracemalloc.start()
    found = collect(tmp_path, COURSE)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.submissions) == 12
    assert kept < 3_000_000 and peak < 60_000_000
    assert all("outputs_cleared" in keys(s) for s in found.submissions)


# ------------------------------------------------------------ whose file it is
@pytest.mark.parametrize(
    ("path", "rule", "name", "number"),
    [
        ("Ann Smith_123_assignsubmission_file_/a.ipynb", "moodle", "Ann Smith", "123"),
        ("Ann Smith_123_assignsubmission_file/sub/a.ipynb", "moodle", "Ann Smith", "123"),
        ("李伟_123_assignsubmission_file_hw_4_5678_x.ipynb", "moodle", "李伟", "123"),
        ("Participant_77_assignsubmission_file_/x.zip/a.ipynb", "moodle", "Participant", "77"),
        ("smithann_LATE_4001_90210_a b-1.ipynb", "canvas", "smithann", "4001"),
        ("李伟_4001_90210_04_model.ipynb", "canvas", "李伟", "4001"),
        ("smithann_4001_90210_work.zip/04.ipynb", "canvas", "smithann", "4001"),
        ("LATE_anon_Xy7Qa_90210_a.ipynb", "canvas", "anon_Xy7Qa", "Xy7Qa"),
        ("smithann_4001_text.html", "canvas", "smithann", "4001"),
        ("course/submitted/u17/ps1/a.ipynb", "nbgrader", "u17", ""),
        ("u17/04.ipynb", "folders", "u17", ""),
        ("u17.zip/deep/04.ipynb", "folders", "u17", ""),
        ("zhang_san_04_model_internal_parallel (2).ipynb", "flat", "zhang_san", ""),
        ("Copy of 04_model_internal_parallel - Ann.ipynb", "flat", "Ann", ""),
        ("2023001_张三_04_model_internal_parallel.ipynb", "flat", "2023001_张三", ""),
        ("张三 - 副本.ipynb", "flat", "张三", ""),
        ("04_model_internal_parallel.ipynb", "flat", "04_model_internal_parallel", ""),
    ],
)
def test_the_student_comes_from_the_path(path: str, rule: str, name: str, number: str) -> None:
    found = identify(path.split("/"), COURSE.lessons)
    assert (found.rule, found.name, found.number) == (rule, name, number)


@pytest.mark.parametrize(
    "text",
    ["../../etc", "CON", "a/b\\c", "", "...", "x" * 500, "张" * 200, "‮evil", "a\x00b\x1b[31m",
     "=1+1", "-rf", "e\u0301", "é", " ", "\udcff", "NUL.txt", "a\nb", "<b>", "👩‍🎓"],
)  # fmt: skip
def test_a_key_is_safe_as_a_file_name(text: str, tmp_path: Path) -> None:
    key = safe_name(text)
    (tmp_path / key).write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == [key]
    assert key and len(key.encode()) <= 80 and not key.startswith((".", "-", "+", "="))
    assert not set(key) & set('/\\:*?"<>|\x00\n ')
    assert "\x1b" not in show_name(text) and "‮" not in show_name(text)


def test_two_students_never_share_a_key() -> None:
    names = [("Wei Li", "1"), ("wei li", "2"), ("Wei/Li", ""), ("Wei_Li", ""), ("a" * 300, ""),
             ("a" * 301, "")]  # fmt: skip
    made = unique_names(names)
    assert len({key.casefold() for key in made}) == len(names)
    assert made[:2] == ["Wei_Li_1", "wei_li_2"]
    assert flat_name("04_model_internal_parallel.ipynb", COURSE.lessons)


def test_namesakes_with_their_own_numbers_stay_apart(tmp_path: Path) -> None:
    put(tmp_path, "Wei Li_101_assignsubmission_file_/a.ipynb",
        "Wei Li_102_assignsubmission_file_/a.ipynb")  # fmt: skip
    assert len(collect(tmp_path, COURSE).submissions) == 2
    (tmp_path / "r.csv").write_text("name,email\nWei Li,w@x.edu\n")
    found = collect(tmp_path, COURSE, tmp_path / "r.csv")
    assert [s.problem for s in found.submissions].count(("no_submission", {})) == 1
    assert len(found.submissions) == 3
    assert sum("roster_ambiguous" in keys(s) for s in found.submissions) == 2


# ------------------------------------------------------------ several files of one
def test_the_newest_counts_and_the_note_says_so(tmp_path: Path) -> None:
    put(tmp_path, "ann.ipynb", "ann (1).ipynb", "bob.ipynb")
    os.utime(tmp_path / "ann.ipynb", (2e9, 2e9))
    os.utime(tmp_path / "ann (1).ipynb", (1e9, 1e9))
    ann, bob = collect(tmp_path, COURSE).submissions
    assert ann.path == "ann.ipynb" and bob.notes == ()
    assert dict(ann.notes)["newest_of_several"]["files"] == ["ann (1).ipynb"]
    for file in tmp_path.iterdir():
        os.utime(file, (1e9, 1e9))
    assert collect(tmp_path, COURSE).submissions[0].path == "ann (1).ipynb"


def test_canvas_uploads_count_by_their_number(tmp_path: Path) -> None:
    put(tmp_path, "annsmith_40_9001_x.ipynb", "annsmith_40_10001_x-1.ipynb", "bob_41_9002_x.ipynb")
    os.utime(tmp_path / "annsmith_40_9001_x.ipynb", (2e9, 2e9))
    assert collect(tmp_path, COURSE).submissions[0].path == "annsmith_40_10001_x-1.ipynb"


def test_an_older_one_counts_where_the_newest_is_broken_or_another_lessons(tmp_path: Path) -> None:
    put(tmp_path, "ann/right.ipynb", "bob/right.ipynb")
    put(tmp_path, "ann/newer.ipynb", content=EXERCISE[:-100])
    other = b'{"cells": [{"cell_type": "code", "source": "x = 1"}], "nbformat": 4}'
    put(tmp_path, "bob/newer.ipynb", content=other)
    for place in tmp_path.glob("*/right.ipynb"):
        os.utime(place, (1e9, 1e9))
    ann, bob = collect(tmp_path, COURSE).submissions
    assert ann.path == "ann/right.ipynb" and "newer_unreadable" in keys(ann)
    assert bob.path == "bob/right.ipynb" and "newer_other_lesson" in keys(bob)


# ------------------------------------------------------------ hostile files
def test_special_files_give_a_row_and_are_not_opened(tmp_path: Path) -> None:
    put(tmp_path, "ok.ipynb")
    (tmp_path / "secret").mkdir()
    os.symlink("/etc/passwd", tmp_path / "link.ipynb")
    os.symlink(tmp_path / "ok.ipynb", tmp_path / "link2.ipynb")
    os.symlink("/etc", tmp_path / "linkdir")
    os.symlink(tmp_path, tmp_path / "secret" / "loop")
    os.mkfifo(tmp_path / "pipe.ipynb")
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(tmp_path)
    server.bind("sock.ipynb")
    os.chdir(here)
    found = {s.display: s for s in collect(tmp_path, COURSE).submissions}
    server.close()
    assert found["ok"].content
    for name, key in [("link", "symlink"), ("link2", "symlink"), ("pipe", "special_file"),
                      ("sock", "special_file"), ("secret", "symlink")]:  # fmt: skip
        assert found[name].content is None and found[name].problem
        assert found[name].problem[0] == key


def test_a_file_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    put(tmp_path, "ok.ipynb")
    with open(tmp_path / "big.ipynb", "wb") as file:
        file.truncate(2**30)
    tracemalloc.start()
    big = collect(tmp_path, COURSE).submissions[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert big.problem == ("too_large", {"mb": 1024.0, "limit": MAX_NOTEBOOK_BYTES / 2**20})
    assert peak < 20_000_000


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A folder that is read without root's privileges, which would read everything."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    subprocess.run(["chmod", "-R", "700", folder], check=True)
    shutil.rmtree(folder)


def test_a_file_without_permission_gives_a_row(as_nobody: Path) -> None:
    put(as_nobody, "ann.ipynb", "bob/x.ipynb")
    (as_nobody / "ann.ipynb").chmod(0)
    (as_nobody / "bob").chmod(0)
    ann, bob = collect(as_nobody, COURSE).submissions
    assert ann.problem and ann.problem[0] == "unreadable_file"
    assert bob.problem and bob.problem[0] == "unreadable_folder"


def test_names_in_any_encoding_are_shown_and_safe(tmp_path: Path) -> None:
    for raw in ("张三".encode("gbk"), "李四".encode(), b"\xff\xfe\x01", b"a\nb\x1b[2J", b"=cmd()"):
        with open(os.fsencode(tmp_path) + b"/" + raw + b".ipynb", "wb") as file:
            file.write(EXERCISE)
    found = collect(tmp_path, COURSE)
    assert len(found.submissions) == 5 and all(s.content for s in found.submissions)
    shown = {s.display for s in found.submissions}
    assert {"张三", "李四", "=cmd()"} <= shown
    assert all(char.isprintable() for name in shown for char in name)


def test_what_systems_leave_behind_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, "ann/04.ipynb", "bob/04.ipynb", "roster.csv", "README.md")
    put(tmp_path, "ann/.ipynb_checkpoints/04-checkpoint.ipynb", "ann/._04.ipynb")
    put(tmp_path, "__MACOSX/ann/._04.ipynb", ".DS_Store")
    found = collect(tmp_path, COURSE)
    assert [s.display for s in found.submissions] == ["ann", "bob"]
    assert all(s.notes == () for s in found.submissions)
    assert dict(found.notes)["left_aside"]["files"] == ["README.md", "roster.csv"]


# ------------------------------------------------------------ zips
def gbk_zip(name: str) -> bytes:
    """As Windows in China packs it: the name in GBK, without the flag for UTF-8."""
    raw = name.encode("gbk")
    made = zipped({"x" * len(raw): EXERCISE})
    return made.replace(b"x" * len(raw), raw)


@pytest.mark.parametrize("wrapped", [True, False])
def test_zip_names_in_gbk(wrapped: bool, tmp_path: Path) -> None:
    content = gbk_zip("张三_04.ipynb")
    put(tmp_path, "class.zip", content=zipped({"in.zip": content}) if wrapped else content)
    assert "张三" in one(collect(tmp_path / "class.zip", COURSE)).path


def test_climbing_paths_stay_inside(tmp_path: Path) -> None:
    names = ["../../../tmp/evil.ipynb", "/etc/cron.d/x.ipynb", "C:\\Users\\y.ipynb"]
    names.append("a\\..\\..\\z.ipynb")
    put(tmp_path, "in/class.zip", content=zipped({name: EXERCISE for name in names}))
    before = sorted(tmp_path.rglob("*"))
    found = collect(tmp_path / "in" / "class.zip", COURSE)
    assert len(found.submissions) == 4 and all(s.content for s in found.submissions)
    assert all("climbing_path" in keys(s) for s in found.submissions)
    assert sorted(tmp_path.rglob("*")) == before
    assert safe_parts("..//.././") == ((), True)


@pytest.mark.slow
def test_hostile_archives_give_a_row_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_ENTRIES", 100)
    put(tmp_path, "ok.ipynb")
    bomb = zipped({"04.ipynb": b"\0" * 2**28})
    lying = bytearray(bomb)
    at = lying.rfind(b"PK\x01\x02")
    lying[at + 24 : at + 28] = struct.pack("<L", 1000)  # claims a size of 1000 bytes
    nested = zipped({"04.ipynb": EXERCISE})
    for _ in range(MAX_DEPTH + 2):
        nested = zipped({"in.zip": nested})
    link = io.BytesIO()
    with zipfile.ZipFile(link, "w") as archive:
        info = zipfile.ZipInfo("04.ipynb")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    locked = bytearray(zipped({"04.ipynb": EXERCISE}))
    for mark, place in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        locked[locked.find(mark) + place] |= 1
    many = zipped({f"{i}": b"" for i in range(101)})
    torn = zipped({"04.ipynb": EXERCISE})
    hostile = {
        "bomb": (bomb, "too_large"),
        "lying": (bytes(lying), "broken_entry"),
        "nested": (nested, "zip_too_deep"),
        "link": (link.getvalue(), "symlink"),
        "locked": (bytes(locked), "encrypted"),
        "many": (many, "zip_too_many"),
        "torn": (torn[: len(torn) // 2], "broken_zip"),
        "damaged": (torn[:200] + b"\0" * 300 + torn[500:], "broken_entry"),
        "nothing": (zipped({}), "empty_folder"),
        "inside": (zipped({"big.zip": b"\0" * 2**26}), "zip_bomb"),
        "pdf": (zipped({"a.pdf": b"%PDF"}), "no_notebook"),
    }
    for name, (content, _) in hostile.items():
        put(tmp_path, f"{name}.zip", content=content)
    found = {s.display: s for s in collect(tmp_path, COURSE).submissions}
    assert set(found) == {"ok", *hostile}
    assert found["ok"].content
    for name, (_, key) in hostile.items():
        problem = found[name].problem
        assert found[name].content is None and problem and problem[0] == key, (name, problem)


def test_entries_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """As in zip bombs without nesting: a thousand names for one compressed stream."""
    made = bytearray(zipped({"a.ipynb": b"\0" * 2**20}))
    at, end = made.rfind(b"PK\x01\x02"), made.rfind(b"PK\x05\x06")
    record, tail = made[at:end], made[end:]
    body = made[:at] + record * 1000
    tail[8:16] = struct.pack("<HHL", 1000, 1000, len(record) * 1000)
    put(tmp_path, "ann.zip", "bob.ipynb", content=bytes(body + tail))
    ann = collect(tmp_path, COURSE).submissions[0]
    assert ann.problem and ann.problem[0] in ("zip_bomb", "broken_zip")


# ------------------------------------------------------------ wrappers, errors
def test_a_folder_round_the_whole_class_is_looked_through(tmp_path: Path) -> None:
    put(tmp_path, "hw4/group/ann/04.ipynb", "hw4/group/bob/04.ipynb")
    assert [s.display for s in collect(tmp_path, COURSE).submissions] == ["ann", "bob"]
    (tmp_path / "other").mkdir()
    put(tmp_path / "other", "ann/04.ipynb")
    assert one(collect(tmp_path / "other", COURSE)).display == "ann"
    moodle = zipped({f"{n}_{i}_assignsubmission_file_/x.ipynb": EXERCISE
                     for i, n in enumerate(("Ann B", "Cid D"), 10)})  # fmt: skip
    put(tmp_path / "third", "download.zip", content=moodle)
    assert collect(tmp_path / "third", COURSE).layout == "moodle"


def test_group_folders_are_told_apart_by_the_roster(tmp_path: Path) -> None:
    put(tmp_path, "group 1/ann/04.ipynb", "group 1/bob/04.ipynb", "group 2/cid/04.ipynb")
    (tmp_path / "r.txt").write_text("ann\nbob\ncid\ndora\n")
    found = collect(tmp_path, COURSE, tmp_path / "r.txt")
    shown = {s.display: bool(s.content) for s in found.submissions}
    assert shown == {"ann": True, "bob": True, "cid": True, "dora": False}


def test_what_cannot_be_graded_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(NothingToCollect, match="does not exist"):
        collect(tmp_path / "nowhere", COURSE)
    (tmp_path / "notes.md").write_text("x")
    with pytest.raises(NothingToCollect, match=r"notes\.md"):
        collect(tmp_path, COURSE)
    with pytest.raises(NoLesson, match="04_model_internal_parallel"):
        load_course(ROOT, "99")
    assert one(collect(ROOT / "notebooks" / f"{COURSE.name}.ipynb", COURSE)).content


@pytest.mark.parametrize(
    "content",
    [b"no zip at all", zipped({"ann.ipynb": EXERCISE})[:-900], b""],
    ids=["none", "cut short", "empty"],  # a zip's bytes tell the time, and workers must agree
)
def test_an_archive_that_is_damaged_itself_is_said_in_a_line(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "class.zip").write_bytes(content)
    with pytest.raises(NothingToCollect, match="class.zip: .*damaged.*download it again") as said:
        collect(tmp_path / "class.zip", COURSE)
    assert "class.zip：压缩包坏了" in str(said.value) and "\n" not in str(said.value)


# ------------------------------------------------------------ rosters
MOODLE = "Identifier,Full name,Email address\nParticipant 7,Ann Smith,ann@x.edu\n"
CANVAS = (
    'Student,ID,SIS User ID,SIS Login ID,Section,HW (1)\n"    Points Possible",,,,,10\n'
    '"Smith, Ann",4001,S1,asmith,A,\n"Student, Test",4009,,,A,\n'
)
CHINESE = "标识符,姓名,学号\n参与者7,张三,2023001\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "gb18030"])
def test_rosters_in_every_encoding(encoding: str) -> None:
    found = parse_roster(decode(CHINESE.encode(encoding)))
    (entry,) = found.entries
    assert (entry.display, found.kind) == ("张三", "moodle")
    assert found.match("张三") == found.match("2023001") == found.match("hw_2023001_v2") == (0,)


@pytest.mark.parametrize(
    ("text", "kind", "queries"),
    [
        (MOODLE, "moodle", [("x", "7", "moodle"), ("smith ann", "", ""), ("ann", "", "")]),
        (CANVAS, "canvas", [("x", "4001", "canvas"), ("smithann", "", ""), ("Ann  SMITH", "", ""),
                            ("asmith", "", ""), ("asmith_final", "", "")]),
        ("id,first_name,last_name,email,lms_user_id\nu1,Ann,Smith,,\n", "nbgrader",
         [("u1", "", ""), ("Ann Smith", "", "")]),
        ("姓名;学号\n安;1\nAnn Smith;77\n".replace("安;1\n", ""), "table",
         [("77", "", ""), ("ann_smith-final", "", "")]),
        ("Ann Smith\n", "list", [("annsmith", "", ""), ("Smith_Ann", "", "")]),
        ("77\tAnn\tSmith\n", "list", [("77", "", ""), ("smith ann", "", "")]),
    ],
)  # fmt: skip
def test_each_kind_of_roster_is_matched(
    text: str, kind: str, queries: list[tuple[str, str, str]]
) -> None:
    found = parse_roster(text)
    assert found.kind == kind and len(found.entries) == 1
    assert plain_shown(found.entries[0].display)
    for name, number, rule in queries:
        assert found.match(name, number, rule) == (0,), name
    assert found.match("nobody") == ()


def plain_shown(name: str) -> bool:
    return name == "Ann Smith"


def test_several_that_fit_are_reported_and_nobody_is_guessed(tmp_path: Path) -> None:
    put(tmp_path, "wei li.ipynb", "bob.ipynb")
    (tmp_path / "r.csv").write_text("name,student id\nWei Li,1001\nLi Wei,1002\nBob,1003\n")
    found = collect(tmp_path, COURSE, tmp_path / "r.csv")
    bob, wei = (
        next(s for s in found.submissions if s.path == f"{n}.ipynb") for n in ("bob", "wei li")
    )
    assert keys(bob) == [] and keys(wei) == ["roster_ambiguous"]
    assert dict(found.notes)["roster_ambiguous"]["candidates"] == ["Wei Li", "Li Wei"]
    assert len(found.submissions) == 4


def test_two_files_of_one_roster_student_are_one(tmp_path: Path) -> None:
    put(tmp_path, "1001.ipynb", "Ann Smith hw.ipynb", "stranger.ipynb")
    (tmp_path / "r.csv").write_text("name,student id\nAnn Smith,1001\n")
    found = collect(tmp_path, COURSE, tmp_path / "r.csv")
    ann, stranger = found.submissions
    assert ann.display == "Ann Smith" and "newest_of_several" in keys(ann)
    assert keys(stranger) == ["not_on_roster"]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"PK\x03\x04xx", "CSV"),
        (b"name,email\n", "holds a name"),
        (b"\0\0\0", "empty"),
    ],
)
def test_what_is_no_roster_is_refused(content: bytes, word: str, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(content)
    with pytest.raises(RosterUnreadable, match=word):
        load_roster(tmp_path / "r.csv")
    with pytest.raises(RosterUnreadable, match="does not exist: check the path"):
        load_roster(tmp_path / "none.csv")
    with pytest.raises(RosterUnreadable, match="cannot be read"):
        load_roster(tmp_path)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"No.;Nom;Matricule\n1;Ann;77\n2;Bob;78\n", "recognised: No., Nom, Matricule; I know"),
        (bytes(range(256)) * 4, "is no text"),
        (random.Random(1).randbytes(900), "is no text"),
        ((ROOT / "pyproject.toml").read_bytes(), "is no list of students"),
        (EXERCISE, "is no list of students"),
    ],
    ids=["columns", "bytes", "random", "toml", "notebook"],
)
def test_what_is_another_table_or_none_is_no_list_of_names(
    content: bytes, word: str, tmp_path: Path
) -> None:
    (tmp_path / "r.csv").write_bytes(content)
    with pytest.raises(RosterUnreadable, match=re.escape(word)):
        load_roster(tmp_path / "r.csv")


def test_row_numbers_and_short_numbers_are_nobody_s() -> None:
    found = parse_roster(
        "1,<script>alert(1)</script>\n2,Ann Smith\n3,Bob Jones\n4,安\n5,李\n6,Cy\n"
    )
    assert [entry.display for entry in found.entries][1:3] == ["Ann Smith", "Bob Jones"]
    assert found.match("<script>alert(1)</script>") == (0,)
    assert found.match("alert(1)") == found.match("1") == found.match("hw 2") == ()
    table = parse_roster("name,student id\nAnn,7\nBob,20261\n")
    assert (
        table.match("x_7_x") == () and table.match("7") == (0,) and table.match("x_20261") == (1,)
    )


# ------------------------------------------------------------ the sample class
def test_the_sample_class_is_what_the_sources_make() -> None:
    assert make_class_sample.main(["--check"]) == 0


def test_the_sample_class_has_the_statuses_that_it_names() -> None:
    folder = make_class_sample.FOLDER
    found = collect(folder, COURSE, make_class_sample.ROSTER)
    assert found.roster and len(found.submissions) == len(make_class_sample.CLASS) + 1
    assert dict(found.notes)["without_submission"]["count"] == 1
    for name, number, _, status, _ in make_class_sample.CLASS:
        (submission,) = [s for s in found.submissions if str(number) in s.path]
        assert submission.display == name
        if status == "unreadable":
            assert submission.problem
            continue
        rebuilt = rebuild(submission.content or b"", COURSE)
        expected = "unfinished" if "stub" in rebuilt.state.values() else rebuilt.status
        assert (expected or "ok") == (status if status != "partial" else "ok")


# ------------------------------------------------------------ what a roster knows by its meaning
@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("学号,姓名,邮箱\n2026001,Ann Smith,a@x\n", {"student_number": "2026001", "email": "a@x"}),
        ("student id,name,email\n2026001,Ann Smith,a@x\n",
         {"student_number": "2026001", "email": "a@x"}),
        ("2026001,Ann Smith,a@x\n", {"student_number": "2026001", "email": "a@x"}),
        (CANVAS, {"number": "4001", "student_number": "S1", "login": "asmith"}),
        ("Identifier,Full name,ID number,Email address\nParticipant 7,Ann Smith,2026001,a@x\n",
         {"student_number": "2026001", "email": "a@x"}),
        ("id,first_name,last_name,email,lms_user_id\nu1,Ann,Smith,a@x,9\n",
         {"number": "u1", "first": "Ann", "last": "Smith", "email": "a@x"}),
    ],
)  # fmt: skip
def test_a_roster_s_values_are_known_by_their_meaning(text: str, known: dict[str, str]) -> None:
    (entry,) = parse_roster(text).entries
    assert {key: entry.fields.get(key) for key in known} == known


def test_a_roster_that_comes_later_leaves_the_earlier_keys_known(tmp_path: Path) -> None:
    folder = tmp_path / "class"
    put(folder, f"Syn Tax_1008_{COURSE.name}.ipynb", f"Ann_1009_{COURSE.name}.ipynb")
    before = collect(folder, COURSE).people
    assert set(before) == {"Syn_Tax_1008", "Ann_1009"}
    (tmp_path / "r.csv").write_text("name,student id,email\nSyn Tax,1008,st@x\nAnn,1009,ann@x\n")
    after = collect(folder, COURSE, tmp_path / "r.csv").people
    assert set(after) == {"Syn_Tax", "Ann"}
    for word in ("Syn_Tax_1008", "1008", "st@x", f"Syn Tax_1008_{COURSE.name}.ipynb"):
        assert [key for key, person in after.items() if word in person.others] == ["Syn_Tax"]


def test_a_number_is_known_as_the_platform_s_whose_it_is(tmp_path: Path) -> None:
    put(tmp_path, "class/Ann Smith.ipynb")
    (tmp_path / "canvas.csv").write_text(CANVAS)
    (tmp_path / "moodle.csv").write_text(MOODLE)
    for kind, number in (("canvas", "4001"), ("moodle", "7")):
        found = collect(tmp_path / "class", COURSE, tmp_path / f"{kind}.csv")
        (person,) = found.people.values()
        assert (person.platform, person.number) == (kind, number)
    put(tmp_path, "own/annsmith_LATE_71_9001_x.ipynb")
    (person,) = collect(tmp_path / "own", COURSE, tmp_path / "moodle.csv").people.values()
    assert (person.platform, person.number, person.fields["number"]) == (
        "canvas", "71", "Participant 7",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("王伟_04", (0,)),
        ("王伟04作业", (0,)),
        ("04_wang_wei", ()),
        ("Ann Li - lesson 04", (2,)),
        ("LiAnn_04", (2,)),
        ("Joann Linden_04", ()),
        ("hw_1002_v2", (1,)),
        ("王伟_1002", (0, 1)),
        ("李娜_1002", (1,)),
        ("Zoë Müller (2)", (3,)),
    ],
)
def test_a_name_within_another_s_is_nobody_s(name: str, fits: tuple[int, ...]) -> None:
    found = parse_roster("学号,姓名\n1001,王伟\n1002.0,李娜\n1003,Ann Li\n1004,Zoe Muller")
    assert found.match(name) == fits and not found.is_guess(name)


def test_a_chinese_name_within_a_word_is_a_guess_that_is_told() -> None:
    found = parse_roster("学号,姓名\n1001,王伟\n1002,李娜")
    assert found.match("王伟明_04") == (0,) and found.is_guess("王伟明_04")


def test_a_title_above_the_columns_is_no_student() -> None:
    found = parse_roster("2026 春季,,\n学号,姓名,邮箱\n2023001,王伟,w@x.cn")
    assert [entry.display for entry in found.entries] == ["王伟"]
    assert found.match("2023001") == (0,)


def test_a_quotation_mark_that_is_not_closed_costs_nobody(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text('学号,姓名\n1001,"王伟\n1002,李娜\n', encoding="utf-8")
    with pytest.raises(RosterUnreadable, match="is no table: unexpected end of data"):
        load_roster(tmp_path / "r.csv")
