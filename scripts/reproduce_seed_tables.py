"""Runs the systems of the ForgetEval spec on our cases, and writes the table of docs/results.md.

Every run is a run folder that goes on where it was cut off, so this can be stopped and started again. A system runs in
its environment (`forget-eval env create NAME`) if it has one. The text around the table is written by hand.
"""

import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from forget_datasets.rows import FAMILIES
from forget_eval import runs, scores, transcripts

ROOT = Path(__file__).parent.parent
PUBLISHED = Path(__file__).with_name("published.toml")
COLUMNS = (*FAMILIES, "overall")
BEGIN, END = "<!-- seed tables: begin -->", "<!-- seed tables: end -->"


@dataclass(frozen=True)
class Plan:
    """Systems that are run on one language at one scale."""

    lang: str
    scale: int
    systems: tuple[str, ...]
    embedder: str | None

    @property
    def label(self) -> str:
        """Names the folder of the runs."""
        return f"{self.lang}-{self.scale}"


PLANS = (
    Plan("en", 200, ("reference", "lethe", "mem0", "mempalace", "langgraph", "qdrant"), "minilm"),
    Plan("zh", 50, ("lethe",), None),
    Plan("ja", 50, ("lethe",), None),
)


@click.command()
@click.option("--runs", "folder", type=click.Path(path_type=Path), default=Path("runs/seed-tables"), show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "docs" / "results.md", show_default=True)
@click.option("--embedder", help="For English, in place of minilm (fp32).")
@click.option("--only", multiple=True, metavar="SYSTEM", help="Run these alone; the table has whatever was run.")
def main(folder: Path, out: Path, embedder: str | None, only: tuple[str, ...]) -> None:
    """Run what is missing, and write the table."""
    played: list[tuple[Plan, Path]] = []
    for plan in PLANS:
        for system in plan.systems:
            place = folder / plan.label / system
            if not only or system in only:
                run(plan, system, place, (embedder or plan.embedder) if plan.lang == "en" else plan.embedder)
            if (place / scores.SUMMARY).exists():
                played.append((plan, place))
    page = out.read_text(encoding="utf-8") if out.exists() else f"{BEGIN}\n{END}\n"
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    out.write_text(f"{before}{BEGIN}\n" + "\n".join(table(played)) + f"\n{END}{after}", encoding="utf-8")
    print(f"wrote {out}", file=sys.stderr)


def run(plan: Plan, system: str, place: Path, embedder: str | None) -> None:
    """One run folder, from cases to summary. Raises CalledProcessError if the command fails."""
    command = [str(Path(sys.executable).with_name("forget-eval")), "bench", "forgeteval", "--adapter", system]
    command += ["--lang", plan.lang, "--scale", str(plan.scale), "--distractors", "4", "--seed", "42"]
    command += ["--out", str(place), *(["--embedder", embedder] if embedder else [])]
    print(" ".join(command), file=sys.stderr)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def table(played: Sequence[tuple[Plan, Path]]) -> Iterator[str]:
    """The lines of the Markdown table: what is published, then ours under both rules."""
    yield f"| lang | system | cases | rule | {' | '.join(COLUMNS)} | n/a | error | seconds in the system | embedder |"
    yield "|" + " --- |" * (len(COLUMNS) + 8)
    published = {(row["lang"], row["system"]): row for row in tomllib.loads(PUBLISHED.read_text("utf-8"))["rows"]}
    for plan, place in played:
        summary, manifest = scores.read_summary(place), runs.read(place)
        theirs = published.get((plan.lang, place.name))
        if theirs:
            figures = [f"{theirs[column]}" if column in theirs else "" for column in COLUMNS]
            yield _row([plan.lang, place.name, theirs["cases"], "published", *figures, "", "", "", ""])
        yield from _ours(plan, place.name, summary, manifest, _seconds(place))


def _ours(plan: Plan, system: str, summary: Any, manifest: Any, seconds: float) -> Iterator[str]:
    adapter, embedder = manifest["adapter"], (manifest["embedder"] or {}).get("name")
    name = f"{system} {adapter['version'] or ''}".strip()
    for rule in ("spec", "strict"):
        counts, rates = summary["statuses"][rule], summary["rates"][rule]
        figures = [_percent(rates[column]) for column in COLUMNS]
        took = f"{seconds:.0f}" if rule == "spec" else ""
        yield _row([plan.lang, name, summary["n"], rule, *figures, counts["n/a"], counts["error"], took, embedder])


def _percent(rate: Any) -> str:
    return f"{100 * rate['value']:.1f} [{100 * rate['low']:.1f}, {100 * rate['high']:.1f}]"


def _seconds(place: Path) -> float:
    """What the system took for all cases, its queries' embeddings from the cache included."""
    return sum(sum(line["seconds"].values()) for line in transcripts.read(place / runs.TRANSCRIPTS))


def _row(entries: Sequence[Any]) -> str:
    return f"| {' | '.join(str(entry) for entry in entries)} |"


if __name__ == "__main__":
    main()
