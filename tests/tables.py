"""Tables that tests are parametrised with, where they are texts and no code: tables/NAME.toml."""

import tomllib
from pathlib import Path

FOLDER = Path(__file__).with_suffix("")


def table(name: str) -> dict:
    """What a file holds, by its sections."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
