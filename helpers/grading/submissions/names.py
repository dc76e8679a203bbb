"""Spelling students' names: as folders and ids, as Canvas writes them, and when two of them look the same."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 100  # characters of an id
# Names that Windows keeps for devices: a course's folder may travel
DEVICES = re.compile(r"^(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
UNSAFE = re.compile(r'[+,;"<>&\\/:*?|%\']|^[=@\-~.]|[. ]$')


def slug(text: str) -> str:
    """A name that is safe as a folder, in a URL and in a database: "Jane Doe_7" becomes "Jane-Doe_7"."""
    text = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))
    text = re.sub(r"[^\w.@-]+", "-", text).strip("-._@")
    text = text.encode()[: 2 * LONGEST].decode("utf-8", "ignore")[:LONGEST].strip("-._@")
    if DEVICES.match(text):
        text = f"student-{text}"
    return text or "unnamed"


def is_safe(name: str) -> bool:
    """May a student's folder keep its name as an id?"""
    return (
        len(name) <= LONGEST
        and len(name.encode("utf-8", "replace")) <= 2 * LONGEST
        and name.isprintable()
        and not UNSAFE.search(name)
        and not DEVICES.match(name)
    )


def alike(name: str) -> str:
    """What names share that a person, or a disk, may take for the same: capitals, accents' spelling, signs between."""
    return re.sub(r"[\W_]+", "-", unicodedata.normalize("NFKC", name).casefold()).strip("-")


def canvas_name(listed: str) -> str:
    """A name as Canvas puts it before a file's: "Doe, Jane" becomes "doejane"."""
    return re.sub(r"\W", "", re.sub(r"_(\d+)_", r"\1", listed)).lower()
