"""The argument RUN of the commands: a folder, or a fsspec URL whose run is pulled."""

from pathlib import Path
from typing import Any

import click

from forget_datasets.remote import is_url


class RunFolder(click.ParamType[Path]):
    """A run folder; of a URL a local copy, which goes when the process ends."""

    name = "run"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The folder. Raises UserError if there is nothing behind a URL, EnvironmentFault if it cannot be reached."""
        if isinstance(value, Path) or not is_url(value):
            return Path(value)
        from forget_eval.remote import pulled

        return pulled(value)


RUN = RunFolder()
