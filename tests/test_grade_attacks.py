"""Attacks on the grader. None gains a point, harms another run, or leaves anything behind."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandboxed import (
    CASES,
    EXPECTED,
    RIGHT,
    SECRET,
    TIGHT,
    Case,
    call,
    children_of,
    context,
    exercise,
    processes_with,
    run,
    says,
    warm,
)

from parlab.grade.runner import run_notebook
from parlab.grade.warm import RunContext, Warm

pytestmark = pytest.mark.slow

__all__ = ["context", "warm"]
ROOT = Path(__file__).resolve().parent.parent
WRONG = "def double(x):\n    return -1\n"


@pytest.fixture(autouse=True)
def nothing_is_left_behind(warm: Warm) -> Iterator[None]:
    """After an attack: no process, no file, no control group, and the next student's run works."""
    processes = len(children_of(os.getpid()))
    files = set(os.listdir(warm.folder)) | {".ipython"}
    yield
    end = time.monotonic() + 5
    while len(children_of(os.getpid())) > processes and time.monotonic() < end:
        time.sleep(0.05)
    assert len(children_of(os.getpid())) == processes
    assert set(os.listdir(warm.folder)) <= files
    assert not list(Path("/sys/fs/cgroup").glob(f"**/parlab-{warm.groups}-*"))
    assert call(RIGHT, RunContext(warm, TIGHT)).results == EXPECTED


# What a student's code could spy out or reach. Each body returns what it found; "nothing" is what
# it must find.
SPIES = {
    "the solution": (
        f"""
import os
for path in ({str(ROOT / "solutions")!r}, {str(ROOT / "tests")!r}, {str(ROOT / "notebooks")!r}):
    if os.path.exists(path): return path
return 'nothing'""",
        "nothing",
    ),
    "any notebook or lesson source": (
        """
import os
found = [os.path.join(f, n) for f, _, ns in os.walk('/') for n in ns
         if n.endswith('.ipynb') or n.startswith(('04_model', '01_pipe'))]
return found or 'nothing'""",
        "nothing",
    ),
    "the grader's own cases": (
        f"""
import os
root = {str(ROOT / "parlab")!r}
return sorted(os.listdir(root)), sorted(os.listdir(root + '/grade'))""",
        (
            ["__init__.py", "grade", "lesson"],
            ["__init__.py", "inside", "plain.py"],
        ),
    ),
    "the grader's folder": ("import os\nreturn os.path.exists({folder!r})", False),
    "the environment": (
        f"""
import os
names = ' '.join(list(os.environ) + list(os.environ.values()))
both = names + open('/proc/self/environ').read()
return {SECRET!r} in both or 'GRADER' in both""",
        False,
    ),
    "home folders": (
        """
import os
return [os.listdir(p) for p in ('/home', '/root') if os.path.exists(p) and os.listdir(p)
        not in ([], ['.pyenv'])]""",
        [],
    ),
    "accounts": ("import os\nreturn os.path.exists('/etc/shadow')", False),
    "its own files": (
        """
import os
kinds = {os.readlink('/proc/self/fd/' + n).partition(':')[0] for n in os.listdir('/proc/self/fd')
         if os.path.exists('/proc/self/fd/' + n)}
return sorted(k for k in kinds if k not in ('pipe', '/dev/null') and not k.startswith('/proc'))""",
        [],
    ),
    "other processes": (
        "import os\nreturn [n for n in os.listdir('/proc') if n.isdigit()]",
        ["1"],
    ),
    "its parent": ("import os\nreturn os.getppid()", 0),
    "a set-user-id program": (
        """
import glob, os, stat
return [p for p in glob.glob('/usr/bin/*') + glob.glob('/bin/*')
        if os.stat(p).st_mode & stat.S_ISUID and not os.statvfs(p).f_flag & os.ST_NOSUID]""",
        [],
    ),
    "a disk": (
        "import os\nreturn sorted(n for n in os.listdir('/dev') if n[:2] in ('sd', 'vd', 'nv'))",
        [],
    ),
    "rights": (
        """
lines = dict(l.split(':\\t') for l in open('/proc/self/status').read().splitlines() if ':\\t' in l)
return [lines[k] for k in ('CapPrm', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp')]""",
        ["0" * 16, "0" * 16, "0" * 16, "1", "2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPIES)
def test_nothing_to_be_seen(name: str, context: RunContext) -> None:
    code, nothing = SPIES[name]
    assert says(code.replace("{folder!r}", repr(context.warm.folder)), context) == nothing


# What must be refused: each body tries it, and an OSError (or the like) is what it must get.
TRIES = {
    "write beside Python": "import torch\nopen(torch.__file__, 'a')",
    "write into the course": f"open({str(ROOT / 'parlab' / 'lesson' / 'x.py')!r}, 'w')",
    "write into the root folder": "open('/x', 'w')",
    "write to /etc": "open('/etc/passwd', 'a')",
    "write to the kernel's settings": "open('/proc/sys/kernel/hostname', 'w').write('x')",
    "become root": "import os\nos.setuid(0)",
    "make a device": "import os, stat\nos.mknod('sda', 0o600 | stat.S_IFBLK, os.makedev(8, 0))",
    "mount": (
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "if libc.mount(b'/', b'/scratch', b'', 4096, None): raise OSError"
    ),
    "unmount": "import ctypes\nif ctypes.CDLL(None).umount2(b'/scratch', 2): raise OSError",
    "a new user namespace": (
        "import ctypes\nif ctypes.CDLL(None).unshare(0x10000000): raise OSError"
    ),
    "a new user namespace by clone": (
        "import ctypes\n"
        "if ctypes.CDLL(None).syscall(56, 0x10000000 | 17, 0, 0, 0, 0) < 0: raise OSError"
    ),
    "memory outside its files": "import os\nos.memfd_create('x')",
    "System V memory": (
        "import ctypes\nif ctypes.CDLL(None).shmget(0, 1 << 30, 0o1600) < 0: raise OSError"
    ),
    "trace": "import ctypes\nif ctypes.CDLL(None).ptrace(16, 1, 0, 0): raise OSError",
    "a symlink to what is hidden": (
        f"import os\nos.symlink({str(ROOT / 'solutions')!r}, 'here')\nos.listdir('here')"
    ),
    "climb out": f"import os\nos.listdir('../' * 20 + {str(ROOT / 'solutions')[1:]!r})",
    "chroot": "import os\nos.chroot('/scratch')",
    "a server outside": "import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)",
    "a name on the net": "import socket\nsocket.create_connection(('example.com', 80), 1)",
    "an address on the net": "import socket\nsocket.create_connection(('1.1.1.1', 53), 1)",
    "an abstract socket outside": (
        "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0parlab-attack-{port}')"
    ),
    "a file of a gigabyte": (
        "with open('x', 'wb') as f:\n    for _ in range(1024): f.write(b'x' * 2**20)"
    ),
    "a gigabyte in many files": (
        "for n in range(200):\n    with open(f'x{n}', 'wb') as f: f.write(b'x' * 2**20 * 5)"
    ),
    "a hundred thousand files": "for n in range(100000): open(f'x{n}', 'w').close()",
    "a hundred thousand folders": "import os\nfor n in range(100000): os.mkdir(f'd{n}')",
    "a thousand threads": (
        "import threading, time\n"
        "for _ in range(1000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    ),
    "a thousand processes": (
        "import os, time\n"
        "for _ in range(1000):\n    if os.fork() == 0: time.sleep(60); os._exit(0)"
    ),
    "a thousand open files": "import os\nfs = [os.pipe() for _ in range(1000)]",
    "real-time priority": "import os\nos.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))",
    "a higher limit": (
        "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (9999, 9999))"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRIES)
def test_refused(name: str, context: RunContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as other:
        port = server.getsockname()[1]
        other.bind(f"\0parlab-attack-{port}")
        other.listen()
        code = TRIES[name].replace("{port}", str(port))
        found = says(f"{code}\nreturn 'done'", context)
    assert found != "done"
    assert found[0] in (
        "OSError", "PermissionError", "FileNotFoundError", "ConnectionRefusedError", "gaierror",
        "RuntimeError", "BlockingIOError", "ValueError", "TimeoutError", "MemoryError",
    ), found  # fmt: skip


# What uses too much, or ends: the run's status, the calls' status.
BOMBS = {
    "an endless loop": ("    while True: pass", "timeout", "timeout"),
    "an endless sleep": ("    import time; time.sleep(1e6)", "timeout", "timeout"),
    "a loop that catches interrupts": (
        "    while True:\n        try:\n            while True: pass\n"
        "        except BaseException: pass",
        "timeout",
        "timeout",
    ),
    "signals blocked": (
        "    import signal\n    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
        "    while True: pass",
        "timeout",
        "timeout",
    ),
    "CPU time of children": (
        "    import os, time\n    for _ in range(3):\n        if os.fork() == 0:\n"
        "            while True: pass\n    time.sleep(1e6)",
        "timeout",
        "timeout",
    ),
    "a fork bomb": (
        "    import os\n    while True:\n        try: os.fork()\n        except OSError: pass",
        "timeout",
        "timeout",
    ),
    "a memory bomb in many processes": (
        "    import os, time\n    for _ in range(8):\n        if os.fork() == 0:\n"
        "            kept = bytearray(100 * 2**20); time.sleep(60); os._exit(0)\n"
        "    time.sleep(60)",
        "memory",
        "memory",
    ),
    "os._exit": ("    import os; os._exit(0)", "kernel_died", "kernel_died"),
    "abort": ("    import os; os.abort()", "kernel_died", "kernel_died"),
    "a segmentation fault": (
        "    import ctypes; ctypes.string_at(0)",
        "kernel_died",
        "kernel_died",
    ),
    "a kill of everything": (
        "    import os\n    for number in (-1, 1, 2):\n        try: os.kill(number, 9)\n"
        "        except OSError: pass\n    os._exit(1)",
        "kernel_died",
        "kernel_died",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str, context: RunContext) -> None:
    body, in_run, in_calls = BOMBS[name]
    source = f"# TODO 1 · double\ndef double(x):\n{body}\n    return -1\n"
    began = time.monotonic()
    outcome = run(source, context)
    assert (outcome.status, outcome.checks[1]) == (in_run, "unknown"), outcome
    called = call(source, context)
    assert called.status == in_calls, called
    assert called.results == (("missing", in_calls),) * 4
    assert time.monotonic() - began < 40


@pytest.mark.parametrize(
    "body",
    [
        "    kept = []\n    while True: kept.append(bytearray(10**7))",
        "    return torch.ones(10**9).sum().item()",
        "    import io; b = io.BytesIO()\n    while True: b.write(bytes(10**6))",
        "    return 'x' * 10**10",
        "    return [0] * 10**10",
    ],
    ids=["list", "tensor", "file", "string", "numbers"],
)
def test_memory_bombs_of_one_process(body: str, context: RunContext) -> None:
    source = f"import torch\ndef double(x):\n{body}\n"
    called = call(source, context)
    assert called.status == "memory", called
    assert called.results[0][0] in ("raised", "missing")
    outcome = run(source, context)
    assert outcome.checks[1] != "passed"
    assert outcome.status in (None, "memory")


# What floods whoever reads: in the notebook's run.
FLOODS = {
    "prints": "while True: print('x' * 10**6)",
    "small prints": "while True: print('x')",
    "standard error": "import sys\nwhile True: sys.stderr.write('x' * 10**6)",
    "pictures": (
        "from IPython.display import display\n"
        "while True: display({'text/plain': 'x' * 10**6}, raw=True)"
    ),
    "straight to the socket": (
        "socket = get_ipython().kernel.iopub_thread.socket\nwhile True: socket.send(b'x' * 10**6)"
    ),
    "one message of a gigabyte": (
        "get_ipython().kernel.iopub_thread.socket.send(b'x' * (1 << 27))\n"
        "import time; time.sleep(60)"
    ),
    "messages deep in brackets": (
        "k = get_ipython().kernel\nwhile True:\n"
        "    s = k.session; h = s.pack(s.msg('stream')['header'])\n"
        "    parts = [h, h, b'{}', b'[' * 10**5]\n"
        "    k.iopub_thread.socket.send_multipart([b'x', b'<IDS|MSG>', s.sign(parts), *parts])"
    ),
    "replies": (
        "k = get_ipython().kernel\nwhile True:\n"
        "    k.session.send(k.shell_stream.socket, 'execute_reply', {'x': 'x' * 10**6}, "
        "ident=k.get_parent().get('identities', [b'x']))"
    ),
}


@pytest.mark.parametrize("name", FLOODS)
def test_floods(name: str, context: RunContext) -> None:
    peak = _PeakOfReaders()
    with peak:
        outcome = run(f"{RIGHT}\n{FLOODS[name]}", context)
    # No status: what waits to be read has filled the kernel's own memory, and the cell failed.
    assert outcome.status in ("output_limit", "tampered", "timeout", "memory", None), outcome
    assert outcome.status or outcome.checks[1] == "failed", outcome
    assert outcome.checks[1] != "passed"
    assert peak.megabytes < 900


class _PeakOfReaders:
    """The most memory that any one of this process's descendants held meanwhile, in MiB."""

    megabytes = 0.0

    def __enter__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            for pid in children_of(os.getpid()):
                try:
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                except (OSError, ValueError, IndexError):
                    continue
                self.megabytes = max(self.megabytes, pages * 4096 / 2**20)


# What wants a check to pass. In the end either it does not pass, or the run says "tampered"; and
# the calls, which alone give points, are all wrong.
CHEATS = {
    "an object that equals everything": (
        "class Same(int):\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\n"
        "    __hash__ = int.__hash__\ndef double(x):\n    return Same()"
    ),
    "showtraceback": f"{WRONG}get_ipython().showtraceback = lambda *a, **k: None",
    "_showtraceback": f"{WRONG}type(get_ipython())._showtraceback = lambda *a, **k: None",
    "set_custom_exc": f"{WRONG}get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)",
    "an AST transformer": (
        f"{WRONG}import ast\nclass No(ast.NodeTransformer):\n"
        "    def visit_Assert(self, node): return ast.Pass()\n"
        "get_ipython().ast_transformers.append(No())"
    ),
    "an input transformer": (
        f"{WRONG}get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])"
    ),
    "run_cell": (
        f"{WRONG}from IPython.core.interactiveshell import ExecutionResult\n"
        "async def no(*a, **k):\n    result = ExecutionResult(None); result.execution_count = 1\n"
        "    return result\nget_ipython().run_cell_async = no"
    ),
    "a patched kernel": (
        f"{WRONG}async def no(*a, **k): return {{'status': 'ok', 'execution_count': 1}}\n"
        "get_ipython().kernel.do_execute = no"
    ),
    "idle, forged": (
        f"{WRONG}k = get_ipython().kernel\nimport threading, time\ndef forge():\n"
        "    while True:\n"
        "        k.session.send(k.iopub_socket, 'status', {'execution_state': 'idle'}, "
        "parent=k.get_parent())\n        time.sleep(0.001)\n"
        "threading.Thread(target=forge, daemon=True).start()"
    ),
    "a reply, forged": (
        f"{WRONG}k = get_ipython().kernel\nold = k.session.send\n"
        "def send(stream, kind, content=None, *a, **rest):\n"
        "    if kind == 'execute_reply': content = {'status': 'ok', 'execution_count': 1}\n"
        "    if kind == 'error': return None\n"
        "    return old(stream, kind, content, *a, **rest)\nk.session.send = send"
    ),
    "NBVAL_SKIP": f"# NBVAL_SKIP\n{WRONG}",
    "NBVAL_RAISES_EXCEPTION": f"# NBVAL_RAISES_EXCEPTION\n{WRONG}",
    "a patched check": (
        f"{WRONG}import contextlib, parlab.lesson.checks\n"
        "class check_todo(contextlib.AbstractContextManager):\n"
        "    def __init__(self, *a): pass\n    def __exit__(self, *a): return True\n"
        "    def __call__(self, *a): return 1\n"
        "    same = staticmethod(lambda *a: True)\n    wrong = same\n"
        "parlab.lesson.checks.check_todo = check_todo"
    ),
    "a patched comparison": (
        f"{WRONG}from parlab.lesson import checks, compare\n"
        "compare.same = checks.same = lambda *a, **k: True\n"
        "checks.check_todo.same = staticmethod(lambda *a, **k: True)"
    ),
    "patched builtins": (
        f"{WRONG}import builtins, operator\noperator.eq = lambda *a: True\n"
        "builtins.all = builtins.any = lambda *a: True\nbuiltins.type = lambda *a: int\n"
        "builtins.isinstance = lambda *a: True\nbuiltins.AssertionError = KeyboardInterrupt"
    ),
    "patched int": (
        f"{WRONG}import ctypes\nraw = ctypes.cast(id(-1), ctypes.POINTER(ctypes.c_long))\n"
        "raw[3] = 14"
    ),
    "asserts switched off": f"{WRONG}import sys\nsys.flags = None",
    "hook files": (
        f"{WRONG}import os\n"
        "for name in ('conftest.py', 'pytest.ini', 'sitecustomize.py', 'torch.py',\n"
        "             os.path.expanduser('~/.ipython/profile_default/startup/0.py')):\n"
        "    os.makedirs(os.path.dirname(name) or '.', exist_ok=True)\n"
        "    open(name, 'w').write('raise SystemExit')"
    ),
    "it knows the checker": (
        "import sys\ndef double(x):\n    frame = sys._getframe()\n    while frame:\n"
        "        if 'check_todo' in repr(frame.f_code): return 2 * x\n"
        "        if frame.f_code.co_filename.endswith('checks.py'): return 2 * x\n"
        "        frame = frame.f_back\n    return -1"
    ),
    "a helper that answers for it": f"{WRONG}import atexit\natexit.register(print, 'passed')",
    "exit": f"{WRONG}exit()",
    "quit in a thread": (
        f"{WRONG}import threading, os\nthreading.Timer(0.2, os._exit, (0,)).start()"
    ),
    "patched json": (
        f"{WRONG}import json\njson.dumps = lambda *a, **k: '[\"value\",14]'\n"
        "json.loads = lambda *a, **k: 14"
    ),
    "patched plain data": (
        f"{WRONG}from parlab.grade import plain\nplain.encode = lambda *a, **k: b'true'\n"
        "plain.tag = lambda v: v"
    ),
    "results written ahead": (
        f"{WRONG}import os, struct\nfor n in range(4):\n    text = b'[\"value\",14]'\n"
        "    text = struct.pack('!I', len(text)) + text\n"
        "    for fd in range(3, 12):\n        try: os.write(fd, text)\n"
        "        except OSError: pass"
    ),
    "a flood of results": (
        f"{WRONG}import os\nfor fd in range(3, 12):\n    try:\n"
        "        while True: os.write(fd, b'\\xff' * 65536)\n    except OSError: pass"
    ),
    "no JSON as a result": (
        f"{WRONG}import os\nfor fd in range(3, 12):\n    try: os.write(fd, b'\\0\\0\\0\\2][')\n"
        "    except OSError: pass"
    ),
    "questions that nobody offered": (
        f"{WRONG}import os\ntext = b'[\"ask\",\"double\",[\"t\",7]]'\nfor fd in range(3, 12):\n"
        "    try: os.write(fd, b'\\0\\0\\0' + bytes([len(text)]) + text)\n    except OSError: pass"
    ),
    "a kernel taken apart": (
        f"{WRONG}import gc, zmq\nfor item in gc.get_objects():\n"
        "    if isinstance(item, zmq.Socket):\n        try: item.close(0)\n"
        "        except Exception: pass"
    ),
    "tracing": (
        f"{WRONG}import sys\ndef trace(frame, event, argument):\n"
        "    if 'got' in frame.f_locals: frame.f_locals['got'] = 14\n    return trace\n"
        "sys.settrace(trace)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHEATS)
def test_cheats(name: str, context: RunContext) -> None:
    source = f"# TODO 1 · double\n{CHEATS[name]}"
    called = call(source, context)
    assert sum(got == right for got, right in zip(called.results, EXPECTED, strict=True)) <= 1
    outcome = run(source, context)
    gained = outcome.status is None and outcome.checks[1] == "passed"
    # The checks' own run is the student's to lose: a patched check may pass, and gives no point.
    allowed = ("a patched check", "a patched comparison", "it knows the checker", "patched int")
    assert not gained or name in (*allowed, "tracing", "patched builtins"), outcome


def test_a_tag_for_nbval_counts_for_nothing(context: RunContext) -> None:
    notebook = exercise(WRONG)
    for cell in notebook.cells:
        cell.metadata["tags"] = ["raises-exception", "nbval-skip"]
    outcome = run_notebook(notebook, context)
    assert outcome.checks == {1: "failed"}
    assert {key for key, _ in outcome.notes} == {"markers_ignored"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("return 'x' * 3 * 10**6", "not_plain"),
        ("a = []; a.append(a); return a", "not_plain"),
        ("a = {}; a['a'] = a; return a", "not_plain"),
        ("return 10 ** 10**5", "not_plain"),
        ("return (n for n in iter(int, 1))", "not_plain"),
        ("return {1, 2}", "not_plain"),
        ("return type('int', (int,), {})(14)", "not_plain"),
        ("return type('str', (str,), {})('x')", "not_plain"),
        ("return type('E', (), {'__reduce__': lambda s: (print, ('x',))})()", "not_plain"),
        ("a = 1\n    for _ in range(100): a = [a]\n    return a", "not_plain"),
        ("return [0] * 10**6", "not_plain"),
        ("return double", "not_plain"),
        ("raise SystemExit('x')", "raised"),
        ("raise type('E', (BaseException,), {'__str__': lambda s: 1 / 0})", "raised"),
        ("raise type('x' * 10**6, (Exception,), {})('y' * 10**6)", "raised"),
        ("return double(x)", "raised"),
    ],
)
def test_odd_results(body: str, kind: str, context: RunContext) -> None:
    called = call(f"def double(x):\n    {body}", context, CASES[:2])
    assert [result[0] for result in called.results] == [kind, kind]
    assert called.status is None
    assert len(repr(called)) < 20_000


def test_an_input_that_changes_is_noticed(context: RunContext) -> None:
    source = "def double(x):\n    x.append(1)\n    return 1"
    assert call(source, context, [Case(([5],))]).results == (("changed_input", 1, ([5, 1],)),)


@pytest.mark.parametrize(
    "start",
    [
        "import subprocess; subprocess.Popen(['sleep', '86{number}'], start_new_session=True)",
        "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        os.execvp('sleep', ['sleep', '86{number}'])\n    os._exit(0)",
        "import os\nos.system('nohup sleep 86{number} &')",
        "import os, signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
        "os.system('setsid sleep 86{number} &')",
    ],
    ids=["session", "daemon", "nohup", "deaf"],
)
def test_children_that_outlive_do_not(start: str, context: RunContext) -> None:
    source = f"{RIGHT}\n{start.replace('{number}', str(os.getpid()))}"
    assert run(source, context).checks == {1: "passed"}
    assert call(source, context).results == EXPECTED
    assert processes_with(f"sleep 86{os.getpid()}") == []


def test_a_thread_that_outlives_its_call_changes_nothing(context: RunContext) -> None:
    source = (
        "import threading, time, os\ndef double(x):\n"
        "    def later():\n        while True: time.sleep(0.001)\n"
        "    threading.Thread(target=later).start()\n    return 2 * x"
    )
    assert call(source, context).results == EXPECTED


def test_one_student_at_a_time_or_two_it_is_the_same(warm: Warm) -> None:
    """A bomb beside an honest run harms it not."""
    context = RunContext(warm, TIGHT)
    bomb = BOMBS["a fork bomb"][0]
    source = f"def double(x):\n{bomb}\n    return -1\n"
    other = threading.Thread(target=call, args=(source, context))
    other.start()
    try:
        for _ in range(3):
            assert call(RIGHT, context).results == EXPECTED
    finally:
        other.join()
