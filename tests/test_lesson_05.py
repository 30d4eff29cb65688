"""Lesson 05 starts nothing unasked, runs from one file, and leaves no process behind."""

from __future__ import annotations

import ast
import base64
import bz2
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest
from bare import bare_python, kernel_for
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from lessons import LANGUAGES, ROOT, Kernel, answered, cell, code_cells, load
from nbformat import NotebookNode

from parlab.author.bundle import pack
from parlab.lesson import record_files, soundness
from parlab.lesson.deciders import load_deciders
from parlab.lesson.experiments import bench_command
from parlab.lesson.nearly import nearly
from parlab.lesson.record_cases import a_judge, look
from parlab.lesson.record_cases import runs as made_runs
from parlab.lesson.records import pipeline_group, read_records, read_timeline, stands_apart
from parlab.lesson.trace_cases import BY_HAND, agrees, groups, traces, untidy
from parlab.lesson.undisturbed import undisturbed

matplotlib.use("Agg")
LESSON, RULES = "05_multi_gpu_experiments", "04_model_internal_parallel"
RESULTS = "benchmarks/results/par_model_internal"
CONFIGURATION = """
RUN_GPU_EXPERIMENT = False
WORLD_SIZE = 4
EXPERIMENTS = [
    {'name': 'G0_tp', 'mesh': {'pp': 1, 'tp': 4, 'cp': 1}, 'command': []},
    {'name': 'G1_pp', 'mesh': {'pp': 4, 'tp': 1, 'cp': 1}, 'command': []},
    {'name': 'G2_pp_tp', 'mesh': {'pp': 2, 'tp': 2, 'cp': 1}, 'command': []},
]
RESULT_DIR = 'benchmarks/results/par_model_internal'
print({'run': RUN_GPU_EXPERIMENT, 'world_size': WORLD_SIZE, 'groups': [item['name'] for item in EXPERIMENTS]})
"""  # noqa: E501
BARE = ("ipykernel", "torch", "matplotlib", "jsonschema", "tomli")
SWITCH = ("RUN_CPU_REHEARSAL = False", "RUN_CPU_REHEARSAL = True")


def holding(notebook: NotebookNode, text: str) -> NotebookNode:
    """The one code cell with this text, the set-up cell (in a twin, all modules) left out."""
    cells = [item for item in code_cells(notebook) if item.id != "setup"]
    (found,) = [item for item in cells if text in item.source]
    return found


@pytest.fixture
def solution() -> Kernel:
    """The lesson's three functions."""
    kernel, notebook = Kernel(), load("solutions", LESSON, "zh")
    for name in ("setup", "todo-1", "todo-2", "todo-3"):
        kernel.run(cell(notebook, name).source)
    return kernel


# ---------------------------------------------------------------------------- nothing unasked


@pytest.mark.parametrize(
    ("folder", "language"),
    [
        ("notebooks", "zh"),
        pytest.param("solutions", "en", marks=pytest.mark.slow),
        pytest.param("colab", "zh", marks=pytest.mark.slow),
    ],
)
def test_run_all_starts_no_process(
    folder: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **_: Any) -> None:
        raise AssertionError(f"a process was started: {arguments}")

    for name in ("Popen", "run", "check_output"):
        monkeypatch.setattr(subprocess, name, refuse)
    for name in ("fork", "posix_spawn", "system"):
        monkeypatch.setattr(os, name, refuse)
    kernel = Kernel()
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    with undisturbed():
        for item in code_cells(load(folder, LESSON, language)):
            if folder == "solutions" or not item.id.startswith("check-"):
                kernel.run(item.source)
    assert kernel["ran"] is False


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_configuration_is_the_specification_s(language: str) -> None:
    source = holding(load("notebooks", LESSON, language), "RUN_GPU_EXPERIMENT =").source
    body = [ast.dump(node) for node in ast.parse(source).body]
    for node in ast.parse(CONFIGURATION).body:
        assert ast.dump(node) in body
    assert body[-1] == ast.dump(ast.parse(CONFIGURATION).body[-1])
    assert "RUN_CPU_REHEARSAL = False" in source


def test_both_switches_are_one_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    kernel, notebook = Kernel(), load("notebooks", LESSON, "en")
    kernel.run(cell(notebook, "setup").source)
    configuration = holding(notebook, "RUN_GPU_EXPERIMENT =").source
    kernel.run(configuration.replace("= False", "= True"))
    kernel.run(holding(notebook, "load_deciders(").source)
    assert "only one of the two switches" in kernel.run(holding(notebook, "ran = ").source)


def test_commands_are_those_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the notebook shows is understood by `parlab bench` and names the same meshes."""
    from parlab import cli
    from parlab.bench import command
    from parlab.bench.mesh import Mesh

    asked: list[Any] = []
    monkeypatch.setattr(command, "bench", lambda request, _: asked.append(request) or True)
    experiments = [{"name": "G0_tp", "mesh": {"pp": 1, "tp": 4, "cp": 1}},
                   {"name": "odd", "mesh": {"pp": 2, "tp": 1, "cp": 2}}]  # fmt: skip
    both = bench_command(experiments, 4, RESULTS)
    assert both[:4] == ["parlab", "bench", "--groups", "baseline"]
    assert cli.main([*both[1:], "--no-report"]) == 0
    assert asked[0].named == {"G0_tp": Mesh(tp=4), "odd": Mesh(pp=2, cp=2)}
    assert asked[0].groups == ("baseline",) and asked[0].refusals == ()
    assert both[-4:] == ["--world-size", "4", "--results", RESULTS]
    assert "--groups" not in bench_command(experiments[:1], 4, RESULTS)


@pytest.mark.slow
def test_an_illegal_mesh_is_refused_before_anything_starts(tmp_path: Path) -> None:
    command = bench_command([{"name": "G", "mesh": {"pp": 3, "tp": 2, "cp": 1}}], 4, str(tmp_path))
    done = subprocess.run(
        [os.sys.executable, "-m", "parlab.cli", *command[1:], "--device", "cpu"],  # type: ignore[attr-defined]
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and "mesh_product" in done.stdout
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------- who decides


def decided(folder: Path, monkeypatch: pytest.MonkeyPatch, given: str | None = None) -> Any:
    monkeypatch.chdir(folder)
    said = StringIO()
    with redirect_stdout(said):
        found = load_deciders(given)
    return found, said.getvalue()


def test_the_solution_decides_where_lesson_04_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, said = decided(tmp_path, monkeypatch)
    assert found.notebook is None and found.loaded.origin == "solution"
    assert "solutions/04_model_internal_parallel.py" in said and "TODO 1" in said


@pytest.mark.parametrize("kind", ["notebooks", "colab"])
@pytest.mark.parametrize("name", [f"{RULES}.ipynb", f"{RULES} (1).ipynb"])
def test_an_uploaded_notebook_decides(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parlab.lesson import checks, language

    before = language.spoken(), checks
    finished = answered(RULES, "en", [1, 2, 3], folder=kind)
    (tmp_path / name).write_text(json.dumps(finished), encoding="utf-8")
    found, said = decided(tmp_path, monkeypatch)
    assert found.loaded.origin == "learner" and name in said
    assert found["select_internal_parallel_candidate"]([])["decision"] == "reject"
    from parlab.lesson import checks as after

    assert (language.spoken(), after) == before  # a twin puts its own modules in their place


def test_a_named_notebook_that_is_wrong_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = answered(RULES, "zh", [1, 2, 3])
    for item in wrong.cells:
        item.source = item.source.replace("> limits['memory_mb']", ">= limits['memory_mb']")
    (tmp_path / "mine.ipynb").write_text(json.dumps(wrong), encoding="utf-8")
    found, said = decided(tmp_path, monkeypatch, "mine.ipynb")
    assert found.notebook is None and "CHECK 2" in said


# ---------------------------------------------------------------------------- cases and records


def test_generated_cases_are_what_they_say(solution: Kernel) -> None:
    """Against the solution: cases and answers come from different hands."""
    for events, step, known in traces(seed=1, count=300):
        got = solution["split_rank_step"](events, step)
        assert agrees(got, known) and not untidy(got)
        length = sum(b - a for spans in known.values() for a, b in spans)
        assert length == step[1] - step[0]
    for ranks, known in groups(seed=1, count=200):
        assert nearly(solution["step_ratios"](ranks), known)
    for run, baseline, known in made_runs(seed=1):
        got = solution["complete_record"](run, baseline, a_judge()[0])
        assert nearly({path: look(got, path) for path in known}, known)


def test_the_example_by_hand_is_right(solution: Kernel) -> None:
    source = holding(load("solutions", LESSON, "zh"), "EVENTS = [").source
    example = ast.parse(source)
    scope: dict[str, Any] = {}
    exec(compile(ast.Module(example.body[:1], []), "<cell>", "exec"), scope)
    assert agrees(solution["split_rank_step"](scope["EVENTS"], (0, 40)), BY_HAND)


def test_a_timeline_is_found_where_the_learners_groups_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flat = [content for content in read_records(RESULTS).values() if content["mesh"]["pp"] == 1]
    group, timeline = pipeline_group(RESULTS, flat)
    assert group["name"] == "G1_pp" and timeline["trace"]


def test_the_examples_are_what_the_functions_make_of_their_traces(solution: Kernel) -> None:
    for name, content in read_records(RESULTS).items():
        timeline = read_timeline(RESULTS, content)
        assert timeline and soundness.faults(content) == []
        step = (0.0, timeline["step_ms"])
        for row, shown, parts in zip(
            timeline["trace"], timeline["ranks"], content["metrics"]["parts_ms"], strict=True
        ):
            got = solution["split_rank_step"](row["events"], step)
            for part, spans in got.items():
                seconds = sum(b - a for a, b in spans)
                assert seconds == pytest.approx(parts[part], abs=0.05), (name, part)
                assert seconds == pytest.approx(sum(b - a for a, b in shown[part]), abs=0.05)


def test_records_of_other_machines_stand_apart() -> None:
    one = read_records(RESULTS)["G0_tp"]
    assert stands_apart(one, one) == ""
    other = {**one, "hardware": {**one["hardware"], "cores": 64}}
    assert "cores 64, not" in stands_apart(other, one)
    assert "evidence level" in stands_apart({**one, "evidence_level": "gpu_single_node"}, one)


def test_what_the_twin_carries_is_enough_to_start_the_benchmark(tmp_path: Path) -> None:
    packed = pack((ROOT / "solutions" / f"{LESSON}.py").read_text(encoding="utf-8"), ROOT, LESSON)
    assert packed
    for name, text in json.loads(bz2.decompress(base64.b64decode(packed[0]))).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    program = (  # without the installed package's finder, which would supply what is missing
        "import runpy, sys; sys.meta_path = [f for f in sys.meta_path if 'ditable' not in str(f)];"
        "runpy.run_module('parlab.cli', run_name='__main__')"
    )
    command = [sys.executable, "-c", program, "bench", "--preflight", "--device", "cpu"]
    variables = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0 and "torchrun" in done.stdout, done.stdout + done.stderr


# ---------------------------------------------------------------------------- real runs


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a kernel that has what Colab has, and no parlab."""
    folder = tmp_path_factory.mktemp("hosted")
    variables = kernel_for(bare_python(folder / "env", BARE), folder / "jupyter")
    return variables["JUPYTER_PATH"]


class Notebook:
    """A notebook in a real kernel, in a folder of its own."""

    def __init__(self, folder: Path, kernels: str, source: NotebookNode) -> None:
        self.folder, self.source = folder, source
        specs = KernelSpecManager(kernel_dirs=[str(Path(kernels) / "kernels")])
        self.manager = KernelManager(kernel_name="bare", kernel_spec_manager=specs)
        self.manager.start_kernel(cwd=str(folder))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, item: NotebookNode, timeout: float = 150) -> tuple[str, dict[str, Any]]:
        """What the cell printed, and the kernel's reply."""
        said: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            said.append(content.get("text") or "\n".join(content.get("traceback", [])))

        reply = self.client.execute_interactive(
            item.source, timeout=timeout, output_hook=hear, stop_on_error=False
        )
        return "".join(said), reply["content"]

    def start(self, item: NotebookNode) -> None:
        """Sends the cell and returns at once."""
        self.client.execute(item.source)


@contextmanager
def opened(folder: Path, kernels: str, kind: str, change: Callable[[str], str]) -> Iterator[Any]:
    """A twin or exercise in a kernel, set up, configured by ``change``, deciders loaded."""
    source = load(kind, LESSON, "en")
    notebook = Notebook(folder, kernels, source)
    try:
        configuration = holding(source, "RUN_GPU_EXPERIMENT =")
        configuration.source = change(configuration.source)
        for item in (cell(source, "setup"), configuration, holding(source, "load_deciders(")):
            said, reply = notebook.run(item)
            assert reply["status"] == "ok", said
        yield notebook
    finally:
        notebook.client.stop_channels()
        if notebook.manager.has_kernel:
            notebook.manager.shutdown_kernel(now=True)


def ours(folder: Path) -> list[str]:
    """The command lines of processes that work for a run in ``folder``."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if str(folder) in line and state != "Z":
                found.append(line)
    return found


def wait_until(true: Callable[[], Any], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


REAL = [
    pytest.mark.slow,
    pytest.mark.xdist_group("torchrun"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]


class TestReal:
    pytestmark = REAL

    def test_the_twin_rehearses_alone(self, hosted: str, tmp_path: Path) -> None:
        folder = tmp_path / "empty"
        folder.mkdir()
        finished = answered(RULES, "zh", [1, 2, 3], folder="colab")
        (folder / f"{RULES}.ipynb").write_text(json.dumps(finished), encoding="utf-8")
        with opened(folder, hosted, "colab", lambda s: s.replace(*SWITCH)) as notebook:
            started = time.monotonic()
            said, reply = notebook.run(holding(notebook.source, "ran = run_experiments"), 500)
            seconds = time.monotonic() - started
            print(said, f"rehearsal: {seconds:.1f} s")
            assert reply["status"] == "ok", said
            assert "decision:" in said and "measure" in said
            assert "the learner's functions decide, from" in said and f"{RULES}.ipynb" in said
            for text in ("comparable(records)", "draw_comparison(", "draw_worth(", "def decide("):
                shown, reply = notebook.run(holding(notebook.source, text))
                assert reply["status"] == "ok", shown
            assert "evidence level cpu_gloo" in shown
        records, complaints = record_files.read_folder(folder / RESULTS)
        assert not complaints
        assert set(records) == {"baseline", "G0_tp", "G1_pp", "G2_pp_tp"}
        choice = record_files.read(folder / RESULTS / "decision.json")
        assert len(choice["candidates"]) == 3 and choice["functions"]["origin"] == "learner"
        for name, content in records.items():
            assert content["failure"] is None and content["evidence_level"] == "cpu_gloo"
            if name != "baseline":
                assert content["metrics"]["correctness"]["largest_gradient_error"] < 1e-5
        wait_until(lambda: not ours(folder), 5, "processes are left")
        # The lesson promises about a minute on two idle cores; here other tests run beside it.
        assert seconds < 400

    @pytest.mark.parametrize("how", ["interrupt", "restart", "restart now", "shutdown", "killed"])
    def test_a_run_that_is_cut_short_leaves_a_record_and_no_process(
        self, how: str, hosted: str, tmp_path: Path
    ) -> None:
        folder = tmp_path / "here"
        folder.mkdir()

        def one_group(source: str) -> str:
            return source.replace(*SWITCH) + "\nEXPERIMENTS = EXPERIMENTS[2:]\n"

        with opened(folder, hosted, "colab", one_group) as notebook:
            jobs = folder / RESULTS / "jobs" / "G2_pp_tp"
            run = holding(notebook.source, "ran = run_experiments")
            notebook.start(run)
            wait_until(lambda: len(list(jobs.glob("progress-*.json"))) == 4, 120, "no rank started")
            assert len(ours(folder)) >= 7  # benchmark, supervisor, launcher, four ranks
            begun = time.monotonic()
            if how == "interrupt":
                notebook.manager.interrupt_kernel()
            elif how.startswith("restart"):
                notebook.manager.restart_kernel(now=how.endswith("now"))
            elif how == "shutdown":
                notebook.manager.shutdown_kernel(now=False)
            else:
                os.kill(notebook.manager.provisioner.pid, 9)
            gone = max(5 - (time.monotonic() - begun), 0.1) if how != "shutdown" else 5
            wait_until(lambda: not ours(folder), gone, f"left: {ours(folder)}")
            print(how, f"{time.monotonic() - begun:.1f} s")
            content = record_files.read(folder / RESULTS / "G2_pp_tp.json")
            assert content["failure"]["kind"] == "interrupted"
            assert content["decision"]["gate_failures"] == ["runtime"]
            if how == "interrupt":  # the kernel lives on, and says so in a line
                reply = notebook.client.get_shell_msg(timeout=20)
                while reply["content"].get("ename") is None:
                    reply = notebook.client.get_shell_msg(timeout=20)
                assert reply["content"]["ename"] == "RunStopped"
                assert len(reply["content"]["traceback"]) == 1
