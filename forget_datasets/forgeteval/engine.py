"""Expands a template into a case: an index decides the slot values, an addressed stream the rest."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from forget_datasets.errors import UserError
from forget_datasets.forgeteval.languages import Language, Phrasings, Template, forms
from forget_datasets.forgeteval.pools import distinct, skip
from forget_datasets.rows import GeneratedCase, Probe
from forget_datasets.seeding import Bijection, Stream

VERSION = 2
"""Of the cases: a change that alters the bytes of one raises it. The golden records name it."""
_ADDRESS = ("forgeteval", 1)
"""Begins every address. No version goes in here, so what a change does not touch keeps its bytes."""


def expand(language: Language, template: Template, index: int, seed: int, distractors: int) -> GeneratedCase:
    """The case of one address.

    Args:
        language, template: where its words come from.
        index: its place within the template, from 0; the id counts from 1.
        seed: of the whole dataset.
        distractors: how many unrelated facts are mixed in.

    Raises:
        UserError: the index is beyond the template's capacity, or the distractors beyond the language's pool.
    """
    address = (*_ADDRESS, seed, language.tag, template.family, template.name, index)
    stream = Stream(*address)
    values = _values(language, template, index, seed, stream)
    facts, mutations = _told(template, values, stream)
    require = [form.format_map(values) for form in template.require]
    forbid = [form.format_map(values) for form in template.forbid]
    survivors = [
        Probe("survivor", stream.choice(s.question).format_map(values), [s.require.format_map(values)], [])
        for s in template.survivors
    ]
    question = stream.choice(template.question).format_map(values)
    strings = [*require, *forbid, *(p.must_contain[0] for p in survivors)]
    # Distractors are drawn last: their number changes nothing else of the case.
    facts += _distractors(language, strings, distractors, stream)
    stream.shuffle(facts)
    return GeneratedCase(
        id=f"{template.family}__{template.name}__{index + 1:03d}",
        family=template.family,
        setup_facts=facts,
        mutations=mutations,
        final_query=question,
        must_contain=require,
        must_not_contain=forbid,
        template=template.name,
        lang=language.tag,
        probes=[*_leaks(template, values, forbid, Stream(*address, "leaks")), *survivors],
        n_distractors=distractors,
    )


def _values(language: Language, template: Template, index: int, seed: int, stream: Stream) -> dict[str, str]:
    capacity = language.capacity(template)
    if index >= capacity:
        raise UserError(
            f"template {template.family}.{template.name} of '{language.tag}' makes {capacity:,} distinct cases; "
            f"number {index + 1:,} was asked for. Ask for at most {capacity:,} cases a template."
        )
    rank = _order(capacity, seed, language.tag, template.family, template.name)(index)
    sizes = [(pool, language.pools[pool].size) for pool in template.slots.values()]
    values, used = {}, dict[str, list[int]]()
    for slot, (pool, place) in zip(template.slots, distinct(sizes, rank), strict=True):
        values[slot] = language.pools[pool].value(place)
        used.setdefault(pool, []).append(place)
    for slot, pool in template.extras.items():
        taken = used.setdefault(pool, [])
        taken.append(skip(stream.below(language.pools[pool].size - len(taken)), taken))
        values[slot] = language.pools[pool].value(taken[-1])
    return values


def _leaks(template: Template, values: Mapping[str, str], forbid: Sequence[str], stream: Stream) -> list[Probe]:
    """One leak probe per forbidden string, of a stream of their own: their phrasings change nothing else of a case."""
    return [
        Probe("leak", stream.choice(group).format_map(values), [], [string])
        for group, string in zip(template.leaks, forbid, strict=True)
    ]


@lru_cache(maxsize=1024)
def _order(capacity: int, *address: object) -> Bijection:
    return Bijection(capacity, *_ADDRESS, *address)


def _told(template: Template, values: Mapping[str, str], stream: Stream) -> tuple[list[str], list[tuple[str, ...]]]:
    voice = stream.below(len(template.facts[0])) if template.aligned else None

    def say(group: Phrasings, aligned: bool) -> str:
        chosen = group[voice] if aligned and voice is not None else stream.choice(group)
        return chosen.format_map(values)

    facts = [say(group, True) for group in template.facts] + [say(group, False) for group in template.bystander]
    mutations: list[tuple[str, ...]] = [
        (m.op, say(m.query, False), say(m.text, True)) if m.text else (m.op, say(m.query, False))
        for m in template.mutations
    ]
    return facts, mutations


def _distractors(language: Language, strings: Sequence[str], count: int, stream: Stream) -> list[str]:
    if count > len(language.distractors):
        raise UserError(
            f"'{language.tag}' has {len(language.distractors)} distractors; {count} were asked for. "
            "Ask for fewer, or add some to its language file."
        )
    needles = {form for s in strings for form in forms(s)}
    rest, chosen = list(range(len(language.distractors))), list[str]()
    while len(chosen) < count:
        if not rest:
            raise UserError(f"'{language.tag}': fewer than {count} distractors are free of {sorted(needles)}")
        place = stream.below(len(rest))
        rest[place], rest[-1] = rest[-1], rest[place]
        candidate = rest.pop()
        folded = language.folded_distractors[candidate]
        for needle in needles:
            if needle in folded:
                break
        else:
            chosen.append(language.distractors[candidate])
    return chosen
