"""How each dataset is gone over: whoever builds or validates takes the rows through the same audits."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from forget_datasets import claims
from forget_datasets.forgeteval.audit import Audit as ForgetEvalAudit
from forget_datasets.membehave.audit import Audits as MemBehaveAudits


class Audit(Protocol):
    """Goes over the rows of one config in order; each dataset has its own."""

    def add(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Takes in the next row and says what is wrong with it: column (or "") and problem."""
        ...

    def summary(self) -> dict[str, Any]:
        """What the manifest says of the config."""
        ...

    def close(self) -> list[tuple[str, str, str]]:
        """After the last row: what is wrong with rows already taken in, as key, column (or "") and problem."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """How the rows of one dataset are told apart and gone over.

    key     the column of the rows' ids
    audits  makes, from the parameters in the manifest, what makes the audit of a config by its name
    claims  where parameters and figures of the configs contradict each other
    split   the column that names the split, if one does
    """

    key: str
    audits: Callable[[Mapping[str, Any]], Callable[[str], Audit]]
    claims: Callable[[Mapping[str, Any], Mapping[str, Any]], Iterator[str]]
    split: str | None = None


KINDS: Mapping[str, Kind] = {
    "forgeteval": Kind("id", lambda parameters: lambda config: ForgetEvalAudit(), claims.of_forgeteval),
    "membehave": Kind(
        "item_id",
        lambda parameters: MemBehaveAudits(float(parameters.get("noise", 0))),
        claims.of_membehave,
        split="level",
    ),
}
