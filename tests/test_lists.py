"""An adapter stands in every list that is kept by hand: those of the tests, of the Makefile and of the extras."""

import re
import tomllib
from pathlib import Path

from forget_eval.adapters.lookup import BUILT_IN
from forget_eval.isolation import requirements
from tests.test_systems import KINDS, RESIDUE, SERVERS, SYSTEMS

ELSEWHERE = {
    "null": "a control: test_adapters.py",
    "keep-all": "a control: test_adapters.py",
    "wipe-all": "a control: test_adapters.py",
    "oracle": "a control: test_adapters.py",
    "reference": "needs no package: test_adapters.py",
    "hipporag-dense": "hipporag without its graph: test_hipporag.py",
    "hipporag-llm": "needs a model behind an endpoint: test_hipporag.py",
    "zep": "a hosted service, against a double: test_zep.py",
}
"""Adapters that the conformance suite is not run on, and where they are tested."""
ENVIRONMENT_ALONE = {"letta", "hipporag"}
"""Systems without an extra: what they pin does not go together with this project, or not without pip's --no-deps."""


def listed(root: Path, variable: str) -> set[str]:
    """The names in a variable of the Makefile."""
    found = re.search(rf"^{variable} := (.*)$", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    return set(found[1].split())


def test_every_adapter_is_checked_by_the_suite_or_said_to_be_elsewhere(root: Path) -> None:
    assert sorted([*SYSTEMS, *SERVERS, *ELSEWHERE]) == sorted(BUILT_IN)
    for where in ELSEWHERE.values():
        assert (root / "tests" / where.split()[-1]).is_file()


def test_what_is_said_of_systems_is_said_of_each() -> None:
    assert set(KINDS) == {*SYSTEMS, *SERVERS}
    assert set(RESIDUE) <= set(KINDS)


def test_the_makefile_makes_the_environments_of_the_suite(root: Path) -> None:
    assert listed(root, "JUDGED") == set(SYSTEMS)
    assert listed(root, "STARTED") == set(SERVERS)


def test_every_system_has_its_requirements_and_an_extra(root: Path) -> None:
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for name in (*SYSTEMS, *SERVERS):
        assert requirements.packaged(name), name
        assert (name in extras) != (name in ENVIRONMENT_ALONE), name
