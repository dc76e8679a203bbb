"""What every data set of the lessons can do: come from the data folder, from the Hub, or be embedded."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import hub, store
from .hub import Unavailable

PLACES = ("folder", "kept", "hub", "embedded")


class Taken(NamedTuple):
    """Which data a lesson got."""

    place: str  # "folder", "kept" (by an earlier lesson, for this user), "hub" or "embedded"
    why: list  # why each place before it was passed over, half a sentence each
    line: str  # what was printed


class DataSet(ABC):
    """Something to learn from that is real where there is a network, and whole where there is none.

    needed: files of the data folder, a tuple where one of several will do.
    """

    needed: Sequence[str | tuple[str, ...]]

    @abstractmethod
    def real(self, folder: Path) -> Any:
        """Read it from this folder. Raises Unavailable."""

    @abstractmethod
    def fetch(self, folder: Path) -> None:
        """Fetch it from the Hub into this folder. Raises Unavailable."""

    @abstractmethod
    def embedded(self) -> Any:
        """The default that every machine has."""

    @abstractmethod
    def words(self, result: Any, place: str) -> str:
        """What was taken, for the line that is printed."""

    def take(self, places: Sequence[str] | None, say: Callable[[str], object]) -> tuple[Any, Taken]:
        """Try the places in turn. Returns (what was asked for, Taken), and says in one line which it is and why."""
        places, why = _places(places), []
        for place in places:
            if place == "embedded":
                result, where = self.embedded(), ""
                break
            try:
                if place == "folder":
                    result, where = self._from_folder(store.folder()), f", from {store.folder_name()}"
                elif place == "kept":
                    if _missing(self.needed, store.own_folder()):
                        continue  # the usual case, and no news
                    result, where = self._from_folder(store.own_folder()), ", from the Hub on an earlier day"
                else:
                    result, where = self._from_hub(), ", from the Hub (kept for next time)"
                break
            except Unavailable as problem:
                why.append(str(problem))
        else:
            raise Unavailable(f"Not to be had from {' or '.join(places)}: " + "; ".join(why))
        line = self.words(result, place) + where
        line += f", because {'; '.join(why)}." if why else "."
        say(line)
        return result, Taken(place, why, line)

    def _from_folder(self, folder: Path) -> Any:
        missing = _missing(self.needed, folder)
        if missing:
            raise Unavailable(f"{store.folder_name()} has no {missing}")
        return self.real(folder)

    def _from_hub(self) -> Any:
        """Fetched into the data folder or, where that may not be written, into a folder of the user's own."""
        hub.require_network()
        target = store.writable_folder()
        try:
            self.fetch(target)
            return self.real(target)
        except OSError as problem:
            raise Unavailable(hub.reason(problem, "a file")) from problem


def _places(places) -> list[str]:
    """Where to look: what the caller says, else $COURSE_PLACES (names with commas between), else everywhere."""
    if isinstance(places, str):
        places = [places]
    places = list(places or [p.strip() for p in os.environ.get("COURSE_PLACES", "").split(",") if p.strip()] or PLACES)
    unknown = set(places) - set(PLACES)
    if unknown:
        raise ValueError(f"Places are {', '.join(PLACES)}; not {', '.join(sorted(unknown))}.")
    return places


def _missing(needed, folder: Path) -> str:
    """The first file that is needed and not there, or nothing."""
    for names in needed:
        names = (names,) if isinstance(names, str) else names
        if not any((folder / name).is_file() for name in names):
            return names[0]
    return ""


def first_whole(read: Callable[[str], Any], names: Sequence[str]) -> Any:
    """What the first file gives that can be read: a damaged one hides no good one. Raises the first's Unavailable."""
    problems = []
    for name in names:
        try:
            return read(name)
        except Unavailable as problem:
            problems.append(problem)
    raise problems[0] if problems else Unavailable("there is no file to read")
