"""JSON that can stand in a page: whatever a text holds, it is data there and nothing else."""

import json
import re
from typing import Any

# What could end or open an element, a reference or a line of a script, and what changes the direction of a source file.
_ESCAPED = re.compile("[<>&\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff]")


def embedded(data: Any) -> str:
    """Data as JSON without `<`, `>`, `&`, separators of lines, controls and marks of direction: they are `\\u` escapes.

    A lone surrogate, which UTF-8 lacks, is an escape as well.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    text = _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
