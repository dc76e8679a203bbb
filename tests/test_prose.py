"""Lessons are readable and honest about time: `authoring.inspect.prose` has the rules, not_yet.toml what is left."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tables import table

from helpers.authoring.build.lesson_source import ROOT, Source, sources
from helpers.authoring.build.minutes import Minutes, count_lines, count_words
from helpers.authoring.inspect.links import GLOSSARY, LINKED_TERMS, glossary, places, slug, trouble_with
from helpers.authoring.inspect.prose import RULES
from helpers.authoring.inspect.unsupported_numbers import claims, is_held, numbers_of
from helpers.site.build import pages_for_site

LESSONS = sources()
CASES = table("prose")
TABLE = Path(__file__).parent / "not_yet.toml"
NOT_YET = tomllib.loads(TABLE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("rule", RULES)
def test_a_lesson_keeps_the_rule_or_gets_nearer_to_it(source, rule):
    found, known = RULES[rule](source), NOT_YET.get(source.name, {}).get(rule, 0)
    listed = "".join(f"\n  {finding}" for finding in found)
    assert len(found) <= known, f"{source.name} breaks {rule} {len(found)} times, {known} were known:{listed}"
    assert len(found) == known, (
        f"{source.name} breaks {rule} only {len(found)} times now. In tests/not_yet.toml, under [{source.name}], "
        + (f"write {rule} = {len(found)}" if found else f"drop the line {rule} = {known}")
    )


def test_the_table_of_what_is_left_to_do_names_lessons_and_rules_that_there_are():
    assert set(NOT_YET) <= {source.name for source in LESSONS}, "a lesson was renamed: rename its section as well"
    for lesson, left in NOT_YET.items():
        assert set(left) <= set(RULES) and all(count > 0 for count in left.values()), lesson


def test_minutes_are_prose_and_code_and_cards_rounded_to_five():
    assert Minutes(words=0, lines=0, cards=40).rounded == 40
    assert Minutes(words=2200, lines=60, cards=42).exact == 10 + 10 + 42
    assert Minutes(words=2200, lines=60, cards=42).rounded == 60
    assert Minutes(words=2200, lines=60, cards=43).rounded == 65


def test_words_are_those_that_are_read():
    assert count_words("Two **words**.") == 2
    assert count_words("See [lesson 5](../05_masking/05_masking.ipynb), `x[:, 0]`.") == 5
    assert count_words("A formula, $w_{ij} = q_i^T k_j$, is one word.") == 6
    assert count_words("<div class='card'>one</div>") == 1
    assert count_lines("x = 1\n\n\ny = 2\n") == 2


@pytest.fixture
def written(tmp_path):
    """A function from the Markdown of one cell to a lesson 5 that holds it and no more."""

    def write(markdown: str) -> Source:
        lines = "".join(f"# {line}".rstrip() + "\n" for line in markdown.split("\n"))
        (tmp_path / "05_masking.py").write_text(f"# %% [markdown]\n{lines}", encoding="utf-8")
        return Source("05_masking", tmp_path)

    return write


def filled(text: str) -> str:
    return re.sub("«([0-9]+) ([^»]+)»", lambda repeated: repeated[2] * int(repeated[1]), text)


@pytest.mark.parametrize("rule, kept, broken", CASES["rules"])
def test_a_rule_finds_what_breaks_it_and_nothing_else(written, rule, kept, broken):
    assert RULES[rule](written(filled(kept))) == []
    assert len(RULES[rule](written(filled(broken)))) == 1


def test_a_number_is_held_by_what_is_printed_near_by_to_its_own_digits():
    near = numbers_of(["loss 0.1734 after 1,400 steps", "share 0.256"])
    assert all(is_held(number, set(), near) for number in ("0.17", "0.173", "1,400", "25.6", "26"))
    assert not any(is_held(number, set(), near) for number in ("0.18", "0.172", "1,401", "27", "2.6"))
    assert [number for number, _ in claims("From 20 to 3.5 of GPT-2 in 32-bit floats, section 14.2.")] == ["20", "3.5"]


@pytest.mark.parametrize("address, holds", CASES["links"])
def test_a_link_holds_where_every_reader_is_or_is_named(address, holds):
    assert bool(trouble_with(address, LESSONS[4])) != holds


def test_every_entry_of_the_glossary_can_be_linked_to_and_says_where_it_is_explained():
    text, terms = GLOSSARY.read_text(encoding="utf-8"), glossary()
    names = [term.name for term in terms]
    assert len(names) >= 70 and names == sorted(names, key=str.lower) and len(set(names)) == len(names)
    assert {term.anchor for term in terms} <= places(text) and set(LINKED_TERMS) <= {term.anchor for term in terms}
    assert all(term.anchor == slug(term.name) for term in terms)
    there = {source.lesson.number for source in LESSONS}
    assert {term.lesson for term in terms} <= there


@pytest.mark.parametrize("page", ["glossary.md", "notation.md"])
def test_the_pages_that_students_get_link_to_what_students_have(page):
    text = (ROOT / "site" / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)|^\[[^\]]+\]: (\S+)$", text, re.MULTILINE)
    local = [target for pair in targets for target in pair if target and not target.startswith("https://")]
    assert local and all((ROOT / "site" / target).is_file() for target in local)
    assert all(target.startswith("../notebooks/") or target in ("glossary.md", "notation.md") for target in local)
    turned = pages_for_site(text)
    assert "../notebooks" not in turned and "<a id" not in turned and "](lessons/01_" in turned
    defined = set(re.findall(r"^\[([^\]]+)\]:", text, re.MULTILINE))
    assert not [name for name in re.findall(r"\[(lesson \d+)\](?![(:])", turned) if name not in defined]
