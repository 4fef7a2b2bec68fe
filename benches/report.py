"""From the benchmark's JSON lines to the table and the plots of docs/performance.md.

    python report.py FIGURES.jsonl DOCS_FOLDER

Replaces what stands between the two marks of the page, and writes two SVG files
beside it. Needs matplotlib for the plots.
"""

import json
import os
import pathlib
import platform
import statistics
import sys

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
OURS, OTHERS, WEAK = "#0b6e4f", "#55606e", "#c9ced6"


def figure(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def spread(values):
    return f"{figure(min(values))} to {figure(max(values))}" if len(values) > 1 else ""


def line(row):
    what, _, beside = row["name"].strip().partition("; ")
    ratios = [o / b for o, b in zip(row["ours"], row["beside"])] if row["beside"] else []
    cells = [
        what,
        f"{figure(row['median'])} {row['unit']}",
        spread(row["ours"]),
        f"{beside}: {figure(statistics.median(row['beside']))}" if row["beside"] else "",
        f"{row['ratio']:.2f}" if row["ratio"] else "",
        spread(ratios),
        row["goal"].replace("0.3333333333333333", "1/3"),
        ("yes" if row["met"] else "**no**") if row["goal"] else "",
    ]
    return "| " + " | ".join(cells) + " |"


def machine():
    with open("/proc/cpuinfo") as info:
        cpu = next((text.split(":")[1].strip() for text in info if text.startswith("model name")), "?")
    with open("/proc/meminfo") as info:
        memory = int(next(info).split()[1]) // 1_000_000
    return f"{cpu}, {len(os.sched_getaffinity(0))} cores, {memory} GB, Linux {platform.release()}"


def table(rows):
    text = [
        f"Measured on {machine()}.",
        "",
        "![No-op jobs per second against durability](performance-durability.svg)",
        "",
        "![Claimed and completed per second against rows in the table](performance-rows.svg)",
        "",
    ]
    for part in dict.fromkeys(row["part"] for row in rows):
        text += [f"**{part}**", "", "| what | jobq | spread | beside | ratio | spread | goal | reached |", "|---|---|---|---|---|---|---|---|"]
        text += [line(row) for row in rows if row["part"] == part] + [""]
    return "\n".join(text)


def plots(rows, folder):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "jobq", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    from matplotlib import pyplot

    peers = [row for row in rows if row["part"] == "peers" and row["name"].startswith("drain")]
    if peers:
        bars = [("jobq (FULL)", statistics.median(peers[0]["ours"]), OURS)]
        for row in peers:
            name = row["name"].partition("; ")[2]
            full = "(FULL)" in name
            bars.append((name, statistics.median(row["beside"]), OTHERS if full else WEAK))
        bars.sort(key=lambda bar: bar[1])
        _, axes = pyplot.subplots(figsize=(8, 0.34 * len(bars) + 1))
        axes.barh([bar[0] for bar in bars], [bar[1] for bar in bars], color=[bar[2] for bar in bars])
        for place, bar in enumerate(bars):
            axes.text(bar[1] * 1.05, place, figure(bar[1]), va="center")
        axes.set_xscale("log")
        axes.set_xlabel("no-op jobs done per second, 8 at once (log)\ndark: a power cut loses nothing that was acknowledged")
        save(pyplot, folder / "performance-durability.svg")

    curve = [row for row in rows if row["name"].startswith("claim + complete, rows: ")]
    if curve:
        counts = [int(row["name"].rsplit(" ", 1)[1]) for row in curve]
        _, axes = pyplot.subplots(figsize=(8, 3))
        low = [row["median"] - min(row["ours"]) for row in curve]
        high = [max(row["ours"]) - row["median"] for row in curve]
        axes.errorbar(counts, [row["median"] for row in curve], yerr=[low, high], color=OURS, marker="o", capsize=3)
        axes.set_xscale("symlog", linthresh=1000)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("finished jobs in the table")
        axes.set_ylabel("claimed and completed per second")
        save(pyplot, folder / "performance-rows.svg")


def save(pyplot, path):
    pyplot.tight_layout()
    pyplot.savefig(path, metadata={"Date": None})
    pyplot.close()


def main():
    figures, folder = map(pathlib.Path, sys.argv[1:3])
    rows = [json.loads(text) for text in figures.read_text().splitlines()]
    page = folder / "performance.md"
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table(rows)}{END}{rest.partition(END)[2]}")
    plots(rows, folder)


main()
