"""The lists of what to install agree: pyproject.toml, constraints.txt, environment.yml, CI."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
# What conda-forge calls otherwise.
CONDA_NAMES = {
    "torch": "pytorch-cpu",
    "matplotlib": "matplotlib-base",
    "playwright": "playwright-python",
    "jupyter-client": "jupyter_client",
    "huggingface-hub": "huggingface_hub",
}


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def project() -> dict[str, Any]:
    return tomllib.loads(read("pyproject.toml"))["project"]


def floor(specifier: SpecifierSet) -> str:
    """The version of a requirement that has a floor and nothing else."""
    (only,) = specifier
    assert only.operator == ">=", f"{only} is no floor"
    return only.version


def requirements() -> list[Requirement]:
    """All of pyproject.toml's lists but nbgrader's: it is somebody else's grader, never needed."""
    lists = project()
    extras = [lines for name, lines in lists["optional-dependencies"].items() if name != "nbgrader"]
    return [Requirement(line) for line in [*lists["dependencies"], *sum(extras, [])]]


def pins() -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in read("constraints.txt").splitlines())
    return [Requirement(line) for line in lines if line]


def pinned_for(python: str) -> dict[str, str]:
    """Name and version of each pin that holds for one Python."""
    found: dict[str, str] = {}
    for pin in pins():
        if pin.marker is None or pin.marker.evaluate({"python_version": python}):
            name = canonicalize_name(pin.name)
            assert name not in found, f"{name} is pinned twice for Python {python}"
            (only,) = pin.specifier
            assert only.operator == "==", f"{pin} is no pin"
            found[name] = only.version
    return found


# Modules that are called otherwise than what is installed.
DISTRIBUTIONS = {
    "markdown_it": "markdown-it-py",
    "yaml": "pyyaml",
    "IPython": "ipython",
    "zmq": "pyzmq",
}
# Come with matplotlib and with torch, and no lesson or test wants a version of its own.
CARRIED = {"numpy"}


def imported(folder: str) -> set[str]:
    """The distributions that the Python files under a folder import."""
    names: set[str] = set()
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(str(node.module))
    own = {path.stem for where in ("tests", "examples") for path in ROOT.glob(f"{where}/*")}
    own.add("parlab")
    tops = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - own
    return {canonicalize_name(DISTRIBUTIONS.get(top, top)) for top in tops - CARRIED}


def test_what_is_imported_is_declared() -> None:
    lists = project()
    run = {canonicalize_name(Requirement(line).name) for line in lists["dependencies"]}
    extra, hub = (
        {canonicalize_name(Requirement(line).name) for line in lists["optional-dependencies"][name]}
        for name in ("test", "hub")
    )
    assert imported("parlab") - run - hub == {"modelscope"}  # instead of the hub, by choice
    # Scripts within tests' strings are not seen.
    assert imported("tests") - run - extra - {"ipython", "nbgrader"} == set()


def test_conda_list_equals_project_list() -> None:
    environment = yaml.safe_load(read("environment.yml"))
    lines = environment["dependencies"]
    assert all(isinstance(line, str) for line in lines), "a nested list costs Binder its cache"
    conda = {wanted.name: wanted for wanted in map(Requirement, lines)}
    assert len(conda) == len(lines), "a name stands twice"
    assert floor(conda.pop("python").specifier) == floor(SpecifierSet(project()["requires-python"]))
    assert not conda.pop("pip").specifier
    expected = {CONDA_NAMES.get(r.name, r.name): floor(r.specifier) for r in requirements()}
    assert {name: floor(r.specifier) for name, r in conda.items()} == expected


def test_conda_takes_torch_from_conda_forge_only() -> None:
    environment = yaml.safe_load(read("environment.yml"))
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    assert not any(line.startswith("torch") for line in environment["dependencies"])


@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_is_pinned_above_its_floor(python: str) -> None:
    pinned = pinned_for(python)
    for wanted in requirements():
        if wanted.marker is None or wanted.marker.evaluate({"python_version": python}):
            name = canonicalize_name(wanted.name)
            assert name in pinned, f"constraints.txt has no {name} for Python {python}"
            assert wanted.specifier.contains(pinned[name]), f"{wanted} refuses {pinned[name]}"


def test_constraints_fit_every_system() -> None:
    text = read("constraints.txt")
    assert "://" not in text and not re.search(r"^-", text, re.MULTILINE), "an index or an option"
    # The Makefile reads the only line for torch; a `+cpu` would exist at one address only.
    assert len(re.findall(r"^torch==[0-9.]+$", text, re.MULTILINE)) == 1
    assert not [pin.name for pin in pins() if "+" in str(pin.specifier)]
    linux_only = re.compile(r"nvidia-|cuda-|triton$|pytorch-triton")
    assert not [pin.name for pin in pins() if linux_only.match(pin.name)]


def test_makefile_names_one_address() -> None:
    addresses = re.findall(r"\w+://\S+", read("Makefile"))
    assert addresses == ["https://download.pytorch.org/whl/cpu"]


def test_workflow_covers_the_floor_and_the_newest_python() -> None:
    workflow = yaml.safe_load(read(".github/workflows/test.yml"))
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix[0] == floor(SpecifierSet(project()["requires-python"]))
    assert matrix[-1] == PYTHONS[-1]
    assert workflow["jobs"]["test"]["steps"][-1] == {"run": "bash .ci/run"}


@pytest.mark.slow
def test_what_shares_something_costly_runs_on_one_worker(tmp_path: Path) -> None:
    """pytest-xdist keeps a group together with the pytest at hand: some pairs do not, silently."""
    (tmp_path / "test_group.py").write_text(
        "import pytest\n"
        "@pytest.mark.xdist_group('one')\n"
        "@pytest.mark.parametrize('number', range(8))\n"
        "def test_it(number, worker_id):\n"
        "    print(worker_id, file=open(f'{number}.txt', 'w'))\n"
    )
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist=loadgroup", "-c", "/dev/null"]
    subprocess.run([*command, "--rootdir", tmp_path], cwd=tmp_path, check=True, capture_output=True)
    workers = {path.read_text() for path in tmp_path.glob("*.txt")}
    assert len(workers) == 1 and len(list(tmp_path.glob("*.txt"))) == 8
