"""From rows to a dataset folder: Parquet shards, a manifest that says what is in them, and the card."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from forget_datasets import manifest
from forget_datasets.errors import UserError, unknown
from forget_datasets.forgeteval import handmade, languages, screening, stream_cases
from forget_datasets.forgeteval.audit import Audit
from forget_datasets.forgeteval.pools import Listed
from forget_datasets.rows import GeneratedCase
from forget_datasets.schema import SCHEMAS
from forget_datasets.shards import ShardWriter
from forget_datasets.staging import Outcome, staged

_SHOWN = 5


class Refused(UserError):
    """The rows are not fit to be published; the message names the first of them."""


def build_forgeteval(
    out: Path,
    langs: Sequence[str] = ("en",),
    n_per_family: int = 50,
    distractors: int = 4,
    seed: int = 42,
    stress: bool = False,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
    settled: Callable[[Outcome], None] | None = None,
) -> dict[str, Any]:
    """Builds ForgetEval into `out`: a config per language and the hand-made one, all with the split `test`.

    Args:
        out: the folder to make. One that holds a dataset of the same parameters is brought up to date.
        langs: tags of languages; one that comes twice counts once.
        n_per_family: cases per family and language.
        distractors: unrelated facts mixed into each case.
        seed: of the whole dataset.
        stress: names the configs `<lang>-stress`, so that they can lie beside the ordinary ones.
        force: also replaces a dataset of other parameters.
        progress: called with the name of the config after each case.
        settled: called once at the end with what became of `out`; the same bytes as before leave it untouched.

    Returns:
        The manifest.

    Raises:
        UserError: an unknown language, more cases or distractors than a language has, an `out` that is not ours.
        Refused: a control lands where it must not, or the proof of a case fails.
        EnvironmentFault: the disk refuses.
    """
    if n_per_family < 1 or distractors < 0:
        raise UserError(f"cannot build {n_per_family} cases a family with {distractors} distractors")
    tags = list(dict.fromkeys(langs))
    for tag in tags:
        if tag not in languages.available():
            raise unknown("language", tag, languages.available())
    parameters = {
        "langs": tags, "n_per_family": n_per_family, "distractors": distractors, "seed": seed, "stress": stress,
    }  # fmt: skip
    manifest.check_target(out, "forgeteval", parameters, force)
    with staged(out) as stage:
        configs = {}
        for tag in tags:
            name = f"{tag}-stress" if stress else tag
            _refuse(tag, screening.screen_language(languages.load(tag)))
            cases = stream_cases(n_per_family, seed, distractors, tag)
            configs[name] = _with_language(_config(stage.folder, name, cases, progress), languages.load(tag))
        configs["handmade"] = _config(stage.folder, "handmade", handmade.load(), progress)
        built = manifest.write(stage.folder, "forgeteval", parameters, configs)
    if settled and stage.outcome:
        settled(stage.outcome)
    return built


def _config(
    folder: Path, name: str, cases: Iterable[GeneratedCase], progress: Callable[[str], None] | None
) -> dict[str, Any]:
    audit = Audit()
    with ShardWriter(folder / "data" / name, "test", SCHEMAS["forgeteval"]) as writer:
        try:
            for case in cases:
                row = case.to_row()
                _refuse(name, [f"{case.id}: {column or 'row'}: {what}" for column, what in audit.add(row)])
                writer.add(row)
                if progress:
                    progress(name)
        except screening.ScreeningError as error:
            raise Refused(f"config '{name}' is not fit to be built: {error}") from error
        written = writer.close()
    return {
        "rows": written.rows,
        "content_hash": written.content_hash,
        "splits": {"test": manifest.split_figures(f"data/{name}", written)},
        **audit.summary(),
    }


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
