"""Pictures of records. Each function gives a figure whose title tells the evidence level."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from parlab.lesson.style import ACCENT, INK, MUTED, NORMAL, PALE, SHADES, SMALL, WIDTH_IN, canvas

Record = Mapping[str, Any]
# Part → shade, hatch and what a reader calls it. Differ in greyscale.
PARTS = {
    "compute": (SHADES[2], "", "compute"),
    "exposed": (SHADES[0], "///", "exposed communication"),
    "idle": ("white", "..", "idle (bubble)"),
    "other": (SHADES[3], "", "other (host)"),
}
MORE_SHADES = (*SHADES, PALE, "#c9b6d6", "#8c6d4f", "#d98f6a")
NAME_POINTS = 110.0  # beside three panels; the longest name that a group may have takes two lines
HATCHES = ("", "///", "..", "\\\\\\", "xx", "--", "++", "oo")


def evidence(records: Sequence[Record]) -> str:
    """The evidence level of records that share one, with what it means for their times."""
    crowded = [record for record in records if record["oversubscribed"]]
    level = str(records[0]["evidence_level"])
    if not crowded:
        return level
    ranks = max(record["workload"]["world_size"] for record in crowded)
    return f"{level}, {ranks} ranks on {crowded[0]['hardware']['cores']} cores"


def draw_comparison(records: Sequence[Record]) -> Figure:
    """Bubble, communication and throughput side by side, a bar a group, limits as lines.

    Groups stand in the order given and are not ranked. Where ranks outnumber cores the
    throughput is drawn pale and says that it is no evidence of speed.
    """
    figure, axes = canvas(1.5 + 0.42 * len(records), columns=3, sharey=True)
    limits = records[0]["workload"]["limits"]
    crowded = any(record["oversubscribed"] for record in records)
    for panel, key, name in (
        (axes[0], "bubble_ratio", "bubble ratio"),
        (axes[1], "communication_ratio", "communication ratio"),
    ):
        _bars(panel, records, [record["metrics"][key] for record in records], "{:.3f}")
        highest = max([record["metrics"][key] or 0 for record in records] + [limits[key]])
        panel.set_xlim(0, (highest or 1) * 1.35)
        panel.axvline(limits[key], color=ACCENT, linestyle="--", linewidth=1.2)
        panel.set_xlabel(f"{name}, limit {limits[key]:g}", fontsize=NORMAL)
    speeds = [_throughput(record) for record in records]
    _bars(axes[2], records, speeds, "{:.0f}", pale=crowded)
    fastest = max(speed or 0 for speed in speeds)
    axes[2].set_xlim(0, (fastest or 1) * 1.35)
    note = "tokens/s, no evidence of speed" if crowded else "throughput, tokens/s"
    axes[2].set_xlabel(note, fontsize=NORMAL)
    axes[0].invert_yaxis()
    figure.suptitle(_title("groups side by side", records), fontsize=NORMAL)
    return figure


def _throughput(record: Record) -> float | None:
    spread = record["metrics"]["throughput"]
    return spread["median"] if spread else None


def _bars(
    axes: Axes,
    records: Sequence[Record],
    values: Sequence[float | None],
    form: str,
    pale: bool = False,
) -> None:
    for place, (record, size) in enumerate(zip(records, values, strict=True)):
        text = _failed(record) if size is None else form.format(size)
        shade = PALE if pale and record["oversubscribed"] else SHADES[2]
        axes.barh(place, size or 0, color=shade, edgecolor=INK, height=0.66)
        axes.annotate(text, (size or 0, place), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=SMALL, color=INK,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip
    names = [_wrapped(record["name"], SMALL, NAME_POINTS, "(?<=_)") for record in records]
    axes.set_yticks(range(len(records)), names, fontsize=SMALL)


def _failed(record: Record) -> str:
    failure = record["failure"]
    return f"failed: {failure['kind']}" if failure else "not measured"


def draw_timeline(record: Record, timeline: Mapping[str, Any]) -> Figure:
    """One traced step of every rank: compute, exposed communication, idle, other.

    Args:
        timeline: the record's own, as the run saved it (ms from the step's start).
    """
    ranks = timeline["ranks"]
    figure, (axes,) = canvas(1.5 + 0.42 * len(ranks))
    for part, (shade, hatch, label) in PARTS.items():
        for row in ranks:
            spans = [(start, end - start) for start, end in row[part]]
            many = len(spans) > 150  # outlines would hide what is in them
            axes.broken_barh(
                spans, (row["rank"] - 0.36, 0.72), facecolor=shade,
                edgecolor="none" if many else INK, linewidth=0.4,
                hatch="" if many else hatch,
            )  # fmt: skip
        axes.barh([0], [0], color=shade, edgecolor=INK, hatch=hatch, label=label)
    coordinates = {row["rank"]: row for row in record["mesh"]["coordinates"]}
    names = [_rank_name(coordinates[row["rank"]], record["mesh"]) for row in ranks]
    axes.set_yticks([row["rank"] for row in ranks], names, fontsize=SMALL)
    axes.set_ylim(len(ranks) - 0.4, -0.6)
    axes.set_xlim(0, timeline["step_ms"])
    axes.set_xlabel("ms, one step with tracing on", fontsize=NORMAL)
    figure.legend(loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False)
    figure.suptitle(_title(f"{record['name']}, where each rank's step goes", [record]),
                    fontsize=NORMAL)  # fmt: skip
    return figure


def _rank_name(at: Mapping[str, int], mesh: Mapping[str, Any]) -> str:
    where = " ".join(f"{axis}{at[axis]}" for axis in mesh["order"] if mesh[axis] > 1)
    return f"rank {at['rank']}  {where}".rstrip()


def draw_collectives(records: Sequence[Record]) -> Figure:
    """Payload that the ranks hand to communication in one step, by axis and cause, MB.

    A group whose communication was not measured says why.
    """
    rows = _axis_rows(records)
    figure, (axes,) = canvas(1.9 + 0.42 * len(rows))
    causes = sorted({cause for _, parts, _ in rows for cause in parts})
    for place, (_, parts, text) in enumerate(rows):
        left = 0.0
        for cause, size in sorted(parts.items()):
            look = causes.index(cause) % len(MORE_SHADES)
            axes.barh(place, size / 1e6, left=left, color=MORE_SHADES[look], edgecolor=INK,
                      hatch=HATCHES[look], height=0.66)  # fmt: skip
            left += size / 1e6
        size_text = f"{left:.2f} MB" if left >= 0.01 else f"{left * 1e3:.2f} KB"
        axes.annotate(text or size_text, (left, place), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=SMALL, color=INK)  # fmt: skip
    for look, cause in enumerate(causes):
        axes.barh([0], [0], color=MORE_SHADES[look % 8], hatch=HATCHES[look % 8], edgecolor=INK,
                  label=cause.replace("_", " "))  # fmt: skip
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows], fontsize=SMALL)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, (max(sum(parts.values()) for _, parts, _ in rows) or 1e6) / 1e6 * 1.18)
    axes.set_xlabel("payload of all ranks in one step, MB (10⁶ bytes)", fontsize=NORMAL)
    if causes:
        figure.legend(loc="outside lower center", ncols=5, fontsize=SMALL, frameon=False)
    figure.suptitle(_title("communication by axis", records), fontsize=NORMAL)
    return figure


def _axis_rows(records: Sequence[Record]) -> list[tuple[str, dict[str, int], str]]:
    """A row for each group and axis: its name, bytes by cause, and what to say in their place.

    A group that did not communicate is left out, unless all of them are such.
    """
    rows: list[tuple[str, dict[str, int], str]] = []
    for record in records:
        entries = record["metrics"]["communication"]
        by_axis: dict[str, dict[str, int]] = {}
        for entry in entries or []:
            causes = by_axis.setdefault(entry["axis"], {})
            causes[entry["cause"]] = causes.get(entry["cause"], 0) + entry["payload_bytes"]
        rows += [(f"{record['name']}  {axis}", by_axis[axis], "") for axis in sorted(by_axis)]
        if entries is None:
            rows.append((record["name"], {}, _failed(record)))
    return rows or [(record["name"], {}, "no communication") for record in records]


def draw_memory(records: Sequence[Record]) -> Figure:
    """Peak memory of every rank against the limit, MB."""
    figure, (axes,) = canvas(1.5 + 0.42 * len(records))
    limit = records[0]["workload"]["limits"]["memory_mb"]
    highest = limit
    for place, record in enumerate(records):
        memory = record["metrics"]["peak_memory_mb"]
        if memory is None:
            axes.annotate(_failed(record), (0, place), xytext=(4, 0), textcoords="offset points",
                          va="center", fontsize=SMALL, color=INK)  # fmt: skip
            continue
        highest = max(highest, memory["max"])
        height = 0.72 / len(memory["ranks"])
        for rank, size in enumerate(memory["ranks"]):
            at = place - 0.36 + height * (rank + 0.5)
            axes.barh(at, size, color=SHADES[1], edgecolor=INK, linewidth=0.5, height=height)
        axes.annotate(f"{memory['max']:.0f}", (memory["max"], place), xytext=(4, 0),
                      textcoords="offset points", va="center", fontsize=SMALL)  # fmt: skip
    axes.axvline(limit, color=ACCENT, linestyle="--", linewidth=1.2)
    axes.set_xlim(0, (highest or 1) * 1.12)
    axes.set_ylim(len(records) - 0.4, -0.6)
    axes.set_yticks(range(len(records)), [record["name"] for record in records], fontsize=SMALL)
    sources = {r["metrics"]["peak_memory_mb"]["source"] for r in records
               if r["metrics"]["peak_memory_mb"]}  # fmt: skip
    how = f" ({', '.join(sorted(sources))})" if sources else ""
    axes.set_xlabel(
        f"peak memory of each rank, MB{how}; limit {limit:g} MB", fontsize=NORMAL, color=MUTED
    )
    figure.suptitle(_title("memory against the limit", records), fontsize=NORMAL)
    return figure


def _title(what: str, records: Sequence[Record]) -> str:
    title = f"{records[0]['workload']['name']}: {what} | evidence level {evidence(records)}"
    return _wrapped(title, NORMAL, WIDTH_IN * 72 - 16, "(?<=[:,|] )")


def _wrapped(text: str, size: float, points: float, breaks: str) -> str:
    """The text in lines of at most ``points``, broken at ``breaks`` or else anywhere."""

    def fits(line: str) -> bool:
        return bool(TextPath((0, 0), line, size=size).get_extents().width <= points)

    lines = [""]
    for piece in re.split(breaks, text):
        if lines[-1] and not fits(lines[-1] + piece):
            lines.append("")
        for part in [piece] if fits(piece) else piece:
            if not fits(lines[-1] + part):
                lines.append("")
            lines[-1] += part
    return "\n".join(line.strip() for line in lines)
