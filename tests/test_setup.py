"""What the Makefile does on machines that differ: none of these tests installs anything.

Each gets a folder (with a space in its name) that holds only the set-up's own files, and a PATH
with a few plain tools and Pythons that are shell scripts: they answer make's question as told,
"make" an environment of more such scripts, and write down how they were called.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ["sh", "cat", "id", "mkdir", "rm", "sed", "sleep", "touch", "uname"]
MAKE = shutil.which("make")

pytestmark = pytest.mark.skipif(
    MAKE is None or sys.platform == "win32", reason="needs make (Windows has its own commands)"
)

# $STATE answers the probe; `-m venv` puts this very script into .venv/bin; all calls go to $LOG.
FAKE_PYTHON = """#!/bin/sh
case "$1 $2" in
  "-c "*) echo "$STATE" ;;
  "-m venv") mkdir -p .venv/bin; cat "$0" > .venv/bin/python; chmod +x .venv/bin/python ;;
  *) echo "$@" >> "$LOG"; echo "user=$PIP_USER path=$PYTHONPATH venv=$VIRTUAL_ENV" >> "$LOG" ;;
esac
case "$*" in *" -e "*)
  cd .venv && mkdir -p lib/python3.12/site-packages && cd lib/python3.12/site-packages &&
  mkdir -p torch jupyterlab pytest ;;
esac
case "$*" in *"$FAILS_ON"*) [ -z "$FAILS_ON" ] || exit 1 ;; esac
"""


class Machine:
    """A folder with the Makefile, and the machine around it."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "a course"
        self.bin = folder / "bin"
        self.log = folder / "log"
        self.state = "ok 3.12"
        self.fails_on = ""
        self.checkout.mkdir()
        self.bin.mkdir()
        for name in ["Makefile", "pyproject.toml", "constraints.txt"]:
            shutil.copy(ROOT / name, self.checkout)
        for tool in [*TOOLS, "chmod"]:
            found = shutil.which(tool)
            assert found, f"this machine has no {tool}"
            (self.bin / tool).symlink_to(found)

    def add(self, name: str, text: str = FAKE_PYTHON) -> None:
        path = self.bin / name
        path.write_text(text, "utf-8")
        path.chmod(0o755)

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        assert MAKE
        environment = {
            "PATH": str(self.bin),
            "HOME": str(self.bin.parent),
            "LC_ALL": "C",
            "STATE": self.state,
            "LOG": str(self.log),
            "FAILS_ON": self.fails_on,
            # what an active conda or a user's habits leave behind
            "PYTHONPATH": "/elsewhere",
            "PIP_USER": "1",
            "VIRTUAL_ENV": "/elsewhere",
        }
        command = [MAKE, *arguments]
        return subprocess.run(
            command, cwd=self.checkout, env=environment, capture_output=True, text=True, timeout=60
        )

    def refusal(self, *arguments: str) -> str:
        """The one line (besides make's own) that says why nothing was set up."""
        done = self.make("test", *arguments)
        assert done.returncode
        lines = [line for line in done.stderr.splitlines() if not line.startswith("make")]
        assert len(lines) == 1 and not done.stdout, done
        assert not self.ready.exists()
        return lines[0]

    @property
    def lock(self) -> Path:
        return self.checkout / ".venv.lock"

    @property
    def ready(self) -> Path:
        return self.checkout / ".venv" / "ready"

    def calls(self) -> list[str]:
        """What the environment's Python was asked since the last look."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line for line in lines if line.startswith("-m")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_no_python(machine: Machine) -> None:
    assert "Python 3.10 or newer is needed (none found)" in machine.refusal()


def test_python_too_old(machine: Machine) -> None:
    machine.add("python3")
    machine.state = "old 3.9"
    assert "Python 3.10 or newer is needed (python3 is 3.9)" in machine.refusal()


def test_no_venv_module_on_debian(machine: Machine) -> None:
    machine.add("python3")
    machine.add("apt-get", "#!/bin/sh\n")
    machine.state = "novenv 3.11"
    assert machine.refusal().endswith("Python 3.11 has no venv module: apt install python3.11-venv")


def test_no_venv_module_elsewhere(machine: Machine) -> None:
    machine.add("python3")
    machine.state = "novenv 3.11"
    assert "often called python3-venv" in machine.refusal()


def test_a_newer_python_beside_an_old_one_is_found(machine: Machine) -> None:
    machine.add("python3", "#!/bin/sh\necho old 3.9\n")
    machine.add("python3.12")
    done = machine.make("setup")
    assert done.returncode == 0, done.stderr
    assert "with Python 3.12" in done.stdout


def test_python_may_be_named(machine: Machine) -> None:
    machine.add("my python")
    assert machine.make("setup", f"PYTHON={machine.bin / 'my python'}").returncode == 0


@pytest.mark.parametrize("named", ["/nope", "true", ""])
def test_a_named_python_that_is_none_is_named(machine: Machine, named: str) -> None:
    machine.add("true", "#!/bin/sh\n")
    named = named if named.startswith("/") else str(machine.bin / named)
    assert f"PYTHON={named} is no Python that runs" in machine.refusal(f"PYTHON={named}")
    assert not machine.lock.exists()


def test_a_named_python_that_is_too_old(machine: Machine) -> None:
    machine.add("old")
    machine.state = "old 3.9"
    assert f"({machine.bin / 'old'} is 3.9)" in machine.refusal(f"PYTHON={machine.bin / 'old'}")


def test_a_second_make_does_not_set_up_at_the_same_time(machine: Machine) -> None:
    machine.add("python3")
    machine.lock.mkdir()
    (machine.lock / "make").write_text(f"{os.getpid()}\n")
    assert f"Another make ({os.getpid()}) is setting up .venv" in machine.refusal()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for left in (f"{gone.pid}\n", None):
        machine.lock.mkdir(exist_ok=True)
        machine.ready.unlink(missing_ok=True)
        if left:
            (machine.lock / "make").write_text(left)
        assert machine.make("setup").returncode == 0
        assert not machine.lock.exists()


@pytest.mark.parametrize("package", ["torch", "jupyterlab", "pytest"])
def test_an_environment_without_its_packages_is_set_up_again(
    machine: Machine, package: str
) -> None:
    machine.add("python3")
    assert machine.make("setup").returncode == 0
    machine.calls()
    (machine.checkout / ".venv/lib/python3.12/site-packages" / package).rmdir()
    assert machine.make("setup").returncode == 0
    assert any("-e .[test]" in call for call in machine.calls())
    assert machine.make("setup").returncode == 0
    assert machine.calls() == []


@pytest.mark.parametrize("user", ["0", "1000"])
def test_lab_opens_the_lesson(machine: Machine, user: str) -> None:
    machine.add("python3")
    (machine.bin / "id").unlink()
    machine.add("id", f"#!/bin/sh\necho {user}\n")
    lesson = machine.checkout / "notebooks" / "x.ipynb"
    lesson.parent.mkdir()
    lesson.write_text("")
    done = machine.make("lab", "START=notebooks/x.ipynb", "ARGS=--port=1")
    assert done.returncode == 0, done.stderr
    call = machine.calls()[-1]
    assert call.startswith("-m jupyterlab --ServerApp.root_dir=.")
    assert call.endswith(" --LabApp.default_url=/lab/tree/notebooks/x.ipynb --port=1")
    assert ("--allow-root" in call) == (user == "0")
    assert machine.make("lab", "START=gone.ipynb").returncode == 0
    assert "default_url" not in machine.calls()[-1]


def test_what_lab_starts_with_exists() -> None:
    starts = re.findall(r"START ?= ?(\S+)", (ROOT / "Makefile").read_text("utf-8"))
    starts += re.findall(r"START=(\S+)", (ROOT / "README.md").read_text("utf-8"))
    assert len(starts) >= 3
    assert [start for start in starts if not (ROOT / start).is_file()] == []


def test_set_up_once(machine: Machine) -> None:
    machine.add("python3")
    assert machine.make("setup").returncode == 0
    pins = (machine.checkout / "constraints.txt").read_text("utf-8")
    torch = next(line for line in pins.splitlines() if line.startswith("torch=="))
    index = "https://download.pytorch.org/whl/cpu"
    calls = [call for call in machine.calls() if "install" in call]
    assert calls == [
        "-m pip install --quiet -c constraints.txt pip setuptools",
        f"-m pip install --no-deps --retries 0 --timeout 20 --extra-index-url {index} {torch}",
        "-m pip install -c constraints.txt --no-build-isolation -e .[test]",
    ]
    assert machine.make("setup").returncode == 0
    assert machine.calls() == [], "the second make has nothing to do"


def test_nothing_of_another_environment_leaks_in(machine: Machine) -> None:
    machine.add("python3")
    assert machine.make("setup").returncode == 0
    seen = {x for x in machine.log.read_text("utf-8").splitlines() if x.startswith("user=")}
    assert seen == {"user=0 path= venv="}


def test_gpu_users_empty_the_address(machine: Machine) -> None:
    machine.add("python3")
    assert machine.make("setup", "TORCH_INDEX=").returncode == 0
    assert not [call for call in machine.calls() if "index-url" in call]


def test_torch_comes_from_elsewhere_when_the_address_fails(machine: Machine) -> None:
    machine.add("python3")
    machine.fails_on = "--extra-index-url"
    assert machine.make("setup").returncode == 0
    with_index, without = [call for call in machine.calls() if " torch==" in call]
    assert "--extra-index-url" in with_index and "--extra-index-url" not in without


@pytest.mark.parametrize("step", ["-m venv", "pip setuptools", " torch==", "-e .[test]"])
def test_a_failed_set_up_is_never_taken_for_done(machine: Machine, step: str) -> None:
    machine.add("python3")
    machine.fails_on = step
    assert machine.make("setup").returncode
    assert not machine.ready.exists()
    machine.fails_on = ""
    assert machine.make("setup").returncode == 0
    assert machine.ready.exists()
    machine.calls()
    # the same when a set-up that worked is repeated and fails
    os.utime(machine.checkout / "pyproject.toml", (2e9, 2e9))
    if step != "-m venv":
        machine.fails_on = step
        assert machine.make("setup").returncode
        assert not machine.ready.exists()


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_lists_are_installed_again(machine: Machine, name: str) -> None:
    machine.add("python3")
    assert machine.make("setup").returncode == 0
    machine.calls()
    later = machine.ready.stat().st_mtime + 5
    os.utime(machine.checkout / name, (later, later))
    assert machine.make("setup").returncode == 0
    assert machine.calls()


def test_a_moved_folder_is_set_up_again(machine: Machine) -> None:
    machine.add("python3")
    assert machine.make("setup").returncode == 0
    machine.calls()
    machine.checkout = machine.checkout.rename(machine.checkout.with_name("moved"))
    assert machine.make("setup").returncode == 0
    assert machine.calls()


def test_help_is_what_plain_make_shows(machine: Machine) -> None:
    done = machine.make()
    assert done.returncode == 0
    for target in ["lab", "test", "check", "build", "links", "hosted", "clean"]:
        assert f"make {target}" in done.stdout
