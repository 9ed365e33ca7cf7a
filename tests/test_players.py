"""Processes that play, apart from what they play."""

from collections.abc import Callable
from typing import Any

import pytest

from forget_datasets.errors import UserError
from forget_eval.parallel.stage import stage


class Unreadable:
    """A seat that another process cannot read."""

    name = "unreadable"

    def take(self, embed: object) -> Any:
        raise NotImplementedError

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return int, ("no number",)


def test_a_seat_that_cannot_be_read_is_told() -> None:
    with (
        pytest.raises(UserError, match="cannot be read in another process: ValueError: invalid literal for int"),
        stage(Unreadable(), None, 2),
    ):
        pass
