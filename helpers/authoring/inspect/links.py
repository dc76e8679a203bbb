"""Links of lessons, and the glossary they lead to.

A lesson is read in four places: solutions/NN/NN.ipynb in the repository, notebooks/NN/NN.ipynb in a student's copy, the
same two on GitHub, and lessons/NN.html on the site. A relative link that holds in all: ../../site/glossary.md#term and
../NN_topic/NN_topic.ipynb. JupyterLab finds a place in a Markdown file by the heading as it is written, capitals and
all; GitHub and the site by its small letters. So a heading with capitals has an anchor of its own: <a id="adamw"></a>.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from helpers.authoring.build.lesson_source import NOTEBOOKS, ROOT, Source, sources
from helpers.authoring.publish.student_zip import HOLDS

GLOSSARY = ROOT / "site" / "glossary.md"
LINK = re.compile(r"\]\(([^()\s]+)\)")
HTML_LINK = re.compile(r"<a\b[^>]*\bhref=", re.IGNORECASE)
HEADING = re.compile(r"^#+ +(?:<a id=\"([^\"]+)\"></a>)?(.+?)\s*$", re.MULTILINE)
HOME = re.compile(r"\[lesson (\d+)\]")
ALIASES = re.compile(r"Also called ([^.]+)\.")
ROLE = re.compile(r"\{(?:term|doc|ref|numref)\}`")


# The terms that no lesson may use before their own without a link. Words with other meanings too (head, key, value,
# rank, mask) are left to the author.
LINKED_TERMS = (
    "adam adamw beam-search bits-per-byte bleu byte-pair-encoding causal-mask cross-attention cross-entropy dropout "
    "embedding entropy gelu gradient-clipping hook induction-head jacobian key-value-cache label-smoothing "
    "layer-normalisation logits one-hot-vector perplexity residual-connection singular-value-decomposition "
    "teacher-forcing tied-weights token top-k-sampling top-p-sampling warm-up weight-decay zero-shot"
).split()
# How prose says a term, where that is not its heading in the glossary
OTHER_FORMS = {
    "beam-search": ("beam",),
    "byte-pair-encoding": ("byte-pair encoding", "BPE"),
    "gradient-clipping": ("clipping",),
    "key-value-cache": ("cache",),
    "layer-normalisation": ("layer normalisation", "layer norm", "LayerNorm"),
    "logits": ("logit",),
    "one-hot-vector": ("one-hot",),
    "residual-connection": ("residual",),
    "singular-value-decomposition": ("singular value", "SVD"),
    "tied-weights": ("tied",),
    "top-k-sampling": ("top-k",),
    "top-p-sampling": ("top-p", "nucleus sampling"),
}


@dataclass(frozen=True)
class Term:
    """An entry of the glossary."""

    name: str
    anchor: str
    lesson: int
    """The number of the one that explains it."""
    forms: tuple[str, ...]
    """How prose may say it."""
    aliases: tuple[str, ...] = ()
    """Its other names, for search, from its sentence "Also called ..."."""

    def used_in(self, text: str) -> bool:
        """Does that text use the term? Code does not count."""
        return bool(self.forms) and bool(self._pattern().search(re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text)))

    @functools.cache  # noqa: B019 - terms are few, and live as long as the program
    def _pattern(self) -> re.Pattern[str]:
        words = (re.escape(form).replace(r"\ ", r"[ \n]") for form in self.forms)
        cased = all(form != form.lower() for form in self.forms)
        return re.compile(rf"(?<![\w-])(?:{'|'.join(words)})s?(?![\w-])", 0 if cased else re.IGNORECASE)


@functools.cache
def glossary() -> tuple[Term, ...]:
    """The terms of site/glossary.md, in its order."""
    terms = []
    for entry in re.split(r"^(?=## )", GLOSSARY.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading, home = HEADING.match(entry), HOME.search(entry)
        if not heading or not home:
            raise ValueError(f"{GLOSSARY.name} has a term without a heading or a home: {entry[:60]!r}")
        anchor = heading[1] or slug(heading[2])
        forms = OTHER_FORMS.get(anchor, (heading[2],)) if anchor in LINKED_TERMS else ()
        also_called = ALIASES.search(entry)
        aliases = tuple(" ".join(also_called[1].split()).split(", ")) if also_called else ()
        terms.append(Term(heading[2], anchor, int(home[1]), forms, aliases))
    return tuple(terms)


def slug(heading: str) -> str:
    """What GitHub and the site call the place of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def places(markdown: str) -> set[str]:
    """The fragments that lead to a heading in JupyterLab, on GitHub and on the site alike."""
    fragments = set()
    for anchor, heading in HEADING.findall(markdown):
        if anchor == slug(heading) or (not anchor and heading.replace(" ", "-") == slug(heading)):
            fragments.add(slug(heading))
    return fragments


END = "../../site/end.md"  # from the last lesson


def broken_links(source: Source) -> list[str]:
    """Links of a lesson that do not hold in the repository, in a student's copy or on the site."""
    texts = [cell.source for cell in source.cells_as_written() if cell.cell_type == "markdown"]
    problems = []
    for text in texts:
        problems += [trouble for address in LINK.findall(text) if (trouble := trouble_with(address, source))]
        if HTML_LINK.search(text) or ROLE.search(text):
            problems.append("a link as HTML or as a role of the site's: write [words](address)")
    after = [lesson.name for lesson in sources() if lesson.name > source.name][:1]
    last = texts[-1].strip().splitlines()[-1]
    if after and f"](../{after[0]}/{after[0]}.ipynb)" not in last:
        problems.append(
            f"the last line does not link to the next lesson: **Next:** [...](../{after[0]}/{after[0]}.ipynb)"
        )
    if not after and f"]({END})" not in last:
        problems.append(f"the last line does not link to the end of the course: **Next:** [...]({END})")
    return problems


def trouble_with(address: str, source: Source) -> str:
    """Why a link of that lesson does not hold everywhere, "" where it does."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return "" if parts.scheme in ("http", "https") else f"{address}: an address of the web or a file"
    if not parts.path:
        return f"{address}: within a page each program finds its places otherwise; name the section in words"
    for folder in (source.folder, NOTEBOOKS / source.name):
        target = (folder / unquote(parts.path)).resolve()
        if not target.is_file():
            return f"{address}: there is no such file from {folder.parent.name}/"
    if not _reaches_students(target):
        return f"{address}: it is not in a student's copy"
    if target.suffix == ".md":
        if target.parent != ROOT / "site":
            return f"{address}: the site has no such page"
        if parts.fragment and parts.fragment not in places(target.read_text(encoding="utf-8")):
            return f"{address}: no heading of {target.name} is #{parts.fragment}, in small letters and with hyphens"
    elif target.suffix != ".ipynb" or parts.fragment:
        return f"{address}: link to a lesson's notebook, without a place in it, or to a page of site/"
    return ""


def _reaches_students(target: Path) -> bool:
    name = target.relative_to(ROOT).as_posix()
    return any(name == held or name.startswith(f"{held}/") for held in HOLDS)
