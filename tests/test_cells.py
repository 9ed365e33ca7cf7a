"""What a reader is told beside the rates, against lines worked out by hand."""

from pathlib import Path
from typing import Any

import pytest

from forget_eval.report.cells import notes
from forget_eval.report.results import Result


def result(stores: tuple[int, ...], k: int = 10) -> Result:
    adapter: dict[str, Any] = {"class": "forget_eval.adapters.controls:Null", "told_the_case": True}
    manifest = {"k": k, "embedder": None, "adapter": adapter}
    summary = {"statuses": {"spec": {"unscored": 0}}}
    return Result(
        folder=Path("run"),
        label="null",
        manifest=manifest,
        summary=summary,
        first_error=None,
        stores=stores,
        lacking={},
    )


@pytest.mark.parametrize(
    ("stores", "held", "covered"),
    [
        ((9,), "9.0", "In every case k covers"),
        ((10,), "10.0", "In every case k covers"),
        ((11,), "11.0", None),
        ((10, 11), "10.5", "In 50% of cases k covers"),
        ((9, 10, 11, 12), "10.5", "In 50% of cases k covers"),
        ((10, 11, 11, 12), "11.0", "In 25% of cases k covers"),
    ],
)
def test_a_store_of_exactly_k_texts_is_covered(stores: tuple[int, ...], held: str, covered: str | None) -> None:
    (line,) = notes([result(stores)])
    assert f"{held} texts" in line
    assert ("covers" in line) is (covered is not None)
    assert covered is None or covered in line


def test_nothing_is_said_of_stores_that_are_not_known() -> None:
    assert notes([result(())]) == []
