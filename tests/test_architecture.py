"""The two rules of the house: the data never knows the judge, and the core runs on the standard library."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

CORE = [
    "forget_datasets.rows",
    "forget_datasets.verdicts",
    "forget_datasets.forgeteval",
    "forget_datasets.forgeteval.controls",
    "forget_datasets.membehave",
    "forget_datasets.membehave.controls",
    "forget_datasets.membehave.metrics",
    "forget_datasets.membehave.screening",
]


def test_forget_datasets_never_imports_forget_eval(root: Path) -> None:
    for path in sorted((root / "forget_datasets").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "forget_eval" for name in names), path


@pytest.mark.parametrize("module", [*CORE, "forget_eval.protocols"])
def test_the_core_imports_the_standard_library_only(module: str, root: Path) -> None:
    code = (
        f"import sys; sys.path[:0] = [{str(root)!r}, {str(root / 'eval')!r}]; import {module}; "
        "ours = {'forget_datasets', 'forget_eval'}; "
        "print(sorted({m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names) - ours - {'__main__'}))"
    )
    found = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_the_schema_imports_arrow_and_nothing_else(root: Path) -> None:
    allowed = {"pyarrow", "forget_datasets", "collections", "typing", "__future__"}
    tree = ast.parse((root / "forget_datasets" / "schema.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {a.name.split(".")[0] for a in node.names} <= allowed
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] in allowed
