"""What no page may have: a dead link, anything loaded from another host, an image without alternative text."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

CSS_ADDRESS = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")
LOADING = dict.fromkeys("script img source iframe audio video embed".split(), "src") | {"object": "data"}
LOADING_LINKS = set("stylesheet icon preload prefetch preconnect dns-prefetch modulepreload manifest".split())


class PageLinks:
    """The addresses that a page loads, those that it links to, its images (their attributes), and its anchors."""

    def __init__(self, html: str) -> None:
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.images: list[dict[str, str]] = []
        self.ids: set[str] = set()
        for tag in BeautifulSoup(html, "html.parser").find_all(True):
            attributes = tag.attrs
            self.ids |= {attributes[key] for key in ("id", "name") if key in attributes}
            if tag.name == "a" and "href" in attributes:
                self.links.append(attributes["href"])
            if tag.name == "img":
                self.images.append(attributes)
            if attributes.get(LOADING.get(tag.name, "")):
                self.loaded.append(attributes[LOADING[tag.name]])
            if tag.name == "link" and LOADING_LINKS & set(map(str.lower, attributes.get("rel", []))):
                self.loaded.append(attributes.get("href", ""))
            self.loaded += [entry.split()[0] for entry in attributes.get("srcset", "").split(",") if entry.strip()]
            self.loaded += CSS_ADDRESS.findall(attributes.get("style", ""))
            if tag.name == "style":
                self.loaded += CSS_ADDRESS.findall(tag.string or "")


def page_problems(html: Path) -> list[str]:
    """The problems of a built site, one a line."""
    pages = {path.resolve(): PageLinks(path.read_text(encoding="utf-8")) for path in sorted(html.rglob("*.html"))}
    problems = []
    for path, page in pages.items():
        where = path.relative_to(html.resolve())
        for image in page.images:
            if not image.get("alt", "").strip():
                problems.append(f"{where}: an image without alternative text: {image.get('src', '')[:60]}")
        for address in page.links + page.loaded:
            if address in page.loaded and is_remote(address):
                problems.append(f"{where}: loads {address} from another host")
            elif not is_remote(address) and not leads_somewhere(address, path, pages):
                problems.append(f"{where}: {address} leads nowhere")
    for path in sorted(html.rglob("*.css")):
        addresses = CSS_ADDRESS.findall(path.read_text(encoding="utf-8"))
        problems += [f"{path.relative_to(html)}: loads {address} from another host" for address in addresses]
    return problems


def is_remote(address: str) -> bool:
    """Whether an address leaves the site."""
    return bool(urlsplit(address).netloc) or urlsplit(address).scheme in ("http", "https", "ftp")


def leads_somewhere(address: str, origin: Path, pages: dict[Path, PageLinks]) -> bool:
    """Whether a local address names a file of the site and, if it has a fragment, an anchor in it."""
    parts = urlsplit(address)
    if parts.scheme:  # data:, mailto:, javascript:
        return True
    target = (origin.parent / unquote(parts.path)).resolve() if parts.path else origin
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return False
    return not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].ids
