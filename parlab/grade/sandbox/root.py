"""The root folder of every sandbox: Python, the lesson's helpers, and nothing else."""

import glob
import os
import shutil
import site
import sys
from dataclasses import dataclass
from pathlib import Path

from parlab.grade.sandbox import linux

STUDENT = 1000  # user and group inside
SCRATCH = "/scratch"  # the one folder that a sandbox may write to: its own, in memory
MATPLOTLIB = f"{SCRATCH}/matplotlib"  # of the warm parent
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "fonts", "localtime", "alternatives")
_PYTHON = ("bin", "lib", "lib64", "pyvenv.cfg")  # of a prefix
_DEVICES = ("null", "zero", "full", "random", "urandom")


@dataclass(frozen=True)
class View:
    """What is shown of this machine.

    Attributes:
        course: the folder that holds ``parlab/``, of which the modules beside student code are
            shown: ``parlab/lesson``, ``parlab/grade/inside`` and ``parlab/grade/plain.py``.
        fonts: matplotlib's list of fonts, which takes a second to make; None where there is none.
    """

    course: Path
    fonts: Path | None = None

    def shown(self) -> list[Path]:
        """Every folder and file that is shown, outer ones first."""
        paths = [Path(path) for path in _SYSTEM]
        paths += [Path("/etc") / name for name in _ETC]
        paths += _python_folders()
        parlab = self.course / "parlab"
        paths += [parlab / "__init__.py", parlab / "lesson", parlab / "grade" / "__init__.py"]
        paths += [parlab / "grade" / "plain.py", parlab / "grade" / "inside"]
        return sorted({path for path in paths if path.exists()}, key=lambda path: path.parts)


def build(place: str, view: View) -> None:
    """Makes ``place``, an empty folder, into a root folder and moves this process there.

    The process must be in mount and pid namespaces of its own, with the right to mount in them.

    Args:
        place: the mounts on it vanish with the process's mount namespace.
        view: what is shown.
    """
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", place, "tmpfs", linux.MS_NOSUID, "size=4m,mode=755")
    course, done = view.course, set[Path]()
    for path in view.shown():
        if path.is_relative_to(course) and done & set(course.parents):  # a course inside /usr
            linux.mount("tmpfs", f"{place}{course}", "tmpfs", linux.MS_NOSUID, "size=1m,mode=755")
            done -= set(course.parents)
        if not done & set(path.parents):
            _show(path, place)
            done.add(path)
    _devices(place)
    _accounts(place)
    for folder in ("proc", "dev/shm", SCRATCH[1:]):
        os.makedirs(f"{place}/{folder}", exist_ok=True)
    if not os.path.exists(f"{place}/tmp"):  # nothing of the course lies there
        os.symlink(SCRATCH, f"{place}/tmp")
    linux.mount("proc", f"{place}/proc", "proc", linux.MS_NOSUID | linux.MS_NOEXEC)
    linux.mount("tmpfs", place + SCRATCH, "tmpfs", linux.MS_NOSUID, "size=16m,mode=755")
    os.mkdir(place + MATPLOTLIB)
    if view.fonts:
        shutil.copy(view.fonts, place + MATPLOTLIB)
    linux.pivot(place)
    linux.mount("", "/", "", linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | linux.MS_NOSUID)


def _show(path: Path, place: str) -> None:
    target = f"{place}{path}"
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if path.is_symlink():  # /bin -> usr/bin
        os.symlink(os.readlink(path), target)
        return
    if path.is_dir():
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        Path(target).touch()
    linux.bind(str(path), target)


def _devices(place: str) -> None:
    os.makedirs(f"{place}/dev", exist_ok=True)
    for name in _DEVICES:
        Path(f"{place}/dev/{name}").touch()
        linux.bind(f"/dev/{name}", f"{place}/dev/{name}", writable=True, devices=True)
    os.symlink("/proc/self/fd", f"{place}/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{place}/dev/{name}")


def _accounts(place: str) -> None:
    etc = Path(place, "etc")
    etc.mkdir(exist_ok=True)
    etc.joinpath("passwd").write_text(f"student:x:{STUDENT}:{STUDENT}::{SCRATCH}/home:/bin/sh\n")
    etc.joinpath("group").write_text(f"student:x:{STUDENT}:\n")
    etc.joinpath("hosts").write_text("127.0.0.1 localhost\n")


def _python_folders() -> list[Path]:
    """Where this Python and its packages live."""
    folders = [Path(prefix) / name for prefix in (sys.prefix, sys.base_prefix) for name in _PYTHON]
    packages = [
        *site.getsitepackages(),
        *sys.path,
        os.path.dirname(os.path.realpath(sys.executable)),
    ]
    folders += [Path(path) for path in packages if path.endswith(("-packages", "/bin"))]
    return [folder.absolute() for folder in folders] + [folder.resolve() for folder in folders]


def find_fonts(cache: str) -> Path | None:
    """matplotlib's newest list of fonts in its cache folder."""
    found = sorted(glob.glob(f"{cache}/fontlist-*.json"), key=os.path.getmtime)
    return Path(found[-1]) if found else None
