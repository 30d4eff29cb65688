"""A report on a folder of records, from the records alone: ``report.md`` and pictures."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from parlab.bench.artifacts import REPORT
from parlab.bench.decide import meaning
from parlab.bench.record import write_file
from parlab.bench.watch import Say
from parlab.bench.workload import BASELINE
from parlab.lesson import draw_records as pictures
from parlab.lesson.agreement import disagreement
from parlab.lesson.files import write_whole
from parlab.lesson.record_files import BadRecord, load_timeline, read, read_folder, superseded
from parlab.lesson.records import stands_apart
from parlab.lesson.soundness import DECISION

PICTURES, LEFT_OUT = "pictures", "Left out"
Record = Mapping[str, Any]


def report(folder: Path, say: Say) -> bool:
    """Writes ``report.md`` and ``pictures/`` beside the records.

    Runs that may not be compared (another workload, evidence level or machine) get a section each.

    Returns:
        Whether there was anything to report on and nothing had to be left out.
    """
    if not folder.is_dir():
        say(f"{folder} is no folder: run `parlab bench` first, or name the one with the records")
        return False
    records, complaints = read_folder(folder)
    lines = ["# Model-internal parallelism: what was measured", ""]
    with plt.rc_context({"text.parse_math": False}):  # a name may hold a $
        for name, section in sections(records.values()).items():
            lines += _section(folder, name, section, complaints)
    lines += _decision(folder, records, complaints, say)
    for line in complaints:
        say(f"left out: {line}")
    if not records:
        say(f"{folder} holds no record that can be read: run `parlab bench` first")
        return False
    if complaints:
        lines += [f"## {LEFT_OUT}", "", *(f"- {line}" for line in complaints), ""]
    write_file(folder / REPORT, "\n".join(lines))
    say(f"report: {folder / REPORT}")
    return not complaints


def sections(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records that may stand side by side, under a folder's name; baseline first, then by name."""
    found: list[list[Record]] = []
    for record in sorted(records, key=lambda r: (r["name"] != BASELINE, r["name"])):
        for section in found:
            if not stands_apart(record, section[0]):
                section.append(record)
                break
        else:
            found.append([record])
    named: dict[str, list[Record]] = {}
    for section in found:
        workload = re.sub(r"[^\w.-]+", "_", section[0]["workload"]["name"])[:80]
        base = f"{workload}-{section[0]['evidence_level']}"
        name, number = base, 2
        while name in named:
            name, number = f"{base}-{number}", number + 1
        named[name] = section
    return named


def _section(
    folder: Path, name: str, records: Sequence[Record], complaints: list[str]
) -> list[str]:
    place = folder / PICTURES / name
    drawn = {
        "comparison": pictures.draw_comparison(records),
        "collectives": pictures.draw_collectives(records),
        "memory": pictures.draw_memory(records),
    }
    for record in records:
        try:
            timeline = load_timeline(record, folder)
        except BadRecord as error:
            complaints.append(str(error))
            continue
        if timeline:
            drawn[f"timeline-{record['name']}"] = pictures.draw_timeline(record, timeline)
    for key, figure in drawn.items():
        _save(figure, place / f"{key}.png")
    first = records[0]
    lines = [f"## {first['workload']['name']}, evidence level {pictures.evidence(records)}", ""]
    crowded = next((record for record in records if record["oversubscribed"]), None)
    lines += [meaning(crowded or records[-1]), "", *_machine(first), "", *_table(records), ""]
    lines += _failures(records)
    if crowded:
        lines += ["Groups are listed by name. Ranks outnumber cores, so they are not ranked by "
                  "time.", ""]  # fmt: skip
    for key in drawn:
        lines += [f"![{key}]({PICTURES}/{name}/{key}.png)", ""]
    return lines


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    how: dict[str, Any] = {"format": "png", "dpi": 110, "metadata": {"Software": None}}
    write_whole(path, lambda fresh: figure.savefig(fresh, **how))
    plt.close(figure)


def _machine(record: Record) -> list[str]:
    machine, work = record["hardware"], record["workload"]
    device = machine["gpu"] or machine["cpu"] or "unknown processor"
    return [
        f"- machine: {device}, {machine['cores']} cores, {machine['gpus']} GPU(s), "
        f"{machine['nodes']} node(s), {machine['backend']}, torch {machine['torch']}",
        f"- model: {work['model']['id']}, {work['layers']} layers, hidden {work['hidden']}, "
        f"{work['heads']} heads, {work['kv_heads']} KV heads, vocabulary {work['vocabulary']}",
        f"- step: {work['global_batch']} sequences of {work['sequence_length']} tokens in "
        f"{work['microbatches']} microbatches, {work['dtype']}, {work['schedule']}",
    ]


def _table(records: Sequence[Record]) -> list[str]:
    crowded = any(record["oversubscribed"] for record in records)
    columns = [
        "group", "mesh", "tokens/s (median, min–max)", "bubble", "communication", "other",
        "peak MB", "gradient error", "loss difference", "efficiency", "MFU", "gates",
    ]  # fmt: skip
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for record in records:
        metrics, mesh = record["metrics"], record["mesh"]
        spread, right = metrics["throughput"], metrics["correctness"]
        speed = (
            f"{spread['median']:.0f} ({spread['min']:.0f}–{spread['max']:.0f})" if spread else ""
        )
        verdict = record["decision"]["gate_failures"]
        cells = [
            record["name"],
            f"pp{mesh['pp']} × cp{mesh['cp']} × tp{mesh['tp']}",
            speed,
            *(_number(metrics[key], ".3f") for key in
              ("bubble_ratio", "communication_ratio", "other_ratio")),
            _number(metrics["peak_memory_mb"] and metrics["peak_memory_mb"]["max"], ".0f"),
            _number(right and right["largest_gradient_error"], ".1e"),
            _number(right and right["loss_difference"], ".1e"),
            _number(metrics["scaling_efficiency"], ".2f"),
            _number(metrics["mfu"], ".3f"),
            ", ".join(verdict) if verdict else "pass",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cell or "—" for cell in cells) + " |")
    if crowded:
        lines += ["", "tokens/s and efficiency are shown for completeness: no evidence of speed."]
    return lines


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _failures(records: Sequence[Record]) -> list[str]:
    lines = [
        f"- {record['name']} failed ({record['failure']['kind']}, rank "
        f"{record['failure']['rank']}): {record['failure']['message'].splitlines()[0]}"
        for record in records
        if record["failure"]
    ]
    wrong = ((record["name"], disagreement(record)) for record in records)
    lines += [f"- **{name}: {what}**" for name, what in wrong if what]
    return [*lines, ""] if lines else []


def _decision(
    folder: Path, records: Mapping[str, Record], complaints: list[str], say: Say
) -> list[str]:
    """The decision as it was taken, where it still stands; nothing is decided anew here."""
    path = folder / f"{DECISION}.json"
    if not path.exists():
        return ["## Decision", "", "None has been taken: no group has run to its end.", ""]
    try:
        choice = read(path)
    except BadRecord as error:
        complaints.append(str(error))
        return ["## Decision", "", f"None that can be read; see {LEFT_OUT}.", ""]
    if reasons := superseded(choice, records):
        return _superseded(choice, reasons, say)
    return _standing(choice)


def _superseded(choice: Record, reasons: Sequence[str], say: Say) -> list[str]:
    """A decision on runs that are no longer the latest, which nobody may take for the present."""
    taken = f"{choice['decision']} {choice['candidate'] or ''}".rstrip()
    line = (
        f"No current decision. The last one ({choice['started']}: {taken}) was made from runs that "
        "are no longer the latest"
    )
    remedy = "A `parlab bench` that runs to its end decides anew."
    say(f"{line}: {'; '.join(reasons)}. {remedy}")
    return ["## Decision", "", f"{line}:", "", *(f"- {why}" for why in reasons), "", remedy, ""]


def _standing(choice: Record) -> list[str]:
    limits = ", ".join(f"{key} ≤ {value:g}" for key, value in choice["limits"].items())
    functions = choice["functions"]
    why = f", since {functions['note']}" if functions.get("note") else ""
    lines = [
        "## Decision", "",
        f"**{choice['decision']}** {choice['candidate'] or ''}".rstrip() + f" (limits: {limits})",
        "",
        choice["meaning"],
        "",
        f"Functions: {functions['source']} ({functions['origin']}), "
        f"sha256 {functions['sha256'][:12]}{why}.",
        "",
    ]  # fmt: skip
    for item in choice["candidates"]:
        failed = ", ".join(item["gate_failures"])
        lines.append(f"- {item['name']}: {'failed ' + failed if failed else 'eligible'}")
    lines += [f"- {name}: left out, {why}" for name, why in choice["left_out"].items()]
    return [*lines, ""]
