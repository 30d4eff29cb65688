"""The sandbox itself: who sees and reaches whom, who may make one, and what ends it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest
from sandboxed import (
    CASES,
    EXPECTED,
    RIGHT,
    SETUP,
    TIGHT,
    Case,
    call,
    children_of,
    context,
    exercise,
    run,
    says,
    warm,
)

from parlab.grade import calls
from parlab.grade.calls import call_answer
from parlab.grade.forkserver import Connection
from parlab.grade.limits import Limits
from parlab.grade.sandbox import linux
from parlab.grade.warm import NoSandbox, RunContext, Warm

pytestmark = pytest.mark.slow

__all__ = ["context", "warm"]
ROOT = Path(__file__).resolve().parent.parent
SPACES = ("user", "pid", "mnt", "net", "ipc")
LOOK = """
import os, socket
def double(step):
    if step == 0:
        names = ('user', 'pid', 'mnt', 'net', 'ipc')
        spaces = {n: os.readlink(f'/proc/self/ns/{n}') for n in names}
        open('/scratch/mine', 'w').write('x')
        global server
        server = socket.socket(socket.AF_UNIX); server.bind('\\0meet'); server.listen()
        return spaces
    if step == 1:
        return {'pids': [n for n in os.listdir('/proc') if n.isdigit()],
                'files': sorted(os.listdir('/scratch')), 'parent': os.getppid(), 'uid': os.getuid()}
    reached = []
    for pid in range(1, 3000):
        try:
            os.kill(pid, 0)
            reached.append(pid)
        except OSError:
            pass
    return reached
"""


def test_two_at_once_neither_see_nor_reach_each_other_nor_the_parent(warm: Warm) -> None:
    context = RunContext(warm, replace(TIGHT, case_seconds=30, cpu_seconds=30, wall_seconds=60))
    answer = calls.Answer(LOOK)
    with (
        calls.Session("double", answer, (), context) as one,
        calls.Session("double", answer, (), context) as two,
    ):
        assert one.begin() is two.begin() is None
        spaces = [session.call(Case((0,)), {})[1] for session in (one, two)]
        ours = {name: os.readlink(f"/proc/self/ns/{name}") for name in SPACES}
        for name in SPACES:
            assert len({spaces[0][name], spaces[1][name], ours[name]}) == 3, name
        for session in (one, two):  # both have bound one abstract name, and written one file
            seen = session.call(Case((1,)), {})[1]
            assert seen["pids"] == ["1"]
            assert seen["files"] == ["home", "mine", "work"]
            assert (seen["parent"], seen["uid"]) == (0, 1000)
            assert session.call(Case((2,)), {})[1] == [1]  # itself: nobody else to signal
    assert call(RIGHT, context).results == EXPECTED


def test_two_kernels_at_once_are_as_well_apart(context: RunContext) -> None:
    source = (
        f"{RIGHT}\nimport os, time\nopen('/scratch/mine', 'x').close()\n"
        "assert [n for n in os.listdir('/proc') if n.isdigit()] == ['1']\ntime.sleep(1)\n"
        "assert os.listdir('/scratch').count('mine') == 1\ndel double.__doc__\n"
    )
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(run(source, context))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(item.status, item.checks) for item in found] == [(None, {1: "passed"})] * 2


def test_the_control_socket_is_nowhere_in_a_sandbox(context: RunContext) -> None:
    code = f"""
import os, socket
found = []
for path in ({context.warm.zygote!r}, {context.warm.reader!r}, '\\0zygote'):
    try:
        socket.socket(socket.AF_UNIX).connect(path); found.append(path)
    except OSError: pass
return found + [l for l in open('/proc/net/unix').read().splitlines()[1:]]"""
    assert says(code, context) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root has users to give")
def test_root_gives_every_sandbox_a_user_of_its_own(warm: Warm) -> None:
    owners = set()
    for number in range(2):
        request = {"kind": "kernel", "name": f"k{number}", "key": "x", "limits": asdict(TIGHT)}
        connection = Connection(warm.zygote, request)
        owner, end = 0, time.monotonic() + 20
        while owner == 0 and time.monotonic() < end:  # it is still on its way in
            (kernel,) = [pid for pid in children_of(os.getpid()) if _is_first(pid)]
            owner = os.stat(f"/proc/{kernel}").st_uid
        owners.add(owner)
        connection.kill()
    assert len(owners) == 2
    assert all(owner > 1_000_000 for owner in owners)


def _is_first(pid: int) -> bool:
    """Whether a process is the first one of a sandbox's pid namespace."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    inner = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return len(inner) >= 3 and inner[-1] == "1"


def test_a_killed_grader_leaves_nothing_running() -> None:
    script = (
        "import os, threading, time\nfrom sandboxed import TIGHT, call\n"
        "from parlab.grade.warm import RunContext, Warm\nfrom dataclasses import replace\n"
        "warm = Warm().__enter__()\ncontext = RunContext(warm, replace(TIGHT, case_seconds=60))\n"
        "threading.Thread(target=call, args=('import time\\ndef double(x): time.sleep(99)', "
        "context), daemon=True).start()\ntime.sleep(1)\nprint(os.getpid(), flush=True)\n"
        "time.sleep(99)\n"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    grader = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
    )
    assert grader.stdout and int(grader.stdout.readline()) == grader.pid
    family = children_of(grader.pid)
    assert len(family) >= 4  # starter, warm parent, reader's parent, sandbox
    grader.send_signal(signal.SIGKILL)
    grader.wait()
    grader.stdout.close()
    end = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in family) and time.monotonic() < end:
        time.sleep(0.1)
    assert not [pid for pid in family if Path(f"/proc/{pid}").exists()]


def test_memory_is_bounded_where_no_control_group_can_be_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Warm, "_environment", _without_groups(Warm._environment))
    with Warm() as processes:
        assert processes.memory_by == "watch"
        context = RunContext(processes, replace(TIGHT, case_seconds=20, wall_seconds=30))
        bomb = (
            "import os, time\ndef double(x):\n    for _ in range(8):\n        if os.fork() == 0:\n"
            "            kept = bytearray(b'x') * (120 * 2**20); time.sleep(60); os._exit(0)\n"
            "    time.sleep(60)"
        )
        assert call(bomb, context).status == "memory"
        forks = "import os\ndef double(x):\n    os.fork() or os._exit(0)\n    return 2 * x"
        assert call(forks, context).results == EXPECTED
        outcome = run(RIGHT, context)
        assert outcome.checks == {1: "passed"}


def _without_groups(original):  # type: ignore[no-untyped-def]
    return lambda self: {**original(self), "PARLAB_GRADE_NO_CGROUPS": "1"}


def test_where_no_sandbox_can_be_made_it_refuses_in_two_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linux, "supported", lambda: False)
    with pytest.raises(NoSandbox) as refused:
        Warm().__enter__()
    chinese, english = str(refused.value).splitlines()
    for line in (chinese, english):
        assert "--trust-every-student" in line
    assert english.startswith("No sandbox can be made on this machine (Linux namespaces")


def test_where_namespaces_are_forbidden_it_refuses_and_leaves_nothing() -> None:
    """A user who may make no user namespace, as on a locked-down server."""
    script = (
        f"import sys\nsys.path[:0] = [{str(ROOT)!r}]\n"
        "from parlab.grade.sandbox import linux\nfrom parlab.grade.warm import NoSandbox, Warm\n"
        "linux.unshare(linux.CLONE_NEWUSER)\n"
        f"linux.map_user(0, {os.getuid()}, {os.getgid()})\n"
        "open('/proc/sys/user/max_user_namespaces', 'w').write('0')\n"
        "try:\n    Warm().__enter__()\nexcept NoSandbox as refused:\n    print(refused)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "No sandbox can be made on this machine" in done.stdout, done.stderr


UNPRIVILEGED = """
import os, pwd, sys
from parlab.grade.sandbox import linux
paths = sys.argv[2:]
if os.getuid() == 0:  # Python may live in root's own folder: show nobody just that
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount('none', '/', '', linux.MS_REC | linux.MS_PRIVATE)
    for number, path in enumerate(paths):
        os.makedirs(f'{sys.argv[1]}/{number}'); linux.bind(path, f'{sys.argv[1]}/{number}')
    home = pwd.getpwuid(0).pw_dir
    if any(path.startswith(home + '/') for path in paths):
        linux.mount('tmpfs', home, 'tmpfs', 0, 'mode=755')
    for number, path in enumerate(paths):
        if not os.path.isdir(path):
            os.makedirs(path); linux.bind(f'{sys.argv[1]}/{number}', path)
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
    linux.set_dumpable()
    os.environ['HOME'] = '/nonexistent'
from sandboxed import RIGHT, TIGHT, call, run, says
from parlab.grade.warm import RunContext, Warm
import json
with Warm() as warm:
    context = RunContext(warm, TIGHT)
    spied = says("import os\\nreturn [os.getuid(), len(os.listdir('/proc/self/ns'))]", context)
    bomb = "import os, time\\ndef double(x):\\n    for _ in range(500):\\n" \\
           "        if os.fork() == 0: time.sleep(30); os._exit(0)\\n    return 1"
    print(json.dumps([os.getuid(), run(RIGHT, context).checks, call(RIGHT, context).results, spied,
                      call(bomb, context).results[0][:2], warm.memory_by]))
"""


def test_an_unprivileged_user_can_grade(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    folders = [sys.base_prefix, sys.prefix]
    tmp_path.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, str(tmp_path), *folders],
        env={"PYTHONPATH": path, "PATH": os.environ["PATH"], "TMPDIR": "/tmp"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    user, checks, results, spied, bomb, _ = json.loads(done.stdout)
    assert user == os.getuid() or user == 65534
    assert checks == {"1": "passed"}
    assert [tuple(result) for result in results] == list(EXPECTED)
    assert spied[0] == 1000
    assert bomb == ["raised", "BlockingIOError"]


def test_limits_have_sane_defaults() -> None:
    limits = Limits()
    assert limits.wall_seconds >= 3 * limits.cpu_seconds
    assert limits.scratch_mb + limits.file_mb < limits.memory_mb


def test_other_todos_come_from_the_solution_and_stay_out_of_sight(context: RunContext) -> None:
    source = "def double(x):\n    return helper(x) + helper(x)\ndef helper(x):\n    return 1000\n"
    spy = (
        "import inspect\ndef double(x):\n    try: return inspect.getsource(helper)[:20]\n"
        "    except OSError: return [v for v in vars(helper).values()]"
    )
    others = {"helper": calls.Answer("def helper(x):\n    return x", ())}
    cases = [Case((7,)), Case((8,))]
    done = calls.call_answer(1, "double", source, (), cases, context, others)
    assert done.results == EXPECTED[:2]
    seen = calls.call_answer(1, "double", spy, (), cases[:1], context, others).results[0]
    assert "return x" not in str(seen)
    wild = "def double(x):\n    return helper(10 ** 9)"
    slow = {"helper": calls.Answer("def helper(x):\n    return sum(range(10 * x))", ())}
    done = calls.call_answer(1, "double", wild, (), cases, context, slow)
    assert done.status in (None, "timeout")
    assert all(result[0] in ("raised", "missing") for result in done.results)


def test_the_exercise_is_one_notebook() -> None:
    assert len(exercise(RIGHT).cells) == 3


@dataclass(frozen=True)
class Timed(Case):
    """A case whose CPU time is limited."""

    seconds: float = 0.4


BURN = "    end = time.process_time() + {}\n    while time.process_time() < end: pass\n"


@pytest.mark.parametrize("off", ["signal.setitimer(signal.ITIMER_PROF, 0)", "pass"])
def test_the_cpu_time_of_a_call_is_counted_from_outside(off: str, context: RunContext) -> None:
    source = (
        f"# TODO 1 · double\nimport signal, time\ndef double(x):\n    {off}\n{{}}    return 2 * x"
    )
    quick = call(source.format(BURN.format(0.1)), context, [Timed((7,)), Timed((8,))])
    assert quick.results == (("value", 14), ("value", 16))
    slow = call(source.format(BURN.format(1.0)), context, [Timed((7,)), Timed((8,))])
    assert slow.results == (("missing", "slow", ""),) * 2 and slow.status == "timeout"


@pytest.mark.parametrize(
    "below",
    ["print(double())", "display(double)", "get_ipython().run_line_magic('pdb', 'off')",
     "import asyncio\nawait asyncio.sleep(0)", "print(In, Out, _)", "raise SystemExit"],
)  # fmt: skip
def test_what_a_notebook_has_and_what_fails_below_the_function_is_no_matter(
    below: str, context: RunContext
) -> None:
    assert call(f"{RIGHT}\n{below}", context).results == EXPECTED


def test_a_future_feature_counts_for_the_cells_below(warm: Warm) -> None:
    answer = RIGHT.replace("(x)", "(x: Unknown) -> Other")
    helpers = [SETUP, "from __future__ import annotations"]
    context = RunContext(warm, TIGHT)
    assert call_answer(1, "double", answer, helpers, CASES, context).results == EXPECTED
    assert call_answer(1, "double", answer, [SETUP], CASES, context).results != EXPECTED
