"""Plain data that anybody may have touched: what it must look like, and the first place where it does not.

A shape is
- a type: `str`, `bool`, `int` (no bool), `float` (a finite number, whole ones too), `dict` (any object);
- None: null, and a text: that text alone;
- a tuple: any one of several shapes;
- a list of one shape: a list, empty or not, of such;
- a dict: an object with such fields and perhaps others; a field whose name ends with "?" may be missing. `{str: shape}`
  is an object whose fields, whatever their names, are all of one shape.
"""

import errno
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forget_datasets.errors import EnvironmentFault, UserError

Shape = Any
"""As above."""

_WRONG_PATH = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)
_NAMES = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", dict: "an object"}


def misfit(value: Any, shape: Shape, place: str = "") -> str | None:
    """What is wrong with plain data, as "field 'final' is a text, not a list or null"; None if it has the shape."""
    if isinstance(shape, dict) and isinstance(value, dict):
        return next(_fields(value, shape, place), None)
    if isinstance(shape, list) and isinstance(value, list):
        found = (misfit(each, shape[0], f"{place}[{i}]") for i, each in enumerate(value))
        return next(filter(None, found), None)
    if isinstance(shape, tuple):
        return _none_of(value, shape, place)
    if _is(value, shape):
        return None
    return _clash(value, shape, place)


def read_json(path: Path, shape: Shape, remedy: str) -> dict[str, Any]:
    """The content of a JSON file that has a shape.

    Args:
        path: of the file.
        shape: of an object.
        remedy: what to do about a file that is not as it should be, a sentence or two.

    Raises:
        FileNotFoundError, NotADirectoryError: there is no such file.
        UserError: it is no JSON, or has another shape; the message names file and field.
        EnvironmentFault: the disk refuses.
    """
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise unreadable(path, error, remedy) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error}). {remedy}") from error
    if what := misfit(content, shape):
        raise UserError(f"{path}: {what}. {remedy}")
    return dict(content)


def unreadable(path: Path, error: OSError, remedy: str = "") -> UserError:
    """The error for a file that cannot be read: the user's fault if the path is wrong, else the machine's."""
    kind = UserError if error.errno in _WRONG_PATH else EnvironmentFault
    return kind(f"cannot read {path}: {error.strerror or error}. {remedy}".rstrip())


def _fields(value: dict[Any, Any], shape: dict[Any, Shape], place: str) -> Iterator[str]:
    """What is wrong with the fields of an object, one after the other."""
    inside = f"{place}." if place else ""
    if str in shape:
        named = ((name, name, shape[str]) for name in value)
    else:
        named = ((name, name.removesuffix("?"), inner) for name, inner in shape.items())
    for stated, name, inner in named:
        if name in value:
            what = misfit(value[name], inner, f"{inside}{name}")
            if what:
                yield what
        elif stated == name:
            yield f"{_field(inside + name)} is missing"


def _none_of(value: Any, shapes: tuple[Shape, ...], place: str) -> str | None:
    found = [misfit(value, shape, place) for shape in shapes]
    if None in found:
        return None
    for shape, what in zip(shapes, found, strict=True):
        if isinstance(value, dict | list) and isinstance(shape, type(value)):
            return what  # of the alternatives, the one that was meant
    return _clash(value, shapes, place)


def _clash(value: Any, shape: Shape, place: str) -> str:
    return f"{_field(place)} is {_noun(value)}, not {_expected(shape)}"


def _field(place: str) -> str:
    return f"field '{place}'" if place else "the whole"


def _is(value: Any, shape: Shape) -> bool:
    if shape is float:
        return type(value) is int or (isinstance(value, float) and math.isfinite(value))
    if isinstance(shape, type):
        return isinstance(value, shape) and (shape is bool or not isinstance(value, bool))
    return isinstance(value, str | None) and not isinstance(shape, dict | list) and value == shape


def _expected(shape: Shape) -> str:
    if isinstance(shape, tuple):
        *most, last = (_expected(each) for each in shape)
        return f"{', '.join(most)} or {last}" if most else last
    if isinstance(shape, type):
        return _NAMES[shape]
    return _noun(shape, literal=True)


def _noun(value: Any, literal: bool = False) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, str) and not literal and len(value) > 20:
        return "a text"
    return f"'{value}'" if isinstance(value, str) else json.dumps(value)
