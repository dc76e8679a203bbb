"""Lesson 14: the function that is fixed in it, and what its stored outputs and records say."""

import math
import re

import nbformat
import pytest
import torch
from lesson_harness import printed

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.data.recorded import recorded
from helpers.data.toy.reviews import reviews
from helpers.exercises import load_lesson
from helpers.parts import bert
from helpers.parts.bert import BertConfig

SOURCE = sources(["14_bert"])[0]
LESSON = load_lesson("14_bert")
ANSWERS = Answers(SOURCE)


def test_the_function_that_students_get_has_both_faults_and_the_solution_none():
    given = ANSWERS.made_of("corrupt", SOURCE.given()["corrupt"])
    ids, special = torch.randint(5, 900, (500, 200)), torch.zeros(500, 200, dtype=torch.bool)
    special[:, 0] = True

    def shares(function):
        inputs, targets = function(ids.clone(), special, 4, 900, torch.Generator().manual_seed(0))
        asked, changed = targets != -100, inputs != ids
        return [
            where.float().mean().item() for where in (changed[~asked], (changed & (inputs != 4))[asked], changed[:, 0])
        ]

    assert shares(given) == pytest.approx([0.1, 0.015, 0.1], abs=0.05)
    assert shares(given)[1] < 0.02
    assert shares(ANSWERS.make("corrupt")) == pytest.approx([0, 0.1, 0], abs=0.015)


def test_read_both_ways_the_next_word_is_copied_and_read_left_only_it_is_predicted():
    told = printed(SOURCE, "def test_loss(")
    row = r"trained (both ways|left only), reads (both ways|left only): ([\d.]+) nats"
    tested = {(trained, read): float(nats) for trained, read, nats in re.findall(row, told)}
    assert len(tested) == 3 and tested["both ways", "both ways"] < 0.05
    assert 4 < tested["both ways", "left only"] < math.log(208) and tested["left only", "left only"] < 1.2
    frequencies = float(re.search(r"token frequencies alone: ([\d.]+) nats", told).group(1))
    assert tested["left only", "left only"] < frequencies < tested["both ways", "left only"] - 0.4


def test_reading_both_ways_beats_the_left_alone_and_the_fairer_task_closes_a_third_of_the_gap():
    told = printed(SOURCE, "frequencies of words")
    unigram, commonest = map(float, re.search(r"frequencies alone: ([\d.]+) nats, ([\d.]+)% right", told).groups())
    row = r"^ *(both ways|left only), (hidden words|next word): ([\d.]+) nats, ([\d.]+)% right"
    nats, right = {}, {}
    for way, task, loss, share in re.findall(row, told, re.M):
        nats[way, task], right[way, task] = float(loss), float(share)
    both, left, fair = ("both ways", "hidden words"), ("left only", "hidden words"), ("left only", "next word")
    assert list(nats) == [both, left, fair] and nats[both] < nats[fair] < nats[left] < unigram - 0.5
    closed = [(what[left] - what[fair]) / (what[left] - what[both]) for what in (nats, right)]
    assert 0.5 < closed[0] < 0.65, "more than half of the gap in the loss"
    assert 0.28 < closed[1] < 0.38, "a third of the gap in what is found"
    assert commonest < right[left] - 30
    assert "sampling error of each share: 1.3%" in told
    assert "lowest loss from step 600" in told, "the next word is ahead before"
    assert LESSON.prediction("closed_gap").truth == "C"


def further_printed(line):
    """What the one cell of the page *Measured further* printed whose source contains `line`."""
    cells = [cell for cell in nbformat.read(SOURCE.further, as_version=4).cells if line in cell.source]
    (cell,) = (cell for cell in cells if cell.cell_type == "code")
    return "".join(output.get("text", "") for output in cell.outputs)


def test_three_models_that_learned_hidden_words_find_judging_words_and_random_weights_do_not():
    told = further_printed("def judged(")
    row = r"^ *(random weights|hidden words), +([\w ,]+):((?:  \d+% \(\d+%\)){3})$"
    found, precision = {}, {}
    for start, way, shares in re.findall(row, told, re.M):
        found[start, way], precision[start, way] = (
            [int(share) for share in re.findall(pattern, shares)] for pattern in (r"(\d+)% \(", r"\((\d+)%\)")
        )
    assert len(found) == 8
    best = {start: found[start, "standardised"] for start in ("random weights", "hidden words")}
    assert min(best["hidden words"]) > 95 and max(best["random weights"]) < 30
    assert min(precision["hidden words", "standardised"]) > 95
    for way in ("classifier alone", "LoRA, rank 4", "all weights"):
        assert max(found["random weights", way]) < 30 and min(found["hidden words", way]) > 80
        assert max(precision["hidden words", way]) < min(precision["hidden words", "standardised"])


def test_the_mean_after_hidden_words_is_no_better_than_that_of_random_weights():
    told = further_printed("def share_right(")
    shares = {
        name: [float(s) for s in re.findall(r"([\d.]+)%", line)]
        for name, line in re.findall(r"^(.+?):(.+)$", told, re.M)
    }
    pretrained, start = shares["mean vectors, hidden words"], shares["mean vectors, random weights"]
    assert len(pretrained) == len(start) == 3 and all(a <= b for a, b in zip(pretrained, start, strict=True))
    assert max(pretrained) <= shares["counts of pieces"][0] < 65 and "right of 1,408" in told
    assert round(100 * (0.6 * 0.4 / 1408) ** 0.5, 1) == 1.3


def by_hand(first, second, temperature):
    """The symmetric contrastive loss in Python's own double precision, number by number."""
    first, second = first.double().tolist(), second.double().tolist()

    def cosine(u, v):
        dot = sum(x * y for x, y in zip(u, v, strict=True))
        return dot / math.sqrt(sum(x * x for x in u)) / math.sqrt(sum(y * y for y in v))

    scores = [[cosine(u, v) / temperature for v in second] for u in first]
    total = 0.0
    for i in range(len(scores)):
        for others in (scores[i], [row[i] for row in scores]):
            top = max(others)
            total += top + math.log(sum(math.exp(score - top) for score in others)) - scores[i][i]
    return total / (2 * len(scores))


@pytest.mark.parametrize("temperature", [1.0, 0.05, 0.005])
def test_the_contrastive_loss_is_that_by_hand(temperature):
    loss = ANSWERS.make("contrastive_loss")
    chance = torch.Generator().manual_seed(0)
    for b, e in ((1, 4), (2, 3), (7, 5), (40, 16)):
        first, second = (torch.randn(b, e, generator=chance) * (1 + torch.arange(b)).unsqueeze(1) for _ in range(2))
        expected = by_hand(first, second, temperature)
        assert loss(first, second, temperature).item() == pytest.approx(expected, rel=1e-4, abs=1e-5)
        assert loss(first.double(), second.double(), temperature).item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_card_of_the_contrastive_loss_gives_the_right_numbers():
    cosines = torch.tensor([[0.9, 0.1], [0.8, 0.6]])
    rows, columns = cosines.softmax(dim=1).diagonal(), cosines.softmax(dim=0).diagonal()
    assert [round(p, 2) for p in rows.tolist()] == [0.69, 0.45]
    assert [round(p, 2) for p in columns.tolist()] == [0.52, 0.62]
    assert round(-(rows.log() + columns.log()).mean().item() / 2, 2) == 0.57
    assert 2 < math.log(1 + 63 * math.exp(-2)) < 2.5
    vectors = 2 * torch.eye(64)
    assert ANSWERS.make("contrastive_loss")(vectors, vectors, 0.005).item() < 1e-4


def test_contrastive_training_finds_every_numeral_and_a_mean_of_words_cannot_tell_hard_negatives():
    assert "2,345:" in printed(SOURCE, "twos = [") and "3,245:" in printed(SOURCE, "twos = [")
    told = printed(SOURCE, "class MeanOfWords")
    row = r"^ *(BERT|mean of words) +([\d.]+)% +([\d.]+)%$"
    found = {way: (float(right), float(words)) for way, right, words in re.findall(row, told, re.M)}
    assert len(found) == 2 and min(found["BERT"]) > 97
    right, same_words = found["mean of words"]
    assert 40 < right < 60 and same_words == 100, "twins are the same to it: a coin toss"
    assert 4 < float(re.search(r"in a batch of 64, ([\d.]+) repeat the words", told).group(1)) < 5.5


def test_in_three_more_runs_every_numeral_is_found_in_each_of_three_ways():
    told = further_printed("def three_trainings")
    lines = re.findall(r"^ *[\w ,]+: found among 200(.*)$", told, re.M)
    assert [re.findall(r"([\d.]+)%", numbers) for numbers in lines] == [["100.0"] * 3] * 3


def test_the_published_model_finds_halves_of_paragraphs_better_than_common_words_do():
    search = recorded("minilm")["result"]["search"]
    first = {way: shares[0] for way, shares in search["found"].items()}
    assert search["paragraphs"] == 300 and list(first) == ["word overlap (Jaccard)", "tf-idf", "all-MiniLM-L6-v2"]
    assert (
        0.08 < first["all-MiniLM-L6-v2"] - first["tf-idf"] < 0.11 and first["tf-idf"] > first["word overlap (Jaccard)"]
    )
    assert [round(100 * first[way]) for way in ("all-MiniLM-L6-v2", "tf-idf")] == [41, 32]
    assert all(0.02 < (p * (1 - p) / 300) ** 0.5 < 0.03 for p in first.values())


def test_merging_changes_nothing_and_the_update_does():
    told = printed(SOURCE, "lora, classifier =")
    trained, whole = re.search(r"trained: ([\d,]+) numbers, classifier included; the model has ([\d,]+)", told).groups()
    assert trained == "2,178" and int(whole.replace(",", "")) > 50 * 2_178
    update, merging = re.search(r"by LoRA: ([\d.]+); by merging: ([\de.-]+)", told).groups()
    assert float(update) > 0.5 and float(merging) < 1e-4


def test_the_first_figure_holds_what_the_trained_models_say_in_its_gap():
    (drawn,) = (cell.source for cell in SOURCE.cells_as_written() if "guesses =" in cell.source)
    figure = [[float(share) for share in row.split(", ")] for row in re.findall(r":\s+\[([\d., ]+)\]", drawn)]
    assert len(figure) == 2 and all(sum(row) == pytest.approx(1, abs=0.03) for row in figure)
    told = printed(SOURCE, "frequencies of words").partition("in the gap of the first figure:\n")[2]
    said = [[float(share) for share in re.findall(r"[a-z] ([\d.]+)", line)] for line in told.splitlines()[:2]]
    assert said == [row[:5] for row in figure], "left only, next word; both ways, hidden words"
    assert figure[1][2] > 0.5 > 4 * figure[0][2]
    assert f"from {figure[0][2]:.2f} to {figure[1][2]:.2f}" in drawn, "the title"
    assert max(figure[1]) == figure[1][2] < 0.6, "the model favours far, but is not sure"


def test_in_the_reviews_from_follows_far_and_no_other_word():
    (texts, _), _ = reviews()
    before = re.findall(r"(\w+) from\b", "\n".join(texts))
    assert len(before) > 1_000 and set(before) == {"far"}


def test_each_of_three_trainings_teaches_judging_words_and_random_weights_do_not():
    told = printed(SOURCE, "asked, fitted, held = ")
    row = r"^ *(random weights|\w+ \w+, \w+ \w+) +(\d+)% to (\d+)% +(\d+)% to (\d+)%$"
    found = {name: (int(least), int(most)) for name, least, most, *_ in re.findall(row, told, re.M)}
    assert len(found) == 4 and found.pop("random weights")[1] < 20
    assert min(least for least, _ in found.values()) >= 90 and max(found.values()) == found["left only, next word"]
    assert "on the labelled reviews: at least 100% found, and precision too" in told
    assert "16 words judge; three labelled reviews hold 4" in told


def test_the_counts_are_those_of_the_paper_and_of_lora():
    told = further_printed("def formula(c):")
    for count in ("109,482,240", "335,141,888", "22,713,216"):
        assert told.count(f" {count} by") == 2
    assert " 52% of them" in told
    assert "73,728 weights, 0.32% of the model" in told


def test_the_sizes_that_the_prose_gives():
    config = BertConfig.published("all-MiniLM-L6-v2")
    assert (config.n, config.t_max, config.depth * config.h) == (30_522, 512, 72)
    with torch.device("meta"):
        numbers = sum(parameter.numel() for parameter in bert.Bert(config).parameters())
    assert round(numbers * 4 / 1e6) == 91, "megabytes of float32"
    assert recorded("minilm")["settings"]["t_max"] == 128
    assert "from 20,000 reviews" in printed(SOURCE, "pieces from")
    ids = torch.zeros(500, 200, dtype=torch.int64)
    _, targets = ANSWERS.make("corrupt")(ids, ids > 0, 4, 900, torch.Generator().manual_seed(0))
    assert round(100 * (targets == 0).float().mean().item()) == 15


def test_the_recorded_numbers_are_those_on_the_card():
    assert recorded("minilm")["result"]["card"] == pytest.approx([0.0677, 0.0635, 0.0487, 0.0793, 0.0374], abs=1e-4)


def test_the_same_words_are_closer_than_the_same_meaning():
    pairs = {pair["a"]: pair for pair in recorded("minilm")["result"]["pairs"] if pair["cosine"] > 0.6}
    roses, kid = pairs["Mary gave roses to Susan."], pairs["The kid is asleep."]
    assert LESSON.prediction("closer_pair").truth == "A" and roses["cosine"] > kid["cosine"] + 0.05
    assert kid["b"] == "A child sleeps." and kid["overlap"] == 0
    negated, reworded = recorded("minilm")["result"]["pairs"][2:4]
    assert negated["a"] == reworded["a"] and abs(negated["cosine"] - reworded["cosine"]) < 0.02


def test_a_block_in_the_middle_is_the_best_to_read_and_which_one_is_not_decided():
    probes = recorded("minilm")["result"]["kind_or_not"]
    assert (probes["train"], probes["test"]) == (1_000, 2_000)
    draws = torch.tensor(probes["by_draw"])
    shares = draws.mean(dim=0)
    error = (2 * 0.8 * 0.2 / probes["test"]) ** 0.5  # of a difference, as if the reviews were not the same
    assert error < 0.013 and draws.shape == (3, 7) and shares.argmax() == 1 + 3
    middle = shares[3:6]
    assert middle.max() - middle.min() < 0.9 * error and sorted(draws.argmax(dim=1).tolist()) == [4, 4, 5]
    for other in (0, 6):
        assert shares[4] - shares[other] > 2 * error
        assert (draws[:, 4] - draws[:, other]).min() > 0.027 and (draws[:, 4] - draws[:, other]).max() < 0.08


def test_one_head_looks_at_the_token_before_by_position_alone_and_not_across_position_128():
    before = recorded("minilm")["result"]["previous_head"]
    assert before["sentence"] > 0.999 and before["nonsense"] > 0.99 and before["without_positions"] < 0.3
    assert before["tokens"] == 300 and before["long"] < 0.5 < before["long_beyond"]
    assert before["cut"] > 0.99 and before["long_later"] > 0.99


def test_the_recorded_fine_tuning_says_what_the_lesson_says():
    run, trained = recorded("imdb_bert"), recorded("imdb")
    assert run["data"]["sha256"] == trained["data"]["sha256"], "the same reviews"
    assert run["processor_seconds"] < 2 * 60 * 60, "an hour on two cores"
    counted, own, tuned = (
        trained["result"]["bag_of_words_accuracy"],
        trained["result"]["test_accuracy"],
        run["result"]["test_accuracy"],
    )
    assert round(100 * (tuned - counted)) == 3, "right more often by three points"
    assert own < counted < tuned and tuned > 0.9

    few = {row["labels"]: row for row in run["result"]["few_labels"]}
    assert list(few) == [100, 1_000, 5_000]
    assert (run["settings"]["few"]["length"], run["settings"]["few"]["tested_on"]) == (128, 2000)
    gains = [row["all"] - row["bag of words"] for row in few.values()]
    assert gains == sorted(gains, reverse=True), "worth most where labels are few"
    assert few[1_000]["all"] > few[5_000]["bag of words"]
    errors = [sum(share * (1 - share) / 2000 for share in (row["all"], row["low rank"])) ** 0.5 for row in few.values()]
    assert all(row["all"] - row["low rank"] < 2 * error for row, error in zip(few.values(), errors, strict=True))
    assert [round(100 * few[1_000][way], 1) for way in ("low rank", "all")] == [85.7, 86.4]
    shares = [(row["frozen"]["accuracy"], row["all"], row["bag of words"]) for row in few.values()]
    assert (2 * shares[-1][1] * (1 - shares[-1][1]) / 2000) ** 0.5 > 0.0098
    assert (2 * shares[0][2] * (1 - shares[0][2]) / 2000) ** 0.5 < 0.015, "1.0 to 1.5 per cent"
    assert all(abs(row["frozen"]["accuracy"] - row["bag of words"]) < 0.021 for row in few.values())
    assert all(0 <= row["all"] - row["low rank"] < 0.022 for row in few.values()), "LoRA of rank 8 comes near"


def test_the_hints_worked_thousand_is_right():
    chosen = 1_000
    assert [round(share * chosen) for share in (0.8, 0.1, 0.1)] == [800, 100, 100], "what the card asks for"
    random = round(0.1 * chosen)
    taken = round(0.9 * random)
    assert (random, taken, random - taken) == (100, 90, 10), "what the code that is given does"
