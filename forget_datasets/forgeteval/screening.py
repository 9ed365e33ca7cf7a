"""What makes exact substring verdicts safe: a screen over a language's data, and a proof for every single case.

The proof reads the row alone, so whoever has the Parquet can repeat it.
"""

from collections.abc import Iterator, Sequence

from forget_datasets.forgeteval.languages import Language, Template, fold, forms, slots_of
from forget_datasets.forgeteval.pools import Listed, Patterned
from forget_datasets.rows import GeneratedCase
from forget_datasets.tokens import holds

MINIMUM_DISTRACTORS = 200
MINIMUM_LEAK_PHRASINGS = 4
_SHORTEST_LATIN = 3
_FILLINGS = 40  # how often the screen fills a leak query, each time with other values
_MARKS = (
    " .,:;!?…'\"()[]-。、，：；！？「」『』“”（）【】"  # what may stand around a sentence without making it another
)


class ScreeningError(Exception):
    """A generated case is ambiguous; the language file is to blame."""


def meets(needle: str, folded: str) -> bool:
    """Whether a string occurs in a folded text, under `.lower()` or `.casefold()`."""
    lower = needle.lower()
    return lower in folded or (not needle.isascii() and needle.casefold() in folded)


def require_proof(case: GeneratedCase) -> None:
    """Raises ScreeningError with all problems of a case, if it has any."""
    if problems := prove(case):
        raise ScreeningError(f"{case.lang} {case.id}: " + "; ".join(problems))


def prove(case: GeneratedCase) -> list[str]:
    """What is wrong with a case, each problem naming the column it is in; empty is proven."""
    setup = [fold(text) for text in case.setup_facts]
    written = [fold(m[2]) for m in case.mutations if len(m) > 2]
    return [*_prove_probes(case), *_prove_leaks(case, [*setup, *written]), *_prove_texts(case, setup, written)]


def _prove_probes(case: GeneratedCase) -> Iterator[str]:
    leaks = [p for p in case.probes if p.kind == "leak"]
    survivors = [p for p in case.probes if p.kind == "survivor"]
    if len(leaks) + len(survivors) != len(case.probes):
        yield "probes: a kind is neither 'leak' nor 'survivor'"
    if [p.must_not_contain for p in leaks] != [[s] for s in case.must_not_contain]:
        yield "probes: not exactly one leak probe per forbidden string"
    for probe in leaks:
        if probe.must_contain:
            yield f"probes: the leak probe '{probe.query}' requires something"
    for probe in survivors:
        if len(probe.must_contain) != 1 or probe.must_not_contain:
            yield f"probes: the survivor probe '{probe.query}' does not require exactly one string"
        elif meets(probe.must_contain[0], fold(probe.query)):
            yield f"probes: '{probe.must_contain[0]}' is in its own query"
    queries = [case.final_query, *(p.query for p in case.probes)]
    if len(set(queries)) != len(queries):
        yield "probes: two queries are the same"
    final = fold(case.final_query)
    for string in case.must_contain:
        if meets(string, final):
            yield f"must_contain: '{string}' is in the final query"


def _prove_leaks(case: GeneratedCase, stored: Sequence[str]) -> Iterator[str]:
    surroundings = _Surroundings(
        stored,
        asked=[fold(text) for text in (case.final_query, *(m[1] for m in case.mutations))],
        checked=[*case.must_contain, *case.must_not_contain, *(s for p in case.probes for s in p.must_contain)],
    )
    for probe in case.probes:
        if probe.kind == "leak" and len(probe.must_not_contain) == 1:
            for problem in surroundings.give_away(probe.query, probe.must_not_contain[0]):
                yield f"probes: the leak query '{probe.query}' {problem}"


class _Surroundings:
    """What the leak queries of a case must not resemble.

    Args:
        stored: facts and new texts, folded.
        asked: the other queries of the case, folded.
        checked: all strings that it requires or forbids.
    """

    def __init__(self, stored: Sequence[str], asked: Sequence[str], checked: Sequence[str]) -> None:
        self._facts = [text.strip(_MARKS) for text in stored]
        self._everything = "\n".join((*stored, *asked))
        self._checked = {form: s for s in checked for form in forms(s)}

    def give_away(self, query: str, string: str) -> Iterator[str]:
        """What is wrong with a query that asks for a forbidden string among other words.

        A query that stands in a stored text, or holds one, could be told from all others and answered with nothing.
        """
        if not holds(string, query):
            yield f"does not hold '{string}' as a whole token"
        folded, lower, casefold = fold(query), string.lower(), string.casefold()
        rest = folded.replace(lower, "␣") if lower == casefold else folded.replace(lower, "␣").replace(casefold, "␣")
        yield from [f"holds '{other}' as well" for form, other in self._checked.items() if form in rest]
        if meets(query.strip(_MARKS), self._everything):
            yield "stands in a text of its case"
        for fact in self._facts:
            if fact in folded:
                yield "holds a fact of its case"
                break


def _prove_texts(case: GeneratedCase, setup: Sequence[str], written: Sequence[str]) -> Iterator[str]:
    texts = [*setup, *written]
    survivors = [p.must_contain[0] for p in case.probes if p.kind == "survivor" and p.must_contain]
    forbidden = {s: _holders(s, texts) for s in case.must_not_contain}
    required = {s: _holders(s, texts) for s in dict.fromkeys((*case.must_contain, *survivors))}
    goes = set[int]().union(*forbidden.values())
    if len(set(setup)) != len(setup):
        yield "setup_facts: two facts are the same"
    if not forbidden or not case.mutations:
        yield "must_not_contain: nothing is forbidden, or nothing is mutated"
    yield from (f"must_not_contain: '{s}' is in no fact that goes" for s, held in forbidden.items() if not held)
    if written and len(texts) - 1 in goes:
        yield "mutations: the last new text holds a forbidden string"
    # What a new text repeats stood in the fact that it replaces; whoever shows that one fails anyway.
    retold = {s for s in survivors if s not in case.must_contain and any(i >= len(setup) for i in required[s] - goes)}
    for string, held in required.items():
        if not held:
            yield f"must_contain: '{string}' is in no fact"
        elif held & goes and string not in retold:
            yield f"must_contain: '{string}' is in a fact that goes"
    if not any(required[s] and max(required[s]) < len(setup) for s in survivors):
        yield "probes: no survivor probe requires a string that no mutation touches"
    yield from _prove_purges(case, texts, goes)
    idle = len(setup) - sum(i < len(setup) for i in goes.union(*required.values()))
    if idle != case.n_distractors:
        yield f"n_distractors: {case.n_distractors}, but {idle} facts hold none of the case's strings"


def _holders(string: str, texts: Sequence[str]) -> set[int]:
    """The positions of the folded texts that a string meets."""
    lower, casefold = string.lower(), string.casefold()
    found = {i for i, text in enumerate(texts) if lower in text}
    return found if casefold == lower else found | {i for i, text in enumerate(texts) if casefold in text}


def _prove_purges(case: GeneratedCase, texts: Sequence[str], goes: set[int]) -> Iterator[str]:
    """A perfect purge, of whole tokens, removes what must go and nothing else."""
    identifiers = [m[1] for m in case.mutations if m[0] == "purge"]
    for identifier in identifiers:
        held = _holders(identifier, texts)
        if not held or held - goes:
            yield f"mutations: the identifier '{identifier}' is in no fact, or in one that survives"
    if identifiers and len(identifiers) == len(case.mutations):
        left = [i for i in goes if not any(holds(identifier, case.setup_facts[i]) for identifier in identifiers)]
        yield from (f"mutations: no purge removes '{case.setup_facts[i]}'" for i in sorted(left))


def screen_language(language: Language) -> list[str]:
    """What in a language's pools, phrasings and distractors could make a verdict ambiguous; empty is screened.

    A checked value (one that a verdict may look for) may stand inside no other value, no phrasing and no distractor.
    """
    return [*_screen_sizes(language), *_screen_values(language), *_screen_leaks(language)]


def _screen_sizes(language: Language) -> Iterator[str]:
    if len(set(language.distractors)) < MINIMUM_DISTRACTORS:
        yield f"{len(set(language.distractors))} distinct distractors, fewer than {MINIMUM_DISTRACTORS}"
    for name, pool in language.pools.items():
        if isinstance(pool, Listed):
            folded = [value.casefold() for value in pool.values]
            yield from (
                f"pool {name}: '{v}' stands there twice" for v in sorted({v for v in folded if folded.count(v) > 1})
            )


def _screen_leaks(language: Language) -> Iterator[str]:
    for template in (t for family in language.templates.values() for t in family.values()):
        place = f"{template.family}.{template.name}"
        for form, group in zip(template.forbid, template.leaks, strict=True):
            if len(set(group)) < MINIMUM_LEAK_PHRASINGS:
                yield f"{place}: {len(set(group))} leak queries for '{form}', fewer than {MINIMUM_LEAK_PHRASINGS}"
        problems = (problem for i in range(_FILLINGS) for problem in _weak_when_filled(language, template, i))
        yield from (f"{place}: {problem}" for problem in dict.fromkeys(problems))


def _weak_when_filled(language: Language, template: Template, number: int) -> Iterator[str]:
    slots = [(slot, language.pools[pool]) for slot, pool in (*template.slots.items(), *template.extras.items())]
    values = {slot: pool.value((97 * number + i) % pool.size) for i, (slot, pool) in enumerate(slots)}
    groups = (*template.facts, *template.bystander, *(mutation.text for mutation in template.mutations))
    surroundings = _Surroundings(
        stored=[fold(phrase.format_map(values)) for group in groups for phrase in group],
        asked=[],
        checked=[form.format_map(values) for form in template.checked],
    )
    for form, group in zip(template.forbid, template.leaks, strict=True):
        for phrase in group:
            for problem in surroundings.give_away(phrase.format_map(values), form.format_map(values)):
                yield f"the leak query '{phrase}' {problem}"


def checked_pools(language: Language) -> set[str]:
    """The pools whose values a verdict may look for."""
    found = set()
    for template in (t for family in language.templates.values() for t in family.values()):
        slots = {**template.slots, **template.extras}
        found |= {slots[slot] for form in template.checked for slot in slots_of(form)}
    return found


def _screen_values(language: Language) -> Iterator[str]:
    checked = checked_pools(language)
    literals = _literals(language)
    listed = {name: pool.values for name, pool in language.pools.items() if isinstance(pool, Listed)}
    places = [(f"'{text}'", fold(text)) for text in (*literals, *language.distractors)]
    values = [(f"'{value}' of pool {name}", fold(value)) for name, group in listed.items() for value in group]
    everything = "\n".join(text for _, text in (*places, *values))
    for name in sorted(checked):
        pool = language.pools[name]
        if isinstance(pool, Patterned):
            yield from (
                f"pool {name} could spell a part of {w}" for w, t in (*places, *values) if pool.expression.search(t)
            )
            continue
        for value in listed[name]:
            if len(value) < _SHORTEST_LATIN and value.isascii():
                yield f"pool {name}: '{value}' is shorter than {_SHORTEST_LATIN} letters"
            if everything.count(value.lower()) == 1 == everything.count(value.casefold()):
                continue  # it stands nowhere but in its own place
            itself = f"'{value}' of pool {name}"
            yield from (f"{itself} is in {w}" for w, t in (*places, *values) if w != itself and meets(value, t))


def _literals(language: Language) -> list[str]:
    templates = (t for family in language.templates.values() for t in family.values())
    # A slot becomes a character that no value holds. What a value and its surroundings spell together is rare, and left
    # to the proof of each case.
    return [
        phrase.format_map(dict.fromkeys(slots_of(phrase), "␣"))
        for template in templates
        for phrase in (*template.phrasings(), *template.checked)
    ]
