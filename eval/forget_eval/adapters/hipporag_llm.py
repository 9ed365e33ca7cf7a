"""HippoRAG 2 as it was published, with a language model that extracts facts and chooses among them.

HippoRAG hands the model's replies to Python's `eval`: whoever answers can run code here. An endpoint on another machine
is therefore refused unless it is named a second time.
"""

import os
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from forget_datasets.errors import UserError
from forget_eval.adapters import hipporag_package
from forget_eval.adapters.hipporag import COMMON, HipporagMemory
from forget_eval.protocols import Embedder

URL, MODEL, TRUSTED = "HIPPORAG_LLM_URL", "HIPPORAG_LLM_MODEL", "HIPPORAG_LLM_TRUSTED_HOST"
_KEY = "OPENAI_API_KEY"


class HipporagModelMemory(HipporagMemory):
    """HippoRAG's own extraction and its own choice of facts. The model is one of an OpenAI-compatible endpoint.

    A call that gets no reply is an error of the case; a reply that HippoRAG cannot read is a text without facts, as it
    has it. What the model has said is kept for one reset.

    Args:
        embed: the embedder.
        base_url: of the endpoint, as http://127.0.0.1:8080/v1; by default $HIPPORAG_LLM_URL.
        model: its name there; by default $HIPPORAG_LLM_MODEL.
        trusted_host: must be the host of a URL that is no loopback address; by default $HIPPORAG_LLM_TRUSTED_HOST.

    Raises:
        UserError: URL or model are missing, or the host is another machine and not named a second time.
    """

    name = "hipporag (language model)"
    environment = "hipporag"
    needs = f"tried for plumbing only: {URL} and {MODEL}"

    def __init__(
        self,
        embed: Embedder,
        base_url: str | None = None,
        model: str | None = None,
        trusted_host: str | None = None,
    ) -> None:
        self._url, self._model = base_url or os.environ.get(URL, ""), model or os.environ.get(MODEL, "")
        if not self._url or not self._model:
            raise UserError(f"adapter 'hipporag-llm' needs an endpoint and a model: set {URL} and {MODEL}.")
        self._trusted = _require_trust(self._url, trusted_host or os.environ.get(TRUSTED, ""))
        super().__init__(embed)

    @property
    def configuration(self) -> dict[str, Any]:  # type: ignore[override]
        """What the manifest says beside the rest; HippoRAG's own settings are left as they are."""
        return {**COMMON, "model": {"url": self._url, "name": self._model}, "linking_top_k": 5}

    def inscribe_many(self, texts: Sequence[str]) -> list[str]:
        """Indexes documents at once, with two or more requests to the model for each."""
        ids = super().inscribe_many(texts)
        self._raise_faults()
        return ids

    def _searched(self, query: str, k: int) -> Any:
        found = super()._searched(query, k)
        self._raise_faults()
        return found

    def _made(self, config: Any) -> Any:
        config.llm_name, config.llm_base_url = self._model, self._url
        self._faults: list[Exception] = []
        return self._of.made(config, self._embeddings, lambda config: _Watched(self._of.model(config), self._faults))

    def _raise_faults(self) -> None:
        """HippoRAG goes on without what it has not got, as if the text held no facts."""
        if self._faults:
            error = self._faults[0].__cause__ or self._faults[0]
            raise RuntimeError(f"hipporag: no reply of the model: {type(error).__name__}: {error}") from error

    def _drop(self) -> None:
        if self._hippo is not None:
            self._hippo.llm_model.close()
        super()._drop()

    def _home(self) -> Any:
        """OpenAI's client wants a key, and would hand requests to a proxy."""
        proxies = {} if self._trusted else {"NO_PROXY": "*"}
        return self._scratch.home(**hipporag_package.QUIET, **proxies, **{_KEY: os.environ.get(_KEY) or "unused"})


class _Watched:
    """HippoRAG's client of the model, and what went wrong with it."""

    def __init__(self, model: Any, faults: list[Exception]) -> None:
        self._model, self._faults = model, faults

    def infer(self, *messages: Any, **options: Any) -> Any:
        """As HippoRAG's. Whatever it raises is noted."""
        try:
            return self._model.infer(*messages, **options)
        except Exception as error:
            self._faults.append(error)
            raise

    def close(self) -> None:
        """Closes its connections."""
        self._model.openai_client.close()


def _require_trust(url: str, trusted: str) -> bool:
    """Whether the endpoint is on another machine. Raises UserError if it is, and not trusted by name."""
    host = urlsplit(url).hostname or ""
    if _is_loopback(host):
        return False
    if host and host == trusted:
        return True
    raise UserError(
        f"adapter 'hipporag-llm': {host or url} is another machine, and HippoRAG runs what its model replies as Python"
        f" code. If you trust it with that, set {TRUSTED}={host} as well."
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
