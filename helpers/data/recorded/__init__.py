"""Long runs on real data, recorded once: what each reached, how, and on what machine.

    from helpers.data.recorded import recorded

    run = recorded("imdb")
    run["command"]                      # what anybody can type to repeat it

`helpers.training` writes these files.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).parent


def recorded(name: str) -> dict:
    """The run of that name, such as "imdb", "enwik8" or "pocket_gpt2": a file beside this one.

    Keys: command; data (name, sha256, and what it holds); machine; seconds and processor_seconds (of all cores
    together) of the training; settings; curve, a list of dicts, one for each look at the held-out part; result;
    samples. LookupError for a run that is not there.
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        there = ", ".join(sorted(file.stem for file in FOLDER.glob("*.json")))
        raise LookupError(f"No run called {name!r} is recorded. There is: {there or 'none'}.")
    return json.loads(path.read_text(encoding="utf-8"))
