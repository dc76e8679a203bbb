"""The three questions about earlier lessons: what they ask, what they say is so, and how they are read and reported."""

from collections import Counter

import pytest
import torch
from test_fixes_and_predictions import Angry
from torch import nn

from helpers.authoring.build.lesson_source import sources
from helpers.authoring.build.recall import recall_cells
from helpers.checking.judge.predictions import predicted
from helpers.checking.read.cell_scan import scan_submission
from helpers.checking.read.program_slice import CodeCell
from helpers.checking.show import panel
from helpers.exercises import load_lesson
from helpers.grading.judging import judge_predictions
from helpers.grading.records import panel_of, records_of_predictions
from helpers.grading.reports.class_summary import names
from helpers.grading.reports.feedback import feedback_page
from helpers.grading.reports.predictions import predictions
from helpers.grading.reports.report import predictions_text, report_page
from helpers.grading.reports.results import GradedCell, StudentResult
from helpers.grading.submissions.roster import Student
from helpers.parts import attention, blocks, classifier, generator, gpt2, masks, multi_head, positions, transformer_xl
from helpers.parts.cache import KeyValueCache, LayerCache
from helpers.parts.words import encode_batch

SOURCES = sources()
QUESTIONS = {source.name: source.lesson.recall for source in SOURCES if source.lesson.recall}
ASKED = [(name, question) for name, three in QUESTIONS.items() for question in three]
LESSON = load_lesson("04_multi_head")  # its answers: A, C, B


def test_every_lesson_from_3_on_asks_for_a_shape_a_cause_and_a_bug():
    assert sorted(QUESTIONS) == [source.name for source in SOURCES if source.lesson.number >= 3]
    for three in QUESTIONS.values():
        assert [question.name for question in three] == ["recall_shape", "recall_cause", "recall_bug"]
        assert sorted(question.truth for question in three) == ["A", "B", "C"]


def test_every_question_offers_three_answers_and_says_of_each_what_is_so():
    for name, question in ASKED:
        assert tuple(question.offers) == question.choices == ("A", "B", "C"), (name, question.name)
        for words in (question.asks, *question.offers.values(), *question.says.values()):
            assert words and words == " ".join(words.split()), (name, words)


def test_neither_a_letter_nor_the_length_of_an_answer_gives_it_away():
    for kind in range(3):
        right = Counter(three[kind].truth for three in QUESTIONS.values())
        assert set(right.values()) <= {6, 7}
    longest = sum(max(q.offers.values(), key=len) == q.offers[q.truth] for _, q in ASKED)
    assert longest <= len(ASKED) * 0.4


def test_the_cells_are_those_of_the_questions_and_stand_after_the_first(source):
    assert "check.recall(" not in source.script.read_text(encoding="utf-8")
    cells = source.read().cells
    (first, *_) = [place for place, cell in enumerate(cells) if cell.cell_type == "code"]
    assert "\ncheck = start(" in cells[first].source
    assert ("check.recall(" in cells[first + 3].source) == (source.lesson.number >= 3)
    for cell, asked in zip(cells[first + 1 :], recall_cells(source.lesson.recall), strict=False):
        assert cell.source.split(">", 1)[1:] == asked.source.split(">", 1)[1:]  # but for the card's style
        assert cell.source.startswith(asked.source.split("class=")[0]) and cell.metadata == asked.metadata


def scores(b, h, t, s, d=4):
    return torch.zeros(b, h, t, d) @ torch.zeros(b, h, s, d).mT


def of_a_memory():
    """The scores over a memory of 6 and a segment of 4."""
    x, memory = torch.zeros(1, 4, 8), torch.zeros(1, 6, 8)
    keys = multi_head.split_heads(transformer_xl.extend_memory(memory, x, 10), 2)
    return multi_head.split_heads(x, 2) @ keys.mT


def of_a_cache():
    """The scores of one new token over 12 that were kept."""
    block = gpt2.CausalAttention(8, 2)
    past = KeyValueCache(1, 13).layers[0]
    block(torch.zeros(1, 12, 8), past)
    query, key = torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4)
    keys, _ = past.append(key, key)
    return query @ keys.mT


def of_chunks():
    """The scores of 12 positions in chunks of 4, each with its own keys and those of the chunk before."""
    queries = torch.zeros(1, 2, 3, 4, 5)
    keys = nn.functional.pad(torch.zeros(1, 2, 12, 5), (0, 0, 4, 0)).unfold(2, 8, 4)  # (1, 2, 3, 5, 8)
    return queries @ keys


def of_texts():
    ids, _ = encode_batch(["a a a", "a a a a a", "a a"], {"<pad>": 0, "<unk>": 1, "a": 2}, 4)
    return ids


def of_a_classifier():
    model = classifier.Classifier(n=9, c=2, e=8, h=2, depth=1, t_max=20)
    return model(torch.ones(16, 20, dtype=torch.int64), torch.ones(16, 20, dtype=torch.bool))


def of_bytes():
    model = generator.CharTransformer(n=256, e=8, h=2, depth=1, t_max=8)
    return model(torch.zeros(4, 8, dtype=torch.int64))


SHAPES = {
    "03_scaling": lambda: torch.zeros(2, 3, 5) @ torch.zeros(2, 4, 5).transpose(1, 2),
    "04_multi_head": lambda: attention.SingleHeadAttention(12, 4)(torch.zeros(2, 5, 12)),
    "05_masking": lambda: (lambda q: q @ q.mT)(multi_head.split_heads(torch.zeros(2, 5, 12), 3)),
    "06_positions": lambda: masks.padding_mask(torch.tensor([5, 3]), 5).unsqueeze(1),
    "08_classifier": lambda: blocks.FeedForward(8).widen(torch.zeros(2, 5, 8)),
    "09_character_generator": of_a_classifier,
    "10_encoder_decoder": of_bytes,
    "11_tokens": of_texts,
    "12_gpt2": lambda: nn.Linear(8, 32).weight,
    "13_before_transformers": lambda: scores(b=1, h=4, t=7, s=5),
    "14_bert": lambda: torch.zeros(2, 10, 64) @ torch.zeros(1000, 64).T,
    "15_transformer_xl": of_a_cache,
    "16_sparse_attention": of_a_memory,
    "17_going_big": of_chunks,
    "18_since_gpt2": lambda: torch.zeros(10, 1) * torch.zeros(16 // 2),
    "19_looking_inside": lambda: nn.Linear(64, 64).weight[:, : 64 // 4],
    "20_answering": lambda: torch.zeros(5, 12, 40)[:, :-1],
    "21_cheaper_answers": lambda: LayerCache(10).append(*torch.zeros(2, 1, 6, 10, 32))[0],
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_right_shape_is_what_pytorch_returns(name):
    question = QUESTIONS[name][0]
    assert question.offers[question.truth] == str(tuple(SHAPES[name]().shape))


def test_a_relative_bias_of_four_has_seven_numbers():
    question = QUESTIONS["07_transformer_block"][0]
    count, shape = 2 * 4 - 1, tuple(positions.relative_bias(torch.zeros(7), 3).shape)
    assert question.offers[question.truth] == f"{count} numbers; a {shape} matrix"


def test_only_the_right_mask_hides_other_padding_in_each_sentence():
    question, seen = QUESTIONS["06_positions"][0], torch.zeros(2, 3, 5, 5)
    fits = {}
    for letter, offer in question.offers.items():
        shape = tuple(int(size) for size in offer.strip("()").split(","))
        try:
            fits[letter] = torch.broadcast_shapes(seen.shape, shape) == seen.shape
        except RuntimeError:
            fits[letter] = False
    assert fits == {letter: letter == question.truth for letter in "ABC"}


def said(*values):
    return list(map(predicted, LESSON.recall, values))


def test_before_an_answer_the_panel_is_calm_and_says_nothing_of_the_truth():
    for values in ((..., ..., ...), (..., Angry(), "<script>")):
        for text in (panel.as_text(said(*values)), panel.as_html(said(*values))):
            assert "nothing answered yet" in text and "no points" in text and "✗" not in text
            assert not any(says[:30] in text for question in LESSON.recall for says in question.says.values())
            assert "<script" not in text


def test_each_answer_gets_its_reason_and_an_open_question_keeps_its_own():
    shape, cause, bug = LESSON.recall
    text = " ".join(panel.as_text(said("a", "B", ...)).split())
    assert "1 of 3 right" in text and "recall_shape: A is right" in text and "recall_bug: not answered yet" in text
    assert "you said B. It is C." in text and cause.says["B"] in text and cause.says["C"] in text
    assert shape.says["A"] in text and shape.says["B"] not in text and bug.says["B"] not in text


ANSWERS = 'recall_shape = "A"\nrecall_cause = "A"\nrecall_bug = 1 / 0'


def read(source):
    cells = [CodeCell("recall", source, "recall"), CodeCell("cell 3", 'recall_bug = "B"')]
    return judge_predictions(LESSON, scan_submission(LESSON, cells, {}, "import torch"))


def test_in_an_exam_answers_are_literals_of_their_cell_and_nothing_is_run():
    made = read(ANSWERS)
    assert [made[question.name].chosen for question in LESSON.recall] == ["A", "A", ""]


def result(student, source):
    (record, *_) = records_of_predictions(read(source).values())
    who = Student(student, student.title())
    cell = GradedCell(who, "recall", 0.0, 0.0, record=record, code=source)
    return StudentResult(who, 1.0, 22.0, 0.0, (cell, GradedCell(who, "split_heads", 1.0, 4.0)))


@pytest.mark.parametrize("values", [("a", "B", ...), ("C", "?", "A"), (..., ..., ...)], ids=str)
def test_a_record_gives_the_panel_that_the_answers_give(values):
    (record,) = records_of_predictions(said(*values))
    assert panel_of(record, LESSON) == panel.without_style(said(*values))


def test_the_report_counts_each_question_and_feedback_shows_a_students_own_answers():
    students = [result("ada", ANSWERS), result("ben", ANSWERS.replace('"A"', '"C"'))]
    counts = {
        summary.question.name: {choice: count for choice, count in summary.choices.items() if count}
        for summary in predictions(LESSON, students)
    }
    assert [counts.get(question.name) for question in LESSON.recall] == [{"A": 1, "C": 1}, {"A": 1, "C": 1}, None], (
        "a question that nobody answered takes no room"
    )
    assert names(LESSON, students) == ["split_heads"]
    assert "recall_cause: A 1, B 0, C 1, no choice 0; C is right" in predictions_text(LESSON, students)
    assert "Why are the scores divided by √d?" in report_page(LESSON, students)
    page = feedback_page(LESSON, students[0])
    assert "A A –" in page and "on earlier lessons" in page and "0 / 0" not in page
