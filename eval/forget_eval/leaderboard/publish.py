"""Results as a dataset on the Hub: planned from runs and from what is there, committed, loaded back and compared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from forget_datasets import card, manifest
from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.hub import change, remote
from forget_datasets.hub.change import Change, Say
from forget_datasets.hub.faults import hub_faults, patiently
from forget_datasets.hub.remote import Remote
from forget_datasets.rows import content_hash
from forget_datasets.schema import type_name
from forget_datasets.shards import is_shard
from forget_eval import plots
from forget_eval.leaderboard import files, ranking, rows, shown
from forget_eval.leaderboard.ranking import Board
from forget_eval.leaderboard.rows import TABLES, Results
from forget_eval.report import cells
from forget_eval.report.results import printable

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PLOTS = "plots"
"""The folder of the pictures."""
_TAGS = ["agent-memory", "forgetting", "benchmark-results", "leaderboard"]


@dataclass(frozen=True, kw_only=True)
class Plan(Change):
    """A publication of runs.

    Attributes:
        new: the runs, their rows as they will be.
        there: the rows that the repository has.
        merged: both together.
    """

    new: Results
    there: Results
    merged: Results


def make(folders: Sequence[Path], repo: str, private: bool = False) -> Plan:
    """Plans a publication; nothing is written, here or on the Hub. Whether the runs are sound is for `verify` to say.

    Args:
        folders: of scored runs.
        repo: owner/name.
        private: wanted of a repository that is yet to be made.

    Raises:
        UserError: a run that is not scored or not finished; a repository that holds something else, or is public
            although a private one is wanted; as `card.merge`.
        EnvironmentFault: the Hub cannot be reached.
    """
    from huggingface_hub import HfApi

    api, new = HfApi(), rows.of_runs(folders)
    place = remote.find(api, repo, private)
    _require_results(place)
    readme = remote.text(api, place, manifest.CARD)
    there = _there(api, place)
    merged = rows.merge(new, there)
    boards = ranking.boards(merged.summaries)
    rendered = render(boards, merged, place.repo)
    merged_card = rendered if readme is None else card.merge(rendered, readme)
    contents = {manifest.CARD: merged_card.encode(), **_data(merged), **_pictures(boards)}
    return Plan(
        asked=repo,
        remote=place,
        uploads=[remote.upload(path, content, place) for path, content in contents.items()],
        deletions=sorted(path for path in place.files or {} if is_shard(path) and path not in contents),
        diff=remote.card_diff(readme, merged_card, "the results"),
        message=f"Results of {len(new.summaries)} runs",
        description="\n".join(f"- {line}" for line in _lines(new, there)),
        private=private,
        new=new,
        there=there,
        merged=merged,
    )


def describe(plan: Plan) -> Iterator[str]:
    """The plan for a person, line by line."""
    yield from change.renamed(plan)
    yield f"{_runs(len(plan.new.summaries))} -> {plan.place}, {_runs(len(plan.merged.summaries))} with those there:"
    yield from (f"  {line}" for line in _lines(plan.new, plan.there))
    yield from change.files(plan)
    if plan.changed or plan.deletions:
        yield f"One commit of {len(plan.changed)} files ({plan.size:,} B) to main, loaded back."
    else:
        yield "All of it is on main already: loaded back, without a commit."


def publish(plan: Plan, say: Say = lambda line: None) -> str:
    """Does what was planned, and gives the commit that holds the results.

    Args:
        plan: of `make`, just made.
        say: takes a line on each step that is done.

    Raises:
        UserError: no token, or one without rights.
        EnvironmentFault: the Hub or the way to it failed. Either says what was left, and what to do.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    made = change.commit(api, plan, say)
    with change.left(
        f"main of {plan.remote.repo} is at {made[:12]} with the results, but they were not loaded back. Run the same "
        "command again: it compares what is there, without another commit."
    ):
        _compare(api, plan, made)
    say(f"loaded back from {made[:12]}: {_runs(len(plan.merged.summaries))}, as published")
    return made


def render(boards: Sequence[Board], found: Results, repo: str) -> str:
    """The card of results as Markdown with YAML in front.

    Args:
        boards: of all runs.
        found: their rows.
        repo: what the examples load.
    """
    data = {
        "tags": _TAGS,
        "size_categories": [card.size_category(len(found.scores))],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if name == "summaries" else {}),
                "data_files": [{"split": files.SPLIT, "path": f"data/{name}/{files.SPLIT}-*"}],
            }
            for name in TABLES
        ],
    }
    values = {
        "boards": [_board(board) for board in boards],
        "reading": shown.READING,
        "runs": len(found.summaries),
        "scores": len(found.scores),
        "source": repo,
        "split": files.SPLIT,
        "tables": {name: [(each.name, type_name(each.type)) for each in schema] for name, schema in TABLES.items()},
    }
    return card.filled("results.md.j2", data, values)


def _board(board: Board) -> dict[str, Any]:
    return {
        "title": cells.escaped(shown.title(board)),
        "hash": board.content_hash,
        "metric": shown.RANKED_BY[board.task],
        "table": shown.markdown_table(board),
        "picture": _picture(board),
        "notes": [cells.escaped(note) for note in shown.notes(board)],
    }


def _picture(board: Board) -> str:
    return f"{PLOTS}/{board.name}.png"


def _pictures(boards: Sequence[Board]) -> dict[str, bytes]:
    return {
        _picture(board): plots.png(plots.leaderboard(shown.frame([board]), shown.RANKED_BY[board.task]))
        for board in boards
    }


def _data(found: Results) -> dict[str, bytes]:
    with TemporaryDirectory(prefix="forget-eval-") as folder:
        return {path.as_posix(): (Path(folder) / path).read_bytes() for path in files.write(Path(folder), found)}


def _require_results(place: Remote) -> None:
    """Raises UserError for a repository that holds a dataset: its card and files would be lost among the results."""
    foreign = next((path for path in place.files or {} if path.split("/")[0] == "data" and not _is_ours(path)), None)
    if foreign or manifest.MANIFEST in (place.files or {}):
        raise UserError(
            f"{place.repo} holds {foreign or manifest.MANIFEST}, so it is a dataset and no place for results. "
            "Name a repository of its own."
        )


def _is_ours(path: str) -> bool:
    return path.split("/")[1] in TABLES


def _there(api: "HfApi", place: Remote) -> Results:
    """The results that a repository has; none where there are none."""
    paths = sorted(path for path in place.files or {} if is_shard(path))
    if not paths:
        return Results()
    assert place.head
    with TemporaryDirectory(prefix="forget-eval-") as folder:
        _fetch(api, place.repo, place.head, paths, Path(folder))
        return files.read(Path(folder))


def _compare(api: "HfApi", plan: Plan, commit: str) -> None:
    """Loads a commit back and compares it with the plan. Raises EnvironmentFault if it holds other rows."""
    paths = [upload.path for upload in plan.uploads if is_shard(upload.path)]
    with TemporaryDirectory(prefix="forget-eval-") as folder:
        _fetch(api, plan.remote.repo, commit, paths, Path(folder))
        back = files.read(Path(folder))
    for name in TABLES:
        if content_hash(back.table(name)) != content_hash(plan.merged.table(name)):
            raise EnvironmentFault(f"the {name} that came back are not those that were sent.")


def _fetch(api: "HfApi", repo: str, commit: str, paths: Sequence[str], into: Path) -> None:
    from forget_datasets.hub.reference import Reference

    with hub_faults(Reference(repo), f"fetching the results of {repo}"):
        for path in paths:
            patiently(
                lambda path=path: api.hf_hub_download(  # type: ignore[misc]
                    repo, path, repo_type="dataset", revision=commit, local_dir=into
                )
            )


def _lines(new: Results, there: Results) -> Iterator[str]:
    """What becomes of each run."""
    known = {row["run_id"]: row for row in there.summaries}
    for row in new.summaries:
        before = known.get(row["run_id"])
        state = remote.State.NEW if before is None else remote.State.SAME if before == row else remote.State.CHANGED
        value = "–" if row["value"] is None else f"{row['value']:.1%}"
        dataset = f"{row['task']} {row['dataset_config']} {row['dataset_hash'][:12]}"
        yield printable(f"{state:8}{row['system']}, {dataset}: {row['metric']} {value}, run {row['run_id'][:12]}")


def _runs(n: int) -> str:
    return f"{n} run{'' if n == 1 else 's'}"
