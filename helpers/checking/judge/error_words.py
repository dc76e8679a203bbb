"""What the commonest errors of torch mean, in a sentence each. The error itself is shown beside it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

KINDS = ("RuntimeError", "IndexError", "ValueError", "TypeError", "AttributeError", "InductorError")
_MEANINGS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["meaning"]


def meaning(error: str) -> str:
    """What an error ("RuntimeError: ...") means; "" for one that is not known or says it itself."""
    kind, _, text = error.partition(": ")
    if kind not in KINDS:
        return ""
    return next((each["words"] for each in _MEANINGS if re.search(each["pattern"], text)), "")
