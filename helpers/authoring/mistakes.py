"""How an author writes down what students get wrong: as small edits of the solution."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from helpers.notebooks import BEGIN, END, as_solved


class BadEdit(ValueError):
    """A variant that does not fit the solution it is meant for, or gives no answer."""


@dataclass(frozen=True)
class Variant:
    """Another text for one exercise's solution.

    exercise: its name. slug: the variant's name, lower case with hyphens, unique in its exercise.
    edit: (old, new), or several such pairs; each `old` must stand exactly once in the solution cell.
    instead: a whole body to put in place of the region between BEGIN and END SOLUTION; where a cell has several
    such regions (a class: its constructor and its forward), one body for each, and "" leaves a region as it is.
    """

    exercise: str
    slug: str
    edit: tuple = ()
    instead: str | tuple[str, ...] = ""

    def __post_init__(self):
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.slug):
            raise BadEdit(f"{self.exercise}: the slug {self.slug!r} is not lower case words joined by hyphens")
        if bool(self.edit) == bool(self.instead):
            raise BadEdit(f"{self.exercise}/{self.slug}: give either edit= or instead=")

    def apply(self, source: str) -> str:
        """The solution cell's text with this variant in it. Raises BadEdit when it does not fit."""
        source = as_solved(source)
        if self.instead:
            return _replace_region(source, self.instead, f"{self.exercise}/{self.slug}")
        pairs = (self.edit,) if isinstance(self.edit[0], str) else self.edit
        for old, new in pairs:
            if source.count(old) != 1:
                raise BadEdit(
                    f"{self.exercise}/{self.slug}: {old!r} stands {source.count(old)} times in the solution, not once"
                )
            source = source.replace(old, new)
        return source


@dataclass(frozen=True)
class Mistake(Variant):
    """A wrong answer that the check knows by name.

    title: a few words that name it ("softmax over the columns"). says: what to look at, in one to three
    sentences, without giving the line away. idle: it computes nothing ("the input returned"), so that what it leaves
    alone earns it nothing.
    """

    title: str = ""
    says: str = ""
    idle: bool = False

    def __post_init__(self):
        super().__post_init__()
        if not self.title or not self.says:
            raise BadEdit(f"{self.exercise}/{self.slug}: a mistake needs a title and something to say")


@dataclass(frozen=True)
class Named:
    """A wrong answer as a student handed it in, which the check knows by name: see `named`. Runs in the sandbox alone.

    No Variant, so that nothing that runs those runs this. exercise, slug, title, says: as those of a Mistake. text: the
    whole solution cell.
    """

    exercise: str
    slug: str
    title: str
    says: str
    text: str
    idle = False

    def __post_init__(self):
        Mistake(self.exercise, self.slug, instead=self.text, title=self.title, says=self.says)  # the same rules hold


@dataclass(frozen=True)
class Alias(Variant):
    """Another way into a known mistake: its numbers are the same, so it goes by the same name.

    of: the slug of the Mistake that it is called by.
    """

    of: str = ""


@dataclass(frozen=True)
class Accepted(Variant):
    """A right answer that looks different."""


@dataclass(frozen=True)
class Shortcut(Variant):
    """An answer with the right numbers by a way that the exercise forbids."""


@dataclass(frozen=True)
class EquivalentMutant:
    """A mutant of the solution that is right all the same, and may keep every point.

    exercise: its name. old, new: what was changed into what, as `make mutants` prints it. why: the reason, for authors.
    """

    exercise: str
    old: str
    new: str
    why: str

    def __post_init__(self):
        if not self.why:
            raise BadEdit(f"{self.exercise}: say why {self.old!r} may stand as {self.new!r}")


def _replace_region(source: str, instead: str | tuple[str, ...], label: str) -> str:
    bodies = (instead,) if isinstance(instead, str) else instead
    lines = source.splitlines()
    begins = [i for i, line in enumerate(lines) if line.strip() == BEGIN]
    ends = [i for i, line in enumerate(lines) if line.strip() == END]
    if not len(bodies) == len(begins) == len(ends):
        raise BadEdit(f"{label}: `instead` has {len(bodies)} bodies for {len(begins)} solution regions")
    for body, begin, end in reversed(list(zip(bodies, begins, ends, strict=True))):
        if body:
            indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
            lines[begin : end + 1] = textwrap.indent(textwrap.dedent(body).strip("\n"), indent).splitlines()
    return "\n".join(lines)
