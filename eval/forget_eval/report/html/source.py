"""Finds the dataset of a group of runs, whose rows the failure explorer shows."""

from collections.abc import Sequence

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval import runs
from forget_eval.data import Dataset, open_dataset
from forget_eval.report.groups import Group


class Sources:
    """Datasets that were named, each of which must be that of some group.

    Args:
        named: folders or repositories.
    """

    def __init__(self, named: Sequence[str] = ()) -> None:
        self._unused = dict.fromkeys(named)
        self._named = list(self._unused)

    def of(self, group: Group) -> tuple[Dataset | None, str]:
        """The dataset of a group's runs; without one, why there is none.

        A dataset that was named is taken if its rows are those of the runs, else the one that the manifest names.
        """
        config, wanted = group.dataset["config"], group.dataset["content_hash"]
        for source in self._named:
            try:
                found = open_dataset(source, group.task, config)
            except (UserError, EnvironmentFault):
                continue  # another task's, or another config's: `require_all_used` says so if nothing takes it
            if found.content_hash == wanted:
                self._unused.pop(source, None)
                return found, ""
        first = group.results[0]
        source, revision = runs.dataset_of(first.folder, first.manifest)
        try:
            found = open_dataset(source, group.task, config, revision)
        except (UserError, EnvironmentFault) as error:
            return None, str(error)
        if found.content_hash != wanted:
            return None, f"{source} holds other rows than were run."
        return found, ""

    def require_all_used(self) -> None:
        """Raises UserError naming a dataset that no run was made on."""
        if self._unused:
            raise UserError(f"--data {next(iter(self._unused))}: no run of this report was made on that dataset.")
