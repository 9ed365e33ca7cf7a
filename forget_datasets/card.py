"""The card of a dataset: its README.md, rendered from the manifest through the templates and prose in `cards/`."""

import tomllib
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from forget_datasets.errors import UserError
from forget_datasets.schema import SCHEMAS, type_name

BEGIN, END = "<!-- forget-datasets card: replaced by every release -->", "<!-- end of forget-datasets card -->"
"""What stands between these two lines is ours; people may write above and below."""

_STEPS = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")  # each ten times the one before


def render(
    manifest: Mapping[str, Any], source: str | None = None, version: str | None = None, gated: bool = False
) -> str:
    """The card as Markdown with YAML in front.

    Args:
        manifest: of the build.
        source: what the examples load, a folder or a repository of the Hub; by default the dataset's name.
        version: of the release, which the examples then name.
        gated: asks who wants the data, as a build with that parameter does.

    Raises:
        jinja2.UndefinedError: the template names what the manifest does not have.
    """
    dataset = manifest["dataset"]
    values = {
        "manifest": manifest,
        "fields": [_field(field) for field in SCHEMAS[dataset]],
        "templates": _templates(manifest["configs"]),
        "source": source or dataset,
        "version": version,
        "gated": _is_to_ask(manifest, gated),
    }
    return filled(f"{dataset}.md.j2", metadata(manifest, gated), values)


def filled(template: str, data: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """A card: YAML in front, and between our markers a template of `cards/` with values in it.

    Args:
        template: the name of its file.
        data: of the YAML.
        values: what the template names.

    Raises:
        jinja2.UndefinedError: it names something else.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(prose_folder()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= {
        "thousands": "{:,}".format,
        "magnitude": _magnitude,
        "interval": _interval,
        "rate": _rate,
        "landed": _landed,
    }
    body = environment.get_template(template).render(values)
    return f"---\n{_front_matter(data)}\n---\n\n{BEGIN}\n{body.strip()}\n{END}\n"


def merge(ours: str, existing: str) -> str:
    """A card of ours put into an existing one, of which all that is not ours stays.

    Keys of the YAML that ours lacks stay, and so do further tags. Text outside our markers stays where it is; a card
    without markers goes below ours. Merging once more changes nothing.

    Raises:
        UserError: the existing card has a broken YAML, or markers that are not one pair.
    """
    our_data, our_text = _parts(ours)
    their_data, their_text = _parts(existing)
    data = {**their_data, **our_data}
    further = their_data.get("tags")
    data["tags"] = list(dict.fromkeys([*our_data["tags"], *(further if isinstance(further, list) else [])]))
    begin, end = their_text.find(BEGIN), their_text.find(END)
    if (their_text.count(BEGIN), their_text.count(END)) == (0, 0):
        below = their_text.strip()
        text = our_text + (f"\n{below}\n" if below else "")
    elif (their_text.count(BEGIN), their_text.count(END)) == (1, 1) and begin < end:
        text = their_text[:begin] + our_text.strip() + their_text[end + len(END) :]
    else:
        raise UserError(f"the existing card should have the lines '{BEGIN}' and '{END}' once each, in this order")
    return f"---\n{_front_matter(data)}\n---\n{text}"


def _parts(text: str) -> tuple[dict[str, Any], str]:
    """The YAML of a card as data, nulls and all, and the text behind it."""
    import yaml
    from huggingface_hub.repocard import REGEX_YAML_BLOCK

    block = REGEX_YAML_BLOCK.search(text)
    try:
        data = yaml.safe_load(block[2]) if block else {}
    except yaml.YAMLError as error:
        raise UserError(f"the YAML of the existing card cannot be read: {error}. Mend it on the Hub first") from error
    if not isinstance(data, dict | None):
        raise UserError("the YAML of the existing card is no list of keys. Mend it on the Hub first")
    return data or {}, text[block.end() :] if block else text


def _is_to_ask(manifest: Mapping[str, Any], gated: bool) -> bool:
    return gated or bool(manifest["parameters"].get("gated"))


def metadata(manifest: Mapping[str, Any], gated: bool = False) -> dict[str, Any]:
    """The YAML in front of the card, as data: what the Hub and `load_dataset` read. `gated` as for `render`."""
    static = tomllib.loads((prose_folder() / f"{manifest['dataset']}.toml").read_text(encoding="utf-8"))
    configs: Mapping[str, Any] = manifest["configs"]
    tags = sorted({tag for config in configs.values() for tag in config.get("languages", ())})
    gate = static.pop("gated", {})
    del static["croissant"]
    return {
        "language": tags,
        **static,
        **(gate if _is_to_ask(manifest, gated) else {}),
        "size_categories": [size_category(sum(config["rows"] for config in configs.values()))],
        "configs": [_data_files(name, config, first=i == 0) for i, (name, config) in enumerate(configs.items())],
        "dataset_info": _dataset_info(manifest),
    }


def counts(text: str) -> dict[str, dict[str, int]]:
    """The number of examples that an existing card states, by config and split. Raises ValueError for a broken one."""
    try:
        infos = _yaml(text).get("dataset_info") or []
        return {
            info.get("config_name", "default"): {split["name"]: split["num_examples"] for split in info["splits"]}
            for info in ([infos] if isinstance(infos, dict) else infos)
        }
    except (AttributeError, KeyError, TypeError) as error:  # a foreign card may have any shape
        raise ValueError(f"{type(error).__name__}: {error}") from error


def is_gated(text: str) -> bool:
    """Whether an existing card asks who wants the data. Raises ValueError for a broken one."""
    return "extra_gated_fields" in _yaml(text)


def size_category(rows: int) -> str:
    """The Hub's name for a number of rows."""
    step = max(0, len(str(rows)) - 3)
    if step >= len(_STEPS):
        return f"n>{_STEPS[-1]}"
    return f"{_STEPS[step - 1]}<n<{_STEPS[step]}" if step else f"n<{_STEPS[0]}"


def prose_folder() -> Path:
    """Where templates and prose lie: inside an installed package, or at the root of a source tree."""
    packaged = Path(str(files("forget_datasets"))) / "cards"
    return packaged if packaged.is_dir() else packaged.parent.parent / "cards"


def _yaml(text: str) -> dict[str, Any]:
    from huggingface_hub import DatasetCard

    try:
        return dict(vars(DatasetCard(text, ignore_metadata_errors=True).data))
    except Exception as error:  # the YAML reader has errors of its own
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _front_matter(data: Mapping[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=1000)).rstrip("\n")


def _data_files(name: str, config: Mapping[str, Any], first: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"config_name": name}
    if first:
        entry["default"] = True
    entry["data_files"] = [
        {"split": split, "path": f"{figures['files'][0].rpartition('/')[0]}/{split}-*"}
        for split, figures in config["splits"].items()
    ]
    return entry


def _dataset_info(manifest: Mapping[str, Any]) -> Any:
    from datasets import DatasetInfo, Features
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCardData

    features = Features.from_arrow_schema(SCHEMAS[manifest["dataset"]])
    infos = DatasetInfosDict()
    for name, config in manifest["configs"].items():
        splits = {
            split: {"name": split, "num_bytes": figures["arrow_bytes"], "num_examples": figures["rows"]}
            for split, figures in config["splits"].items()
        }
        infos[name] = DatasetInfo(
            config_name=name,
            features=features,
            splits=splits,
            download_size=sum(figures["file_bytes"] for figures in config["splits"].values()),
            dataset_size=sum(figures["arrow_bytes"] for figures in config["splits"].values()),
        )
    data = DatasetCardData()
    infos.to_dataset_card_data(data)
    return data.get("dataset_info")


def _field(field: Any) -> dict[str, Any]:
    """A column by name and type; one of structs with their fields, any other without."""
    inner = getattr(field.type, "value_type", None)
    parts = inner if inner is not None and pa.types.is_struct(inner) else ()
    return {"name": field.name, "type": type_name(field.type), "fields": [_field(part) for part in parts]}


def _templates(configs: Mapping[str, Any]) -> dict[str, Counter[str]]:
    """Cases by family and template, over all configs."""
    counted: dict[str, Counter[str]] = {}
    for config in configs.values():
        for family, names in config.get("templates", {}).items():
            counted.setdefault(family, Counter()).update(names)
    return counted


def _magnitude(number: int) -> str:
    """A number as it is, or from 10**12 on the power of ten that it reaches."""
    return f"{number:,}" if number < 10**12 else f"over 10^{len(str(number)) - 1}"


def _interval(figures: Mapping[str, int]) -> str:
    low, high = figures["smallest"], figures["largest"]
    return str(low) if low == high else f"{low} to {high}"


def _rate(configs: Mapping[str, Any], control: str, rate: str, family: str) -> str:
    """The share of cases that a control passes, over all configs."""
    passed = sum(config["controls"][control][rate][family] for config in configs.values())
    whole = sum(config["rows"] if family == "overall" else config["families"][family] for config in configs.values())
    return f"{passed / whole:.1%}" if whole else "–"


def _landed(rates: Mapping[str, Mapping[str, Any]]) -> str:
    """A control's mean on a metric by level; one figure where the levels agree, a dash where no item has one."""
    shown = ["–" if rate["value"] is None else f"{rate['value']:.2f}" for rate in rates.values()]
    return shown[0] if len(set(shown)) == 1 else " / ".join(shown)
