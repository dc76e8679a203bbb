"""What is handed in is found whatever it is called, and nothing in it is trusted."""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import time
import zipfile
from datetime import datetime

import nbformat
import pytest
from conftest import FIRST, answer_notebook, solved

from helpers.grading.submissions import archives, untrusted_notebook
from helpers.grading.submissions.roster import slug
from helpers.grading.submissions.restore import restore
from helpers.grading.submissions.select import read_submissions
from helpers.grading.submissions.untrusted_notebook import UnreadableFile, screen

PLAIN = nbformat.writes(answer_notebook(FIRST)).encode()
SOLVED = nbformat.writes(answer_notebook(FIRST, **solved(FIRST))).encode()


def zipped(members, folder=None, name="class.zip"):
    """A zip with these members: (name or ZipInfo, bytes)."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members:
            archive.writestr(member, content)
    if folder is None:
        return data.getvalue()
    (folder / name).write_bytes(data.getvalue())
    return folder / name


def put(folder, name, data=PLAIN, modified=None):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if modified:
        os.utime(path, (modified, modified))
    return path


def local(seconds):
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


def by_student(place):
    return {submission.student.id: submission for submission in read_submissions(place, FIRST).submissions}


# ----------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "name, student",
    [
        (f"ada/{FIRST}/{FIRST}.ipynb", "ada"),
        (f"ada/{FIRST}/{FIRST} (1).ipynb", "ada"),
        (f"ada/{FIRST}/final version.ipynb", "ada"),
        (f"ada/{FIRST}.ipynb", "ada"),
        (f"Smith_{FIRST}.ipynb", "Smith"),
        (f"{FIRST}_Smith (2).ipynb", "Smith"),
        (f"smithjane_12345_67890_{FIRST}.ipynb", "smithjane_12345"),
        (f"smithjane_12345_67890_{FIRST}-1.ipynb", "smithjane_12345"),
        (f"smithjane_LATE_12345_67890_{FIRST}.ipynb", "smithjane_12345"),
        ("smithjane_12345_67890_work.ipynb", "smithjane_12345"),
        (f"Jane Doe_123_assignsubmission_file_/{FIRST}.ipynb", "Jane-Doe_123"),
        ("Jane Doe_123_assignsubmission_file/my copy.ipynb", "Jane-Doe_123"),
        (f"Jane Doe_123_assignsubmission_file_{FIRST}.ipynb", "Jane-Doe_123"),
        (f"{FIRST}/Smith_{FIRST}.ipynb", "Smith"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_submission_is_found_whatever_it_has_id(tmp_path, name, student, packed):
    place = zipped([(name, PLAIN)], tmp_path) if packed else put(tmp_path, name) and tmp_path
    assert list(by_student(place)) == [student]


def test_a_zip_may_lie_in_submitted_beside_folders(tmp_path):
    zipped([(f"doe_11_222_{FIRST}.ipynb", PLAIN), (f"roe_12_223_{FIRST}.ipynb", SOLVED)], tmp_path)
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    assert list(by_student(tmp_path)) == ["ada", "doe_11", "roe_12"]


def test_a_student_may_hand_in_a_zip(tmp_path):
    inner = zipped([(f"work/{FIRST}.ipynb", PLAIN)])
    zipped([("doe_11_222_homework.zip", inner)], tmp_path)
    put(tmp_path, f"ada/{FIRST}/homework.zip", inner)
    assert list(by_student(tmp_path)) == ["ada", "doe_11"]


def test_platforms_tell_names_and_numbers(tmp_path):
    zipped([(f"Jane van Doe_77_assignsubmission_file_/{FIRST}.ipynb", PLAIN)], tmp_path)
    student = by_student(tmp_path)["Jane-van-Doe_77"].student
    assert (student.first_name, student.last_name, student.number, student.platform) == (
        "Jane van",
        "Doe",
        "77",
        "moodle",
    )


def test_loose_files_of_several_people_are_told_apart(tmp_path):
    for name in ("Smith", "Doe", "Roe"):
        put(tmp_path, f"{name}_{FIRST}.ipynb")
    assert list(by_student(tmp_path)) == ["Doe", "Roe", "Smith"]


def test_a_folder_is_one_student_s_whatever_the_files_in_it_are_called(tmp_path):
    put(tmp_path, f"ada/Smith_{FIRST}.ipynb", PLAIN, modified=1_000_000_000)
    put(tmp_path, f"ada/Doe_{FIRST}.ipynb", SOLVED, modified=1_100_000_000)
    assert list(by_student(tmp_path)) == ["ada"]


def test_other_lessons_and_other_notebooks_are_left_alone(tmp_path):
    other = nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(1)")])).encode()
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    put(tmp_path, f"ada/{FIRST}/scratch.ipynb", other)
    put(tmp_path, f"ada/{FIRST}/.ipynb_checkpoints/{FIRST}-checkpoint.ipynb", SOLVED)
    put(tmp_path, "holiday.ipynb", other)
    found = read_submissions(tmp_path, FIRST)
    assert [(s.student.id, s.file.name) for s in found.submissions] == [("ada", f"{FIRST}.ipynb")]
    assert any("holiday.ipynb" in flag for flag in found.flags)


def test_of_several_files_the_newest_counts_and_is_flagged(tmp_path):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb", PLAIN, modified=1_000_000_000)
    put(tmp_path, f"ada/{FIRST}/{FIRST} (1).ipynb", SOLVED, modified=1_100_000_000)
    submission = by_student(tmp_path)["ada"]
    assert submission.file.name == f"{FIRST} (1).ipynb"
    assert submission.flags == (
        f"2 files: {FIRST} (1).ipynb ({local(1_100_000_000)}) counts, not {FIRST}.ipynb ({local(1_000_000_000)})",
    )


def test_what_counts_is_told_with_paths_and_dates(tmp_path):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb", PLAIN, modified=1_000_000_000)
    inner = zipped([(f"a/{FIRST}.ipynb", SOLVED)])
    put(tmp_path, f"ada/{FIRST}/work.zip", inner, modified=1_100_000_000)
    (flag,) = by_student(tmp_path)["ada"].flags
    whole = f"work.zip/a/{FIRST}.ipynb ({local(1_100_000_000)}) counts, not {FIRST}.ipynb ({local(1_000_000_000)})"
    assert flag == f"2 files: {whole}"


def test_a_broken_file_never_hides_a_whole_one(tmp_path):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb", PLAIN, modified=1_000_000_000)
    put(tmp_path, f"ada/{FIRST}/{FIRST} (1).ipynb", PLAIN[:99], modified=1_100_000_000)
    assert by_student(tmp_path)["ada"].file.name == f"{FIRST}.ipynb"


def test_the_same_bytes_twice_are_no_matter(tmp_path):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    put(tmp_path, f"ada/{FIRST}/copy.ipynb")
    assert by_student(tmp_path)["ada"].flags == ()


@pytest.mark.parametrize("stamp", ["yesterday at noon", "", "9999999999999999", "2026-13-77", "\x00", "x" * 1000])
def test_a_bad_time_stamp_is_flagged_and_stops_nothing(tmp_path, stamp):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    put(tmp_path, f"ada/{FIRST}/timestamp.txt", stamp.encode())
    submission = by_student(tmp_path)["ada"]
    assert submission.timestamp == "" and "time stamp" in submission.flags[0]


def test_a_time_stamp_is_read_as_nbgrader_reads_it(tmp_path):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    put(tmp_path, f"ada/{FIRST}/timestamp.txt", b"2026-03-01 12:30:00.123 +0100")
    assert by_student(tmp_path)["ada"].timestamp.startswith("2026-03-01 ")


def test_names_become_safe_ones():
    assert slug("Jane Doe_7") == "Jane-Doe_7"
    assert slug("../../etc/passwd") == "etc-passwd"
    assert slug("..") == slug("") == "unnamed"
    assert slug("=cmd|' /C calc'!A0") == "cmd-C-calc-A0"
    assert slug("Łukasz Çelik") == "Łukasz-Çelik"
    assert len(slug("x" * 500)) == 100


# ----------------------------------------------------------------------------------------------- tricks


@pytest.mark.parametrize(
    "name", ["../evil/x.ipynb", "a/../../x.ipynb", "/etc/x.ipynb", "C:/x.ipynb", "C:x.ipynb", "..\\x.ipynb"]
)
def test_a_path_that_leads_out_of_a_zip_is_refused(tmp_path, name):
    place = zipped([(name, PLAIN), (f"doe_11_222_{FIRST}.ipynb", PLAIN)], tmp_path)
    found = read_submissions(place, FIRST)
    assert [s.student.id for s in found.submissions] == ["doe_11"]
    assert any("leads out of the zip" in flag for flag in found.flags)


def special(name, kind):
    member = zipfile.ZipInfo(name)
    member.create_system, member.external_attr = 3, (kind | 0o777) << 16
    return member


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_links_and_devices_in_a_zip_are_refused(tmp_path, kind):
    place = zipped([(special(f"doe_11_222_{FIRST}.ipynb", kind), b"/etc/passwd")], tmp_path)
    found = read_submissions(place, FIRST)
    assert [(s.student.id, s.file) for s in found.submissions] == [("doe_11", None)], "handed in, and nothing to run"
    assert found.flags == [] and len(found.submissions[0].flags) == 1


def test_links_and_pipes_on_disk_are_not_followed(tmp_path):
    secret = put(tmp_path / "elsewhere", "secret.ipynb", SOLVED)
    submitted = tmp_path / "submitted"
    for student in ("linked", "linked-folder", "piped"):
        (submitted / student / FIRST).mkdir(parents=True)
    os.symlink(secret, submitted / "linked" / FIRST / f"{FIRST}.ipynb")
    os.mkfifo(submitted / "piped" / FIRST / f"{FIRST}.ipynb")
    (submitted / "linked-folder" / FIRST).rmdir()
    os.symlink(secret.parent, submitted / "linked-folder" / FIRST)
    found = by_student(submitted)
    assert set(found) == {"linked", "linked-folder", "piped"}
    assert "is a link" in found["linked"].flags[0] and "no plain file" in found["piped"].flags[0]
    for submission in found.values():
        with pytest.raises(UnreadableFile, match="no notebook was handed in"):
            submission.open()


def test_a_zip_bomb_costs_nothing(tmp_path):
    begun = time.monotonic()
    place = zipped([(f"doe_11_222_{FIRST}.ipynb", b"\0" * (300 << 20))], tmp_path)
    found = read_submissions(place, FIRST)
    assert found.submissions[0].file is None and "unpack to far more" in found.submissions[0].flags[0]
    assert time.monotonic() - begun < 20


def test_a_member_that_lies_about_its_size_is_read_no_further_than_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_FILE", 1000)
    data = bytearray(zipped([(f"doe_11_222_{FIRST}.ipynb", os.urandom(5000))]))
    place = data.rindex(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", 10)  # the size that the directory tells
    (tmp_path / "class.zip").write_bytes(data)
    (submission,) = read_submissions(tmp_path / "class.zip", FIRST).submissions
    with pytest.raises(UnreadableFile):
        submission.open()


@pytest.mark.parametrize("limit, most", [("MOST_FILES", 5), ("MOST_READ", 5), ("MOST_MB", 5 * len(PLAIN) / (1 << 20))])
def test_one_student_s_flood_is_cut_off_and_costs_no_one_else(tmp_path, monkeypatch, limit, most):
    monkeypatch.setattr(archives, limit, most)
    flood = zipped([(f"{i}/{FIRST}.ipynb", PLAIN) for i in range(9)])
    others = [(f"s{i}_1{i}_222_{FIRST}.ipynb", PLAIN) for i in range(9)]
    found = read_submissions(zipped([("aaa_1_2_flood.zip", flood), *others], tmp_path), FIRST)
    assert len(found.submissions) == 10
    told = {s.student.id: s.flags for s in found.submissions}
    assert "the rest was left out" in " ".join(told.pop("aaa_1")) and not any(told.values())


def test_a_zip_in_a_zip_in_a_zip_is_left_out(tmp_path):
    data = zipped([(f"{FIRST}.ipynb", PLAIN)])
    for _ in range(3):
        data = zipped([("doe_11_222_x.zip", data)])
    (tmp_path / "class.zip").write_bytes(data)
    found = read_submissions(tmp_path / "class.zip", FIRST)
    assert found.submissions == [] and "zip in a zip" in found.flags[0]


@pytest.mark.parametrize(
    "damage", [lambda d: d[:200], lambda d: b"", lambda d: os.urandom(500), lambda d: d[:60] + b"XXXX" + d[64:]]
)
def test_a_damaged_zip_stops_nothing(tmp_path, damage):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    (tmp_path / "class.zip").write_bytes(damage(zipped([(f"doe_11_222_{FIRST}.ipynb", PLAIN)])))
    assert "ada" in by_student(tmp_path)


# ----------------------------------------------------------------------------------------------- files


def notebook_of(**cell):
    base = {"cell_type": "code", "source": "1", "metadata": {}, "outputs": []}
    return json.dumps({"cells": [{**base, **cell}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


BROKEN = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "truncated": (PLAIN[: len(PLAIN) // 2], "cut off"),
    "cut in a word": (PLAIN[:-2], "cut off"),
    "binary": (bytes(range(256)) * 10, "not text"),
    "a picture": (b"\x89PNG\r\n\x1a\n", "picture"),
    "a zip": (zipped([("x", b"y")]), "zip file"),
    "latin-1": ('{"cells": ["é"]}'.encode("latin-1"), "not text"),
    "utf-16": (PLAIN.decode().encode("utf-16"), "not text"),
    "a web page": (b"<!doctype html><p>Sign in", "web page"),
    "prose": (b"Dear professor, my dog", "no JSON"),
    "a list": (b"[1, 2]", "not a notebook"),
    "a number": (b"12", "not a notebook"),
    "a long number": (b"1" * 10_000, "not a notebook"),
    "no cells": (b'{"cells": [], "metadata": {}, "nbformat": 4}', "without cells"),
    "no list of cells": (b'{"cells": 3}', "not a notebook"),
    "cells that are none": (b'{"cells": [1, null, [], "x"]}', "without cells"),
    "deep lists": (b"[" * 100_000 + b"]" * 100_000, "deep"),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "deep"),
    "deep and cut off": (b"[" * 100_000, "deep"),
    "many values": (b"[" + b"0," * 4_000_000 + b"0]", "values"),
    "huge": (b" " * (21 << 20), "larger than"),
    "an endless string": (b'{"cells": ["' + b"\\" * 5_000_001, "cut off"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_notebook_says_what_it_is(kind):
    data, says = BROKEN[kind]
    begun = time.monotonic()
    with pytest.raises(UnreadableFile, match=says):
        screen(data)
    assert time.monotonic() - begun < 10


def test_brackets_in_strings_are_no_nesting():
    source = "[" * 500 + '\\"' + "{" * 500
    assert screen(notebook_of(source=source)).notebook.cells[0].source == source


@pytest.mark.parametrize(
    "cell",
    [
        {"metadata": []},
        {"metadata": {"nbgrader": 3}},
        {"metadata": {"nbgrader": {"grade_id": {}}}},
        {"metadata": {"tags": "skip"}},
        {"metadata": {"nbgrader": {"grade_id": "setup", "points": "many"}}},
        {"id": 7},
        {"id": None},
        {"cell_type": ["code"]},
        {"cell_type": "spell"},
        {"source": None},
        {"source": [1, "x", None]},
        {"source": "\ud800 half"},
        {"outputs": "none"},
        {"attachments": 1},
    ],
)
def test_odd_cells_are_read_or_left_out_and_the_notebook_can_be_written(cell):
    data = json.loads(PLAIN)
    data["cells"].insert(3, json.loads(notebook_of(**cell))["cells"][0])
    screened = screen(json.dumps(data).encode())
    restored = restore(screened.notebook, answer_notebook(FIRST)).notebook
    nbformat.validate(restored)
    nbformat.writes(restored).encode()


def test_saved_outputs_stay_and_are_called_the_students():
    shown = {"output_type": "display_data", "data": {"text/plain": ["3", "\x1b[2J"]}, "metadata": {}}
    broken = [{"output_type": "stream", "name": 3, "text": "x"}, 7, {"output_type": "error"}, {"data": {}}]
    first, kept, error = screen(notebook_of(outputs=[shown, *broken])).notebook.cells[0].outputs
    assert (first.text, kept.data, error.traceback) == (untrusted_notebook.SAVED, {"text/plain": "3"}, [])
    again = screen(notebook_of(outputs=[dict(first), dict(kept)])).notebook.cells[0].outputs
    assert [first, kept] == again, "handed in again, it is not called so twice"


def test_outputs_that_are_too_large_or_too_many_are_left_out():
    long = {"output_type": "stream", "name": "stdout", "text": "x" * (3 << 20)}
    short = {"output_type": "stream", "name": "stdout", "text": "y"}
    found = screen(notebook_of(outputs=[long, *[short] * 3000])).notebook.cells[0].outputs
    assert {one.text for one in found[1:]} == {"y"} and len(found) <= 2001


def test_an_old_notebook_is_read():
    old = {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": "def raw_weights(x): pass"}]}]}
    assert screen(json.dumps(old).encode()).notebook.cells[0].source.startswith("def raw")


def test_too_many_cells_are_cut(monkeypatch):
    monkeypatch.setattr(untrusted_notebook, "MOST_CELLS", 2)
    data = json.dumps({"cells": [{"cell_type": "code", "source": "1"}] * 5}).encode()
    screened = screen(data)
    assert len(screened.notebook.cells) == 2 and "first 2" in screened.flags[0]


# ----------------------------------------------------------------------------------------------- mending


def mended(change):
    """The flags of a solved submission after its cells were changed, and whether the release came back whole."""
    notebook = answer_notebook(FIRST, **solved(FIRST))
    place = {c.metadata.nbgrader.grade_id: i for i, c in enumerate(notebook.cells) if "nbgrader" in c.metadata}
    change(notebook.cells, place)
    screened = screen(nbformat.writes(notebook).encode())
    restored = restore(screened.notebook, answer_notebook(FIRST))
    answers = {c.metadata.nbgrader.grade_id: c for c in restored.notebook.cells if "nbgrader" in c.metadata}
    assert list(answers) == list(place)
    assert answers["raw_weights"].source == solved(FIRST)["raw_weights"]
    assert answers["raw_weights"].cell_type == answers["check_raw_weights"].cell_type == "code"
    assert answers["check_raw_weights"].metadata.nbgrader.points == 3
    assert "tags" not in answers["check_raw_weights"].metadata
    return restored.flags


def test_a_retyped_solution_is_code_again():
    def change(cells, place):
        cell = cells[place["raw_weights"]]
        cells[place["raw_weights"]] = nbformat.v4.new_markdown_cell(cell.source, metadata=cell.metadata, id=cell.id)

    assert mended(change) == ["raw_weights had become a markdown cell"]


def test_a_retyped_solution_without_metadata_is_found_by_what_it_defines():
    def change(cells, place):
        cells[place["raw_weights"]] = nbformat.v4.new_markdown_cell(cells[place["raw_weights"]].source)

    assert "raw_weights was found by what it defines" in mended(change)


def test_of_several_cells_without_metadata_the_last_that_was_begun_counts():
    def change(cells, place):
        cell = cells[place["raw_weights"]]
        stub = answer_notebook(FIRST).cells[place["raw_weights"]].source
        cell.metadata, cell.id = nbformat.NotebookNode(), "a"
        cells.insert(place["raw_weights"], nbformat.v4.new_code_cell("def raw_weights(x):\n    return x"))
        cells.append(nbformat.v4.new_code_cell(stub))

    assert "raw_weights was found by what it defines" in mended(change)


def test_raised_points_and_added_tags_are_undone_and_told():
    def change(cells, place):
        cells[place["check_raw_weights"]].metadata.nbgrader.points = 300
        cells[place["check_raw_weights"]].metadata.tags = ["skip-execution"]

    assert mended(change) == [
        "check_raw_weights claimed 300 points, not 3",
        "check_raw_weights had been given the tag skip-execution",
    ]


@pytest.mark.filterwarnings("ignore:Non-unique cell id")
def test_duplicated_deleted_and_reordered_cells_are_put_right_and_told():
    def change(cells, place):
        cells.append(cells.pop(place["raw_weights"]))
        cells.append(cells[place["check_masked_squared_error"]])
        del cells[place["setup"]]

    flags = " ".join(mended(change))
    assert "another order" in flags and "2 times" in flags and "setup was missing" in flags


def test_an_honest_submission_has_no_flags():
    assert mended(lambda cells, place: None) == []
