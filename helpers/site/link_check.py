"""What no page may have: a dead link, anything loaded from another host, an image without alternative text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

CSS_ADDRESS = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")
STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)
LOADING = dict.fromkeys("script img source iframe audio video embed".split(), "src") | {"object": "data"}
LOADING_LINKS = set("stylesheet icon preload prefetch preconnect dns-prefetch modulepreload manifest".split())


class PageLinks(HTMLParser):
    """The addresses that a page loads, those that it links to, its images (their attributes), and its anchors."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loaded = [address for style in STYLE.findall(html) for address in CSS_ADDRESS.findall(style)]
        self.links: list[str] = []
        self.images: list[dict[str, str]] = []
        self.ids: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one tag loads and links to."""
        values = {key: value or "" for key, value in attrs}
        self.ids |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "img":
            self.images.append(values)
        if values.get(LOADING.get(tag, "")):
            self.loaded.append(values[LOADING[tag]])
        if tag == "link" and LOADING_LINKS & set(values.get("rel", "").lower().split()):
            self.loaded.append(values.get("href", ""))
        self.loaded += [entry.split()[0] for entry in values.get("srcset", "").split(",") if entry.strip()]
        self.loaded += CSS_ADDRESS.findall(values.get("style", ""))


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
