"""From rows to a dataset folder: Parquet shards, a manifest that says what is in them, and the card."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from forget_datasets import manifest, releases, remote
from forget_datasets.audits import Audit
from forget_datasets.claims import HANDMADE
from forget_datasets.errors import UserError
from forget_datasets.forgeteval import handmade, languages, screening
from forget_datasets.forgeteval.audit import Audit as ForgetEvalAudit
from forget_datasets.forgeteval.chunks import Chunk, make, orders
from forget_datasets.forgeteval.pools import Listed
from forget_datasets.membehave import TRIPLETS, Parameters, Triplet, generate
from forget_datasets.membehave.audit import CONFIGS, Audits
from forget_datasets.provenance import Provenance
from forget_datasets.rows import FAMILIES, LEVELS, GeneratedCase
from forget_datasets.schema import SCHEMAS
from forget_datasets.shards import GROUP_BYTES, ShardWriter, hash_shards
from forget_datasets.staging import Outcome, disk_faults, staged
from forget_datasets.target import require_replaceable
from forget_datasets.workers import Spread, spread_over

_Filled = tuple[Mapping[str, Mapping[str, Any]], Mapping[str, Any] | None]  # configs, and what the generator knows
_SHOWN = 5
_ROWS_PER_WORKER = 5_000  # fewer are made sooner than a process starts
_LEVEL_GROUP_BYTES = GROUP_BYTES // 4  # six files are written at a time, and three read in step


class Refused(UserError):
    """The rows are not fit to be published; the message names the first of them."""


def build_forgeteval(
    out: Path | str,
    langs: Sequence[str] = ("en",),
    n_per_family: int = 50,
    distractors: int = 4,
    seed: int = 42,
    stress: bool = False,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
    settled: Callable[[Outcome], None] | None = None,
    workers: int = 1,
    spread: Spread | None = None,
) -> dict[str, Any]:
    """Builds ForgetEval into `out`: a config per language and the hand-made one, all with the split `test`.

    Args:
        out: the folder to make, or as a text its fsspec URL. One that holds a dataset of the same parameters is brought
            up to date.
        langs: tags of languages; one that comes twice counts once.
        n_per_family: cases per family and language.
        distractors: unrelated facts mixed into each case.
        seed: of the whole dataset.
        stress: names the configs `<lang>-stress`, so that they can lie beside the ordinary ones.
        force: also replaces a dataset of other parameters.
        progress: called with the name of the config after each case.
        settled: called once at the end with what became of `out`; the same bytes as before leave it untouched.
        workers: processes at most, see `workers.spread_over`; the bytes are the same for any number.
        spread: who makes the chunks, if not processes of this machine.

    Returns:
        The manifest.

    Raises:
        UserError: an unknown language, more cases or distractors than a language has, an `out` that is not ours.
        Refused: a control lands where it must not, or the proof of a case fails.
        EnvironmentFault: the disk refuses, or a worker process dies.
    """
    tags = list(dict.fromkeys(langs))
    parameters = {
        "langs": tags, "n_per_family": n_per_family, "distractors": distractors, "seed": seed, "stress": stress,
    }  # fmt: skip
    _require_room(tags, n_per_family, distractors)
    total = len(tags) * len(FAMILIES) * n_per_family
    made = spread or spread_over(max(1, min(workers, total // _ROWS_PER_WORKER)))

    def fill(folder: Path) -> _Filled:
        configs = {}
        for tag in tags:
            _refuse(tag, _screened(tag))
        asked = {tag: [*orders(tag, n_per_family, distractors, seed)] for tag in tags}
        with closing(made(make, (order for tag in tags for order in asked[tag]))) as chunks:
            for tag in tags:
                name = f"{tag}-stress" if stress else tag
                written = _write_chunks(folder, name, islice(chunks, len(asked[tag])), progress)
                configs[name] = _with_language(written, languages.load(tag))
        configs[HANDMADE] = _write_cases(folder, HANDMADE, handmade.load(), progress)
        return configs, None

    return _build(out, "forgeteval", parameters, fill, force, settled)


def build_membehave(
    out: Path | str,
    triplets: int = TRIPLETS,
    triplets_per_user: int = 1,
    sessions_per_user: int | None = None,
    same_message: float = 0.25,
    noise: float = 0.0,
    seed: int = 42,
    gated: bool = False,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
    settled: Callable[[Outcome], None] | None = None,
) -> dict[str, Any]:
    """Builds MemBehave into `out`: the configs `default` and `extended`, each with the splits low, med and high.

    Args:
        out: the folder to make, or as a text its fsspec URL. One that holds a dataset of the same parameters is brought
            up to date.
        triplets: how many; each is three items.
        triplets_per_user: told in one history, 1 to 3.
        sessions_per_user: conversations in a history; None for the usual number.
        same_message: share of the shared entities of which another person is told in the target's message, 0 to 1.
        noise: probability with which each edge is dropped from the recorded graph, and one added, 0 to 1.
        seed: of the whole dataset.
        gated: the card asks for a name and a purpose before the Hub hands the files out.
        force: also replaces a dataset of other parameters.
        progress: called with the name of the config after each item.
        settled: called once at the end with what became of `out`; the same bytes as before leave it untouched.

    Returns:
        The manifest.

    Raises:
        UserError: an argument outside its bounds, an `out` that is not ours.
        Refused: a control lands where it must not, or an item contradicts itself.
        EnvironmentFault: the disk refuses.
    """
    shape = Parameters(triplets_per_user, sessions_per_user, same_message, noise)
    parameters = {
        "triplets": triplets, "triplets_per_user": triplets_per_user, "sessions_per_user": shape.sessions,
        "same_message": float(same_message), "noise": float(noise), "seed": seed, "gated": gated,
    }  # fmt: skip
    if triplets < 1:
        raise UserError(f"cannot build {triplets} triplets: ask for one or more")

    def fill(folder: Path) -> _Filled:
        told = generate(triplets, seed=seed, **asdict(shape))
        provenance, audit = Provenance(seed), Audits(noise)
        audits = {config: audit(config) for config in CONFIGS}
        splits = _write_levels(folder, map(provenance.watch, told), audits, progress)
        configs = {config: _level_figures(folder, config, splits[config], audits[config]) for config in CONFIGS}
        return configs, provenance.summary()

    return _build(out, "membehave", parameters, fill, force, settled)


def _build(
    out: Path | str,
    dataset: str,
    parameters: Mapping[str, Any],
    fill: Callable[[Path], _Filled],
    force: bool,
    settled: Callable[[Outcome], None] | None,
) -> dict[str, Any]:
    """Builds a dataset: `fill` writes its data into a folder and tells the figures of the configs."""
    if isinstance(out, str):
        return _build_at(out, dataset, parameters, fill, force, settled)
    with disk_faults(out):
        require_replaceable(out, dataset, parameters, force)
    with staged(out) as stage:
        built = manifest.write(stage.folder, dataset, parameters, *fill(stage.folder))
        releases.carry(out, stage.folder, dataset)
    if settled and stage.outcome:
        settled(stage.outcome)
    return built


def _build_at(
    url: str,
    dataset: str,
    parameters: Mapping[str, Any],
    fill: Callable[[Path], _Filled],
    force: bool,
    settled: Callable[[Outcome], None] | None,
) -> dict[str, Any]:
    """Builds a dataset in a folder of this machine, and uploads it once it is whole."""
    outcomes: list[Outcome] = []
    with remote.rebuilt(url) as (folder, upload):
        built = _build(folder, dataset, parameters, fill, force, outcomes.append)
        uploaded = upload()
    if settled:
        settled(outcomes[0] if uploaded else Outcome.UNCHANGED)
    return built


def _require_room(tags: Sequence[str], n_per_family: int, distractors: int) -> None:
    """Raises UserError for numbers that make no dataset, or that are more than one of the languages has."""
    if n_per_family < 1 or distractors < 0:
        raise UserError(f"cannot build {n_per_family} cases a family with {distractors} distractors")
    for tag in tags:
        _require_room_in(languages.load(tag), n_per_family, distractors)


def _require_room_in(language: languages.Language, n_per_family: int, distractors: int) -> None:
    """Raises UserError if a language cannot make so many cases a family, whose templates take turns, or distractors."""
    if distractors > len(language.distractors):
        raise UserError(
            f"'{language.tag}' has {len(language.distractors)} distractors; {distractors} were asked for. "
            "Ask for fewer, or add some to its language file."
        )
    limits = {
        len(group) * language.capacity(template) + place: template
        for group in language.templates.values()
        for place, template in enumerate(group.values())
    }
    if n_per_family > (limit := min(limits)):
        scarce = limits[limit]
        raise UserError(
            f"'{language.tag}' makes at most {limit:,} cases a family, and {n_per_family:,} were asked for: its "
            f"template {scarce.family}.{scarce.name} has words for {language.capacity(scarce):,}. Ask for fewer."
        )


def _write_levels(
    folder: Path, triplets: Iterable[Triplet], audits: Mapping[str, Audit], progress: Callable[[str], None] | None
) -> dict[str, dict[str, Any]]:
    """Writes triplet by triplet into the levels of both configs, and returns the figures of the splits by config."""
    with ExitStack() as stack:
        writers = {
            (config, level): stack.enter_context(
                ShardWriter(folder / "data" / config, level, SCHEMAS["membehave"], _LEVEL_GROUP_BYTES)
            )
            for config in CONFIGS
            for level in LEVELS
        }
        for triplet in triplets:
            for config, items in zip(CONFIGS, (triplet.default, triplet.extended), strict=True):
                for item in items:
                    _add(config, item.item_id, item.to_row(), audits[config], writers[config, item.level], progress)
        return {
            config: {
                level: manifest.split_figures(f"data/{config}", writers[config, level].close()) for level in LEVELS
            }
            for config in CONFIGS
        }


def _level_figures(folder: Path, config: str, splits: Mapping[str, Any], audit: Audit) -> dict[str, Any]:
    """What the manifest says of a config, whose rows are read back for the hash: they were written level by level."""
    files = [folder / file for split in splits.values() for file in split["files"]]
    return _figures(config, splits, hash_shards(files, SCHEMAS["membehave"]), audit)


def _write_chunks(
    folder: Path, config: str, chunks: Iterator[Chunk], progress: Callable[[str], None] | None
) -> dict[str, Any]:
    audit = ForgetEvalAudit()
    with ShardWriter(folder / "data" / config, "test", SCHEMAS["forgeteval"]) as writer:
        for chunk in chunks:
            _refuse(config, chunk.problems)
            audit.merge(chunk.audit)
            writer.extend(chunk.batches, chunk.lines)
            if progress:
                for _ in range(chunk.rows):
                    progress(config)
        return _cases_figures(config, writer, audit)


def _write_cases(
    folder: Path, config: str, cases: Iterable[GeneratedCase], progress: Callable[[str], None] | None
) -> dict[str, Any]:
    audit = ForgetEvalAudit()
    with ShardWriter(folder / "data" / config, "test", SCHEMAS["forgeteval"]) as writer:
        try:
            for case in cases:
                _add(config, case.id, case.to_row(), audit, writer, progress)
        except screening.ScreeningError as error:
            raise Refused(f"config '{config}' is not fit to be built: {error}") from error
        return _cases_figures(config, writer, audit)


def _cases_figures(config: str, writer: ShardWriter, audit: Audit) -> dict[str, Any]:
    written = writer.close()
    splits = {"test": manifest.split_figures(f"data/{config}", written)}
    return _figures(config, splits, written.content_hash, audit)


def _add(
    config: str,
    key: str,
    row: Mapping[str, Any],
    audit: Audit,
    writer: ShardWriter,
    progress: Callable[[str], None] | None,
) -> None:
    """Writes a row, unless the audit finds something wrong with it."""
    _refuse(config, [f"{key}: {column or 'row'}: {what}" for column, what in audit.add(row)])
    writer.add(row)
    if progress:
        progress(config)


def _figures(config: str, splits: Mapping[str, Any], content_hash: str, audit: Audit) -> dict[str, Any]:
    """What the manifest says of a config once all its rows are written."""
    _refuse(config, [f"{key}: {column or 'row'}: {what}" for key, column, what in audit.close()])
    rows = sum(split["rows"] for split in splits.values())
    return {"rows": rows, "content_hash": content_hash, "splits": splits, **audit.summary()}


@lru_cache
def _screened(tag: str) -> tuple[str, ...]:
    return tuple(screening.screen_language(languages.load(tag)))


def _with_language(figures: dict[str, Any], language: languages.Language) -> dict[str, Any]:
    """Adds what only the language file can tell: how much of it was screened, and how many cases it can make."""
    listed = [pool for pool in language.pools.values() if isinstance(pool, Listed)]
    templates = [template for family in language.templates.values() for template in family.values()]
    figures["screening"] |= {
        "values": sum(pool.size for pool in listed),
        "patterns": len(language.pools) - len(listed),
        "phrasings": sum(1 for template in templates for _ in template.phrasings()),
        "distractors": len(language.distractors),
    }
    figures["capacities"] = {
        family: {name: language.capacity(template) for name, template in group.items()}
        for family, group in language.templates.items()
    }
    return figures


def _refuse(config: str, problems: Sequence[str]) -> None:
    if problems:
        more = f"\n  and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        listed = "".join(f"\n  {problem}" for problem in problems[:_SHOWN])
        raise Refused(f"config '{config}' is not fit to be built:{listed}{more}")
