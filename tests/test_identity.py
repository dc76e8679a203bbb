"""Whatever a student sends, it is theirs: no name, path or date in it reaches another student's place, time or mark."""

from __future__ import annotations

import unicodedata

import pytest
from conftest import FIRST
from handed_in import EMPTY, NOWHERE, PLAIN, SOLVED, by_student, flags_of, member, put, zipped

from helpers.grading.submissions.identity import FileOwner, identify, loose_owner, parse_platform_name
from helpers.grading.submissions.roster import Student, canvas_name, match_key, slug
from helpers.grading.submissions.select import read_submissions

SECOND = "02_queries_keys_values"
STAMP = b"2031-01-01 00:00:00 UTC"
TABLE = f"lesson,student,at,number,platform\n{FIRST},doejane_77,2031-01-01 00:00,66,canvas\n".encode()
LATE_2107 = (2107, 12, 31, 23, 59, 58)


def without(place, *students):
    """What the marks of everybody but these rest on."""
    return {each for student, each in by_student(place).items() if student not in students}


# ------------------------------------------------------------------------------------------------- whose it is


def nasty_names(victim):
    """What a student may call things in a zip of their own, to be taken for `victim`: name, number, folder."""
    name, number, folder = victim
    before = ["", "submitted/", "../", "/", "..\\", "C:/", "\u202e", "__MACOSX/"]
    folders = [folder, f"{name}_{number}", folder.upper(), f"{name.title()} X_{number}_assignsubmission_file_"]
    files = [FIRST, f"{name}_{FIRST}", f"{name}_{number}_9999999_{FIRST}", f"{name}_LATE_{number}_9999999_{FIRST}"]
    files += [
        f"{name.title()} X_{number}_assignsubmission_file_{FIRST}",
        f"{SECOND}/{FIRST}",
        f"{FIRST}/{name}_{FIRST}",
    ]
    files += [f"{name}/{FIRST}", f"./{folder}//{FIRST}/./{FIRST}", "d/" * 60 + FIRST, "x" * 3000, "con"]
    names = [f"{prefix}{folder}/{FIRST}/{FIRST}.ipynb" for prefix in before]
    names += [f"{each}/{FIRST}/{FIRST}.ipynb" for each in folders] + [f"{each}.ipynb" for each in files]
    names += [f"{prefix}timestamp.txt" for prefix in ("", f"{FIRST}/", f"{folder}/{FIRST}/")]
    names += [f"Grades-{FIRST}.csv", "handed_in.csv", "collected.csv", "roster.csv"]
    return [*names, f"{name}_{number}_9999999_work.zip", f"{FIRST}.ipynb/"]


FLOODS = {
    "many members": lambda: zipped(*[(f"{place}.txt", b"") for place in range(2_500)]),
    "many notebooks": lambda: zipped(*[(f"doejane_77_{place}_{FIRST}.ipynb", EMPTY) for place in range(1, 150)]),
    "many zips": lambda: zipped(*[(f"{place}.zip", zipped(("x.ipynb", b"{}"))) for place in range(150)]),
    "a long list": lambda: b"PK\x01\x02" * 20_001 + zipped((f"{FIRST}.ipynb", EMPTY)),
    "a bomb": lambda: zipped((f"{FIRST}.ipynb", b"\0" * (30 << 20))),
    "no zip": lambda: b"PK\x03\x04 and no more",
    "deep brackets": lambda: zipped((f"{FIRST}.ipynb", b'{"cells":' + b"[" * 900 + b"]" * 900 + b"}")),
}

# Two honest students' files, and what a third sends, as each platform lays them out: names, the third's id, in a zip?
LAYOUTS = {
    "canvas": (f"doejane_77_100_{FIRST}.ipynb", f"roe_LATE_78_101_{FIRST}.ipynb", "mallory_66_102_work.zip"),
    "moodle": (
        f"Doejane X_77_assignsubmission_file/{FIRST}.ipynb",
        f"Roe Y_78_assignsubmission_file_/sub/{FIRST}.ipynb",
        "Mallory_66_assignsubmission_file/work.zip",
    ),
    "folders": (f"doejane_77/{FIRST}/{FIRST}.ipynb", f"jane/{FIRST}/{FIRST}.ipynb", f"mallory/{FIRST}/work.zip"),
}
MALLORY = {"canvas": "mallory_66", "moodle": "Mallory_66", "folders": "mallory"}
VICTIMS = [("doejane", "77", "doejane_77"), ("roe", "78", "Roe-Y_78"), ("jane", "1", "jane")]
WAYS = [("canvas", True), ("folders", False)]
WAYS += [pytest.param(*way, marks=pytest.mark.deep) for way in (("canvas", False), ("moodle", True), ("moodle", False))]
ways = pytest.mark.parametrize("layout, packed", WAYS)


def hand_in(folder, layout, packed, sent=None):
    files = dict(zip(LAYOUTS[layout], (SOLVED, PLAIN, sent), strict=True))
    files = {name: data for name, data in files.items() if data is not None}
    if packed:
        put(folder, "class.zip", zipped(*reversed(files.items())))
        return
    for name, data in files.items():
        put(folder, name, data, modified=1_000_000_000)
    if layout == "folders":
        put(folder, f"jane/{FIRST}/timestamp.txt", b"2026-03-01 12:00:00 UTC")


@ways
def test_whatever_a_zip_holds_the_others_stay_as_they_are(tmp_path, layout, packed):
    hand_in(tmp_path, layout, packed)
    before = without(tmp_path)
    assert len(before) == 2
    for victim in VICTIMS:
        members = []
        for name in nasty_names(victim):
            data = STAMP if name.endswith(".txt") else zipped((f"{FIRST}.ipynb", EMPTY)) if ".zip" in name else EMPTY
            members.append((member(name, LATE_2107), TABLE if name.endswith(".csv") else data))
        for sent in [members, *([each] for each in members)]:
            hand_in(tmp_path, layout, packed, zipped(*sent))
            assert without(tmp_path, MALLORY[layout]) == before


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("layout, packed", [("canvas", True), ("folders", False)])
def test_a_flood_costs_nobody_else_anything(tmp_path, layout, packed, flood):
    hand_in(tmp_path, layout, packed)
    before = without(tmp_path)
    hand_in(tmp_path, layout, packed, FLOODS[flood]())
    assert without(tmp_path, MALLORY[layout]) == before


def test_times_in_a_student_s_own_zip_decide_nothing(tmp_path):
    newer, older = member(f"a/{FIRST}-2.ipynb", LATE_2107), member(f"{FIRST}.ipynb", (1980, 1, 1, 0, 0, 0))
    own = zipped((newer, PLAIN), (older, SOLVED), ("timestamp.txt", STAMP), (f"{FIRST}/timestamp.txt", STAMP))
    put(tmp_path, f"mallory/{FIRST}/work.zip", own)
    submission = by_student(tmp_path)["mallory"]
    assert submission.file.name == f"{FIRST}.ipynb" and submission.timestamp == ""


@pytest.mark.parametrize(
    "name, student",
    [
        (f"Jane Doe_12_assignsubmission_file_Bob_99_assignsubmission_file_{FIRST}.ipynb", "Jane-Doe_12"),
        (f"doejane_12_345_Bob_99_assignsubmission_file_{FIRST}.ipynb", "doejane_12"),
        (f"doejane_12_345_bob_LATE_99_678_{FIRST}.ipynb", "doejane_12"),
        (f"Jane_12_assignsubmission_file_bob_99_678_{FIRST}.ipynb", "Jane_12"),
        (f"Jane Doe_12_assignsubmission_onlinetext_Bob_99_assignsubmission_file_{FIRST}.ipynb", "Jane-Doe_12"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_platform_s_name_inside_another_platform_s_does_not_count(tmp_path, name, student, packed):
    put(tmp_path, *(("class.zip", zipped(name)) if packed else (name,)))
    ((student_id, submission),) = by_student(tmp_path).items()
    assert (student_id, submission.file.owner.late) == (student, False)


def test_an_unpacked_export_in_a_folder_is_left_out_with_what_to_do(tmp_path):
    names = [f"export/doejane_77_100_{FIRST}.ipynb", f"export/roe_78_101_{FIRST}.ipynb"]
    for name in names:
        put(tmp_path, name)
    put(tmp_path, "class.zip", zipped(*names))
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    submissions, left_out = read_submissions(tmp_path, FIRST, NOWHERE)
    assert [each.student.id for each in submissions] == ["ada"] and len(left_out) == 2
    assert all("export of 2 students" in flag and "submitted/" in flag for flag in left_out)


def test_two_platforms_in_one_class_stay_apart(tmp_path):
    put(tmp_path, "c.zip", zipped(*LAYOUTS["canvas"][:2]))
    put(tmp_path, "m.zip", zipped(*LAYOUTS["moodle"][:2]))
    put(tmp_path, "c (1).zip", zipped(*LAYOUTS["canvas"][:2]))
    submissions, left_out = read_submissions(tmp_path, FIRST, NOWHERE)
    assert [(each.student.id, each.student.platform, each.student.number) for each in submissions] == [
        ("Doejane-X_77", "moodle", "77"),
        ("Roe-Y_78", "moodle", "78"),
        ("doejane_77", "canvas", "77"),
        ("roe_78", "canvas", "78"),
    ]


def test_of_two_exports_the_later_hand_in_counts(tmp_path):
    put(tmp_path, "b.zip", zipped(f"doe_7_100_{FIRST}.ipynb"))
    put(tmp_path, "a.zip", zipped((f"doe_7_250_{FIRST}-1.ipynb", SOLVED)))
    name = f"Doe_7_assignsubmission_file/{FIRST}.ipynb"
    put(tmp_path, "c.zip", zipped((member(name, (2026, 3, 9, 8, 0, 0)), SOLVED)))
    put(tmp_path, "d.zip", zipped((member(name, (2026, 3, 2, 8, 0, 0)), PLAIN)))
    moodle, canvas = by_student(tmp_path).values()
    assert canvas.file.read() == moodle.file.read() == SOLVED
    assert f"doe_7_250_{FIRST}-1.ipynb (Canvas's file 250) counts, not doe_7_100" in canvas.flags[-1]
    assert "(2026-03-09 08:00) counts, not" in moodle.flags[-1] and "(2026-03-02 08:00)" in moodle.flags[-1]


# ------------------------------------------------------------------------------------------------- who is like whom


@pytest.mark.parametrize(
    "names",
    [
        ("ada/x.ipynb", "Ada/x.ipynb"),
        ("Jane Doe/x.ipynb", "jane-doe/x.ipynb"),
        ("ﬁn/x.ipynb", "fin/x.ipynb"),
        ("jane-doe/x.ipynb", "Jane Doe_12_assignsubmission_file/x.ipynb"),
    ],
)
def test_names_that_look_alike_stay_apart_and_are_flagged(tmp_path, names):
    for name, data in zip(names, (PLAIN, SOLVED), strict=True):
        put(tmp_path, name, data)
    put(tmp_path, "Bob_3_assignsubmission_file/x.ipynb")
    submissions = by_student(tmp_path)
    assert submissions.pop("Bob_3").flags == ()
    one, other = submissions
    assert f"the same as that of {other}, or almost: taken for different people" in flags_of(tmp_path, one)
    assert f"the same as that of {one}, or almost: taken for different people" in flags_of(tmp_path, other)


@pytest.mark.parametrize(
    "names",
    [
        (f"a b_7_assignsubmission_file/{FIRST}.ipynb", f"a-b_7_assignsubmission_file/{FIRST}.ipynb"),
        (f"jane_7_assignsubmission_file/{FIRST}.ipynb", f"jane_7_100_{FIRST}.ipynb"),
        (f"a+b/{FIRST}/{FIRST}.ipynb", f"a&b/{FIRST}/{FIRST}.ipynb"),
        (f"zoë/{FIRST}.ipynb", f"{unicodedata.normalize('NFD', 'zoë')}/{FIRST}.ipynb"),
        (f"a!_{FIRST}.ipynb", f"a?_{FIRST}.ipynb"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_two_who_would_have_one_id_are_kept_apart_and_flagged(tmp_path, names, packed):
    files = list(zip(names, (PLAIN, SOLVED), strict=True))
    for name, data in [("class.zip", zipped(*files))] if packed else files:
        put(tmp_path, name, data)
    submissions = by_student(tmp_path)
    assert len({submission.digest for submission in submissions.values()}) == 2
    assert all("kept apart as" in flags_of(tmp_path, student) for student in submissions)


def test_a_loose_file_is_never_added_to_a_student_s_folder(tmp_path):
    put(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb", SOLVED)
    digest = by_student(tmp_path)["ada"].digest
    put(tmp_path, f"ada_{FIRST}.ipynb")
    put(tmp_path, "mail.zip", zipped(f"ada/{FIRST}/{FIRST}.ipynb"))
    after = by_student(tmp_path)
    assert len(after) == 3 and after["ada"].digest == digest and "kept apart as ada-" in flags_of(tmp_path, "ada")


def test_what_make_collect_copied_and_the_zip_it_came_from_are_one_student(tmp_path):
    hand_in(tmp_path, "canvas", packed=True)
    put(tmp_path, f"doejane_77/{FIRST}/{FIRST}.ipynb", SOLVED)
    assert list(by_student(tmp_path)) == ["doejane_77", "roe_78"]


def test_a_table_inside_a_student_s_folder_gives_nobody_s_number(tmp_path):
    for name in (f"{FIRST}/{FIRST}.ipynb", f"{FIRST}/collected.csv", "collected.csv"):
        put(tmp_path, f"doejane_77/{name}", TABLE if name.endswith("csv") else PLAIN)
    put(tmp_path, "class.zip", zipped(("collected.csv", TABLE), f"doe_1_2_{FIRST}.ipynb"))
    assert {each.student.number for each in by_student(tmp_path).values()} == {"", "1"}


ODD_NAMES = ["CON", "aux.txt", "x" * 200, "ж" * 120, "😀😀", "a\u202egnp.ipynb", "=1+1", "a<b>", "-rf", "~root", "a'b"]
ODD_NAMES += ["new\nline", "%2e%2e", "a|b", "trailing.", "\u200b", "..", ".", "../..", "a/../b", "..\\x"]


def test_odd_names_become_ids_that_every_system_holds(tmp_path):
    put(tmp_path, "class.zip", zipped(f"doe_1_2_{FIRST}.ipynb", *(f"{name}/{FIRST}.ipynb" for name in ODD_NAMES)))
    for name in ODD_NAMES[:16]:
        put(tmp_path, f"{name}/{FIRST}/{FIRST}.ipynb")
    submissions = by_student(tmp_path)
    assert "doe_1" in submissions and len(submissions) > 2 * 16
    for student, submission in submissions.items():
        assert slug(student) == student and len(student.encode()) <= 200 and student not in (".", "..")
        assert all(flag.isprintable() for flag in submission.flags)


def test_names_as_the_platforms_write_them():
    assert canvas_name("Doe-Smith, Jane Æ.") == "doesmithjaneæ"
    assert parse_platform_name(f"doe_LATE_77_4711_{FIRST}.ipynb").late
    assert not parse_platform_name("late_77_4711_x.ipynb").late
    anonymous = parse_platform_name("LATE_anon_8Bz3A_4711_x.ipynb")
    assert (anonymous, anonymous.late, anonymous.upload) == (FileOwner("canvas", "anon_8Bz3A"), True, 4711)
    assert parse_platform_name("smith_jr_77_4711_x.ipynb") == FileOwner("canvas", "smith_jr", "77")
    assert parse_platform_name(f"Smith_2024_{FIRST}.ipynb") is None, "a loose file with a year"
    assert loose_owner(f"Smith_2024_{FIRST} (2).ipynb") == FileOwner("loose", "Smith_2024")
    assert parse_platform_name("Group A_12_assignsubmission_file") == FileOwner("moodle", "Group A", "12")
    assert parse_platform_name("doe_77_" + "9" * 400 + "_x.ipynb") is None, "no number is that long"
    assert match_key("Jane  DOE") == match_key("jane-doe") != match_key("jane-roe")


def test_identities_are_the_same_in_whatever_order_they_come():
    owners = [FileOwner(*each) for each in (("loose", "a!"), ("loose", "a?"), ("folder", "a"))]
    owners += [FileOwner("canvas", "a", "1"), FileOwner("moodle", "a", "1")]
    ids = {tuple(each.owners): each.student.id for each in identify(owners, {}, {})}
    assert ids == {tuple(each.owners): each.student.id for each in identify(reversed(owners), {}, {})}
    assert len(set(ids.values())) == 5


# ------------------------------------------------------------------------------------------------- with a roster


def test_a_roster_gives_ids_and_names(tmp_path):
    hand_in(tmp_path / "submitted", "canvas", packed=True)
    (tmp_path / "roster.csv").write_text("id,number,name,email\nada,77,Ada van Lovelace,ada@x.example\n")
    students = {student: each.student for student, each in by_student(tmp_path / "submitted", tmp_path).items()}
    assert set(students) == {"ada", "roe_78"}
    ada = students["ada"]
    assert ada == Student("ada", "Ada van Lovelace", "ada@x.example", "77", "canvas")


def by_name(folder, *names):
    """Moodle's students by id, where the roster knows Jane Doe by name alone."""
    (folder / "roster.csv").write_text("First name,Last name,Email address\nJane,Doe,d@x\n")
    put(folder / "submitted", "m.zip", zipped(*(f"{name}_assignsubmission_file/{FIRST}.ipynb" for name in names)))
    return by_student(folder / "submitted", folder)


@pytest.mark.parametrize("name", ["Jane Doe_66", "jane doe_990"])
def test_a_moodle_student_is_the_same_in_every_assignment_and_a_match_by_name_is_flagged(tmp_path, name):
    jane, roe = by_name(tmp_path, name, "Roe Y_78").values()
    assert (jane.student.id, jane.student.number) == ("Jane-Doe", name[9:]) and roe.flags == ()
    assert "matched to Jane-Doe in the roster by name alone" in jane.flags


@pytest.mark.parametrize("name", ["Jane Doe_66", "jane doe_66"])
def test_of_two_with_one_name_neither_gets_the_roster_s_id_and_both_are_flagged(tmp_path, name):
    submissions = by_name(tmp_path, "Jane Doe_12", name)
    assert set(submissions) == {"Jane-Doe_12", slug(name)}
    for submission in submissions.values():
        assert "not matched to Jane-Doe in the roster: several hand-ins carry that name" in submission.flags
        assert any("taken for different people" in flag for flag in submission.flags)


def test_names_that_moodle_hides_from_the_marker_are_nobody_s(tmp_path):
    put(tmp_path, "m.zip", zipped(*(f"Participant_{n}_assignsubmission_file/{FIRST}.ipynb" for n in range(7, 12))))
    assert {each.flags for each in by_student(tmp_path).values()} == {()}
