"""Memories that several processes run side by side, for `tests/test_workers.py`.

What is in the environment chooses a case by the query of its operation ($AT), and names a file ($OTHERS) or a socket
($TOLD), to which a system reports.
"""

import os
import signal
import socket
import subprocess
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any

from forget_eval.membehave.chat import EndpointError


class Silent:
    """Recalls what shares a word with the query; every operation drops what its last word is in."""

    name = "store"

    def reset(self) -> None:
        self.facts: dict[str, set[str]] = {}

    def inscribe(self, text: str) -> int:
        self.facts[text] = set(text.lower().split())
        return len(self.facts)

    def recall_texts(self, query: str, k: int = 5) -> list[str]:
        asked = set(query.lower().split())
        return [fact for fact, words in self.facts.items() if words & asked][:k]

    def supersede(self, old_query: str, new_text: str) -> None:
        self.forget(old_query)
        self.inscribe(new_text)

    def release(self, query: str) -> int:
        return self.forget(query)

    def purge(self, query: str) -> int:
        return self.forget(query)

    def forget(self, query: str) -> int:
        kept = {fact: words for fact, words in self.facts.items() if query.split()[-1] not in fact}
        gone, self.facts = len(self.facts) - len(kept), kept
        return gone

    def snapshot(self) -> Any:
        return dict(self.facts)

    def restore(self, state: Any) -> None:
        self.facts = dict(state)


class Store(Silent):
    parallel = True


class SaysNo(Store):
    parallel = False


class SaysNonsense(Store):
    parallel = "yes"  # type: ignore[assignment]


class Embedding(Store):
    """Embeds what a run foresees, and with every operation a text that nobody does."""

    def __init__(self, embed: Any) -> None:
        self.embed = embed

    def inscribe(self, text: str) -> int:
        self.embed([text])
        return super().inscribe(text)

    def forget(self, query: str) -> int:
        super().forget(query)
        return int(1_000_000 * float(self.embed([f"unforeseen {query}", query]).sum()))


class _AtOne(Store):
    """Does its worst at one case."""

    def forget(self, query: str) -> int:
        if query == os.environ["AT"]:
            self.worst()
        return super().forget(query)

    def worst(self) -> None:
        raise NotImplementedError


class Leaves(_AtOne):
    def worst(self) -> None:
        os._exit(3)


class IsKilled(_AtOne):
    def worst(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Interrupts(_AtOne):
    def worst(self) -> None:
        raise KeyboardInterrupt


class ForksAndComesBack(_AtOne):
    def worst(self) -> None:
        os.fork()


class ClosesItsFiles(_AtOne):
    def worst(self) -> None:
        os.closerange(3, 256)


class LeavesADaemonBehind(_AtOne):
    """A child that outlives it, and holds whatever files it had."""

    def worst(self) -> None:
        for descriptor in range(3, 50):
            with suppress(OSError):
                os.dup(descriptor)
        if os.fork():
            os._exit(3)
        threading.Event().wait(20)
        os._exit(0)


class WaitsForTheOthers(_AtOne):
    """Ends its one case when another process has played another."""

    def forget(self, query: str) -> int:
        done = super().forget(query)
        Path(os.environ["OTHERS"]).touch()
        return done

    def worst(self) -> None:
        while not Path(os.environ["OTHERS"]).exists():
            sleep(0.001)


class Told(_AtOne):
    """Reports over a socket, and hangs at one case; the socket closes when the process has ended."""

    def __init__(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.connect(os.environ["TOLD"])

    def worst(self) -> None:
        self.listener.send(b"at\n")
        threading.Event().wait()

    def close(self) -> None:
        self.listener.send(b"closed\n")


class HasAChild(Told):
    """What it has started holds its socket open too."""

    def __init__(self) -> None:
        super().__init__()
        nothing = subprocess.DEVNULL
        subprocess.Popen(["sleep", "300"], stdout=nothing, stderr=nothing, pass_fds=(self.listener.fileno(),))


class LeavesItsChild(HasAChild):
    def worst(self) -> None:
        os._exit(3)


class Impatient(Embedding):
    """Waits for a vector no longer than an alarm lets it, and asks for another one instead."""

    def forget(self, query: str) -> int:
        if query != os.environ["AT"]:
            return super().forget(query)
        signal.signal(signal.SIGALRM, self.ring)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with suppress(TimeoutError):
            self.embed(["late"])
        Path(os.environ["OTHERS"]).touch()
        return int(1_000_000 * float(self.embed(["the other"])[0, 0]))

    def ring(self, *_: object) -> None:
        raise TimeoutError


class CountsWhatAChildWouldInherit(Store):
    def forget(self, query: str) -> int:
        super().forget(query)
        found = 0
        for descriptor in range(3, 256):
            with suppress(OSError):
                found += os.get_inheritable(descriptor)
        return found


class LeavesAThread(Store):
    def __init__(self) -> None:
        threading.Thread(target=threading.Event().wait).start()


class Prints(Store):
    def forget(self, query: str) -> int:
        print("printed by the system")
        return super().forget(query)


class CannotBeClosed(Store):
    def close(self) -> None:
        raise OSError("stuck")


class CannotBeMade(Store):
    def __init__(self) -> None:
        raise LookupError("no such store")


class Warns(Store):
    def __init__(self) -> None:
        warnings.simplefilter("always")
        for kind in (UserWarning, DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.warn("an old store", kind, stacklevel=1)


class LosesItsModel:
    """An assistant whose model is down from the middle level of one item on."""

    name = "loses"
    parallel = True

    def ingest(self, sessions: Any) -> None:
        self.heard = len(sessions)

    def ask(self, question: str) -> str:
        return f"{self.heard} sessions"

    def forget(self, request: str) -> None:
        if request == os.environ["AT"]:
            raise EndpointError("the model is down")
