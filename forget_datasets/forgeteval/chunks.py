"""Chunks of a config: rows of an addressed range, made, audited and turned into Arrow data by whichever process."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from forget_datasets.forgeteval import languages
from forget_datasets.forgeteval.audit import Audit
from forget_datasets.forgeteval.generation import expand_range
from forget_datasets.rows import FAMILIES, canonical_lines
from forget_datasets.schema import BATCH_ROWS, FORGETEVAL, to_batch

ROWS = 1024
"""Rows of a chunk; whole batches, so that the data is cut in the same places however many processes make it."""


@dataclass(frozen=True, slots=True)
class Order:
    """Which rows of which config are to be made: the places `start` to `stop` - 1 of its 5 x `n_per_family` rows."""

    lang: str
    n_per_family: int
    distractors: int
    seed: int
    start: int
    stop: int


@dataclass(slots=True)
class Chunk:
    """Rows ready to be written.

    Attributes:
        batches: their Arrow data.
        lines: the rows as the content hash takes them.
        audit: what was found in them, to be merged with that of the rows before.
        problems: "<id>: <column>: <what>" of what must not be published.
    """

    batches: list[pa.RecordBatch]
    lines: bytes
    audit: Audit
    problems: list[str]

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return sum(batch.num_rows for batch in self.batches)

    def __reduce__(self) -> tuple[object, ...]:
        """Travels between processes as one Arrow stream instead of many buffers."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, FORGETEVAL) as stream:
            for batch in self.batches:
                stream.write_batch(batch)
        return _unpacked, (sink.getvalue().to_pybytes(), self.lines, self.audit, self.problems)


def orders(lang: str, n_per_family: int, distractors: int, seed: int) -> Iterator[Order]:
    """The chunks of a whole config, in order."""
    total = len(FAMILIES) * n_per_family
    for start in range(0, total, ROWS):
        yield Order(lang, n_per_family, distractors, seed, start, min(start + ROWS, total))


def make(order: Order) -> Chunk:
    """Makes the rows of a chunk, which depend on the order alone. Raises UserError as `make_case`."""
    audit, problems = Audit(_before(order)), list[str]()
    batches, lines = [], []
    for start in range(order.start, order.stop, BATCH_ROWS):  # few rows at a time, as what dies young costs little
        places = range(start, min(start + BATCH_ROWS, order.stop))
        cases = [*expand_range(order.n_per_family, order.seed, order.distractors, order.lang, places)]
        problems += [f"{case.id}: {column or 'row'}: {what}" for case in cases for column, what in audit.take(case)]
        rows = [case.to_row() for case in cases]
        batches.append(to_batch(rows, FORGETEVAL))
        lines.append(canonical_lines(rows))
    return Chunk(batches, b"".join(lines), audit, problems)


def _before(order: Order) -> dict[str, int]:
    """How many rows of each template of the first row's family stand before it; its templates take turns."""
    number, past = divmod(order.start, order.n_per_family)
    family = FAMILIES[number]
    templates = [*languages.load(order.lang).templates[family]]
    return {f"{family}__{name}": -(-(past - turn) // len(templates)) for turn, name in enumerate(templates)}


def _unpacked(stream: bytes, lines: bytes, audit: Audit, problems: list[str]) -> Chunk:
    with pa.ipc.open_stream(stream) as batches:
        return Chunk([*batches], lines, audit, problems)
