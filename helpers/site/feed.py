"""The feed that tells a reader's program of new versions: one Atom entry for each section of CHANGELOG.md.

Source: RFC 4287, The Atom Syndication Format.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from markdown_it import MarkdownIt

ATOM = "http://www.w3.org/2005/Atom"
FEED = "feed.xml"
VERSION = re.compile(r"^## (\S+) \((\d{4}-\d{2}-\d{2})\)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def feed(changes: str, title: str, address: str) -> str:
    """The feed as XML, newest version first.

    changes: the text of CHANGELOG.md, whose sections begin "## 1.0.0 (2026-11-23)". address: of the site.
    """
    home = address.rstrip("/")
    versions = VERSION.findall(changes)
    root = ElementTree.Element("feed", xmlns=ATOM)
    _add(root, "title", title)
    _add(root, "id", f"{home}/")
    _add(root, "link", rel="self", href=f"{home}/{FEED}")
    _add(root, "link", href=f"{home}/index.html")
    _add(root, "updated", _moment(max((day for _, day, _ in versions), default="1970-01-01")))
    _add(_add(root, "author"), "name", title)
    for version, day, section in versions:
        entry = _add(root, "entry")
        _add(entry, "title", f"Version {version}")
        _add(entry, "id", f"{home}/{FEED}#{version}")
        _add(entry, "link", href=f"{home}/index.html")
        _add(entry, "updated", _moment(day))
        _add(entry, "content", MarkdownIt("commonmark", {"html": False}).render(section.strip()), type="html")
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _add(parent: ElementTree.Element, tag: str, text: str = "", **attributes: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, tag, attributes)
    element.text = text or None
    return element


def _moment(day: str) -> str:
    return f"{day}T00:00:00Z"
