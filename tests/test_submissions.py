"""What is handed in is found whatever it is called, and nothing in it is trusted."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from datetime import datetime

import nbformat
import pytest
from conftest import FIRST, answer_notebook
from handed_in import EMPTY, NOWHERE, PLAIN, SOLVED, by_student, flags_of, member, put, zipped

from helpers.grading.submissions import archives
from helpers.grading.submissions.roster import slug
from helpers.grading.submissions.select import read_submissions
from helpers.grading.submissions.untrusted_notebook import UnreadableFile, screen
from helpers.text import plain

OLD, NEW = 1_000_000_000, 1_100_000_000


def at(seconds):
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


# ------------------------------------------------------------------------------------------------- what is found


@pytest.mark.parametrize(
    "name, student",
    [
        (f"ada/{FIRST}/{FIRST}.ipynb", "ada"),
        (f"ada/{FIRST}/final version.ipynb", "ada"),
        (f"ada/{FIRST} (1).ipynb", "ada"),
        (f"Smith_{FIRST}.ipynb", "Smith"),
        (f"{FIRST}_Smith (2).ipynb", "Smith"),
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
def test_a_submission_is_found_whatever_it_is_called(tmp_path, name, student, packed):
    place = put(tmp_path, "class.zip", zipped(name)) if packed else put(tmp_path, name) and tmp_path
    assert list(by_student(place)) == [student]


def test_folders_loose_files_a_class_s_zip_and_students_own_zips_mix(tmp_path):
    own = zipped(f"work/{FIRST}.ipynb")
    put(tmp_path, "class.zip", zipped(f"doe_11_222_{FIRST}.ipynb", ("roe_12_223_homework.zip", own)))
    put(tmp_path, f"ada/{FIRST}/homework.zip", own)
    put(tmp_path, f"Smith_{FIRST}.ipynb")
    assert list(by_student(tmp_path)) == ["Smith", "ada", "doe_11", "roe_12"]


def test_other_lessons_and_other_notebooks_are_left_alone(tmp_path):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    put(tmp_path, f"ada/{FIRST}/copy.ipynb")
    put(tmp_path, f"ada/{FIRST}/scratch.ipynb", EMPTY)
    put(tmp_path, f"ada/{FIRST}/.ipynb_checkpoints/{FIRST}-checkpoint.ipynb", SOLVED)
    put(tmp_path, "ada/02_queries_keys_values/work.ipynb", SOLVED)
    put(tmp_path, "holiday.ipynb", EMPTY)
    submissions, left_out = read_submissions(tmp_path, FIRST, NOWHERE)
    (submission,) = submissions
    assert (submission.student.id, submission.file.name, submission.flags) == ("ada", f"{FIRST}.ipynb", ())
    assert any("holiday.ipynb is no notebook of this lesson" in flag for flag in left_out)


def test_what_lies_in_a_lesson_s_folder_and_is_none_of_it_is_told_and_counts_as_handed_in(tmp_path):
    other = nbformat.writes(answer_notebook("02_queries_keys_values")).encode()
    put(tmp_path, f"mia/{FIRST}/{FIRST}.ipynb", other)
    put(tmp_path, f"nils/{FIRST}/solution.pdf", b"%PDF")
    put(tmp_path, f"rosa/{FIRST}/answers.py", b"def raw_weights(x): ...")
    put(tmp_path, f"rosa/{FIRST}/notes.txt", b"")
    put(tmp_path, f"tim/{FIRST}/\x1b[31m.txt", b"")
    put(tmp_path, "sol/02_queries_keys_values/answers.py", b"")
    put(tmp_path, "solution.pdf", b"%PDF")
    submissions, left_out = read_submissions(tmp_path, FIRST, NOWHERE)
    flags = {each.student.id: each.flags for each in submissions}
    assert flags == {
        "mia": ("the notebook holds none of this lesson's exercises",),
        "nils": (f"nils/{FIRST} holds no notebook, only solution.pdf",),
        "rosa": (f"rosa/{FIRST} holds no notebook, only answers.py and notes.txt",),
        "tim": (f"tim/{FIRST} holds no notebook, only {plain(chr(27) + '[31m.txt')}",),
    }
    assert left_out == ["solution.pdf is no notebook and was left out"]
    assert "\x1b" not in str(flags), "a name in a terminal is text"


@pytest.mark.parametrize("others, students", [(FIRST, ["doe_1", "roe_3"]), ("02_queries_keys_values", [])])
def test_a_broken_file_in_a_class_s_zip_is_of_the_lesson_that_the_others_in_it_are_of(tmp_path, others, students):
    notebook = nbformat.writes(answer_notebook(others)).encode()
    put(tmp_path, "class.zip", zipped(("doe_1_2_x.ipynb", notebook), ("roe_3_4_work.ipynb", PLAIN[:99])))
    assert list(by_student(tmp_path)) == students


@pytest.mark.parametrize(
    "first, second, counts",
    [
        ((f"{FIRST}.ipynb", PLAIN, OLD), (f"{FIRST} (1).ipynb", SOLVED, NEW), 1),
        ((f"{FIRST}.ipynb", PLAIN, OLD), ("work.zip", zipped((f"a/{FIRST}.ipynb", SOLVED)), NEW), 1),
        ((f"{FIRST}.ipynb", PLAIN, OLD), (f"{FIRST} (1).ipynb", PLAIN[:99], NEW), 0),
        ((f"{FIRST} (9).ipynb", PLAIN, OLD), (f"{FIRST} (10).ipynb", SOLVED, OLD), 1),
    ],
    ids=["newer", "newer zip", "newer but broken", "same time"],
)
def test_of_several_files_the_newest_whole_one_counts_and_is_flagged(tmp_path, first, second, counts):
    for name, data, modified in (first, second):
        put(tmp_path, f"ada/{FIRST}/{name}", data, modified)
    shown = [
        f"ada/{FIRST}/{name}{f'/a/{FIRST}.ipynb' * name.endswith('.zip')} ({at(modified)})"
        for name, _, modified in (first, second)
    ]
    (flag,) = by_student(tmp_path)["ada"].flags
    assert flag == f"2 files: {shown[counts]} counts, not {shown[1 - counts]}"


def test_what_is_graded_is_what_was_read_when_it_was_found(tmp_path):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb", PLAIN, OLD)
    path = put(tmp_path, f"ada/{FIRST}/{FIRST} (1).ipynb", SOLVED, NEW)
    submission = by_student(tmp_path)["ada"]
    path.write_bytes(EMPTY)
    assert submission.content.notebook == screen(SOLVED).notebook


def test_an_empty_notebook_under_the_lesson_s_name_is_handed_in(tmp_path):
    put(tmp_path, "class.zip", zipped(("mallory_66_102_work.zip", zipped((f"a/{FIRST}.ipynb", EMPTY)))))
    assert "none of this lesson's exercises" in flags_of(tmp_path, "mallory_66")


@pytest.mark.parametrize("stamp", [b"yesterday at noon", b"", b"9" * 16, b"2026-13-77", b"\x00", b"\xff", b"x" * 1000])
def test_a_time_stamp_is_read_as_nbgrader_reads_it_or_flagged(tmp_path, stamp):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    put(tmp_path, f"ada/{FIRST}/timestamp.txt", stamp)
    assert by_student(tmp_path)["ada"].timestamp == "" and "time stamp" in flags_of(tmp_path, "ada")
    put(tmp_path, f"ada/{FIRST}/timestamp.txt", b"2026-03-01 12:30:00.123 +0100")
    assert by_student(tmp_path)["ada"].timestamp.startswith("2026-03-01 ")


@pytest.mark.parametrize(
    "text, safe",
    [
        ("Jane Doe_7", "Jane-Doe_7"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("=cmd|' /C calc'!A0", "cmd-C-calc-A0"),
        ("Łukasz Çelik", "Łukasz-Çelik"),
        ("x" * 500, "x" * 100),
        ("CON", "student-CON"),
    ],
)
def test_names_become_safe_ones(text, safe):
    assert slug(text) == slug(safe) == safe


# ------------------------------------------------------------------------------------------------- what is left out


@pytest.mark.parametrize(
    "name", ["../evil/x.ipynb", "a/../../x.ipynb", "/etc/x.ipynb", "C:/x.ipynb", "C:x.ipynb", "..\\x.ipynb"]
)
def test_a_path_that_leads_out_of_a_zip_is_left_out(tmp_path, name):
    submissions, left_out = read_submissions(
        put(tmp_path, "class.zip", zipped(name, f"doe_11_222_{FIRST}.ipynb")), FIRST, NOWHERE
    )
    assert [each.student.id for each in submissions] == ["doe_11"]
    assert any("leads out of the zip" in flag for flag in left_out)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK, stat.S_IFREG])
def test_links_devices_and_bombs_in_a_zip_are_left_out(tmp_path, kind):
    data = bytes(30 << 20) if kind == stat.S_IFREG else b"/etc/passwd"
    put(tmp_path, "class.zip", zipped((member(f"doe_11_222_{FIRST}.ipynb", kind=kind), data)))
    submissions, left_out = read_submissions(tmp_path, FIRST, NOWHERE)
    (submission,) = submissions
    assert (submission.student.id, submission.file) == ("doe_11", None), "handed in, and nothing to run"
    assert left_out == [] and len(submission.flags) == 1


def test_links_and_pipes_on_disk_are_not_followed(tmp_path):
    secret, submitted = put(tmp_path / "elsewhere", "secret.ipynb", SOLVED), tmp_path / "submitted"
    for student in ("linked", "linked-folder", "piped"):
        (submitted / student / FIRST).mkdir(parents=True)
    os.symlink(secret, submitted / "linked" / FIRST / f"{FIRST}.ipynb")
    os.mkfifo(submitted / "piped" / FIRST / f"{FIRST}.ipynb")
    (submitted / "linked-folder" / FIRST).rmdir()
    os.symlink(secret.parent, submitted / "linked-folder" / FIRST)
    submissions = by_student(submitted)
    assert set(submissions) == {"linked", "linked-folder", "piped"}
    assert "is a link" in flags_of(submitted, "linked") and "no plain file" in flags_of(submitted, "piped")
    for submission in submissions.values():
        assert "no notebook was handed in" in str(submission.content)


def test_a_member_that_lies_about_its_size_is_read_no_further_than_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_FILE", 1000)
    data = bytearray(zipped((f"doe_11_222_{FIRST}.ipynb", os.urandom(5000))))
    place = data.rindex(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", 10)  # the size in the zip's list
    (submission,) = by_student(put(tmp_path, "class.zip", bytes(data))).values()
    assert isinstance(submission.content, UnreadableFile)


@pytest.mark.parametrize("limit, most", [("MOST_FILES", 5), ("MOST_MB", 10 * len(PLAIN) / (1 << 20))])
def test_one_student_s_flood_is_cut_off_and_costs_nobody_else(tmp_path, monkeypatch, limit, most):
    monkeypatch.setattr(archives, limit, most)
    flood = zipped(*[f"{number}/{FIRST}.ipynb" for number in range(9)])
    others = [f"s{number}_1{number}_222_{FIRST}.ipynb" for number in range(9)]
    flags = {
        student: " ".join(submission.flags)
        for student, submission in by_student(
            put(tmp_path, "class.zip", zipped(("aaa_1_2_flood.zip", flood), *others))
        ).items()
    }
    assert len(flags) == 10 and "the rest was left out" in flags.pop("aaa_1") and not any(flags.values())


def test_a_zip_in_a_zip_in_a_zip_is_left_out(tmp_path):
    data = zipped(f"{FIRST}.ipynb")
    for _ in range(3):
        data = zipped(("doe_11_222_x.zip", data))
    data = zipped(("roe_12_223_x.ipynb", PLAIN), ("doe_11_222_x.zip", data))
    submissions, left_out = read_submissions(put(tmp_path, "class.zip", data), FIRST, NOWHERE)
    assert [each.student.id for each in submissions] == ["doe_11", "roe_12"] and left_out == []
    assert "is a zip in a zip in a zip and was left out" in submissions[0].flags[0]
    assert "no notebook was handed in" in str(submissions[0].content)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "name, student, reason",
    [
        ("/".join(["Jane Doe_12_assignsubmission_file", *"abcdefghijklmnop", "x.ipynb"]), "Jane-Doe_12", "too deep"),
        ("doe_11_222_essay.pdf", "doe_11", "doe_11_222_essay.pdf holds no notebook"),
        ("Jane Doe_12_assignsubmission_file/essay.pdf", "Jane-Doe_12", "holds no notebook"),
        ("doe_11_222_x.zip", "doe_11", "is not a zip that can be read"),
        ("...Doe_12_assignsubmission_file/x.zip", "Doe_12", "is not a zip that can be read"),
    ],
)
def test_who_hands_in_nothing_that_can_be_read_is_there_with_the_reason(tmp_path, name, student, reason, packed):
    if packed and reason == "too deep":
        return  # in a zip folders are only names
    if packed:
        put(tmp_path, "class.zip", zipped(f"roe_12_223_{FIRST}.ipynb", (name, b"x")))
    else:
        put(tmp_path, f"roe_12_223_{FIRST}.ipynb")
        put(tmp_path, name, b"x")
    assert list(by_student(tmp_path)) == sorted([student, "roe_12"])
    assert reason in flags_of(tmp_path, student)


@pytest.mark.parametrize("name", [".._110_assignsubmission_file_/x.ipynb", ".._110_assignsubmission_file_x.ipynb"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_name_that_begins_with_a_dot_is_a_name(tmp_path, name, packed):
    put(tmp_path, "class.zip", zipped(name)) if packed else put(tmp_path, name)
    (submission,) = by_student(tmp_path).values()
    assert (submission.student.id, submission.student.number, submission.file.name[-7:]) == ("110", "110", "x.ipynb")


def test_what_is_handed_in_of_another_lesson_makes_no_entry_in_this_one(tmp_path):
    other = nbformat.writes(answer_notebook("02_queries_keys_values")).encode()
    put(tmp_path, "1.zip", zipped(f"doe_11_222_{FIRST}.ipynb"))
    put(tmp_path, "2.zip", zipped(("doe_11_224_x.ipynb", other), ("roe_12_225_x.pdf", b"x")))
    put(tmp_path, "ada/02_queries_keys_values/x.zip", b"x")
    assert list(by_student(tmp_path)) == ["doe_11"]


def test_of_two_members_of_one_name_the_last_counts_and_the_flag_tells_them_apart(tmp_path):
    first, second = member(f"a/{FIRST}.ipynb", (2026, 3, 2, 9, 0, 0)), member(f"a//{FIRST}.ipynb")
    put(tmp_path, "class.zip", zipped(("doe_11_222_x.zip", zipped((first, SOLVED), "b/x.txt", (second, PLAIN)))))
    (submission,) = by_student(tmp_path).values()
    assert submission.file.read() == PLAIN
    (flag,) = submission.flags
    counts = f"number 3 ({len(PLAIN):,} bytes, dated 2026-03-02 10:00) counts"
    assert f"is in the zip 2 times: {counts}, not number 1 ({len(SOLVED):,} bytes, dated 2026-03-02 09:00)" in flag


def test_a_zip_is_parsed_once_however_much_it_lists(tmp_path, monkeypatch):
    parsed, zip_file = [], zipfile.ZipFile
    put(tmp_path, "class.zip", zipped(("doe_11_222_x.zip", zipped(*(f"{n}/{FIRST}.ipynb" for n in range(20))))))
    monkeypatch.setattr(zipfile, "ZipFile", lambda *file: parsed.append(file) or zip_file(*file))
    assert list(by_student(tmp_path)) == ["doe_11"] and len(parsed) == 2


def test_of_one_student_no_more_than_so_many_entries_of_zips_are_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_LISTED", 9)
    for name in ("a", "b", "c"):
        put(tmp_path, f"ada/{FIRST}/{name}.zip", zipped(*(f"{n}/{FIRST}.ipynb" for n in range(4))))
    put(tmp_path, f"ben/{FIRST}/x.zip", zipped(f"x/{FIRST}.ipynb"))
    assert "c.zip lists more than 9 files" in flags_of(tmp_path, "ada") and flags_of(tmp_path, "ben") == ""


def test_a_file_that_a_zip_lists_under_many_names_is_read_once(tmp_path):
    names = [f"{n}.ipynb" for n in range(9)]
    data, place = zipped(*names), 0
    while (place := data.find(b"PK\x01\x02", place + 1)) > 0:
        data = data[: place + 42] + bytes(4) + data[place + 46 :]  # the place of the file
    put(tmp_path, f"ada/{FIRST}/x.zip", data)
    assert [file.name for file in archives.FileScanner().scan(tmp_path)] == ["8.ipynb"]


@pytest.mark.parametrize("damage", ["cut off", "empty", "noise", "overwritten"])
def test_a_damaged_zip_stops_nothing(tmp_path, damage):
    whole = zipped(f"doe_11_222_{FIRST}.ipynb")
    damaged = {"cut off": whole[:200], "empty": b"", "noise": b"\x93" * 500, "overwritten": whole[:60] + bytes(9)}
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    put(tmp_path, "class.zip", damaged[damage] + whole[69:] * (damage == "overwritten"))
    assert "ada" in by_student(tmp_path)
