"""Variants of a solution: small edits, whole bodies for one region or several, and the file that lists them."""

import pytest

from helpers.authoring.lesson_source import sources
from helpers.authoring.mistakes import Accepted, BadEdit, EquivalentMutant, Mistake, read_mistakes

CELL = """class Doubler:
    def __init__(self):
        ### BEGIN SOLUTION
        self.by = 2
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        return self.by * x
        ### END SOLUTION"""


def doubled(cell):
    namespace = {}
    exec(cell, namespace)
    return namespace["Doubler"]().forward(21)


def test_each_region_of_a_class_gets_a_body_of_its_own():
    variant = Accepted("Doubler", "named", instead=("self.factor = 2", "y = self.factor * x\nreturn y"))
    text = variant.apply(CELL)
    assert doubled(text) == 42 and "self.factor" in text and "SOLUTION" not in text


def test_an_empty_body_leaves_its_region_as_it_is():
    text = Accepted("Doubler", "sum", instead=("", "return x + x")).apply(CELL)
    assert doubled(text) == 42 and "self.by = 2" in text and "self.by * x" not in text


@pytest.mark.parametrize("instead", ["return 2 * x", ("a", "b", "c")])
def test_bodies_and_regions_have_to_be_as_many(instead):
    with pytest.raises(BadEdit, match="2 solution regions"):
        Accepted("Doubler", "wrong", instead=instead).apply(CELL)


WHOLE = """
[halved.mistake.third]
edit = [["x / 2", "x / 3"], ["int", "float"]]
title = "a third"
says = '''
Two lines
of one sentence.'''

[halved.accepted.shifted]
instead = '''
    y = x
    return y / 2
'''

[[halved.equivalent_mutant]]
old = "2"
new = "2.0"
why = "the same number"

[halved.mistake.idle]
edit = ["x / 2", "x"]
title = "returned"
says = "Nothing is done."
idle = true
"""


def listed(tmp_path, text):
    file = tmp_path / "mistakes.toml"
    file.write_text(text, encoding="utf-8")
    return read_mistakes(file)


def test_a_file_lists_variants_kind_by_kind(tmp_path):
    pairs = (("x / 2", "x / 3"), ("int", "float"))
    assert listed(tmp_path, WHOLE) == [
        Mistake("halved", "third", pairs, title="a third", says="Two lines of one sentence."),
        Mistake("halved", "idle", ("x / 2", "x"), title="returned", says="Nothing is done.", idle=True),
        Accepted("halved", "shifted", instead="y = x\nreturn y / 2"),
        EquivalentMutant("halved", "2", "2.0", "the same number"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[f", "at end of document"),
        ("f = 1", r"begin each entry of f with one of: \[f.mistake.NAME\]"),
        ("[f.mistke.a]", r"begin each entry of f with one of: \[f.mistake.NAME\]"),
        ("[f.mistake]\ntitle = 't'", r"has no name: begin it with \[f.mistake.NAME\]"),
        ("[[f.mistake]]", r"begin each mistake of f with \[f.mistake.NAME\]"),
        ("[f.equivalent_mutant.a]", r"begin each equivalent_mutant of f with \[\[f.equivalent_mutant\]\]"),
        ("[f.accepted.a]\nedit = ['a', 'b']\ntitle = 't'", "f/a has no field title. Its fields are: edit, instead"),
        ("[[f.equivalent_mutant]]\nold = 'a'", "an equivalent mutant of f needs new, why"),
        ("[f.accepted.a]\nedit = 'a'", r"f/a: `edit` has to be \[old, new\]"),
        ("[f.accepted.a]\nedit = ['a', 1]", "f/a: 1 has to be a string"),
        ("[f.mistake.a]\nidle = 'yes'", "f/a: 'yes' has to be true or false"),
        ("[f.accepted.Twice]\ninstead = 'a'", "not lower case words"),
        ("[f.accepted.a]\n[f.accepted.a]", "twice"),
    ],
)
def test_a_malformed_file_is_refused_with_its_name_the_entry_and_the_remedy(tmp_path, text, problem):
    with pytest.raises(BadEdit, match=rf"{tmp_path.name}/mistakes.toml: .*{problem}"):
        listed(tmp_path, text)


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_the_lists_are_as_wide_as_code(source):
    lines = source.mistakes_file.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 120 or line != line.rstrip()] == []
