"""A revision on a model hub → the commit it stands for, so that a record says what was run."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from parlab.bench.workload import Workload

HUBS = {
    "huggingface": "https://huggingface.co/{}",
    "modelscope": "https://www.modelscope.cn/{}.git",
}
MODELSCOPE = "modelscope:"  # before an id: it is that hub's, whatever PARLAB_HUB says
_COMMIT = re.compile(r"[0-9a-f]{40}")


class Unresolved(Exception):
    """A revision's commit could not be found; says why and what to do."""


def lacking(tables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Packages that the ranks would miss: those for the hub are optional.

    Args:
        tables: of a workload, whole or not.
    """
    model, needed = tables["model"], {}
    if tables["tokenizer"].get("id", "bytes") != "bytes":
        needed["transformers"] = "tokenizer.id"
    if model.get("weights") == "hub":
        needed["safetensors"] = "model.weights"
        if not os.path.isdir(model.get("id", "")):  # else nothing is fetched
            scope = model.get("id", "").startswith(MODELSCOPE)
            needed["modelscope" if scope else "huggingface_hub"] = "model.weights"
    return [
        f"{field} needs the package {name}: pip install "
        + ("modelscope" if name == "modelscope" else "-e '.[hub]' in the course's folder")
        for name, field in needed.items()
        if find_spec(name) is None
    ]


def pin(workload: Workload) -> Workload:
    """The workload with the model's and the tokenizer's revision as commits.

    Nothing is asked where a revision is a commit already, or where the hub is not used.

    Raises:
        Unresolved: the hub cannot be reached or has no such revision.
    """
    model, tokenizer = workload.model, workload.tokenizer
    if model.weights == "hub" and model.revision:
        model = replace(model, revision=resolve(model.id, model.revision))
    if tokenizer.id != "bytes" and tokenizer.revision:
        tokenizer = replace(tokenizer, revision=resolve(tokenizer.id, tokenizer.revision))
    return replace(workload, model=model, tokenizer=tokenizer)


def resolve(name: str, revision: str) -> str:
    """The commit of a branch or tag.

    The hub is ModelScope where the id says so, else ``PARLAB_HUB``, by default ``huggingface``.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    hub = os.environ.get("PARLAB_HUB", "huggingface")
    if name.startswith(MODELSCOPE):
        hub = "modelscope"
    if hub not in HUBS:
        raise Unresolved(f"PARLAB_HUB={hub!r}: must be one of {', '.join(HUBS)}")
    address = HUBS[hub].format(name.removeprefix(MODELSCOPE))
    wanted = [revision, f"refs/heads/{revision}", f"refs/tags/{revision}"]
    try:
        done = subprocess.run(
            ["git", "ls-remote", "--", address, *wanted],
            capture_output=True, text=True, timeout=60,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unresolved(f"{address} cannot be asked for {revision!r}: {error}") from None
    found = [line.split()[0] for line in done.stdout.splitlines()]
    if not found:
        said = (done.stderr.strip().splitlines() or ["there is no such branch or tag"])[-1]
        raise Unresolved(
            f"{name} at {revision!r}: {said}. Give a commit of 40 digits in the workload instead"
        )
    return found[0]
