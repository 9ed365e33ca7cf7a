"""What ends a run, said by the process that plays and raised by the run."""

from forget_datasets.errors import EnvironmentFault, UserError
from forget_eval import guest

CUT_OFF = 74
"""The status with which a player exits that can no longer speak to the run, though the run is there."""

_KINDS: dict[str, type[BaseException]] = {
    "environment": EnvironmentFault,
    "user": UserError,
    "interrupt": KeyboardInterrupt,
}


def told(error: BaseException) -> dict[str, str]:
    """An error as `raised` takes it: its kind and its message."""
    kind = next((kind for kind, known in _KINDS.items() if isinstance(error, known)), "")
    return {"kind": kind, "message": str(error) if kind else guest.said(error)}


def raised(fault: dict[str, str]) -> BaseException:
    """The error that another process has told."""
    return _KINDS.get(fault["kind"], RuntimeError)(fault["message"])


def ended(name: str, how: str, where: str) -> UserError:
    """A system has ended its process.

    Args:
        name: of the adapter.
        how: as `isolation.process.ending` says it.
        where: the row, or rows, that was played.
    """
    return UserError(
        f"adapter '{name}': its process {how} at {where}. What was run is kept, and the same command goes on from"
        " there. Should it end there again, --isolate makes that an error of the one."
    )
