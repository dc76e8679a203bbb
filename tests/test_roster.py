"""Who is in the class is read from what the platforms export, and who has not handed in is known."""

from dataclasses import replace

import pytest
from tables import table

from helpers.grading.csv_tables import BadTable, read_table
from helpers.grading.submissions.roster import Student, missing_students, roster

TABLES = table("roster")
CANVAS, WORKSHEET = TABLES["canvas"], TABLES["worksheet"]
JANE = Student("Jane-Doe_999", "Jane Doe", "", "999", "moodle")


def written(folder, text, name="roster.csv", encoding="utf-8"):
    (folder / name).write_bytes(text.encode(encoding))
    return folder


def test_without_a_roster_nobody_is_missing(tmp_path):
    assert roster(tmp_path) == {} and missing_students(tmp_path, [Student("ada")]) == []


def test_canvas_s_gradebook_is_a_roster(tmp_path):
    people = roster(written(tmp_path, CANVAS))
    assert [(p.id, p.name, p.number) for p in people.values()] == [
        ("doejane_77", "Jane Doe", "77"),
        ("vanroesmithørjan_78", "Ørjan van Roe-Smith", "78"),
    ]
    jane = people["doejane_77"]
    assert (jane.email, jane.platform) == ("jdoe@uni.example", "canvas")
    for student, missing in (
        (Student("S0077"), 1),
        (Student("renamed_77", "", "", "77", "canvas"), 1),
        (Student("x"), 2),
    ):
        assert len(missing_students(tmp_path, [student])) == missing
    assert list(roster(written(tmp_path, TABLES["canvas_parted"]))) == ["doejane_77"]


@pytest.mark.parametrize("text", [TABLES["participants"], WORKSHEET], ids=["participants", "worksheet"])
def test_moodle_s_lists_are_rosters(tmp_path, text):
    people = list(roster(written(tmp_path, text)).values())
    assert [(p.name, p.email) for p in people] == [
        ("Jane Doe", "jane@uni.example"),
        ("Ørjan van Roe", "orjan@uni.example"),
    ]
    assert [p.name for p in missing_students(tmp_path, [JANE])] == ["Ørjan van Roe"], "numbers change in Moodle"


def test_a_table_of_one_s_own_is_a_roster(tmp_path):
    assert roster(written(tmp_path, TABLES["own"])) == {
        "ada": Student("ada", "Ada Lovelace", "ada@uni.example", "77"),
        "ben": Student("ben", number="78"),
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_a_table_is_read_as_a_spreadsheet_saved_it(tmp_path, encoding, sign):
    text = sign.join(["# mine\r\nID", "Name\r\nzoe", "Zoë Mü\r\n\r\n"])
    assert roster(written(tmp_path, text, encoding=encoding))["zoe"].name == "Zoë Mü"


def test_several_classes_have_several_files_and_who_has_not_handed_in_is_listed_by_name(tmp_path):
    written(tmp_path, "id,name\nz,Ada\nb,Ben\n", "roster-A.csv")
    assert list(roster(written(tmp_path, "id,name\nc,Cem\n", "roster-B.csv"))) == ["z", "b", "c"]
    assert [entry.shown for entry in missing_students(tmp_path, [Student("b")])] == ["Ada", "Cem"]


def test_of_two_with_one_name_only_the_one_who_handed_in_has(tmp_path):
    text = WORKSHEET + '"Participant 125","Jane Doe",jane2@uni.example,"No submission - ",,18.00,Yes,-,-,\n'
    names = [p.id for p in missing_students(written(tmp_path, text), [replace(JANE, id="Jane-Doe_123")])]
    assert names == ["Jane-Doe_125", "Ørjan-van-Roe_124"]


@pytest.mark.parametrize("text, message", TABLES["bad"])
def test_a_bad_roster_is_told_with_its_line_and_what_to_write(tmp_path, text, message):
    with pytest.raises(BadTable, match=message):
        roster(written(tmp_path, text))


def test_no_control_character_comes_out_of_a_table(tmp_path):
    _, (row,) = read_table(written(tmp_path, "id,name\nada,\x1b[2J\u202eadA\x07\n") / "roster.csv")
    assert row["name"].isprintable() and "adA" in row["name"]
