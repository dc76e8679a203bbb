"""Five short sentences with the same meaning in five languages, and five short lines of Python: what do tokens cost?"""

from __future__ import annotations

import tomllib
from pathlib import Path

SENTENCES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))  # by language
CODE = SENTENCES.pop("Python")
