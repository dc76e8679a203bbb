"""Variants of a solution: small edits, whole bodies for one region or several, and the file that lists them."""

import pytest
from tables import FOLDER, table

from helpers.authoring.build.mistakes import Accepted, BadEdit, EquivalentMutant, Mistake, read_mistakes

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


def test_a_file_lists_variants_kind_by_kind():
    pairs = (("x / 2", "x / 3"), ("int", "float"))
    assert read_mistakes(FOLDER / "mistakes.toml") == [
        Mistake("halved", "third", pairs, title="a third", says="Two lines of one sentence."),
        Mistake("halved", "idle", ("x / 2", "x"), title="returned", says="Nothing is done."),
        Accepted("halved", "shifted", instead="y = x\nreturn y / 2"),
        EquivalentMutant("halved", "2", "2.0", "the same number"),
    ]


@pytest.mark.parametrize(("text", "problem"), table("variants")["malformed"])
def test_a_malformed_file_is_refused_with_its_name_the_entry_and_the_remedy(tmp_path, text, problem):
    file = tmp_path / "mistakes.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadEdit, match=rf"{tmp_path.name}/mistakes.toml: .*{problem}"):
        read_mistakes(file)


def test_the_lists_are_as_wide_as_code(source):
    lines = source.mistakes_file.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 120 or line != line.rstrip()] == []
