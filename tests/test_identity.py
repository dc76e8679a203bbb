"""Whatever a student sends, it is theirs: no name, path or date in it reaches another student's place, time or mark."""

from __future__ import annotations

import io
import json
import random
import stat
import unicodedata
import zipfile

import nbformat
import pytest
from conftest import FIRST, answer_notebook, solved

from helpers.grading.submissions.identity import (
    FileOwner,
    is_safe_id,
    loose_owner,
    match_key,
    parse_platform_name,
    slug,
)
from helpers.grading.submissions.select import read_submissions
from helpers.grading.submissions.students import identify

SECOND = "02_queries_keys_values"
PLAIN = nbformat.writes(answer_notebook(FIRST)).encode()
SOLVED = nbformat.writes(answer_notebook(FIRST, **solved(FIRST))).encode()
EMPTY = nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("x")])).encode()
STAMP = b"2031-01-01 00:00:00 UTC"
LATE_2107 = (2107, 12, 31, 23, 59, 58)


def member(name, date=(2026, 3, 2, 10, 0, 0), kind=0):
    made = zipfile.ZipInfo(name, date)
    made.compress_type = zipfile.ZIP_DEFLATED
    if kind:
        made.create_system, made.external_attr = 3, (kind | 0o777) << 16
    return made


def zipped(*members):
    """The bytes of a zip with these members: (name or ZipInfo, bytes)."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in members:
            archive.writestr(name if isinstance(name, zipfile.ZipInfo) else member(name), content)
    return data.getvalue()


def put(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def seen(place, *without):
    """(id, digest, timestamp) of everybody but these."""
    return {
        (s.student.id, s.digest, s.timestamp, s.flags)
        for s in read_submissions(place, FIRST).submissions
        if s.student.id not in without
    }


# ------------------------------------------------------------------------------------- what was reproduced


def nasty_names(victim):
    """What a student may call things in a zip of their own, to be taken for `victim`: name, number, folder."""
    name, number, folder = victim
    return [
        f"{name}_{number}/{FIRST}/{FIRST}.ipynb",
        f"{folder}/{FIRST}/{FIRST}.ipynb",
        f"{folder}/{FIRST}/timestamp.txt",
        f"{FIRST}/timestamp.txt",
        "timestamp.txt",
        f"submitted/{folder}/{FIRST}/{FIRST}.ipynb",
        f"{name}_{number}_9999999_{FIRST}.ipynb",
        f"{name}_LATE_{number}_9999999_{FIRST}.ipynb",
        f"{name}_{number}_9999999_work.zip",
        f"{name.title()} X_{number}_assignsubmission_file_/{FIRST}.ipynb",
        f"{name.title()} X_{number}_assignsubmission_file_{FIRST}.ipynb",
        f"{FIRST}/{name}_{FIRST}.ipynb",
        f"{name}/{FIRST}.ipynb",
        f"../{folder}/{FIRST}/{FIRST}.ipynb",
        f"/{folder}/{FIRST}/{FIRST}.ipynb",
        f"..\\{folder}\\{FIRST}\\{FIRST}.ipynb",
        f"C:/{folder}/{FIRST}/{FIRST}.ipynb",
        f"./{folder}//{FIRST}/./{FIRST}.ipynb",
        f"{folder.upper()}/{FIRST}/{FIRST}.ipynb",
        f"{unicodedata.normalize('NFD', folder)}/{FIRST}/{FIRST}.ipynb",
        f"\u202e{folder}/{FIRST}/{FIRST}.ipynb",
        f"__MACOSX/{folder}/{FIRST}/{FIRST}.ipynb",
        f".hidden/{folder}/{FIRST}/{FIRST}.ipynb",
        f"{'d/' * 60}{FIRST}.ipynb",
        f"{'x' * 3000}.ipynb",
        f"Grades-{FIRST}.csv",
        "handed_in.csv",
        "deadlines.csv",
        "roster.csv",
        f"{SECOND}/{FIRST}.ipynb",
        f"{FIRST}.ipynb",
        f"{FIRST}.ipynb/",
        "nbgrader/gradebook.db",
        "con.ipynb",
        "",
    ]


CSV = b"lesson,student,at\n01_dot_product_attention,doejane_77,2031-01-01 00:00\n"


def nasty_zip(chance, victim, depth=0):
    """A zip of a student who wants to be somebody else, or nobody's good."""
    names = nasty_names(victim)
    members = []
    for name in chance.sample(names, chance.randint(1, len(names))):
        content = chance.choice([EMPTY, SOLVED, PLAIN[:50], b"", STAMP, CSV, b"\0" * 5000])
        if name.endswith("timestamp.txt"):
            content = STAMP
        elif name.endswith(".zip"):
            content = nasty_zip(chance, victim, depth + 1) if depth < 2 else b"PK\x03\x04"
        kind = chance.choice([0, 0, 0, 0, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR, stat.S_IFREG])
        members.append((member(name or "x", chance.choice([LATE_2107, (1980, 1, 1, 0, 0, 0)]), kind), content))
    return zipped(*members)


def canvas_class(folder, sent=None):
    """A Canvas export of two, and what a third sent. Returns the third's id."""
    members = [(f"doejane_77_100_{FIRST}.ipynb", SOLVED), (f"roe_LATE_78_101_{FIRST}.ipynb", PLAIN)]
    if sent is not None:
        members.insert(0, ("mallory_66_102_work.zip", sent))
    put(folder, "submissions.zip", zipped(*members))
    return "mallory_66"


def moodle_class(folder, sent=None):
    members = [
        (f"Doejane X_77_assignsubmission_file/{FIRST}.ipynb", SOLVED),
        (f"Roe Y_78_assignsubmission_file/sub/{FIRST}.ipynb", PLAIN),
    ]
    if sent is not None:
        members.append(("Mallory_66_assignsubmission_file/work.zip", sent))
    put(folder, "C1-Lesson 1-4711.zip", zipped(*members))
    return "Mallory_66"


def unpacked_moodle_class(folder, sent=None):
    put(folder, f"Doejane X_77_assignsubmission_file_/{FIRST}.ipynb", SOLVED)
    put(folder, f"Roe Y_78_assignsubmission_file_/{FIRST}.ipynb", PLAIN)
    if sent is not None:
        put(folder, "Mallory_66_assignsubmission_file_/work.zip", sent)
    return "Mallory_66"


def unpacked_canvas_class(folder, sent=None):
    put(folder, f"doejane_77_100_{FIRST}.ipynb", SOLVED)
    put(folder, f"roe_LATE_78_101_{FIRST}.ipynb", PLAIN)
    if sent is not None:
        put(folder, "mallory_66_102_work.zip", sent)
    return "mallory_66"


def folders(folder, sent=None):
    for student, data in (("doejane_77", SOLVED), ("jane", PLAIN)):
        put(folder, f"{student}/{FIRST}/{FIRST}.ipynb", data)
        put(folder, f"{student}/{FIRST}/timestamp.txt", b"2026-03-01 12:00:00 UTC")
    if sent is not None:
        put(folder, f"mallory/{FIRST}/work.zip", sent)
    return "mallory"


LAYOUTS = [canvas_class, moodle_class, unpacked_canvas_class, unpacked_moodle_class, folders]
VICTIMS = [("doejane", "77", "doejane_77"), ("roe", "78", "Roe-Y_78"), ("jane", "1", "jane")]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_whatever_a_zip_holds_the_others_stay_as_they_are(tmp_path, layout):
    layout(tmp_path / "before")
    before = seen(tmp_path / "before")
    assert len(before) == 2
    chance = random.Random(layout.__name__)
    for turn in range(12):
        place = tmp_path / str(turn)
        own = layout(place, nasty_zip(chance, VICTIMS[turn % 3]))
        assert seen(place, own) == before


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("victim", VICTIMS, ids=lambda victim: victim[2])
def test_each_name_by_itself_names_nobody(tmp_path, layout, victim):
    layout(tmp_path / "before")
    before = seen(tmp_path / "before")
    for place, name in enumerate(filter(None, nasty_names(victim))):
        data = STAMP if name.endswith(".txt") else zipped((f"{FIRST}.ipynb", EMPTY)) if name.endswith(".zip") else EMPTY
        own = layout(tmp_path / str(place), zipped((member(name, LATE_2107), data)))
        assert seen(tmp_path / str(place), own) == before, name


def test_a_student_s_time_stamp_in_a_zip_is_no_time(tmp_path):
    folders(tmp_path, zipped((f"{FIRST}.ipynb", PLAIN), ("timestamp.txt", STAMP), (f"{FIRST}/timestamp.txt", STAMP)))
    assert {s.student.id: s.timestamp for s in read_submissions(tmp_path, FIRST).submissions}["mallory"] == ""


def test_who_hands_in_an_empty_notebook_under_the_lesson_s_name_has_handed_in(tmp_path):
    canvas_class(tmp_path, zipped((f"other_77/{FIRST}/{FIRST}.ipynb", EMPTY)))
    assert "none of this lesson's exercises" in flags_of(tmp_path, "mallory_66")


def test_a_date_in_a_student_s_zip_decides_nothing(tmp_path):
    old, new = (1980, 1, 1, 0, 0, 0), LATE_2107
    inner = zipped((member(f"a/{FIRST}-2.ipynb", new), EMPTY), (member(f"{FIRST}.ipynb", old), SOLVED))
    place = put(tmp_path, "class.zip", zipped(("doe_1_2_work.zip", inner)))
    (submission,) = read_submissions(place, FIRST).submissions
    assert submission.file.name == f"{FIRST}.ipynb" and submission.file.modified < 1_900_000_000


FLOODS = {
    "many members": lambda: zipped(*[(f"{place}.txt", b"") for place in range(2_500)]),
    "many notebooks": lambda: zipped(*[(f"doejane_77_{place}_{FIRST}.ipynb", EMPTY) for place in range(1, 150)]),
    "many zips": lambda: zipped(*[(f"{place}.zip", zipped(("x.ipynb", b"{}"))) for place in range(150)]),
    "a long list": lambda: b"PK\x01\x02" * 20_001 + zipped((f"{FIRST}.ipynb", EMPTY)),
    "a bomb": lambda: zipped((f"{FIRST}.ipynb", b"\0" * (30 << 20))),
    "no zip": lambda: b"PK\x03\x04 and no more",
    "deep brackets": lambda: zipped((f"{FIRST}.ipynb", b'{"cells":' + b"[" * 900 + b"]" * 900 + b"}")),
}


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("layout", [canvas_class, folders])
def test_a_flood_drowns_no_one_else(tmp_path, layout, flood):
    layout(tmp_path / "before")
    own = layout(tmp_path / "after", FLOODS[flood]())
    assert seen(tmp_path / "after", own) == seen(tmp_path / "before")


def test_a_platform_s_name_inside_another_platform_s_is_the_outer_one_s(tmp_path):
    names = {
        f"Jane Doe_12_assignsubmission_file_Bob_99_assignsubmission_file_{FIRST}.ipynb": "Jane-Doe_12",
        f"doejane_12_345_Bob_99_assignsubmission_file_{FIRST}.ipynb": "doejane_12",
        f"doejane_12_345_bob_99_678_{FIRST}.ipynb": "doejane_12",
        f"Jane_12_assignsubmission_file_bob_99_678_{FIRST}.ipynb": "Jane_12",
        f"doejane_12_345_bob_LATE_99_678_{FIRST}.ipynb": "doejane_12",
        f"Jane Doe_12_assignsubmission_onlinetext_Bob_99_assignsubmission_file_{FIRST}.ipynb": "Jane-Doe_12",
    }
    for place, (name, student) in enumerate(names.items()):
        put(tmp_path, f"{place}/{name}", PLAIN)
        put(tmp_path, f"{place}z/class.zip", zipped((name, PLAIN)))
        for folder in (f"{place}", f"{place}z"):
            (submission,) = read_submissions(tmp_path / folder, FIRST).submissions
            assert (submission.student.id, submission.marked_late) == (student, False)


def test_a_folder_that_holds_an_export_is_left_out_and_said_so(tmp_path):
    put(tmp_path, f"export/doejane_77_100_{FIRST}.ipynb", PLAIN)
    put(tmp_path, f"export/roe_78_101_{FIRST}.ipynb", PLAIN)
    inner = zipped((f"export/doejane_77_100_{FIRST}.ipynb", PLAIN), (f"export/roe_78_101_{FIRST}.ipynb", PLAIN))
    put(tmp_path, "class.zip", inner)
    found = read_submissions(tmp_path, FIRST)
    assert found.submissions == []
    assert len(found.flags) == 2 and all(
        "export of 2 students" in flag and "submitted/" in flag for flag in found.flags
    )


def test_one_student_s_folder_made_to_look_like_an_export_harms_that_student_alone(tmp_path):
    folders(tmp_path)
    before = seen(tmp_path)
    put(tmp_path, f"mallory/doejane_77_900_{FIRST}.ipynb", EMPTY)
    assert seen(tmp_path, "mallory") == before
    put(tmp_path, f"mallory/jane_1_901_{FIRST}.ipynb", EMPTY)
    assert seen(tmp_path) == before


def test_an_export_is_told_as_what_it_was_read(tmp_path):
    canvas_class(tmp_path)
    moodle_class(tmp_path)
    assert sorted(read_submissions(tmp_path, FIRST).notes) == [
        "C1-Lesson 1-4711.zip was read as an export of Moodle: 2 students",
        "submissions.zip was read as an export of Canvas: 2 students",
    ]


def test_two_platforms_in_one_class_stay_apart(tmp_path):
    canvas_class(tmp_path)
    moodle_class(tmp_path)
    students = [s.student for s in read_submissions(tmp_path, FIRST).submissions]
    assert sorted((s.id, s.platform, s.number) for s in students) == [
        ("Doejane-X_77", "moodle", "77"),
        ("Roe-Y_78", "moodle", "78"),
        ("doejane_77", "canvas", "77"),
        ("roe_78", "canvas", "78"),
    ]


def test_the_same_export_twice_is_no_matter(tmp_path):
    canvas_class(tmp_path)
    before = seen(tmp_path)
    put(tmp_path, "submissions (1).zip", (tmp_path / "submissions.zip").read_bytes())
    assert seen(tmp_path) == before


def test_of_two_exports_the_later_hand_in_counts(tmp_path):
    put(tmp_path, "b.zip", zipped((f"doe_7_100_{FIRST}.ipynb", PLAIN)))
    put(tmp_path, "a.zip", zipped((f"doe_7_250_{FIRST}-1.ipynb", SOLVED)))
    name = f"Doe_7_assignsubmission_file/{FIRST}.ipynb"
    put(tmp_path, "c.zip", zipped((member(name, (2026, 3, 9, 8, 0, 0)), SOLVED)))
    put(tmp_path, "d.zip", zipped((member(name, (2026, 3, 2, 8, 0, 0)), PLAIN)))
    canvas, moodle = sorted(read_submissions(tmp_path, FIRST).submissions, key=lambda s: s.student.platform)
    assert canvas.file.read() == moodle.file.read() == SOLVED
    assert f"doe_7_250_{FIRST}-1.ipynb (Canvas's file 250) counts, not doe_7_100" in canvas.flags[-1]
    assert "(2026-03-09 08:00) counts, not" in moodle.flags[-1] and "(2026-03-02 08:00)" in moodle.flags[-1]


# ------------------------------------------------------------------------------------------ who is like whom


def ids(place):
    return sorted(s.student.id for s in read_submissions(place, FIRST).submissions)


def flags_of(place, student):
    return " ".join(next(s.flags for s in read_submissions(place, FIRST).submissions if s.student.id == student))


@pytest.mark.parametrize(
    "one, other",
    [
        ("Jane Doe", "jane-doe"),
        ("zoë", unicodedata.normalize("NFD", "zoë")),
        ("ada", "Ada"),
        ("a b", "a-b"),
        ("ﬁn", "fin"),
    ],
)
def test_folders_that_look_alike_stay_apart_and_are_told(tmp_path, one, other):
    put(tmp_path, f"{one}/{FIRST}/{FIRST}.ipynb", PLAIN)
    put(tmp_path, f"{other}/{FIRST}/{FIRST}.ipynb", SOLVED)
    assert ids(tmp_path) == sorted([one, other])
    assert other in flags_of(tmp_path, one) and one in flags_of(tmp_path, other)
    assert all("taken for different people" in flags_of(tmp_path, name) for name in (one, other))


@pytest.mark.parametrize(
    "names",
    [
        (f"a b_7_assignsubmission_file/{FIRST}.ipynb", f"a-b_7_assignsubmission_file/{FIRST}.ipynb"),
        (f"jane_7_assignsubmission_file/{FIRST}.ipynb", f"jane_7_100_{FIRST}.ipynb"),
        (f"a+b/{FIRST}/{FIRST}.ipynb", f"a&b/{FIRST}/{FIRST}.ipynb"),
        (f"😀/{FIRST}.ipynb", f"🎉_{FIRST}.ipynb"),
        (f"a!_{FIRST}.ipynb", f"a?_{FIRST}.ipynb"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_two_who_would_have_one_id_are_kept_apart_and_told(tmp_path, names, packed):
    for name, data in zip(names, (PLAIN, SOLVED), strict=True):
        put(tmp_path, *("class.zip", zipped(*zip(names, (PLAIN, SOLVED), strict=True))) if packed else (name, data))
    found = read_submissions(tmp_path, FIRST).submissions
    assert len({s.student.id for s in found}) == 2 and len({s.digest for s in found}) == 2
    if not {"😀", "🎉"} & {part[0] for part in names}:
        assert any("kept apart" in flag for s in found for flag in s.flags)


def test_a_loose_file_is_never_added_to_a_student_s_folder(tmp_path):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb", SOLVED)
    before = {(s.student.id, s.digest) for s in read_submissions(tmp_path, FIRST).submissions}
    put(tmp_path, f"ada_{FIRST}.ipynb", EMPTY.replace(b"x", b"raw_weights") and PLAIN)
    put(tmp_path, "mail.zip", zipped((f"ada/{FIRST}/{FIRST}.ipynb", PLAIN)))
    after = {(s.student.id, s.digest) for s in read_submissions(tmp_path, FIRST).submissions}
    assert before < after and len({student for student, _ in after}) == 3
    assert "kept apart as ada-" in flags_of(tmp_path, "ada")


def test_a_table_inside_a_student_s_folder_gives_nobody_s_number(tmp_path):
    table = f"lesson,student,platform,number\n{FIRST},mallory,canvas,77\n{FIRST},{FIRST},canvas,77\n".encode()
    put(tmp_path, f"mallory/{FIRST}/{FIRST}.ipynb", PLAIN)
    put(tmp_path, f"mallory/{FIRST}/collected.csv", table)
    put(tmp_path, "mallory/collected.csv", table)
    put(tmp_path, "class.zip", zipped(("collected.csv", table), (f"doe_1_2_{FIRST}.ipynb", PLAIN)))
    assert {s.student.number for s in read_submissions(tmp_path, FIRST).submissions} == {"", "1"}


def test_what_make_collect_copied_and_the_zip_it_came_from_are_one_student(tmp_path):
    canvas_class(tmp_path)
    put(tmp_path, f"doejane_77/{FIRST}/{FIRST}.ipynb", SOLVED)
    assert ids(tmp_path) == ["doejane_77", "roe_78"]


@pytest.mark.parametrize(
    "name",
    [
        "nbgrader",
        "CON",
        "aux.txt",
        "x" * 200,
        "ж" * 120,
        "😀😀",
        "a\u202egnp.ipynb",
        "=1+1",
        "a<b>",
        "-rf",
        "~root",
        "a'b",
        "new\nline",
        "tab\tname",
        "%2e%2e",
        "a|b",
        "a:b",
        "trailing.",
        "\u200b",
    ],
)
def test_odd_names_of_folders_become_ids_that_every_system_holds(tmp_path, name):
    put(tmp_path, f"{name}/{FIRST}/{FIRST}.ipynb", PLAIN)
    (submission,) = read_submissions(tmp_path, FIRST).submissions
    student = submission.student.id
    assert slug(student) == student and len(student.encode()) <= 200 and student not in (".", "..")
    assert submission.digest and all(flag.isprintable() for flag in submission.flags)


@pytest.mark.parametrize("name", ["..", ".", "../..", "a/../b", "..\\x"])
def test_a_way_up_is_no_name(tmp_path, name):
    assert slug(name) not in (".", "..")
    put(tmp_path, "class.zip", zipped((f"{name}/{FIRST}/{FIRST}.ipynb", PLAIN), (f"doe_1_2_{FIRST}.ipynb", PLAIN)))
    assert "doe_1" in ids(tmp_path) and all(slug(student) == student for student in ids(tmp_path))


def test_names_as_the_platforms_write_them():
    assert canvas_name("Doe-Smith, Jane Æ.") == "doesmithjaneæ"
    assert (
        parse_platform_name(f"doe_LATE_77_4711_{FIRST}.ipynb").late
        and parse_platform_name("late_77_4711_x.ipynb").late is False
    )
    anonymous = parse_platform_name("LATE_anon_8Bz3A_4711_x.ipynb")
    assert (anonymous.owner, anonymous.late, anonymous.upload) == (FileOwner("canvas", "anon_8Bz3A"), True, 4711)
    assert parse_platform_name("smith_jr_77_4711_x.ipynb").owner == FileOwner("canvas", "smith_jr", "77")
    assert parse_platform_name(f"Smith_2024_{FIRST}.ipynb") is None, "a loose file with a year"
    assert loose_owner(f"Smith_2024_{FIRST} (2).ipynb") == FileOwner("loose", "Smith_2024")
    assert parse_platform_name("Group A_12_assignsubmission_file").owner == FileOwner("moodle", "Group A", "12")
    assert parse_platform_name("doe_77_" + "9" * 400 + "_x.ipynb") is None, "no number is that long"
    assert match_key("Jane  DOE") == match_key("jane-doe") != match_key("jane-roe")


# ------------------------------------------------------------------------------------------------ the roster


def test_a_roster_gives_ids_and_names(tmp_path):
    canvas_class(tmp_path / "submitted")
    (tmp_path / "roster.csv").write_text("id,number,name,email\nada,77,Ada Lovelace,ada@x.example\n")
    found = {s.student.id: s.student for s in read_submissions(tmp_path / "submitted", FIRST, tmp_path).submissions}
    assert set(found) == {"ada", "roe_78"}
    ada = found["ada"]
    assert (ada.first_name, ada.last_name, ada.email, ada.number, ada.platform) == (
        "Ada",
        "Lovelace",
        "ada@x.example",
        "77",
        "canvas",
    )


def test_moodle_s_students_are_the_same_in_every_assignment_once_there_is_a_roster(tmp_path):
    (tmp_path / "roster.csv").write_text("First name,Last name,Email address\nDoejane,X,d@x\nRoe,Y,r@x\n")
    for number in (77, 990):
        put(tmp_path / str(number), "m.zip", zipped((f"Doejane X_{number}_assignsubmission_file/{FIRST}.ipynb", PLAIN)))
        (submission,) = read_submissions(tmp_path / str(number), FIRST, tmp_path).submissions
        assert (submission.student.id, submission.student.number) == ("Doejane-X", str(number))


def moodle_flags(folder, *names):
    """What is said of each of Moodle's students, by id, where the roster knows Jane Doe by her name."""
    (folder / "roster.csv").write_text("First name,Last name,Email address\nJane,Doe,d@x\n")
    put(folder / "submitted", "m.zip", zipped(*((f"{n}_assignsubmission_file/{FIRST}.ipynb", SOLVED) for n in names)))
    return {
        s.student.id: " | ".join(s.flags) for s in read_submissions(folder / "submitted", FIRST, folder).submissions
    }


@pytest.mark.parametrize("name", ["Jane Doe", "jane doe"])
def test_a_match_by_name_alone_is_flagged(tmp_path, name):
    said = moodle_flags(tmp_path, f"{name}_66", "Roe Y_78")
    assert "matched to Jane-Doe in the roster by name alone" in said["Jane-Doe"] and said["Roe-Y_78"] == ""


@pytest.mark.parametrize("name", ["Jane Doe", "jane doe"])
def test_of_two_with_one_name_neither_gets_the_roster_s_id_and_both_are_flagged(tmp_path, name):
    said = moodle_flags(tmp_path, "Jane Doe_12", f"{name}_66")
    other = slug(f"{name}_66")
    assert set(said) == {"Jane-Doe_12", other}
    assert all("not matched to Jane-Doe in the roster: several hand-ins carry that name" in s for s in said.values())
    assert other in said["Jane-Doe_12"] and "Jane-Doe_12" in said[other]


def test_names_that_look_alike_are_flagged_across_platforms_and_numbers(tmp_path):
    put(
        tmp_path,
        "m.zip",
        zipped(*((f"{n}_assignsubmission_file/{FIRST}.ipynb", PLAIN) for n in ("Jane Doe_12", "B_3"))),
    )
    put(tmp_path, f"jane doe/{FIRST}/{FIRST}.ipynb", SOLVED)
    assert "the same as that of Jane-Doe_12, or almost" in flags_of(tmp_path, "jane doe")
    assert "jane doe" in flags_of(tmp_path, "Jane-Doe_12") and not flags_of(tmp_path, "B_3")


def test_names_that_moodle_hides_from_the_marker_are_nobody_s(tmp_path):
    names = [f"Participant_{n}_assignsubmission_file/{FIRST}.ipynb" for n in range(7, 12)]
    put(tmp_path, "m.zip", zipped(*((name, PLAIN) for name in names)))
    assert {s.flags for s in read_submissions(tmp_path, FIRST).submissions} == {()}


def test_identities_are_the_same_in_whatever_order_they_come():
    owners = [
        FileOwner("loose", "a!"),
        FileOwner("loose", "a?"),
        FileOwner("folder", "a"),
        FileOwner("canvas", "a", "1"),
        FileOwner("moodle", "a", "1"),
    ]
    told = {tuple(i.owners): i.student.id for i in identify(owners, {}, {})}
    assert told == {tuple(i.owners): i.student.id for i in identify(reversed(owners), {}, {})} and len(set(told.values())) == 5


# ----------------------------------------------------------------------------------- what is screened can be kept


FIELDS = ["source", "id", "cell_type", "metadata", "nbgrader", "grade_id", "points", "tags", "\ud800"]
TEXTS = ["\ud800", "\udfff x", "\x00", "\x1b[2J", "\u202e", "x" * 5000, "def raw_weights(x):\n    pass", ""]


def nasty_values(chance, depth=0):
    kinds = [
        lambda: chance.choice(TEXTS),
        lambda: chance.choice([10**300, -(10**40), 1e308, 0.1, True, None, -0.0]),
        lambda: float("nan"),
        lambda: float("inf"),
    ]
    if depth < 4:
        kinds += [
            lambda: [nasty_values(chance, depth + 1) for _ in range(chance.randint(0, 4))],
            lambda: {chance.choice(FIELDS): nasty_values(chance, depth + 1) for _ in range(chance.randint(0, 5))},
        ]
    return chance.choice(kinds)()


@pytest.mark.parametrize("turn", range(5))
def test_what_is_screened_can_be_written_kept_and_judged(tmp_path, turn):
    from helpers.grading.submissions.restore import restore
    from helpers.grading.submissions.untrusted_notebook import UnreadableFile, screen

    chance, passed, released = random.Random(turn), 0, answer_notebook(FIRST)
    for _ in range(40):
        told = json.loads(PLAIN)
        for _ in range(chance.randint(1, 6)):
            cell = chance.choice(told["cells"])
            cell[chance.choice(["source", "id", "cell_type", "metadata", "input", "\ud800"])] = nasty_values(chance)
        if chance.random() < 0.3:
            chance.choice(told["cells"]).setdefault("metadata", {})
            told[chance.choice(["cells", "metadata", "nbformat", "worksheets"])] = nasty_values(chance)
        try:
            screened = screen(json.dumps(told).encode())
        except UnreadableFile:
            continue
        passed += 1
        restored = restore(screened.notebook, released)
        nbformat.validate(restored.notebook)
        nbformat.writes(restored.notebook).encode("utf-8")
        json.dumps([screened.flags, restored.flags], allow_nan=False).encode("utf-8")
        for flag in (*screened.flags, *restored.flags):
            assert flag.isprintable()
            flag.encode("utf-8")
    assert passed > 8


@pytest.mark.parametrize(
    "data",
    [
        b'{"cells":' * 900 + b"1" + b"}" * 900,
        b'{"cells": [' + b"1" * 5000 + b"]}",
        b'{"cells": [{"source": "1", "metadata": {"nbgrader": {"grade_id": "a", "points": ' + b"9" * 4000 + b"}}}]}",
        b'{"cells": [], "cells": [{"cell_type": "code", "source": "1"}]}',
        b'{"cells": [{"source": "a", "source": "b", "id": "\\ud800", "id": "\\udc00"}]}',
        b'{"cells": [{"source": NaN, "metadata": Infinity}]}',
        b'{"cells": [{"source": ["\\ud83d", "\\ude00"]}]}',
        b"\xef\xbb\xbf" * 2 + b"{}",
        b'{"cells": [{"source": "' + b"\\u0000" * 100 + b'"}]}',
        b"-" * 100_000,
        b'{"a":1e999999999}',
        b'"' + b"\\ud800" * 1000 + b'"',
    ],
)
def test_odd_json_is_read_or_unreadable_and_nothing_else(data):
    from helpers.grading.submissions.untrusted_notebook import UnreadableFile, screen

    try:
        nbformat.writes(screen(data).notebook).encode("utf-8")
    except UnreadableFile as problem:
        assert str(problem).isprintable()


def test_what_a_student_typed_into_metadata_is_harmless_in_flags():
    from helpers.grading.submissions.restore import restore
    from helpers.grading.submissions.untrusted_notebook import screen

    told = json.loads(PLAIN)
    for cell in told["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["tags"] = ["\x1b[2J\u202eskip", "\x00", "\ud800"]
            cell["metadata"]["nbgrader"]["points"] = 10**4000
            cell["source"] += "\x00"
    restored = restore(screen(json.dumps(told).encode()).notebook, answer_notebook(FIRST))
    assert restored.flags and all(flag.isprintable() and len(flag) < 300 for flag in restored.flags)
    assert not any("\0" in cell.source for cell in restored.notebook.cells)
