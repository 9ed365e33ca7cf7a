"""Data that is not as it should be: every complaint names file, row and column. The files are real Parquet."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.rows import GeneratedCase, content_hash
from forget_datasets.schema import FORGETEVAL
from forget_eval.data import Dataset, open_dataset

NAME = "data/en/test-00000-of-00001.parquet"


def row(number: int) -> dict[str, Any]:
    return GeneratedCase(
        id=f"supersession__job__{number:03d}",
        family="supersession",
        template="job",
        setup_facts=["Priya works at Siemens.", "The lift squeaks."],
        mutations=[
            ("supersede", "where Priya works", "Priya now works at Figma."),
            ("release", "lift"),
            ("purge", "x"),
        ],
        final_query="Where does Priya work?",
        must_contain=["Figma"],
        must_not_contain=["Siemens"],
    ).to_row()


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a dataset folder of the given rows and returns it."""

    def write(
        rows: Sequence[dict[str, Any]], schema: pa.Schema = FORGETEVAL, stated: str | None = None, name: str = NAME
    ) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), file)
        split = {"files": [name]}
        config = {"content_hash": stated or content_hash(rows), "splits": {"test": split}}
        manifest = {"dataset": "forgeteval", "schema_version": 1, "configs": {"en": config}}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        return tmp_path

    return write


def opened(folder: Path, config: str | None = None) -> Dataset:
    return open_dataset(str(folder), "forgeteval", config)


def test_good_data_is_opened(write: Write) -> None:
    rows = [row(1), row(2)]
    dataset = opened(write(rows))
    assert (dataset.config, dataset.n, dataset.content_hash) == ("en", 2, content_hash(rows))
    assert list(dataset.cases()) == [GeneratedCase.from_row(r) for r in rows]


@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        ("mutations", [{"op": "erase", "query": "q", "new_text": None}], "unknown op 'erase'"),
        ("mutations", [{"op": "supersede", "query": "q", "new_text": None}], "a supersede without a new_text"),
        ("mutations", [{"op": "purge", "query": "q", "new_text": "t"}], "a purge with a new_text"),
        ("mutations", [{"op": "purge", "query": None, "new_text": None}], "mutations.query is null"),
        ("mutations", None, "mutations is null"),
        ("family", "superseding", "unknown family 'superseding'"),
        ("setup_facts", ["a", None], "setup_facts is null"),
        ("must_contain", None, "must_contain is null"),
        ("n_distractors", None, "n_distractors is null"),
        (
            "probes",
            [{"kind": "leek", "query": "q", "must_contain": [], "must_not_contain": []}],
            "unknown kind 'leek'",
        ),
    ],
)
def test_a_bad_value_is_named_with_file_row_and_column(
    write: Write, column: str, value: object, complaint: str
) -> None:
    folder = write([row(1), {**row(2), column: value}])
    with pytest.raises(UserError) as raised:
        opened(folder)
    message = str(raised.value)
    assert message.startswith(f"{folder / NAME}, row supersession__job__002: column '{column}': {complaint}")
    assert "Rebuild the dataset" in message


def test_an_id_that_comes_twice(write: Write) -> None:
    with pytest.raises(UserError, match=r"row supersession__job__001: column 'id': duplicate id, first in test-00000"):
        opened(write([row(1), row(2), row(1)]))


def test_a_column_that_is_missing(write: Write) -> None:
    rows = [{k: v for k, v in row(1).items() if k != "probes"}]
    folder = write(rows, pa.schema([field for field in FORGETEVAL if field.name != "probes"]))
    with pytest.raises(
        UserError, match=r"test-00000-of-00001\.parquet, row supersession__job__001 .*'probes': is missing"
    ):
        opened(folder)


def test_a_column_of_another_type(write: Write) -> None:
    fields = [pa.field("n_distractors", pa.string()) if f.name == "n_distractors" else f for f in FORGETEVAL]
    folder = write([{**row(1), "n_distractors": "4"}], pa.schema(fields))
    with pytest.raises(
        UserError, match=r"row supersession__job__001 .*column 'n_distractors': has type string, not int32"
    ):
        opened(folder)


@pytest.mark.parametrize("kept", [0, 3, 200, -1])
def test_a_file_that_was_cut_short(write: Write, kept: int) -> None:
    folder = write([row(1)])
    content = (folder / NAME).read_bytes()
    (folder / NAME).write_bytes(content[:kept])
    with pytest.raises(UserError, match=r"test-00000-of-00001\.parquet: not a whole Parquet file"):
        opened(folder)


def test_damage_within_a_file(write: Write) -> None:
    folder = write([row(i) for i in range(1, 200)])
    content = bytearray((folder / NAME).read_bytes())
    content[4:400] = bytes(396)
    (folder / NAME).write_bytes(content)
    with pytest.raises(UserError, match=r"test-00000-of-00001\.parquet"):
        opened(folder)


def test_rows_that_are_not_those_of_the_build(write: Write) -> None:
    with pytest.raises(UserError, match=r"not those that were built .* in manifest\.json 000000000000"):
        opened(write([row(1)], stated="0" * 64))


def test_a_config_that_is_not_there(write: Write) -> None:
    with pytest.raises(UserError, match=r"no config named 'em'\. Did you mean 'en'\?"):
        opened(write([row(1)]), "em")


def test_several_configs_ask_for_one(write: Write) -> None:
    write([row(1)], name="data/ja/test-00000-of-00001.parquet")
    with pytest.raises(UserError, match=r"--config \(en, ja\)"):
        opened(write([row(1)]))


def test_a_folder_that_is_none_of_ours(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"manifest\.json"):
        opened(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"dataset": "squad"}', '{"dataset": "forgeteval"}'])
def test_a_manifest_that_is_none(write: Write, content: str) -> None:
    folder = write([row(1)])
    (folder / "manifest.json").write_text(content)
    with pytest.raises(UserError, match=r"manifest\.json"):
        opened(folder)


def changed(folder: Path, **changes: Any) -> Path:
    """The dataset with fields of its manifest set."""
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **changes}))
    return folder


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset": {}},
        {"dataset": ["forgeteval"]},
        {"schema_version": "1"},
        {"schema_version": True},
        {"parameters": [42]},
        {"parameters": "seed 42"},
        {"configs": []},
        {"configs": {"en": 5}},
        {"configs": {"en": {"content_hash": 5, "splits": {}}}},
    ],
)
def test_a_manifest_with_a_field_of_another_type(write: Write, changes: dict[str, Any]) -> None:
    field = next(iter(changes))
    with pytest.raises(UserError, match=rf"manifest\.json: field '{field}"):
        opened(changed(write([row(1)]), **changes))


def test_a_manifest_nested_beyond_reading(write: Write) -> None:
    folder = write([row(1)])
    (folder / "manifest.json").write_text("[" * 200_000)
    with pytest.raises(UserError, match=r"manifest\.json: not JSON"):
        opened(folder)


def test_a_manifest_that_is_a_folder(write: Write) -> None:
    folder = write([row(1)])
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").mkdir()
    with pytest.raises(UserError, match=r"manifest\.json: Is a directory"):
        opened(folder)


@pytest.mark.parametrize("configs", [{}, {"en": {"splits": {}}}, {"ja": {"content_hash": "0" * 64, "splits": {}}}])
def test_a_config_that_nobody_vouches_for(write: Write, configs: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"no content hash of the config 'en'.* Build or download the dataset again"):
        opened(changed(write([row(1)]), configs=configs))


def test_the_language_is_that_of_the_rows(write: Write) -> None:
    rows = [{**row(1), "lang": "zh"}]
    assert opened(write(rows)).lang == "zh"
    assert opened(write([])).lang == "en"


def test_a_run_that_is_named_as_a_dataset(write: Write) -> None:
    folder = write([row(1)])
    (folder / "transcripts.jsonl").touch()
    with pytest.raises(UserError, match="is a run and not a dataset"):
        opened(folder)


@pytest.mark.parametrize("source", ["~nobody-of-this-name/data", "x" * 300, "x/" * 3000, "\udcff"])
def test_a_path_that_leads_nowhere(source: str) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        open_dataset(source, "forgeteval")


def test_a_repository_that_no_hub_can_have() -> None:
    with pytest.raises(UserError, match="is no folder here: the Hub takes no such name"):
        open_dataset("a/b..c", "forgeteval")


def test_a_dataset_of_the_other_task(write: Write) -> None:
    folder = write([row(1)])
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "dataset": "membehave"}))
    with pytest.raises(UserError, match="this is the dataset 'membehave', not 'forgeteval'"):
        opened(folder)


def test_a_dataset_of_a_newer_version(write: Write) -> None:
    folder = write([row(1)])
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "schema_version": 99}))
    with pytest.raises(UserError, match="schema 99"):
        opened(folder)


def test_a_file_instead_of_a_folder(write: Write) -> None:
    folder = write([row(1)])
    with pytest.raises(UserError, match="is a file; name the folder"):
        opened(folder / NAME)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        opened(tmp_path / "nowhere")


def test_a_repository_without_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(EnvironmentFault, match="'some-one/forgeteval' is no folder here, and the Hub cannot be asked"):
        open_dataset("some-one/forgeteval", "forgeteval", "en")
