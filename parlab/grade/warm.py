"""The two warm processes behind a grading run, and what their clients need to know."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from parlab.grade.forkserver import Connection
from parlab.grade.limits import Limits
from parlab.grade.sandbox import linux, root
from parlab.grade.zygote_settings import Settings

KERNEL, PROVISIONER = "parlab-grade", "parlab-grade-provisioner"
_START_SECONDS = 120
_COURSE = Path(__file__).resolve().parents[2]


class NoSandbox(Exception):
    """Student code cannot be shut in on this machine; the text says why, and what to do."""


@dataclass(frozen=True)
class RunContext:
    """What every run of student code in one grading run shares.

    Attributes:
        warm: the processes that run it.
        limits: what one submission may use.
    """

    warm: "Warm"
    limits: Limits = field(default_factory=Limits)


class Warm:
    """Starts the warm processes on entry; ends them, with all they started, on exit.

    Args:
        trust_every_student: run without a sandbox: student code can then read, change and delete
            whatever the instructor can. The limits that need no sandbox still hold.
        fork: False starts Python anew for every kernel, for machines where forking fails.
        course: the folder that holds ``parlab/``.

    Raises:
        NoSandbox: on entry, where student code cannot be shut in and nobody said to trust it.
    """

    def __init__(
        self, trust_every_student: bool = False, fork: bool = True, course: Path = _COURSE
    ) -> None:
        self.shut_in = not trust_every_student
        self.fork = fork and sys.platform != "darwin"  # a macOS framework may abort in a fork
        self.course = course.resolve()
        self.folder = ""
        self.memory_by = self.groups = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._up = False
        self._lock = threading.Lock()
        self._count = 0

    @property
    def zygote(self) -> str:
        """The socket of the process that forks sandboxes."""
        return f"{self.folder}/zygote"

    @property
    def reader(self) -> str:
        """The socket of the process that forks readers (see `parlab.grade.reader`)."""
        return f"{self.folder}/reader"

    def new_name(self, kind: str) -> str:
        """A name that no other run in this folder has."""
        with self._lock:
            self._count += 1
            return f"{kind}{self._count}"

    def __enter__(self) -> "Warm":
        self.start()
        try:
            self.await_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self) -> None:
        """Starts the processes, which then import for seconds; `await_ready` has them ready.

        Raises:
            NoSandbox: as on entry.
        """
        if self.shut_in and not linux.supported():
            raise NoSandbox(_no_sandbox("Linux namespaces on x86_64 or aarch64 are needed"))
        self.folder = tempfile.mkdtemp(prefix="plg-", dir=_short_folder())
        try:
            settings = Settings(
                self.folder, str(self.course), self.shut_in, self.fork, str(_fonts() or "")
            )
            self._spawn("parlab.grade.zygote", json.dumps(asdict(settings)))
            self._spawn("parlab.grade.reader", json.dumps(self._reader_settings()))
        except BaseException:
            self.__exit__()
            raise

    def await_ready(self) -> None:
        """Waits until both take requests.

        Raises:
            NoSandbox: as on entry.
        """
        zygote, reader = self._processes
        word = self._ready(zygote)
        self.memory_by, self.groups = word["memory_by"], word["groups"]
        self._ready(reader)
        self._up = True
        self._probe()

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.stdin:
                process.stdin.close()  # it ends itself, and says nothing of what it leaves behind
            if not self._up:  # it is still importing, and has started nothing
                process.kill()
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()
        self._processes = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def _spawn(self, module: str, settings: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
        log = os.open(f"{self.folder}/{module}.log", os.O_WRONLY | os.O_CREAT, 0o600)
        process = subprocess.Popen(
            [*command, "-m", module, settings],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        os.close(log)
        self._processes.append(process)
        return process

    def _environment(self) -> dict[str, str]:
        """Nothing of the instructor's own environment but what finds Python's packages."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        path = [str(self.course), *(p for p in sys.path if p.endswith("-packages"))]
        return kept | {
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONUTF8": "1",
            "HOME": self.folder,
            "MPLCONFIGDIR": f"{self.folder}/matplotlib",
            "MPLBACKEND": "agg",
            "OMP_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "2",
            "JUPYTER_PATH": f"{self.folder}/jupyter",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }

    def _reader_settings(self) -> dict[str, Any]:
        spec = Path(self.folder, "jupyter", "kernels", KERNEL)
        spec.mkdir(parents=True)
        provisioner = {"provisioner_name": PROVISIONER, "config": {"socket_path": self.zygote}}
        kernel = {
            "argv": ["parlab-grade"],
            "display_name": "Sandboxed Python",
            "language": "python",
            "metadata": {"kernel_provisioner": provisioner},
        }
        spec.joinpath("kernel.json").write_text(json.dumps(kernel), encoding="utf-8")
        return {"path": self.reader, "provisioner": PROVISIONER}

    def _ready(self, process: "subprocess.Popen[bytes]") -> dict[str, Any]:
        timer = threading.Timer(_START_SECONDS, process.kill)
        timer.start()
        try:
            assert process.stdout
            line = process.stdout.readline()
        finally:
            timer.cancel()
        word: dict[str, Any] = json.loads(line) if line else {"error": self._last_words()}
        if "error" in word:
            raise NoSandbox(_no_sandbox(word["error"]))
        return word

    def _last_words(self) -> str:
        logs = [log.read_text(errors="replace") for log in Path(self.folder).glob("*.log")]
        return "; ".join(text.splitlines()[-1][:300] for text in logs if text.strip()) or "no word"

    def _probe(self) -> None:
        """One sandbox, to know before the first submission whether it works."""
        request = {"kind": "probe", "limits": asdict(Limits(wall_seconds=60))}
        ended = Connection(self.zygote, request)
        ended.wait(90)
        word = ended.kill()
        if word.get("error") or word.get("status") != 0:
            raise NoSandbox(_no_sandbox(word.get("error") or f"a test run ended with {word}"))


def _no_sandbox(reason: str) -> str:
    reason = " ".join(reason.split())
    return (
        f"这台机器上建不了沙箱（{reason}）：换一台允许用户命名空间的 Linux，"
        "或者确信每份作业都无害时加上 --trust-every-student。\n"
        f"No sandbox can be made on this machine ({reason}): use a Linux that allows user "
        "namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu), or, if you "
        "are sure that every submission is harmless, add --trust-every-student."
    )


def _short_folder() -> str | None:
    """Where sockets' paths stay below the 107 characters that they may have."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 50 else "/tmp"


def _fonts() -> Path | None:
    with contextlib.suppress(Exception):
        import matplotlib

        return root.find_fonts(matplotlib.get_cachedir())
    return None
