"""Letta (PyPI `letta`, the last Python server): its archival store, without its agent."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from forget_eval.adapters.by_id import Id, StoreById
from forget_eval.adapters.letta_server import LettaServer, unmade
from forget_eval.adapters.scratch import Scratch
from forget_eval.embedding import width
from forget_eval.mcp_servers.embeddings import EmbeddingsEndpoint
from forget_eval.packages import require
from forget_eval.policies import Hit
from forget_eval.protocols import Chooser, Embedder, Kind, Scale

_MOST = 100  # passages that a search gives, or that are sent at once
_CHUNK = 300  # tokens, of which Letta makes no use for passages of an archive
_TIMEOUT = 120.0  # seconds for one request


class LettaMemory(StoreById):
    """One archive for each reset.

    A reset deletes the archive: deleting a Letta agent leaves its passages, which a search of the whole server still
    returns.

    The server and its database are this adapter's own, as Letta's Docker image has them. A purge deletes passages.
    Letta neither changes nor hides a passage: a supersede deletes one and creates one, and there is no release. Its
    searches give no scores, and 100 passages at most.

    Raises:
        UserError: a package is missing, the temporary folder's path is too long, or PostgreSQL cannot be run here.
        EnvironmentFault: server or database do not start.
    """

    name = "letta archival"
    distribution = "letta"
    extra = ""
    tried = "0.16.8"
    needs = ""
    operations: ClassVar = {"supersede": Kind.EMULATED, "purge": Kind.NATIVE}
    choosers: ClassVar = {"supersede": Chooser.POLICY, "purge": Chooser.POLICY}
    score_scale = Scale.NONE

    def __init__(self, embed: Embedder) -> None:
        if find_spec("letta_client") is None:
            raise unmade("letta_client")
        self._width = width(embed)
        self._names, self._folders = count(), count()
        self._server: LettaServer | None = None
        self._client: Any = None
        self._archive: str | None = None
        self._scratch = Scratch()
        self._endpoint = EmbeddingsEndpoint(embed)
        try:
            self.reset()
        except BaseException:
            self.close()
            raise

    def reset(self) -> None:
        """Deletes the archive and creates one; a server or database that has died is started anew, on an empty one."""
        if self._server is None or not self._server.is_alive:
            self._restart()
        self._delete_archive()
        self._texts: dict[Id, str] = {}
        made = self._client.archives.create(name=f"case-{next(self._names)}", embedding_config=self._embedding())
        self._archive = made.id

    def inscribe(self, text: str) -> str:
        """Creates a passage."""
        id: str = self._client.archives.passages.create(self._archive, text=text).id
        self._texts[id] = text
        return id

    def inscribe_many(self, texts: Sequence[str]) -> list[str]:
        """Creates passages, many in one request."""
        ids: list[str] = []
        for start in range(0, len(texts), _MOST):
            some = texts[start : start + _MOST]
            made = self._client.archives.passages.create_many(self._archive, passages=[{"text": text} for text in some])
            self._texts.update((passage.id, passage.text) for passage in made)
            ids += in_order(some, made)
        return ids

    def stored_in(self) -> str:
        """Where its files are, and its logs."""
        return self._scratch.folder

    def maintain(self) -> str:
        """PostgreSQL's own, for Letta has none: tables are written anew, and the log up to there is let go."""
        assert self._server is not None
        for statement in ("vacuum full", "checkpoint"):
            self._server.query(statement)
        return "PostgreSQL's VACUUM FULL and CHECKPOINT"

    def close(self) -> None:
        """Stops server and database, closes the endpoint of the embedder, and removes the folder."""
        with ExitStack() as ending:
            ending.callback(self._scratch.close)
            ending.callback(self._endpoint.close)
            self._stop()

    def _embedding(self) -> dict[str, Any]:
        model = {"embedding_model": "injected", "embedding_endpoint_type": "openai"}
        size = {"embedding_dim": self._width, "embedding_chunk_size": _CHUNK}
        return {**model, **size, "embedding_endpoint": self._endpoint.url}

    def _nearest(self, query: str, k: int) -> list[Hit]:
        found = self._client.passages.search(archive_id=self._archive, query=query, limit=min(k, _MOST))
        return [Hit(each.passage.id, each.passage.text, each.score) for each in found]

    def _stored(self) -> Iterable[tuple[Id, str]]:
        return self._texts.items()

    def _delete(self, ids: Sequence[Id]) -> None:
        for id in ids:
            self._client.archives.passages.delete(id, archive_id=self._archive)
            del self._texts[id]

    def _delete_archive(self) -> None:
        """One that was to be deleted once is not tried again: it may be gone although an error came back."""
        if self._archive is not None:
            archive, self._archive = self._archive, None
            self._client.archives.delete(archive)

    def _restart(self) -> None:
        self._stop()
        folder = Path(self._scratch.folder, str(next(self._folders)))
        folder.mkdir()
        self._server = LettaServer(folder, self._endpoint.url)
        self._client = _client(self._server.socket)

    def _stop(self) -> None:
        client, server = self._client, self._server
        self._client = self._server = self._archive = None
        with ExitStack() as ending:
            if server is not None:
                ending.callback(server.close)
            if client is not None:
                client.close()


def _client(socket: str) -> Any:
    """Speaks to the server over its socket, and tries nothing twice: what is stored is counted."""
    httpx = require("httpx", "letta", "adapter 'letta'")
    letta = require("letta_client", "letta", "adapter 'letta'")
    transport = httpx.Client(transport=httpx.HTTPTransport(uds=socket), trust_env=False, timeout=_TIMEOUT)
    return letta.Letta(base_url="http://letta", api_key="unused", http_client=transport, max_retries=0)


def in_order(texts: Sequence[str], made: Sequence[Any]) -> list[str]:
    """The ids of passages in the order of the texts; Letta may answer a batch in another. It drops null characters."""
    ids: dict[str, list[str]] = {}
    for passage in made:
        ids.setdefault(passage.text, []).append(passage.id)
    return [ids[text.replace("\0", "")].pop() for text in texts]
