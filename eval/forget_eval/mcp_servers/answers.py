"""What a tool answers, as ids, texts and scores.

One rule for all servers:

1. An answer that is flagged as an error is a fault, in the server's words.
2. The value of an answer is its structured content, else the JSON (objects and lists) in its text blocks, else its text
   blocks as they are; of several blocks a list, of none an empty one. An object whose only field is `result`, which is
   how SDKs wrap what is no object, stands for that field.
3. Errors that come as values are faults: an object (or one in a list) with `success` or `ok` false, `status` "error",
   or something in `error` or `errors`; and a text that begins with "Error".
4. The facts are the list at `items`; without that, the value if it is a list, else its one field that is. A value that
   is text is cut at `separator`, if there is one. Each fact is a text, or an object with its text at `text`, its id at
   `id` and its score at `score`; without those, the first field of a usual name is taken.

What cannot be read so is a fault. Paths are names and positions joined by dots: "memory.text", "results.0.id".
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from forget_eval.policies import Hit
from forget_eval.redaction import brief

_USUAL = {
    "items": ("results", "memories", "facts", "items", "hits", "matches", "data", "documents", "entries", "records"),
    "text": ("text", "memory", "content", "fact", "document", "value", "body", "summary"),
    "id": ("new_id", "id", "memory_id", "fact_id", "uuid", "key"),
    "score": ("score", "similarity", "relevance"),
}
_OTHERS_IDS = ("user_id", "agent_id", "session_id", "run_id", "request_id", "app_id", "org_id", "project_id", "old_id")
_LONGEST = 300  # characters of an answer in a message


class AnswerFault(Exception):
    """A server answered an error, or something that a mapping does not fit."""


def value(blocks: Iterable[Any], structured: Any = None, is_error: bool = False) -> Any:
    """The value of an answer, by the rule above.

    Args:
        blocks: its content.
        structured: its structured content, None if there is none.
        is_error: whether it is flagged.

    Raises:
        AnswerFault: it is an error, or holds no text.
    """
    every = list(blocks)
    texts = [block.text for block in every if getattr(block, "type", "") == "text"]
    if is_error:
        raise AnswerFault(" ".join(texts).strip() or _shown(structured))
    if structured is None and every and not texts:
        raise AnswerFault(f"an answer without text ({every[0].type})")
    found = _unwrapped(structured) if structured is not None else _of_texts(texts)
    if (said := _error_in(found)) is not None:
        raise AnswerFault(said)
    return found


def facts(answer: Any, paths: Mapping[str, Any]) -> list[Any]:
    """The facts in the value of a recall, each a text or an object, by the keys of [recall].

    Raises:
        AnswerFault: there is no list of facts.
    """
    if "items" in paths:
        answer = _at(answer, paths["items"], "items")
    elif isinstance(answer, dict):
        answer = answer[_usual_list(answer)]
    separator = paths.get("separator")
    if isinstance(answer, str) and (separator or "items" not in paths):
        return [part.strip() for part in answer.split(separator) if part.strip()] if separator else [answer]
    if not isinstance(answer, list):
        raise AnswerFault(f"recall: no list of facts, but {_shown(answer)}")
    return answer


def text(fact: Any, paths: Mapping[str, Any]) -> str:
    """The text of a fact. Raises AnswerFault if it has none."""
    if isinstance(fact, str) and "text" not in paths:
        return fact
    found = _field(fact, "text", paths)
    if not isinstance(found, str):
        raise AnswerFault(f"recall: a fact without a text: {_shown(fact)}")
    return found


def hit(fact: Any, paths: Mapping[str, Any], scored: bool) -> Hit:
    """A fact with its id, and its score if it is wanted (else 0). Raises AnswerFault if it lacks one."""
    id = _field(fact, "id", paths)
    if id is None:
        raise AnswerFault(f"recall: a fact without an id: {_shown(fact)}")
    score = _field(fact, "score", paths) if scored else 0.0
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise AnswerFault(f"recall: a fact without a score: {_shown(fact)}")
    return Hit(_id(id), text(fact, paths), float(score))


def new_id(answer: Any, path: str | None) -> int | str | None:
    """The id of a fact that was stored, None if none is told. Raises AnswerFault if there is none at the path."""
    if path is not None:
        return _id(_at(answer, path, "id"))
    while isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    if isinstance(answer, dict):
        lists = [inner for inner in answer.values() if isinstance(inner, list) and len(inner) == 1]
        found = _field(answer, "id", {})
        answer = found if found is not None or not lists else _field(lists[0][0], "id", {})
    return _id(answer) if isinstance(answer, int | str) else None


def count(answer: Any) -> int:
    """How many facts a server says that it has touched, 0 if it does not say."""
    if isinstance(answer, list):
        return len(answer)
    numbers = answer.values() if isinstance(answer, dict) else (answer,)
    return next((number for number in numbers if type(number) is int), 0)


def _of_texts(texts: list[str]) -> Any:
    found: list[Any] = []
    for each in texts:
        try:
            read = json.loads(each)
        except (ValueError, RecursionError):
            read = each
        found.append(read if isinstance(read, dict | list) else each)
    return _unwrapped(found[0]) if len(found) == 1 else found


def _unwrapped(found: Any) -> Any:
    return found["result"] if isinstance(found, dict) and found.keys() == {"result"} else found


def _error_in(found: Any) -> str | None:
    if isinstance(found, list):
        return next((said for each in found if isinstance(each, dict) and (said := _error_in(each)) is not None), None)
    if isinstance(found, str):
        return found if found.lower().startswith(("error:", "error ")) else None
    if not isinstance(found, dict):
        return None
    words = found.get("error") or found.get("errors")
    failed = found.get("success") is False or found.get("ok") is False or found.get("status") == "error"
    if not words and not failed:
        return None
    lists = (each for inner in found.values() if isinstance(inner, list) for each in inner)
    inside = next((said for each in lists if isinstance(each, dict) and (said := _error_in(each)) is not None), None)
    if isinstance(words, dict):
        words = words.get("message") or _shown(words)
    return words if isinstance(words, str) else inside or _shown(found)


def _usual_list(answer: dict[str, Any]) -> str:
    lists = [name for name, inner in answer.items() if isinstance(inner, list)]
    for name in _USUAL["items"]:
        if name in lists:
            return name
    if len(lists) == 1:
        return lists[0]
    raise AnswerFault(f"recall: no list of facts, but {_shown(answer)}; say where it is: [recall] items")


def _field(fact: Any, what: str, paths: Mapping[str, Any]) -> Any:
    if what in paths:
        return _at(fact, paths[what], what)
    if not isinstance(fact, dict):
        return None
    usual = [name for name in _USUAL[what] if name in fact]
    if what == "id":
        usual += [name for name in fact if name.endswith("_id") and name not in _OTHERS_IDS]
    return fact[usual[0]] if usual else None


def _at(found: Any, path: str, what: str) -> Any:
    whole = found
    for step in filter(None, path.split(".")):
        try:
            found = found[int(step)] if isinstance(found, list) else found[step]
        except (KeyError, IndexError, ValueError, TypeError):
            raise AnswerFault(f'nothing at {what} = "{path}" in {_shown(whole)}') from None
    return found


def _id(found: Any) -> int | str:
    if isinstance(found, bool) or not isinstance(found, int | str):
        raise AnswerFault(f"{_shown(found)} is no id")
    return found


def _shown(found: Any) -> str:
    words = json.dumps(found, ensure_ascii=False, default=str)
    shown = brief(words, _LONGEST + 1)  # one more, to see whether something is left out
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
