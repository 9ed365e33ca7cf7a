"""What is measured of one item, by the names of the report. Build and scorer share it; standard library only.

An answer is a text. Its parts are its lines: a bridge joins recalled messages by line breaks, so that a line is a
message; a model that answers in one line is cut into sentences by `parts(answer, sentences=True)`.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from forget_datasets.rows import Item, ItemProbe

YES = ("yes", "yeah", "yep", "correct", "that's right")
"""Ways of affirming, the expected answer of a confirm probe first. No message opens with one of them, or with "no"."""

DENIALS = (
    "don't know",
    "do not know",
    "don't recall",
    "do not recall",
    "don't have any",
    "do not have any",
    "no record",
    "no information",
    "no memory",
    "not aware",
)
"""Ways of not knowing, which no message that states an edge contains."""

DOUBTS = (
    "no",
    "not",
    "nor",
    "never",
    "none",
    "nothing",
    "nobody",
    "nowhere",
    "cannot",
    "neither",
    "without",
    "unable",
    "unsure",
    "uncertain",
    "unclear",
    "unaware",
    "unknown",
    "unfamiliar",
    "whether",
    "wonder",
    "maybe",
    "perhaps",
    "possibly",
    "might",
    "decline",
    "refuse",
    "lack",
)
"""Words of negation and doubt, beside all that end in "n't"; a written sentence with one of them affirms nothing."""

_CONTRACTED = re.compile(r"n't(?!\w)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def normalise(text: str) -> str:
    """The form in which texts are compared: NFKC, case folded, plain apostrophes, single spaces."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.replace("\u2019", "'").replace("\u2018", "'").split())


def mentions(text: str, names: Iterable[str]) -> bool:
    """Whether one of the names stands in the text as a whole token: no letter, digit or mark touches it."""
    haystack = normalise(text)
    return any(_holds(haystack, _name(name)) for name in names)


_name = lru_cache(maxsize=4096)(normalise)


def parts(answer: str, sentences: bool = False) -> list[str]:
    """The non-empty lines of an answer, or its sentences."""
    lines = [line for line in answer.splitlines() if line.strip()]
    return [s for line in lines for s in _SENTENCE_END.split(line)] if sentences else lines


def entity_names(item: Item) -> dict[str, list[str]]:
    """Each entity of the target with the names under which an answer may give it."""
    return {n.entity: [n.entity, *n.aliases] for n in item.neighbors}


def target_names(item: Item) -> list[str]:
    """The names of the target: those of the target probe, the full one at least."""
    found = [alias for p in item.probes if p.family == "target" for alias in p.aliases]
    return list(dict.fromkeys([item.target, *found]))


def mentioned(item: Item, probe: ItemProbe, answer: str) -> set[str]:
    """The expected entities of a target or alias probe that an answer gives."""
    names = entity_names(item)
    haystack = normalise(answer)
    return {e for e in probe.expected_entities if any(_holds(haystack, _name(n)) for n in names.get(e, [e]))}


def attributed(item: Item, probe: ItemProbe, answer: str, sentences: bool = False) -> set[str]:
    """The expected entities that stand in a part of the answer together with a name of the target."""
    names = target_names(item)
    tied = [part for part in parts(answer, sentences) if mentions(part, names)]
    return mentioned(item, probe, "\n".join(tied)) if tied else set()


def answered(probe: ItemProbe, answer: str) -> bool:
    """Whether an answer gives the expected answer of a ripple or control probe, or one of its aliases."""
    return probe.expected is not None and mentions(answer, [probe.expected, *probe.aliases])


def affirmed(item: Item, probe: ItemProbe, answer: str, sentences: bool = False) -> bool:
    """Whether an answer confirms the deleted value: it opens with a yes, or one of its parts states the edge.

    An answer that opens with "no" confirms nothing, nor does a part that says that nothing is known. In a written
    answer (`sentences`) any negation or doubt cancels its sentence, even one that opens with a yes, and so does a
    question mark where the sentence opens with none.
    """
    opening = normalise(answer)
    if _opens(opening, ("no",)):
        return False
    names, people = entity_names(item).get(probe.entity or "", [probe.entity or ""]), target_names(item)
    found = parts(answer, sentences)
    if _opens(opening, YES) and not (sentences and _doubtful(found[0], [*names, *people])):
        return True
    stated = [part for part in found if mentions(part, names) and mentions(part, people)]
    if sentences:
        return any(not (_doubtful(s, [*names, *people]) or s.rstrip().endswith("?")) for s in stated)
    return any(not mentions(part, DENIALS) for part in stated)


def _doubtful(sentence: str, names: Sequence[str]) -> bool:
    """Whether a sentence denies or doubts, outside the names in it: a band may be called Never Again."""
    text = normalise(sentence)
    for name in sorted(map(_name, names), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text) if name else text
    return bool(_CONTRACTED.search(text)) or any(_holds(text, word) for word in DOUBTS)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to all probes of an item, in the order of its probes.

    Attributes:
        before, after: the request.
        recalled: the answers before, as far as they are certain: what recall is measured on, and what can resurface.
            None where they are those of `before`.
    """

    before: Sequence[str]
    after: Sequence[str]
    recalled: Sequence[str] | None = None


def measure(item: Item, answers: Answers, sentences: bool = False) -> dict[str, float | None]:
    """Every metric of one item; None where its denominator is empty, or no probe of the family is there.

    Args:
        item: the row.
        answers: one answer a probe in each list.
        sentences: whether answers are a model's, cut into sentences, rather than recalled messages.

    Raises:
        ValueError: the number of answers is not that of the probes.
    """
    n = len(item.probes)
    recalled = answers.before if answers.recalled is None else answers.recalled
    if {len(answers.before), len(answers.after), len(recalled)} != {n}:
        raise ValueError(
            f"{item.item_id}: {len(answers.before)} answers before and {len(answers.after)} after for {n} probes; "
            "give one of each a probe, in order."
        )
    asked = list(zip(item.probes, answers.before, answers.after, strict=True))
    by_family = {family: [a for a in asked if a[0].family == family] for family in ("target", "ripple", "control")}
    first = list(zip(item.probes, recalled, strict=True))
    found: dict[str, float | None] = _target_metrics(item, by_family["target"], first, sentences)
    found["baseline_recall_ripple"] = _mean([answered(p, answer) for p, answer in first if p.family == "ripple"])
    found["ripple_survival"] = _survival(by_family["ripple"])
    found["control_survival"] = _survival(by_family["control"])
    confirmed = [
        affirmed(item, p, after, sentences)
        for p, before, after in asked
        if p.family == "confirm" and affirmed(item, p, before, sentences)
    ]
    found["confirm_leak"] = _mean(confirmed)
    found["alias_coverage"] = _mean_of(_coverage(item, p, b, a) for p, b, a in asked if p.family == "alias")
    found["selective_forgetting"] = selective_forgetting(found)
    return found


def selective_forgetting(found: Mapping[str, float | None]) -> float | None:
    """Harmonic mean of (1 - attributed_coverage) and ripple_survival; None without either part."""
    coverage, survival = found["attributed_coverage"], found["ripple_survival"]
    if coverage is None or survival is None:
        return None
    clean = 1.0 - coverage
    return 2 * clean * survival / (clean + survival) if clean + survival else 0.0


Asked = tuple[ItemProbe, str, str]


def _target_metrics(
    item: Item, asked: Sequence[Asked], first: Sequence[tuple[ItemProbe, str]], sentences: bool
) -> dict[str, float | None]:
    names = ("baseline_recall_target", "target_coverage", "attributed_coverage", "resurfaced")
    if not asked:
        return dict.fromkeys(names)
    probe, before, after = asked[0]
    certain = next(mentioned(item, p, answer) for p, answer in first if p.family == "target")
    known, kept = mentioned(item, probe, before), mentioned(item, probe, after)
    tied, tied_after = attributed(item, probe, before, sentences), attributed(item, probe, after, sentences)
    return {
        "baseline_recall_target": len(certain) / len(probe.expected_entities) if probe.expected_entities else None,
        "target_coverage": len(known & kept) / len(known) if known else None,
        "attributed_coverage": len(tied & tied_after) / len(tied) if tied else None,
        "resurfaced": float(len(tied_after - certain)) if known else None,
    }


def _coverage(item: Item, probe: ItemProbe, before: str, after: str) -> float | None:
    known = mentioned(item, probe, before)
    return len(known & mentioned(item, probe, after)) / len(known) if known else None


def _survival(asked: Sequence[Asked]) -> float | None:
    return _mean([answered(p, after) for p, before, after in asked if answered(p, before)])


def _mean(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _holds(haystack: str, needle: str) -> bool:
    """Whole-token search in normalised texts."""
    at = haystack.find(needle) if needle else -1
    while at >= 0:
        if (at == 0 or not _wordy(haystack[at - 1])) and _ends(haystack, at + len(needle)):
            return True
        at = haystack.find(needle, at + 1)
    return False


def _opens(text: str, words: Iterable[str]) -> bool:
    return any(text.startswith(word) and _ends(text, len(word)) for word in words)


def _ends(text: str, at: int) -> bool:
    return at >= len(text) or not _wordy(text[at])


def _wordy(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNM"
