"""The ``parlab`` command."""

import argparse
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: the arguments after ``parlab``; the process's own by default.

    Returns:
        The exit status: 0 where all is well, 1 where it is not, 130 after Ctrl-C or ``kill``.
    """
    parser = argparse.ArgumentParser(prog="parlab", description="Tools of the course.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_build(commands)
    _add_links(commands)
    _add_bench(commands)
    if find_spec("parlab.grade"):  # a twin carries the benchmark alone
        _add_grade(commands)
    arguments = parser.parse_args(_joined(sys.argv[1:] if argv is None else argv))
    from parlab.interrupts import stops_interrupt

    with stops_interrupt(to_the_end=argv is None):
        return _run(arguments)


def _joined(argv: Sequence[str]) -> list[str]:
    """``--points -5,3`` as ``--points=-5,3``: else argparse takes the value for an option."""
    found: list[str] = []
    for word in argv:
        if re.match(r"-\.?\d", word) and found and re.fullmatch(r"--[a-z-]+", found[-1]):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _run(arguments: argparse.Namespace) -> int:
    """Runs what was asked for and gives the exit status; says what went wrong in one line."""
    from parlab.author import problems

    try:
        return 0 if arguments.run(arguments) else 1
    except problems.Refused as refused:
        _say(str(refused))
        return 1
    except OSError as error:
        print(f"parlab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("parlab: interrupted; every file is whole", file=sys.stderr)
        return 130


def _add_build(commands: Any) -> None:
    text = "make the notebooks from solutions/*.py"
    parser = commands.add_parser("build", help=text, description=text)
    parser.add_argument("names", nargs="*", metavar="NAME", help="lesson, as 04 or 04_name")
    parser.add_argument(
        "--check",
        action="store_true",
        help="write and execute nothing: say where the committed notebooks differ",
    )
    parser.set_defaults(run=_build)


def _add_links(commands: Any) -> None:
    text = "rewrite badges and links from the repository's address in pyproject.toml"
    parser = commands.add_parser("links", help=text, description=text)
    parser.set_defaults(run=_links)


def _add_bench(commands: Any) -> None:
    text = "train the groups under torchrun, measure, record, decide"
    parser = commands.add_parser("bench", help=text, description=text)
    add = parser.add_argument
    add("--workload", default="tiny-cpu", metavar="NAME", help="in benchmarks/workloads, or a file")
    add("--groups", metavar="A,B", help="of the workload's groups; all by default")
    add("--mesh", action="append", default=[], metavar="pp=2,tp=1,cp=2",
        help="one more group; NAME:pp=2,tp=1,cp=2 gives it a name")  # fmt: skip
    # Numbers come as text: parlab.bench.options says everything that is wrong in one go.
    add("--world-size", metavar="N", help="what every mesh must multiply to")
    add("--results", metavar="DIR", help="default: benchmarks/results/par_model_internal")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add("--timeout", metavar="S", help="seconds a group may take")
    add("--functions", metavar="IPYNB", help="the finished lesson-04 notebook that decides; "
        "default: the course's own where finished, else the solution")  # fmt: skip
    add("--preflight", action="store_true", help="only say what this machine has")
    add("--report", metavar="DIR", help="only report on the records in DIR, with pictures")
    add("--no-report", action="store_true", help="records and decision only, no pictures")
    add("--stop-with-stdin", action="store_true", help="stop as Ctrl-C does when stdin ends")
    nodes = parser.add_argument_group("several machines")
    nodes.add_argument("--nnodes", metavar="N")
    nodes.add_argument("--node-rank", metavar="R", help="0 to N - 1")
    nodes.add_argument("--rdzv-endpoint", metavar="HOST:PORT")
    nodes.add_argument("--run-id", metavar="ID", help="same on every node, new each run")
    nodes.add_argument("--local-addr", metavar="ADDRESS")
    parser.set_defaults(run=_bench)


def _add_grade(commands: Any) -> None:
    from parlab.grade import options

    text = "grade a class's notebooks: scores, feedback pages, import files"
    parser = commands.add_parser("grade", help=text, description=text)
    options.add_arguments(parser)
    parser.set_defaults(run=_grade)


def _grade(arguments: argparse.Namespace) -> bool:
    from parlab.grade import command

    return command.main(arguments, _say)


def _bench(arguments: argparse.Namespace) -> bool:
    from parlab.bench import command

    return command.main(arguments, _say)


def _build(arguments: argparse.Namespace) -> bool:
    from parlab.author import build, repository

    command = build.check if arguments.check else build.build
    return command(repository.find_repository(Path.cwd()), arguments.names, _say)


def _links(_: argparse.Namespace) -> bool:
    from parlab.author import build, repository

    return build.rewrite_links(repository.find_repository(Path.cwd()), _say)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
