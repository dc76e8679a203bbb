"""Where this course is published: one address, and all that follows from it.

``make home URL=https://github.com/you/your-course`` writes it into pyproject.toml, and makes the students' notebooks
anew: their first cell then fetches the course from that address when a notebook is opened alone, as in Colab. Without
an address nothing of that is in them. Whoever publishes a course of their own from this one gives their own address.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from helpers.course import ROOT

BUNDLE = "from-the-dot-product-to-gpt-2"  # the students' zip, and the folder in it
ADDRESS = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)/?(?:\.git)?")
OPEN = re.compile(r"(<!-- open -->\n).*?(<!-- /open -->)", re.DOTALL)
URLS = re.compile(r'^\[project\.urls\]\nRepository = ".*"\n\n', re.MULTILINE)

# What every first cell begins with: a sign of life, and a word to whoever reads an error under it.
FIRST_LINES = """\
# Run this cell first, and again after a restart. "No module named ..."? Kernel, Change Kernel: choose the course's.
print("Loading PyTorch ...", end="\\r")

"""

# What stands before the first cell's own lines. {0} the version, {1} the folder, {2} the address of its zip.
FETCH = """\
try:
    import helpers.lesson
except ModuleNotFoundError as missing:    # opened alone, as in Colab: fetch the course, release {0}, once
    if not (missing.name or "").startswith("helpers"):
        raise
    import io, os, sys, urllib.request, zipfile
    folder = os.path.abspath("{1}")
    if not os.path.isfile(os.path.join(folder, "pyproject.toml")):
        address = os.environ.get("COURSE_ARCHIVE") or "{2}"
        try:
            zipfile.ZipFile(io.BytesIO(urllib.request.urlopen(address).read())).extractall()
        except (OSError, ValueError, zipfile.BadZipFile) as problem:
            what = f"The course could not be fetched from {{address}} ({{problem}})."
            raise OSError(f"{{what}} Connect, or set COURSE_ARCHIVE to another address; run this cell again.") from None
    sys.path.insert(0, folder)
    sys.modules.pop("helpers", None)
    import helpers.student.colab
    helpers.student.colab.complete()

"""


class BadAddress(ValueError):
    """The address is none of a repository on GitHub."""


def home(course: Path = ROOT) -> str:
    """The address of the course's repository, "https://github.com/owner/name"; "" while, and where, it has none."""
    return _project(course).get("urls", {}).get("Repository", "")


def version(course: Path = ROOT) -> str:
    """The course's version, "1.0.0"; "" in a copy that does not say it."""
    return _project(course).get("version", "")


def archive(address: str, number: str) -> str:
    """Where the students' zip of a version lies, once it is released. address: the repository's."""
    return f"{address}/releases/download/v{number}/{BUNDLE}-{number}.zip"


def able_to_stand_alone(setup: str, address: str, number: str) -> str:
    """A first cell that fetches the course where it is not there; the cell as it is where there is no address."""
    return FETCH.format(number, BUNDLE, archive(address, number)) + setup if address else setup


def as_students_get(setup: str, address: str, number: str) -> str:
    """A lesson's first cell as it stands in the students' notebook."""
    return FIRST_LINES + able_to_stand_alone(setup, address, number)


def in_colab(address: str, at: str, lesson: str) -> str:
    """The link that opens a lesson in Colab. at: a tag or a branch."""
    owned = address.removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{owned}/blob/{at}/notebooks/{lesson}/{lesson}.ipynb"


def in_binder(address: str, at: str, lesson: str = "") -> str:
    """The link that opens the course in Binder, at the start page or at a lesson. at: a tag or a branch."""
    owned, opened = address.removeprefix("https://github.com/"), "start.ipynb"
    if lesson:
        opened = f"notebooks/{lesson}/{lesson}.ipynb"
    return f"https://mybinder.org/v2/gh/{owned}/{at}?urlpath=lab/tree/{opened}"


def site_address(address: str, course: Path = ROOT) -> str:
    """Where the readers' site is: what site/settings.toml says, or the repository's GitHub Pages; "" without either."""
    settings = course / "site" / "settings.toml"
    told = tomllib.loads(settings.read_text(encoding="utf-8")).get("address", "") if settings.is_file() else ""
    if told or not address:
        return told
    owner, name = address.removeprefix("https://github.com/").split("/")
    pages = f"{owner.lower()}.github.io"
    return f"https://{pages}/" if name.lower() == pages else f"https://{pages}/{name}/"


def in_codespaces(address: str) -> str:
    """The link that opens the course in GitHub Codespaces."""
    return f"https://codespaces.new/{address.removeprefix('https://github.com/')}?quickstart=1"


def set_home(address: str, course: Path = ROOT) -> str:
    """Write the address into pyproject.toml, CITATION.cff and the README; returns it in its usual form.

    An empty one takes it out again. Raises BadAddress where it is no repository on GitHub.
    """
    match = ADDRESS.fullmatch(address.strip())
    if address.strip() and not match:
        raise BadAddress(f"{address!r} is no address of a repository: https://github.com/you/your-course")
    address = f"https://github.com/{match[1]}/{match[2]}" if match else ""
    texts = {path: path.read_text(encoding="utf-8") for path in (course / name for name in FILES)}
    for path, text in texts.items():
        more = {"site": site_address(address, course)} if path.name == "README.md" else {}
        path.write_text(FILES[path.name](text, address, version(course), **more), encoding="utf-8")
    return address


def _in_project(text: str, address: str, number: str) -> str:
    text = URLS.sub("", text)
    table = f'[project.urls]\nRepository = "{address}"\n\n' if address else ""
    return text.replace("# `python -m helpers` by a name", f"{table}# `python -m helpers` by a name", 1)


def _in_citation(text: str, address: str, number: str) -> str:
    text = re.sub(r"^repository-code: .*\n", "", text, flags=re.MULTILINE)
    return text.rstrip("\n") + "\n" + (f'repository-code: "{address}"\n' if address else "")


def _in_readme(text: str, address: str, number: str, site: str = "") -> str:
    ways = ""
    if address:
        colab = in_colab(address, f"v{number}", "01_dot_product_attention")
        binder = in_binder(address, f"v{number}")
        ways = (
            f"[**Read the course, and play with its GPT-2**]({site}).\n"
            f"Without installing anything: [lesson 1 in Colab]({colab}) · [in Binder]({binder}) ·"
            f" [in Codespaces]({in_codespaces(address)}) · [the students' zip]({archive(address, number)})\n"
        )
    return OPEN.sub(lambda match: match[1] + ways + match[2], text)


FILES = {"pyproject.toml": _in_project, "CITATION.cff": _in_citation, "README.md": _in_readme}


def _project(course: Path) -> dict:
    file = course / "pyproject.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"] if file.is_file() else {}
