"""Croissant metadata of a dataset folder: its files with their hashes, and a record set for every split.

The format is Croissant 1.0 (https://docs.mlcommons.org/croissant/docs/croissant-spec.html). Paths are relative, so the
file describes the data beside it, wherever the folder lies.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from hashlib import file_digest
from pathlib import Path
from typing import Any

import pyarrow as pa

from forget_datasets.card import prose_folder
from forget_datasets.schema import SCHEMAS

CROISSANT = "croissant.json"

_PARQUET = "application/x-parquet"
_TYPES = {pa.string(): "sc:Text", pa.int32(): "sc:Integer", pa.float64(): "sc:Float"}


def render(folder: Path, manifest: Mapping[str, Any], url: str | None = None, version: str | None = None) -> str:
    """The metadata as JSON.

    Args:
        folder: of the dataset, whose data files are read for their hashes.
        manifest: of the build.
        url: of the page where the dataset lives, if it does somewhere.
        version: of the release.
    """
    languages = {tag for config in manifest["configs"].values() for tag in config.get("languages", ["en"])}
    static = tomllib.loads((prose_folder() / f"{manifest['dataset']}.toml").read_text(encoding="utf-8"))
    metadata = {
        "@context": json.loads((prose_folder() / "croissant_context.json").read_text(encoding="utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": static["pretty_name"],
        "description": static["croissant"]["description"],
        "license": static["croissant"]["license"],
        "citeAs": static["croissant"]["citation"],
        "keywords": static["tags"],
        "inLanguage": sorted(languages),
        **({"url": url} if url else {}),
        **({"version": version} if version else {}),
        "distribution": list(_distribution(folder, manifest)),
        "recordSet": list(_record_sets(manifest)),
    }
    return json.dumps(metadata, ensure_ascii=False, indent=2) + "\n"


def _splits(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for config, figures in manifest["configs"].items():
        for split, part in figures["splits"].items():
            yield config, split, part


def _distribution(folder: Path, manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every file; and the files of a split together where it has several, since a record set has one source."""
    for config, split, part in _splits(manifest):
        for file in part["files"]:
            with (folder / file).open("rb") as stream:
                digest = file_digest(stream, "sha256").hexdigest()
            yield {
                "@type": "cr:FileObject",
                "@id": file,
                "name": file,
                "contentUrl": file,
                "contentSize": f"{(folder / file).stat().st_size} B",
                "encodingFormat": _PARQUET,
                "sha256": digest,
            }
        if len(part["files"]) > 1:
            place = part["files"][0].rpartition("/")[0]
            yield {
                "@type": "cr:FileSet",
                "@id": _source(config, split, part),
                "encodingFormat": _PARQUET,
                "includes": f"{place}/{split}-*.parquet",
            }


def _source(config: str, split: str, part: Mapping[str, Any]) -> str:
    return str(part["files"][0]) if len(part["files"]) == 1 else f"files/{config}/{split}"


def _record_sets(manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for config, split, part in _splits(manifest):
        name = f"{config}/{split}"
        key = SCHEMAS[manifest["dataset"]].names[0]
        kind = "fileObject" if len(part["files"]) == 1 else "fileSet"
        source = {kind: {"@id": _source(config, split, part)}}
        yield {
            "@type": "cr:RecordSet",
            "@id": name,
            "name": name,
            "description": f"{part['rows']} rows, content hash {part['content_hash']}",
            "key": {"@id": f"{name}/{key}"},
            "field": [_field(name, field, source) for field in SCHEMAS[manifest["dataset"]]],
        }


def _field(place: str, column: pa.Field, source: Mapping[str, Any]) -> dict[str, Any]:
    """A column; one of structs has a sub-field for each of theirs.

    A list of structs within structs has no counterpart that mlcroissant 1.1 can fill: of a JSON path it takes the first
    match alone, `repeated` and `isArray` alike; a sub-field with sub-fields of its own comes out beside its parent; and
    no data type takes a list of objects whole. So it is named and left to the Parquet.
    """
    name = f"{place}/{column.name}"
    drawn = {**source, "extract": {"column": column.name}}
    if not _holds_structs(column):
        return _leaf(name, column, drawn)
    parts = list(column.type.value_type)
    beyond = ", ".join(part.name for part in parts if _holds_structs(part))
    leaves = [
        _leaf(f"{name}/{part.name}", part, {**drawn, "transform": {"jsonPath": part.name}})
        for part in parts
        if not _holds_structs(part)
    ]
    described = {
        "description": f"Without {beyond}: of a list of structs in each of these, a JSON path of Croissant reaches the "
        "first alone. Read it from the Parquet."
    }
    return {
        "@type": "cr:Field", "@id": name, "name": name, **(described if beyond else {}), "repeated": True,
        "subField": leaves,
    }  # fmt: skip


def _holds_structs(column: pa.Field) -> bool:
    inner = getattr(column.type, "value_type", None)
    return inner is not None and pa.types.is_struct(inner)


def _leaf(name: str, column: pa.Field, source: Mapping[str, Any]) -> dict[str, Any]:
    """A field of plain values, or of lists of them."""
    inner = getattr(column.type, "value_type", None)
    repeated = {"repeated": True} if inner is not None else {}
    data_type = _TYPES[column.type if inner is None else inner]
    return {"@type": "cr:Field", "@id": name, "name": name, "dataType": data_type, **repeated, "source": dict(source)}
