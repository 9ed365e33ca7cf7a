"""A Ray cluster at one task: where it is, how it is reached, and functions that are applied all over it."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from importlib import import_module
from typing import Any, TypeVar

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.origin import requirement
from forget_datasets.workers import Spread, available

A = TypeVar("A")
B = TypeVar("B")
_AHEAD = 2  # results that each CPU may be ahead of whoever takes them
_STORE = 256 << 20  # bytes of a local Ray's object store; what is under way at a time is far less
_RETRIES = 3  # of a chunk whose worker or node is lost


def connect(address: str | None = None) -> Any:
    """Ray, joined. A process that has joined a cluster before stays with that one.

    Args:
        address: of a cluster, or "auto" for the one that this machine belongs to; without it a Ray of this process's
            own is started on this machine alone, and ends with it.

    Returns:
        The module `ray`.

    Raises:
        UserError: Ray is not installed.
        EnvironmentFault: the cluster cannot be reached, or Ray cannot be started.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # all of these are read at import
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of what it will do some day
    if address is None:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # else it listens to the network
    try:
        ray = import_module("ray")
    except ModuleNotFoundError as error:
        line = f"pip install {requirement('ray')}"
        raise UserError(f"--engine ray needs ray, which is not installed.\n    {line}") from error
    if ray.is_initialized():
        return ray
    settings: dict[str, Any] = {"address": address}
    if address is None:
        settings = {
            "address": "local",
            "include_dashboard": False,
            "num_cpus": available(),
            "object_store_memory": _STORE,
        }
    try:
        ray.init(logging_level="error", **settings)
    except Exception as error:  # among them ConnectionError, RuntimeError, ValueError
        what = f"join the Ray cluster at '{address}'" if address else "start Ray on this machine"
        raise EnvironmentFault(f"cannot {what}: {error}") from error
    return ray


def spread_over_cluster(address: str | None = None) -> Spread:
    """What applies a function to arguments in Ray tasks, one a CPU; see `connect`.

    A task whose worker or node is lost runs again wherever there is room, and so does one whose result was lost with
    its node. What the results raise: whatever the function raises, and EnvironmentFault if Ray gives up.
    """
    ray = connect(address)

    def spread(function: Callable[[A], B], arguments: Iterable[A]) -> Generator[B, None, None]:
        return _in_tasks(ray, function, arguments)

    return spread


def _in_tasks(ray: Any, function: Callable[[A], B], arguments: Iterable[A]) -> Generator[B, None, None]:
    task = ray.remote(num_cpus=1, max_retries=_RETRIES, scheduling_strategy="SPREAD")(function)
    waiting: deque[Any] = deque()
    try:
        for argument in arguments:
            waiting.append(task.remote(argument))
            if len(waiting) >= _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1))):
                yield _result(ray, waiting.popleft())
        while waiting:
            yield _result(ray, waiting.popleft())
    finally:
        for reference in waiting:
            ray.cancel(reference)


def _result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise EnvironmentFault(f"a Ray worker was lost {_RETRIES + 1} times at the same rows: {error}") from error
