"""Variants of a solution: small edits, and whole bodies for one region or several."""

import pytest

from helpers.authoring.mistakes import Accepted, BadEdit

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
