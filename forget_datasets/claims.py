"""What the parameters in a manifest claim of the rows, held against the figures that the rows give.

Some cannot be told from rows: the seed, and how far noise was at work. Whatever is not stated claims nothing.
"""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from forget_datasets.errors import UserError
from forget_datasets.membehave.parameters import Parameters

HANDMADE = "handmade"
"""The config of ForgetEval that no parameter shapes."""


def of_forgeteval(stated: Mapping[str, Any], configs: Mapping[str, Any]) -> Iterator[str]:
    """Contradictions between the parameters and the figures of the generated configs, a line each."""
    made = {name: config for name, config in configs.items() if name != HANDMADE}
    if "langs" in stated:
        suffix = "-stress" if stated.get("stress") else ""
        tags = {f"{tag}{suffix}": tag for tag in stated["langs"]}
        if set(tags) != set(made):
            wanted, there = (", ".join(sorted(names)) or "none" for names in (tags, made))
            yield f"parameters.langs and parameters.stress make the configs {wanted}, but there are {there}"
        for name in (name for name in tags if name in made):
            if made[name]["languages"] != [tags[name]]:
                yield f"parameters.langs has '{tags[name]}', but config '{name}' is in {made[name]['languages']}"
    for name, config in made.items():
        families = config["families"].values()
        cases = {"smallest": min(families), "largest": max(families)}
        yield from _unlike(stated, "n_per_family", cases, f"cases a family in config '{name}'")
        yield from _unlike(stated, "distractors", config["n_distractors"], f"distractors a case in config '{name}'")


def of_membehave(stated: Mapping[str, Any], configs: Mapping[str, Any]) -> Iterator[str]:
    """Contradictions between the parameters and the figures of the configs, a line each."""
    try:
        Parameters(**{key: stated[key] for key in Parameters.__slots__ if key in stated})
    except UserError as error:
        yield f"parameters.{error}"
        return
    for name, config in configs.items():
        triplets = config["triplets"]
        yield from _unlike(stated, "triplets", {"smallest": triplets, "largest": triplets}, f"in config '{name}'")
        yield from _unlike(stated, "sessions_per_user", config["sessions"], f"sessions a user in config '{name}'")
        together = stated.get("triplets_per_user")
        if together and ceil(triplets / together) != config["users"]:
            yield (
                f"parameters.triplets_per_user is {together}, but config '{name}' has {triplets} triplets of "
                f"{config['users']} users"
            )
        if "same_message" in stated and not stated.get("noise"):
            yield from _unlike_share(stated["same_message"], name, config["levels"])


def _unlike(stated: Mapping[str, Any], parameter: str, found: Mapping[str, int], what: str) -> Iterator[str]:
    low, high = found["smallest"], found["largest"]
    if parameter in stated and not low == high == stated[parameter]:
        yield f"parameters.{parameter} is {stated[parameter]}, but there are {_range(low, high)} {what}"


def _unlike_share(share: float, name: str, levels: Mapping[str, Any]) -> Iterator[str]:
    """An item tells the share of its shared entities in one message, rounded up or down to a whole number."""
    for level, found in levels.items():
        items, expected = found["items"], share * (found["mean_shared"] or 0) * found["items"]
        if abs(found["same_message"] - expected) > items:
            yield (
                f"parameters.same_message is {share}, but of {(found['mean_shared'] or 0) * items:.0f} shared entities "
                f"of level '{level}' in config '{name}' {found['same_message']} are told in one message"
            )


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"
