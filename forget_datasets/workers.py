"""Several processes at one task: bounded in memory, and the results come in the order of what was asked."""

import gc
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread, current_thread, main_thread
from typing import Protocol, TypeVar

from forget_datasets.errors import EnvironmentFault

A = TypeVar("A")
B = TypeVar("B")
_AHEAD = 2  # results that each worker may be ahead of whoever takes them


class Spread(Protocol):
    """Applies a function of a module to arguments, wherever that is done; the results come in order."""

    def __call__(self, function: Callable[[A], B], arguments: Iterable[A]) -> Generator[B, None, None]: ...


def available() -> int:
    """The CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread_over(workers: int) -> Spread:
    """What applies a function in so many processes; one is this process itself.

    Whoever calls from a script of their own needs the usual `if __name__ == "__main__":` there. What the results raise:
    whatever the function raises, and EnvironmentFault if a process dies.
    """

    def spread(function: Callable[[A], B], arguments: Iterable[A]) -> Generator[B, None, None]:
        return _here(function, arguments) if workers == 1 else _in_processes(function, arguments, workers)

    return spread


def _here(function: Callable[[A], B], arguments: Iterable[A]) -> Generator[B, None, None]:
    yield from map(function, arguments)


def _in_processes(function: Callable[[A], B], arguments: Iterable[A], workers: int) -> Generator[B, None, None]:
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin)
    waiting: deque[Future[B]] = deque()
    try:
        for argument in arguments:
            with _interrupts_held_back():
                waiting.append(pool.submit(function, argument))
            if len(waiting) >= _AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise EnvironmentFault(
            "a worker process died, perhaps for want of memory. Try again with fewer --workers."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Starts no process halfway: Ctrl-C waits until the block has ended.

    Processes that start meanwhile never see one, which the terminal sends to all: their parent ends them.
    """
    if current_thread() is not main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    came: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # what processes that start inherit
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


def _begin() -> None:
    """Ends a worker whose parent was killed: it would wait for its next task for ever.

    Rows are many small objects that hold no cycles, so a worker looks for those less often.
    """
    gc.set_threshold(100_000)

    def wait() -> None:
        if parent := parent_process():
            parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()
