"""What the commands do for MemBehave: their options, and the steps that these ask for. Imports nothing heavy."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from forget_datasets.errors import UserError, unknown

if TYPE_CHECKING:
    from forget_eval.data import Dataset
    from forget_eval.isolation.selection import Isolation
    from forget_eval.membehave.judges import ChatJudge
    from forget_eval.membehave.systems import Settings
    from forget_eval.parallel.stage import Stages

Command = TypeVar("Command", bound=Callable[..., Any])
Options = Mapping[str, Any]

JUDGES = ("deterministic", "chat")
_DEFAULT_POLICY = "named"
_SEED = 42
_TRIPLETS = 42

_SYSTEM = (
    click.option("--forget-policy", "policies", multiple=True, metavar="NAME",
                 help="membehave: how a memory serves the request, named or single. [default: named]"),
    click.option("--answerer", metavar="NAME",
                 help="membehave: who answers from what is recalled, extractive or chat. [default: extractive]"),
    click.option("--chat-url", metavar="URL",
                 help="membehave: base URL of an OpenAI-compatible endpoint; its key is $OPENAI_API_KEY."),
    click.option("--chat-model", metavar="NAME", help="membehave: the model at that endpoint."),
)  # fmt: skip
_JUDGE = (
    click.option("--judge", metavar="NAME", help="membehave: deterministic or chat. [default: deterministic]"),
    click.option("--judge-url", metavar="URL", help="membehave: endpoint of a chat judge. [default: --chat-url]"),
    click.option("--judge-model", metavar="NAME", help="membehave: model of a chat judge. [default: --chat-model]"),
)
_DATA = (
    click.option("--triplets", type=click.IntRange(min=1), metavar="N",
                 help="membehave: how many triplets of items. [default: 42]"),
    click.option("--config", metavar="NAME",
                 help="membehave: default, or extended with its further probes. [default: default]"),
)  # fmt: skip


def bench_options(command: Command) -> Command:
    """Adds the options of `bench`."""
    return _add(command, (*_DATA, *_SYSTEM, *_JUDGE))


def run_options(command: Command) -> Command:
    """Adds the options of `run`."""
    return _add(command, _SYSTEM)


def score_options(command: Command) -> Command:
    """Adds the options of `score`."""
    return _add(command, _JUDGE)


@dataclass(frozen=True)
class Played:
    """One run of a bench: the system's name, the policy, and the folder."""

    name: str
    policy: str
    folder: Path


def refuse(options: Options, task: str) -> None:
    """Raises UserError if an option is given that `task` does not know."""
    for name, value in options.items():
        if value not in (None, (), False):
            flag = "--forget-policy" if name == "policies" else f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} means nothing to {task}: leave it out.")


def bench(
    names: Sequence[str],
    embedder: str | None,
    seed: int | None,
    out: Path | None,
    options: Options,
    force: bool,
    isolation: "Isolation",
    repeats: int = 1,
    workers: int = 1,
    staged: "Stages | None" = None,
) -> list[Played]:
    """Builds the dataset, runs each system with each policy, and scores.

    Raises:
        UserError: an unknown name, an option without another that it needs, or a folder that holds something else.
        EnvironmentFault: the disk refuses, or a chat model is down; the same call goes on from there.
    """
    from forget_eval import runs
    from forget_eval.data import open_dataset
    from forget_eval.membehave.bench import build_data, embedder_for, require_all, require_triplets
    from forget_eval.scores import score

    policies = tuple(dict.fromkeys(options["policies"])) or (_DEFAULT_POLICY,)
    settings = {policy: settings_for(options, policy) for policy in policies}
    judge = judge_for(options)
    embed = embedder_for(names, embedder, isolation)
    require_all(names, embed, settings[policies[0]], isolation)
    root, played = _places(names, policies, seed, out, options)
    build_data(root / "data", {"triplets": options["triplets"] or _TRIPLETS, "seed": _SEED if seed is None else seed})
    dataset = open_dataset(str(root / "data"), "membehave", options["config"] or "default")
    require_triplets(dataset)
    for one in played:
        for number, folder in enumerate(runs.repeat_folders(one.folder, repeats), 1):
            made = replace(settings[one.policy], fresh=force, repeat=number)
            run(dataset, one.name, folder, embed, made, force, isolation, workers, staged)
            score(folder, judge=judge)
    return played


def run(
    dataset: "Dataset",
    name: str,
    folder: Path,
    embed: Any,
    settings: "Settings",
    force: bool,
    isolation: "Isolation",
    workers: int = 1,
    staged: "Stages | None" = None,
) -> None:
    """Runs one system, and says on stderr what was done."""
    from forget_eval.membehave.bench import run_system
    from forget_eval.parallel.stage import stage

    played = run_system(dataset, name, folder, embed, settings, force, isolation, workers, staged or stage)
    what = f"{played} items run" if played else "finished before, nothing to do"
    policy = "" if settings.forget_policy == _DEFAULT_POLICY else f", forget policy {settings.forget_policy}"
    click.echo(f"{name}{policy}: {what}, {dataset.n} in {folder}", err=True)


def run_one(
    open_data: Callable[[], "Dataset"],
    name: str,
    folder: Path,
    embedder: str | None,
    options: Options,
    force: bool,
    isolation: "Isolation",
    repeats: int = 1,
    workers: int = 1,
    staged: "Stages | None" = None,
) -> None:
    """The command `run`: names are looked up before the data is read."""
    from forget_eval import runs
    from forget_eval.membehave.bench import embedder_for, require_triplets

    settings = settings_for(options)
    embed = embedder_for([name], embedder, isolation)
    dataset = open_data()
    require_triplets(dataset)
    for number, place in enumerate(runs.repeat_folders(folder, repeats), 1):
        made = replace(settings, fresh=force, repeat=number)
        run(dataset, name, place, embed, made, force, isolation, workers, staged)


def of_membehave(folders: Sequence[Path]) -> list[Path]:
    """Those of some run folders that hold a run of MemBehave. Raises UserError for a folder that is no run."""
    from forget_eval import runs

    return [folder for folder in folders if runs.read(folder).get("task") == "membehave"]


def show(folders: Sequence[Path], markdown: bool) -> None:
    """Prints the tables of scored runs."""
    from forget_eval.report.membehave import load
    from forget_eval.report.membehave_text import print_report, render_markdown

    if markdown:
        click.echo(render_markdown(load(folders)))
    else:
        print_report(load(folders))


def settings_for(options: Options, policy: str | None = None) -> "Settings":
    """How memories become assistants. Raises UserError for an unknown policy or answerer, or half a model."""
    from forget_eval.membehave.systems import Settings

    policies = options["policies"] or (_DEFAULT_POLICY,)
    if policy is None and len(policies) > 1:
        raise UserError("a run has one --forget-policy; `bench` takes several.")
    model = _model(options["chat_url"], options["chat_model"], "--chat-url", "--chat-model")
    settings = Settings(policy or policies[0], options["answerer"] or "extractive", model)
    settings.check()
    return settings


def judge_for(options: Options) -> "ChatJudge | None":
    """The chat judge that the options ask for; None for the deterministic one.

    Raises:
        UserError: an unknown judge, or a chat judge without endpoint or model.
    """
    name = options["judge"] or "deterministic"
    if name not in JUDGES:
        raise unknown("judge", name, JUDGES)
    if name == "deterministic":
        return None
    from forget_eval.membehave.judges import ChatJudge

    url, model = options["judge_url"] or options.get("chat_url"), options["judge_model"] or options.get("chat_model")
    found = _model(url, model, "--judge-url", "--judge-model")
    if found is None:
        raise UserError("--judge chat needs --judge-url and --judge-model: the endpoint and the model that judges.")
    return ChatJudge(found.connect())


def _model(url: str | None, name: str | None, *flags: str) -> Any:
    from forget_eval.membehave.systems import Model

    if bool(url) != bool(name):
        raise UserError(f"{flags[0]} and {flags[1]} belong together: give both, or neither.")
    return Model(url, name) if url and name else None


def _places(
    names: Sequence[str], policies: Sequence[str], seed: int | None, out: Path | None, options: Options
) -> tuple[Path, list[Played]]:
    """The folder that holds the dataset, and each run's, as of ForgetEval; a control, without policy, is run once."""
    from forget_eval import runs
    from forget_eval.membehave.systems import is_control

    pairs = [(name, policy) for name in names for policy in (policies[:1] if is_control(name) else policies)]
    if out is not None and len(pairs) == 1 and not runs.is_shared(out):
        return out, [Played(*pairs[0], out)]
    seeded = "" if seed in (None, _SEED) else f"-seed{seed}"
    extended = "" if options["config"] in (None, "default") else f"-{options['config']}"
    root = out or Path("runs", f"membehave-{options['triplets'] or _TRIPLETS}{seeded}{extended}")
    answerer = "" if options["answerer"] in (None, "extractive") else f"-{options['answerer']}"

    def folder(name: str, policy: str) -> Path:
        made = "" if is_control(name) else f"{answerer}{'' if policy == _DEFAULT_POLICY else f'-{policy}'}"
        return root / re.sub(r"[^\w.-]+", ".", f"{name}{made}")

    return root, [Played(name, policy, folder(name, policy)) for name, policy in pairs]


def _add(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
