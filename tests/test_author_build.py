"""``parlab build``, ``--check`` and Ctrl-C: what they write, say and leave alone."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from author_fixtures.course import BODY, HEADER, NAME, SOURCE, changed, make_course, read

from parlab.author import files
from parlab.author.build import build, check
from parlab.author.notebooks import compose, notebook_paths, serialize
from parlab.author.repository import Repository
from parlab.cli import main
from parlab.interrupts import stops_interrupt

LAST = '# %% tags=["demo"]\nprint(double(21))\n'
NOISY = """\
# %% tags=["demo"]
import sys, time
print("a", end="", flush=True)
time.sleep(0.2)
print("b", flush=True)
print("c", file=sys.stderr)
object()
"""
STUB = 'raise NotImplementedError("TODO 1")'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, list[str]]:
    """A course that has been built once, and what the build said."""
    root = tmp_path_factory.mktemp("built")
    repository = make_course(root, changed(LAST, NOISY).removeprefix(HEADER))
    said: list[str] = []
    assert build(repository, (), said.append), said
    return repository, said


@pytest.fixture
def course(built: tuple[Repository, list[str]], tmp_path: Path) -> Repository:
    """A copy of the built course, to be damaged."""
    root = tmp_path / "course"
    shutil.copytree(built[0].root, root)
    return Repository(root, built[0].owner, built[0].name, built[0].branch)


def load(repository: Repository, path: str) -> Any:
    return json.loads((repository.root / path).read_text("utf-8"))


def save(repository: Repository, path: str, notebook: Any) -> None:
    text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    (repository.root / path).write_text(text, encoding="utf-8")


def cell(notebook: Any, cell_id: str) -> Any:
    return next(cell for cell in notebook["cells"] if cell["id"] == cell_id)


def checked(repository: Repository, *names: str) -> tuple[bool, str]:
    said: list[str] = []
    return check(repository, names, said.append), "\n".join(said)


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file but the caches of Python."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_a_second_build_gives_the_same_bytes(built: tuple[Repository, list[str]]) -> None:
    repository, said = built
    before = snapshot(repository.root)
    assert [path for path in notebook_paths(NAME) if path in before] == notebook_paths(NAME)
    assert all(f"{path}: written" in said for path in notebook_paths(NAME))
    again: list[str] = []
    assert build(repository, ["01"], again.append)
    assert all(f"{path}: unchanged" in again for path in notebook_paths(NAME))
    assert snapshot(repository.root) == before


def test_solutions_are_executed_and_hold_nothing_volatile(course: Repository) -> None:
    notebook = load(course, f"solutions/en/{NAME}.ipynb")
    last = notebook["cells"][-1]
    assert [output.get("name") for output in last["outputs"]] == ["stdout", "stderr", None]
    assert "".join(last["outputs"][0]["text"]) == "ab\n"
    assert "".join(last["outputs"][2]["data"]["text/plain"]) == "<object at 0x…>"
    assert "en check 1" in json.dumps(cell(notebook, "check-1")["outputs"])
    counts = [c["execution_count"] for c in notebook["cells"] if c["cell_type"] == "code"]
    assert counts == [1, 2, 3, 4]
    assert all(set(c["metadata"]) <= {"tags", "nbgrader"} for c in notebook["cells"])
    assert "# BEGIN SOLUTION" in "".join(cell(notebook, "todo-1")["source"])


def test_exercises_hide_the_solution_and_have_no_outputs(course: Repository) -> None:
    for folder in ("notebooks", "notebooks/en", "colab", "colab/en"):
        notebook = load(course, f"{folder}/{NAME}.ipynb")
        code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
        assert all(c["outputs"] == [] and c["execution_count"] is None for c in code)
        lines = "".join(cell(notebook, "todo-1")["source"]).split("\n")
        assert lines[-1] == f"    {STUB}"
        assert "#" in lines[-2], "the hint stays"
        assert "SOLUTION" not in json.dumps(notebook)


def test_all_six_are_plain_nbformat_4_5(course: Repository) -> None:
    for path in notebook_paths(NAME):
        data = (course.root / path).read_bytes()
        notebook = json.loads(data)
        nbformat.validate(notebook)
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        assert data.endswith(b"}\n") and b"\\u" not in data and data[:4] == b'{\n "'
        twin = {"colab"} if path.startswith("colab/") else set()
        assert set(notebook["metadata"]) == {"kernelspec", "language_info"} | twin
        assert notebook["metadata"]["language_info"] == {"name": "python"}


def test_ids_and_tags_are_the_same_everywhere(course: Repository) -> None:
    ids = []
    for path in notebook_paths(NAME):
        cells = load(course, path)["cells"]
        ids.append([c["id"] for c in cells if c["id"] != "badges"])
        tags = {c["id"]: c["metadata"].get("tags") for c in cells}
        assert (tags["todo-1"], tags["check-1"], tags["setup"]) == (["todo"], ["check"], None)
        assert cells[-1]["metadata"] == {"tags": ["demo"]}
    assert all(one == ids[0] for one in ids)
    assert ids[0][1:4] == ["setup", "todo-1", "check-1"]


def test_ids_stay_when_a_cell_is_inserted(tmp_path: Path) -> None:
    repository = make_course(tmp_path)
    before = [unit.cell_id for unit in read(repository).units]
    inserted = "# %%\n1 + 1\n\n# %%\n1 + 1\n\n"
    body = BODY.replace('# %% lang="zh"\n# TODO 1', f'{inserted}# %% lang="zh"\n# TODO 1')
    (tmp_path / SOURCE).write_text(HEADER + body, encoding="utf-8")
    after = [unit.cell_id for unit in read(repository).units]
    assert len(set(after)) == len(after) == len(before) + 2
    assert [cell_id for cell_id in after if cell_id in before] == before


def test_what_was_just_built_passes_the_check(course: Repository) -> None:
    assert checked(course) == (True, "lessons checked: 1, differences: 0")


def test_outputs_do_not_matter_to_the_check(course: Repository) -> None:
    path = f"solutions/{NAME}.ipynb"
    notebook = load(course, path)
    notebook["cells"][-1].update(outputs=[])
    save(course, path, notebook)
    assert checked(course)[0]


@pytest.mark.parametrize(
    ("damage", "passage"),
    [
        (lambda code: code[-1].update(execution_count=77), "was executed as 77, not as 4"),
        (lambda code: [c.update(outputs=[]) for c in code], "no cell has an output"),
        (lambda code: code[1].update(outputs=[{"output_type": "junk"}]), "not a notebook"),
        (lambda code: code[1].update(outputs=3), "not a notebook"),
        (lambda code: code[1].update(outputs=["x"]), "not a notebook"),
        (lambda code: code[1].pop("outputs"), "not a notebook (KeyError: 'outputs')"),
        (lambda code: code[1].pop("execution_count"), "not a notebook"),
    ],
)
def test_a_damaged_solution_is_a_difference(damage: Any, passage: str, course: Repository) -> None:
    path = f"solutions/{NAME}.ipynb"
    notebook = load(course, path)
    damage([c for c in notebook["cells"] if c["cell_type"] == "code"])
    save(course, path, notebook)
    same, said = checked(course)
    assert not same and said.startswith(f"{path}: ")
    assert passage in said and f"; run parlab build {NAME}\n" in said
    assert said.count("\n") == 1, "one line, and the sum"


@pytest.mark.parametrize("folder", ["notebooks", "solutions/en", "colab"])
def test_an_edited_cell_is_shown_as_a_diff(folder: str, course: Repository) -> None:
    path = f"{folder}/{NAME}.ipynb"
    notebook = load(course, path)
    todo = cell(notebook, "todo-1")
    todo["source"] = "".join(todo["source"]).replace("def double(x)", "def double(y)")
    save(course, path, notebook)
    same, said = checked(course)
    assert not same
    assert f"{path}: cell todo-1\n" in said
    assert "\n  -def double(y):\n  +def double(x):\n" in said
    assert '"source"' not in said


def test_an_edited_source_is_found_in_every_notebook(course: Repository) -> None:
    source = course.root / SOURCE
    source.write_text(source.read_text("utf-8").replace("小课", "大课"), encoding="utf-8")
    same, said = checked(course, NAME)
    assert not same
    for folder in ("solutions", "notebooks", "colab"):
        assert f"{folder}/{NAME}.ipynb: cell " in said
    assert "\n  -# 小课\n  +# 大课\n" in said
    assert "is missing" not in said and "is in no source" not in said


def test_one_diff_of_several_notebooks_is_shown_once(course: Repository) -> None:
    source = course.root / SOURCE
    text = source.read_text("utf-8").replace("time.sleep(0.2)", "time.sleep(0.1)")
    source.write_text(text, encoding="utf-8")
    same, said = checked(course)
    assert not same
    assert said.count("+time.sleep(0.1)") == 1
    assert all(f"{path}: cell " in said for path in notebook_paths(NAME))
    assert said.endswith("differences: 6")


@pytest.mark.parametrize(
    ("damage", "passage"),
    [
        (lambda cells: cells.pop(), "is missing"),
        (lambda cells: cells.append(dict(cells[-1], id="new")), "cell new is in no source"),
        (lambda cells: cells.reverse(), "another order"),
        (lambda cells: [c.pop("id") for c in cells], "(no id, position 1)"),
        (lambda cells: cells[0]["metadata"].update(x=1), "metadata or layout"),
        (lambda cells: cells.insert(0, "x"), "not a notebook (AttributeError"),
        (lambda cells: cells[0].update(id="y"), f"committed as y; run parlab build {NAME}"),
        (lambda cells: cells[2].update(cell_type="raw"), "-raw"),
    ],
)
def test_other_damage_is_found(damage: Any, passage: str, course: Repository) -> None:
    path = f"notebooks/en/{NAME}.ipynb"
    notebook = load(course, path)
    damage(notebook["cells"])
    save(course, path, notebook)
    same, said = checked(course)
    assert not same
    assert passage in said and said.startswith(path)


@pytest.mark.parametrize("folder", ["notebooks", "solutions"])
def test_carriage_returns_are_said_in_a_line(folder: str, course: Repository) -> None:
    path = course.root / f"{folder}/{NAME}.ipynb"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    same, said = checked(course)
    assert not same and said.count("\n") == 1
    assert f"{folder}/{NAME}.ipynb: line ends are CRLF: let git keep LF" in said


@pytest.mark.parametrize(
    "path", ["notebooks/x.py", "colab/en/x.py", "solutions/en/x.py", "notebooks/x.IPYNB"]
)
def test_stray_files_are_found(path: str, course: Repository) -> None:
    (course.root / path).write_text("x")
    same, said = checked(course)
    assert not same and said.startswith(f"{path}: no ") and "delete it" in said


def test_a_missing_page_is_found(course: Repository) -> None:
    (course.root / "README.md").unlink()
    same, said = checked(course)
    assert not same and said.startswith("README.md: missing; restore it")


def test_what_a_killed_build_left_is_found_and_removed(course: Repository) -> None:
    left = course.root / f"notebooks/en/.{NAME}.ipynb.4711.tmp"
    left.write_text("half")
    same, said = checked(course)
    assert not same and "cut short; run parlab build" in said
    said_by_build: list[str] = []
    (course.root / SOURCE).write_text("x")  # what is left goes in any case
    build(course, (), said_by_build.append)
    assert not left.exists() and "removed, left by a build that was cut short" in said_by_build[0]


def test_missing_stray_broken_and_reformatted_notebooks(course: Repository) -> None:
    root = course.root
    (root / f"colab/en/{NAME}.ipynb").unlink()
    (root / "notebooks/old.ipynb").write_text("{}")
    (root / "solutions/.ipynb_checkpoints").mkdir()
    (root / "solutions/.ipynb_checkpoints/x-checkpoint.ipynb").write_text("{}")
    (root / f"notebooks/{NAME}.ipynb").write_text("<<<<<<< HEAD")
    solution = root / f"solutions/{NAME}.ipynb"
    solution.write_text(json.dumps(json.loads(solution.read_text("utf-8"))), encoding="utf-8")
    same, said = checked(course)
    assert not same
    assert f"colab/en/{NAME}.ipynb: missing; run parlab build {NAME}" in said
    assert "notebooks/old.ipynb: no source builds this notebook" in said
    assert "checkpoint" not in said
    assert f"notebooks/{NAME}.ipynb: not a notebook (JSONDecodeError" in said
    assert f"solutions/{NAME}.ipynb: metadata or layout" in said
    assert said.endswith("differences: 4")
    assert "old.ipynb" not in checked(course, NAME)[1], "strays are a matter of the whole course"


def test_an_unexecuted_or_failed_solution_is_found(course: Repository) -> None:
    path = f"solutions/{NAME}.ipynb"
    notebook = load(course, path)
    cell(notebook, "check-1")["execution_count"] = None
    error = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
    cell(notebook, "todo-1")["outputs"] = [error]
    save(course, path, notebook)
    same, said = checked(course)
    assert not same
    assert f"{path}: cell check-1 has not been executed" in said
    assert f"{path}: cell todo-1 has failed" in said


@pytest.mark.parametrize(
    ("cell_source", "passages"),
    [
        ("x = 1\nx / 0", ["failed\n    x = 1\n    x / 0\n", "ZeroDivisionError"]),
        (
            "import sys\nsys.stderr.write('Glyph 20013 missing from font(s) DejaVu Sans.')",
            ["Glyph 20013 missing from font(s)", "label the figure in English"],
        ),
    ],
)
def test_a_failing_cell_leaves_the_lesson_as_it_was(
    cell_source: str, passages: list[str], course: Repository
) -> None:
    (course.root / SOURCE).write_text(changed(LAST, f"# %%\n{cell_source}\n"), encoding="utf-8")
    before = snapshot(course.root)
    said: list[str] = []
    assert not build(course, (), said.append)
    assert snapshot(course.root) == before
    text = "\n".join(said)
    assert all(passage in text for passage in passages), text
    assert "\x1b" not in text
    assert f"{NAME}: not built, its notebooks are as they were" in text


def test_the_command_refuses_cleanly_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_course(tmp_path, BODY + "\n# %%\nx = = 1\n\n# %% lang=zh\n1\n")
    monkeypatch.chdir(tmp_path / "parlab")
    before = snapshot(tmp_path)
    for command in (["build"], ["build", "--check"], ["links"], ["build", "nothing"]):
        assert main(command) == 1
        shown = capsys.readouterr()
        assert "Traceback" not in shown.out + shown.err
        if command[-1] == "nothing":
            assert f"no lesson 'nothing'; there are: {NAME}" in shown.out
        else:
            assert f"{SOURCE}:57: not valid Python" in shown.out
            assert f"{SOURCE}:59: cell header '# %% lang=zh'" in shown.out
    assert snapshot(tmp_path) == before


def test_only_the_named_lessons_are_touched(course: Repository) -> None:
    (course.root / "solutions/02_broken.py").write_text("x")
    assert checked(course, NAME)[0]
    same, said = checked(course)
    assert not same and "solutions/02_broken.py:1: the YAML header is missing" in said
    said_by_build: list[str] = []
    assert not build(course, ["solutions/02_broken.py"], said_by_build.append)
    assert NAME not in "\n".join(said_by_build)


def test_a_lesson_has_a_proper_name(course: Repository) -> None:
    shutil.copy(course.root / SOURCE, course.root / "solutions/small.py")
    with pytest.raises(Exception, match=r"solutions/small\.py:1: name the lesson like"):
        check(course, (), print)


def test_files_are_written_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = {tmp_path / name: b"old" for name in ("a", "b")}
    assert files.write_together(old) == set(old)
    assert files.write_together(old) == set()

    def fail(self: Path, data: bytes) -> int:
        if self.name.startswith(".b"):
            raise OSError("disk full")
        return original(self, data)

    original = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_together(dict.fromkeys(old, b"new"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a": b"old",
        "b": b"old",
    }


@pytest.fixture
def two_old(tmp_path: Path) -> dict[Path, bytes]:
    """New content for two old files and a file not yet there."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"old")
    return {tmp_path / name: b"new" for name in ("a", "c", "b")}


def failing_replace(monkeypatch: pytest.MonkeyPatch, at: int, then: Any) -> None:
    calls = 0

    def replace(source: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls >= at:
            then()
        original(source, target)

    original = os.replace
    monkeypatch.setattr(os, "replace", replace)


def fail() -> None:
    raise PermissionError("Access is denied")


def test_a_failed_replacement_puts_the_others_back(
    two_old: dict[Path, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([fail])
    failing_replace(monkeypatch, 3, lambda: next(failures, lambda: None)())
    with pytest.raises(PermissionError):
        files.write_together(two_old)
    assert snapshot(tmp_path) == {"a": b"old", "b": b"old"}


def test_what_cannot_be_put_back_is_named(
    two_old: dict[Path, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_replace(monkeypatch, 3, fail)
    with pytest.raises(files.CutShort, match=r"/a stayed new; run parlab build again"):
        files.write_together(two_old)
    assert snapshot(tmp_path) == {"a": b"new", "b": b"old"}


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_waits_for_the_last_replacement(
    stop: signal.Signals,
    two_old: dict[Path, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = signal.getsignal(stop)
    failing_replace(monkeypatch, 2, lambda: signal.raise_signal(stop))
    with pytest.raises(KeyboardInterrupt), stops_interrupt():
        files.write_together(two_old)
    assert snapshot(tmp_path) == {"a": b"new", "b": b"new", "c": b"new"}
    assert signal.getsignal(stop) is before


def test_serialized_notebooks_do_not_share_state(tmp_path: Path) -> None:
    repository = make_course(tmp_path)
    first, second = (compose(read(repository), repository) for _ in range(2))
    first[f"colab/{NAME}.ipynb"].metadata.kernelspec.name = "other"
    for path in notebook_paths(NAME):
        assert serialize(compose(read(repository), repository)[path]) == serialize(second[path])


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    "stops", [["SIGINT"], ["SIGINT"] * 3, ["SIGTERM"], ["SIGHUP", "SIGTERM"]], ids="+".join
)
def test_a_stop_ends_the_kernels_and_leaves_whole_files(
    stops: list[str], course: Repository
) -> None:
    pid_file = course.root / "pid"
    sleeper = (
        f"import os, time, pathlib\npathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))"
    )
    body = changed(LAST, f"# %%\n{sleeper}\ntime.sleep(60)\n")
    (course.root / SOURCE).write_text(body, encoding="utf-8")
    before = snapshot(course.root)
    # The course's own parlab has no command, so the path must not start in the course.
    here = str(Path(__file__).parents[1])
    script = f"import sys; sys.path[0] = {here!r}; import parlab.cli; sys.exit(parlab.cli.main())"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "build"],
        cwd=course.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(pid_file.is_file)
        for stop in stops:
            process.send_signal(getattr(signal, stop))
            time.sleep(0.1)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "interrupted" in err and "Traceback" not in err
    kernel = int(pid_file.read_text())
    pid_file.unlink()
    assert snapshot(course.root) == before
    wait_for(lambda: not alive(kernel))


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


@pytest.mark.slow
def test_nothing_is_left_of_a_failed_build(course: Repository) -> None:
    (course.root / SOURCE).write_text(changed(LAST, "# %%\n1 / 0\n"), encoding="utf-8")
    script = (
        f"import sys; sys.path[0] = {str(Path(__file__).parents[1])!r}; import gc, parlab.cli\n"
        "done = parlab.cli.main(['build']); gc.collect(); sys.exit(done)"
    )
    command = [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", script]
    process = subprocess.run(
        command, cwd=course.root, capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 1
    assert "ZeroDivisionError" in process.stdout
    assert "still running" not in process.stderr and "Traceback" not in process.stderr


def alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
