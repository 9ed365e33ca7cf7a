"""Memories that a cluster runs, for `tests/test_ray.py`. They see the environment that the cluster has."""

import os
from pathlib import Path
from threading import Event
from time import sleep

from parallel_systems import Store

FOLDER = Path(os.environ.get("RAY_SYSTEMS", "."))
"""Where they leave word, and find it."""


class Hangs(Store):
    """Plays two cases, then waits until a node is gone, if it is not on that node itself: there it hangs for ever.

    The node's id is in the file `doomed`. That the system hangs is said to the pipe `reached`, and that the node is
    gone by the file `gone`.
    """

    played = 0

    def reset(self) -> None:
        super().reset()
        self.played += 1
        if self.played != 3:
            return
        if _node() == (FOLDER / "doomed").read_text():
            (FOLDER / "reached").write_text("reached")
            Event().wait()
        while not (FOLDER / "gone").exists():
            sleep(0.01)


class Leaves(Store):
    """Ends its process at one case: the file `at` holds its query, and how often that still happens."""

    def forget(self, query: str) -> int:
        at, _, times = (FOLDER / "at").read_text().partition("\n")
        if query == at and int(times):
            (FOLDER / "at").write_text(f"{at}\n{int(times) - 1}")
            os._exit(3)
        return super().forget(query)


class LeavesAtOnce(Store):
    def __init__(self) -> None:
        os._exit(3)


class LeavesNowAndThen(Leaves):
    """Ends its process while it is made, or not, as the next sign of the file `making` says: x or a dot."""

    def __init__(self) -> None:
        sign, rest = (FOLDER / "making").read_text()[0], (FOLDER / "making").read_text()[1:]
        (FOLDER / "making").write_text(rest)
        if sign == "x":
            os._exit(3)


class OneANode(Store):
    """Says of itself on which node it is, and plays nothing before it has been made on two."""

    def __init__(self) -> None:
        (FOLDER / f"made-{_node()}").touch()

    def reset(self) -> None:
        super().reset()
        while len([*FOLDER.glob("made-*")]) < 2:
            sleep(0.01)

    @property
    def configuration(self) -> dict[str, str]:
        return {"node": _node()}


def _node() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())
