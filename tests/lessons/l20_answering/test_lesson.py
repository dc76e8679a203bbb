"""Lesson 20: its stored outputs and its record say what its prose says, and its parts agree with PyTorch's own."""

import json
import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from lesson_harness import printed

from helpers.authoring.build.lesson_source import sources
from helpers.data.recorded import recorded
from helpers.data.toy import sums
from helpers.exercises import load_lesson
from helpers.parts import answering

SOURCE = sources(["20_answering"])[0]
LESSON = load_lesson("20_answering")
pytestmark = pytest.mark.usefixtures("on_the_cpu")


def measured(line):
    """Per cent of answers, for each model that the cell measures: exact, hedged, naming the sum."""
    shares = r"exact (\d+)%, hedged (\d+)%, sum named (\d+)%"
    return [tuple(map(int, numbers)) for numbers in re.findall(shares, printed(SOURCE, line))]


AT_START, GREEDY_AT_START = measured("def loss_on_answers")


def some(b=3, t=7, n=5):
    generator = torch.Generator().manual_seed(20)
    logits = torch.randn(b, t, n, dtype=torch.float64, generator=generator)
    ids = torch.randint(n, (b, t), generator=generator)
    return logits, ids, torch.arange(t).expand(b, t) >= torch.tensor([[2], [4], [6]])


def test_the_loss_on_answers_is_pytorchs_with_the_others_ignored():
    logits, ids, is_answer = some()
    targets = ids.masked_fill(~is_answer, -100)[:, 1:]
    expected = F.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten())
    torch.testing.assert_close(answering.answer_loss(logits, ids, is_answer), expected)


def test_the_log_probability_of_an_answer_is_the_sum_over_all_answers_in_the_vocabularys_power():
    """Over all answers of two tokens the probabilities add up to 1."""
    logits, ids, _ = some(b=1, t=3, n=4)
    first, second = torch.cartesian_prod(torch.arange(4), torch.arange(4)).T
    rows = torch.stack([ids[0, 0].expand(16), first, second], dim=1)
    is_answer = torch.tensor([[False, True, True]]).expand(16, 3)
    total = answering.answer_log_probability(logits.expand(16, 3, 4), rows, is_answer).exp().sum()
    assert total.item() == pytest.approx(1)


def test_a_packed_row_has_the_mask_of_blocks():
    ids, positions, mask = answering.pack([torch.tensor([5, 6]), torch.tensor([7, 8, 9])])
    assert ids.tolist() == [5, 6, 7, 8, 9] and positions.tolist() == [0, 1, 0, 1, 2]
    assert torch.equal(mask, torch.block_diag(torch.ones(2, 2).tril(), torch.ones(3, 3).tril()).bool())


def test_the_preference_loss_is_a_binary_cross_entropy_of_the_margin():
    chosen, rejected, a, b = torch.randn(4, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = F.binary_cross_entropy_with_logits(0.3 * (chosen - a - rejected + b), torch.ones(9).double())
    torch.testing.assert_close(answering.preference_loss(chosen, rejected, a, b, 0.3), expected)


def test_the_penalty_is_the_kl_divergence_in_the_mean():
    """Over all tokens, weighted by the model's probabilities, in 64 bits."""
    p, q = (torch.randn(2, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))).log_softmax(dim=-1)
    each = [
        answering.policy_loss(
            new.view(1, 1), new.view(1, 1), ref.view(1, 1), torch.zeros(1), torch.ones(1, 1).bool(), beta=1
        )
        for new, ref in zip(p, q, strict=True)
    ]
    kl = F.kl_div(q, p, log_target=True, reduction="sum")
    torch.testing.assert_close((torch.stack(each) * p.exp()).sum(), kl)


def test_at_a_ratio_of_one_the_gradient_is_that_of_weighted_log_probabilities():
    new = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    worth, inside = torch.tensor([1.0, -2.0, 0.5]).double(), torch.arange(4) < torch.tensor([[4], [2], [1]])
    loss = answering.policy_loss(new, new.detach(), new.detach(), worth, inside)
    expected = -worth[:, None] * inside / inside.sum(dim=-1, keepdim=True) / 3
    torch.testing.assert_close(torch.autograd.grad(loss, new)[0], expected)


def test_a_group_of_equal_fractions_has_no_advantages():
    assert answering.advantages(torch.full((2, 7), 0.1)).tolist() == [[0.0] * 7] * 2
    assert LESSON.prediction("all_right").truth == "C"
    worth = answering.advantages(torch.tensor([[1.0, 0, 0, 0]]))[0]
    assert worth[0].item() == pytest.approx(math.sqrt(3))


def test_three_demonstrations_in_ten_hedge_and_all_name_the_sum():
    train, held_out = sums.pairs()
    assert not set(train) & set(held_out) and len(held_out) == 500
    ids, is_text, is_answer = sums.demonstrations(train, torch.Generator().manual_seed(0))
    texts = [sums.text_of(row[sums.QUESTION :]) for row in ids.tolist()]
    assert np.mean(["or" in text for text in texts]) == pytest.approx(0.3, abs=0.03)
    assert all(str(a + b) in text.split(" or ") for (a, b), text in zip(train, texts, strict=True))
    assert (is_answer & ~is_text).sum() == 0 and (is_answer & (ids == sums.END)).any(dim=1).float().mean() > 0.99


def at_the_end(part, what):
    """By seed."""
    points = recorded("answering")["result"]["looks"]
    return np.array([[p[what] for p in points if p["part"] == part and p["seed"] == seed][-1] for seed in range(3)])


def test_the_mask_raises_exact_match_with_every_seed_and_keeps_the_hedges():
    assert min(at_the_end("answer", "exact")) > max(at_the_end("whole", "exact"))
    assert np.mean(at_the_end("answer", "exact")) > 2.2 * np.mean(at_the_end("whole", "exact"))
    for part in ("whole", "answer"):
        assert all(abs(at_the_end(part, "hedged") - 0.28) < 0.04)
    ((exact, hedged, _),) = measured("on_text = train")
    assert (exact, hedged, *AT_START[:2]) == (9, 28, 26, 27)


def test_preferences_and_chosen_answers_both_end_the_hedging():
    start = at_the_end("answer", "hedged")
    for part in ("DPO", "chosen"):
        assert all(at_the_end(part, "hedged") < start / 2)
        assert all(at_the_end(part, "exact") > at_the_end("answer", "exact"))
    assert all(at_the_end("chosen", "exact") > at_the_end("DPO", "exact"))
    assert all(abs(at_the_end("DPO", "named") - at_the_end("answer", "named")) < 0.03), "no sums are learned"
    ((_, hedged, named),) = measured("preferring = copy")
    assert (AT_START[1], hedged) == (27, 9) and abs(named - AT_START[2]) <= 1
    up, down = re.findall(r"(?:chosen|rejected): ([+-][\d.]+)$", printed(SOURCE, "preferring = copy"), flags=re.M)
    assert float(up) > 0 > float(down)
    assert all(at_the_end("chosen", "chosen") > at_the_end("DPO", "chosen"))
    assert all(at_the_end("DPO", "rejected") < at_the_end("chosen", "rejected"))
    assert all(at_the_end("DPO", "chosen") > 0) and all(at_the_end("chosen", "rejected") < 0)


def test_without_hedges_in_the_demonstrations_there_are_none_in_the_answers():
    for part in ("plain", "further, plain"):
        assert all(at_the_end(part, "hedged") == 0)
    assert all(at_the_end("plain", "exact") > at_the_end("answer", "exact"))


def test_greedy_decoding_hides_the_hedges_until_they_are_the_majority():
    assert AT_START[1] > 20 and GREEDY_AT_START[1] <= 1 and GREEDY_AT_START[0] > 60
    (_, hedged, _), (greedy, greedy_hedged, _) = measured("hacker = copy")
    assert hedged > 50 and greedy_hedged == 100 and greedy == 0


def test_only_the_reward_cuts_the_hedging_and_demonstrations_teach_adding_faster():
    for part in ("policy", "strict"):
        assert all(at_the_end(part, "hedged") < 0.05)
        assert all(at_the_end(part, "exact") > at_the_end("answer", "exact"))
    assert all(at_the_end("further", "hedged") > 0.2)
    (after,) = measured("def reinforce")
    assert 1.3 < after[0] / AT_START[0] < 1.8 and abs(after[2] - AT_START[2]) < 5
    assert all(at_the_end("further", "greedy") > at_the_end("policy", "greedy"))
    seconds = at_the_end("policy", "used") / at_the_end("further", "used")
    assert all((seconds > 0.7) & (seconds < 1.4)), "about equal time"


def test_eight_steps_on_a_batch_do_harm_with_the_plain_loss_and_help_with_the_clipped_one():
    start, looks = at_the_end("answer", "exact"), recorded("answering")["result"]["looks"]

    def after(part, step):
        return np.array([p["exact"] for p in looks if p["part"] == part and p["step"] == step]) - start

    assert all(after("repeated", 10) < 0) and all(after("strict", 10) > 0)
    assert all(after("clipped", 10) > after("strict", 10))
    assert all(at_the_end("repeated", "named") < at_the_end("answer", "named") - 0.1)
    ((plain, _, named),) = measured('plain_loss, "8 steps')
    ((clipped, _, clipped_named),) = measured("def clipped_loss")
    assert named < AT_START[2] - 8 and named < clipped_named - 5 and max(plain, AT_START[0]) < clipped


def test_the_hole_is_found_with_every_seed():
    assert LESSON.prediction("hole").truth == "B"
    for part in ("hole", "lenient"):
        assert all(at_the_end(part, "named") > at_the_end("answer", "named"))
        assert all(at_the_end(part, "exact") < at_the_end("answer", "exact") / 2)
        assert all(at_the_end(part, "hedged") > 0.7)
    hacked, _ = measured("hacker = copy")
    assert (AT_START[0], hacked[0]) == (26, 10) and hacked[2] > AT_START[2]
    one, two = map(int, re.findall(r"numbers?: (\d+)% name the sum", printed(SOURCE, "hacker = copy")))
    assert two > one + 5, "two guesses are paid more often"


def test_the_penalty_holds_hacking_back_and_progress_too():
    for what in ("exact", "hedged"):
        start, free, held = (at_the_end(part, what) for part in ("answer", "hole", "hole, penalty"))
        assert all(abs(held - start) < abs(free - start) / 2)
    assert all(at_the_end("policy, penalty", "hedged") > 2 * at_the_end("policy", "hedged"))
    for part in ("policy", "hole"):
        assert all(at_the_end(f"{part}, penalty", "away") < 0.6 * at_the_end(part, "away"))


def test_the_clip_or_a_smaller_rate_makes_eight_steps_on_a_batch_better_than_one():
    for part in ("clipped", "clipped, slower", "not clipped, slower"):
        assert all(at_the_end(part, "exact") > at_the_end("once", "exact"))
    assert all(at_the_end("clipped", "exact") > at_the_end("not clipped", "exact"))
    assert abs(at_the_end("not clipped", "exact") - at_the_end("once", "exact")).max() < 0.05
    looks = recorded("answering")["result"]["looks"]
    first = {
        part: np.mean([p["exact"] for p in looks if p["part"] == part and p["step"] == 2])
        for part in ("not clipped", "once")
    }
    assert first["not clipped"] > first["once"] + 0.03, "ahead at first"
    assert all(at_the_end("clipped", "away") < at_the_end("not clipped", "away"))
    assert all(at_the_end("clipped", "greedy") < at_the_end("once", "greedy"))


def test_a_reward_after_further_demonstrations_adds_and_seldom_hedges():
    pipeline, plain = (at_the_end(part, "exact") for part in ("further, policy", "further, plain"))
    assert all(pipeline > at_the_end("further", "exact")) and all(pipeline > at_the_end("policy", "exact"))
    assert all(plain > pipeline) and all(at_the_end("further, policy", "hedged") < 0.03)
    assert all(at_the_end("further, policy", "greedy") > at_the_end("policy", "greedy"))


def test_most_of_the_loss_on_whole_texts_comes_from_questions():
    question = int(re.search(r"question: (\d+)%", printed(SOURCE, 'parts = {"question"'))[1])
    assert question > 50


def test_a_packed_dialogue_gets_its_own_logits_only_with_its_own_mask_and_positions():
    stored = json.loads(SOURCE.further.read_text(encoding="utf-8"))
    text = "".join("".join(o.get("text", "")) for cell in stored["cells"] for o in cell.get("outputs", ()))
    own, *others = (float(number) for number in re.findall(r"logit ([\d.]+)$", text, flags=re.M))
    assert own < 1e-3 and min(others) > 0.1
