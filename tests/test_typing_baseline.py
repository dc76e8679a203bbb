"""The count of type errors in a room can fall and never rise."""

from helpers.authoring.typing_baseline import changes, counted

OUTPUT = """helpers/lesson.py:3: error: a  [x]
helpers/parts/bert.py:1: error: b  [x]
helpers/plots/diagrams/drawing.py:7: error: c  [x]
helpers/parts/bert.py:1: note: of b
Found 3 errors in 3 files (checked 9 source files)
"""


def test_errors_are_counted_by_room():
    assert counted(OUTPUT) == {"helpers": 1, "parts": 1, "plots": 1}


def test_a_count_that_rose_and_a_baseline_that_is_too_high_are_both_told():
    assert changes({"parts": 1, "plots": 1}, {"parts": 1, "plots": 1, "data": 0}) == []
    assert changes({"parts": 3, "plots": 1}, {"plots": 2}) == [
        "parts: 3 type errors, 3 more than before",
        "plots: 1 type errors, 1 fewer: write 1 into pyproject.toml",
    ]
