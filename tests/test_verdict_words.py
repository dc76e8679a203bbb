"""A verdict says nothing that is not so: what is said of wrong numbers, and when a known mistake is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from helpers.checking.judge.keys import ExerciseKey, KnownMistake
from helpers.checking.judge.messages import MAY_BE_THE_SAME, SAME_CAUSE
from helpers.checking.judge.verdicts import NOT_ALLOWED, judge
from helpers.checking.read.cell_scan import scan_cell
from helpers.checking.run.answers import run
from helpers.checking.run.by_hand import watched
from helpers.checking.show.panel import as_html, as_text
from helpers.exercises.aspects import Fault, any_device, built, gradient, input_left_alone, parameters, values
from helpers.exercises.exercise import Aspect, Exercise
from helpers.grading.reports.pages import marked as marked_on_pages
from helpers.text import marked, without_emphasis

SEED = "words"


def exercise(*aspects, **options):
    return Exercise("answer", 1, 5, aspects, **options)


def giving(target, **policy):
    """An exercise whose right answer is this tensor."""
    return exercise(Aspect("values", 2, lambda answer, draw: answer(), **policy)), lambda: target


def key_for(asked, right, **mistakes):
    """The key of an exercise. mistakes: wrong answers, by slug."""
    known = tuple(
        KnownMistake(slug, f"title of {slug}", f"This is {slug}.", run(asked, wrong, SEED).outcomes)
        for slug, wrong in mistakes.items()
    )
    return ExerciseKey(run(asked, right, SEED).outcomes, known)


def told(asked, right, answer, **mistakes):
    """What is said of an answer, aspect by aspect in one text."""
    return " ".join(as_text(judged(asked, right, answer, **mistakes)).split())


def judged(asked, right, answer, source="", **mistakes):
    with watched(asked):
        given = run(asked, answer, SEED)
    return judge(asked, given, key_for(asked, right, **mistakes), scan_cell(asked, source))


def said_of(target, yours, **policy):
    asked, right = giving(target, **policy)
    return told(asked, right, lambda: yours)


# ------------------------------------------------------------------------------------------ of wrong numbers

ROWS = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.05, 0.9, 0.05], [0.6, 0.2, 0.2]])
NUMBERS = torch.arange(24.0).reshape(2, 3, 4) ** 1.5 + 1


@pytest.mark.parametrize("target", [torch.arange(6), torch.tensor([True, False, True, True])])
def test_of_a_type_nothing_is_said_where_whole_numbers_are_wanted(target):
    assert "fractions" not in said_of(target, torch.zeros_like(target) + target[:1])


def test_whole_numbers_where_fractions_are_wanted_are_told_so():
    assert "which cannot hold fractions" in said_of(ROWS, ROWS.long())


@pytest.mark.parametrize(
    ("factor", "shown"),
    [(2, "times 2."), (0.5, "times 1/2 (0.5)."), (8**0.5, "times √8 (2.828)."), (5**-0.5, "times 1/√5 (0.4472)."),
     (1024, "times 1024."), (0.9, "times 0.9."), (-3, "times -3.")],
)  # fmt: skip
def test_a_factor_that_means_something_is_told_as_one_writes_it(factor, shown):
    assert shown in said_of(NUMBERS, NUMBERS * factor)


def test_token_ids_are_not_multiples_of_each_other():
    assert "times" not in said_of(torch.arange(1, 7), torch.arange(1, 7) * 11)


def test_after_one_input_nobody_knows_what_would_be_for_others():
    said = said_of(ROWS, torch.full_like(ROWS, 1 / 6))
    assert "Every entry of your result is 0.1667." in said and "whatever" not in said


@pytest.mark.parametrize(
    ("yours", "says"),
    [
        (NUMBERS.reshape(2, 4, 3).transpose(1, 2), "the right numbers at other places. Look for a reshape"),
        (NUMBERS * 0.4711, "Every number is the right one times 0.4711."),
        (NUMBERS * torch.tensor([[1.0], [2.0], [3.0]]), "times a factor that differs along axis t: 1, 2 and 3"),
        (NUMBERS[0], "has 2 axes"),
    ],
)
def test_a_difference_of_a_kind_is_named(yours, says):
    assert says in said_of(NUMBERS, yours, axes="b t d")


def test_rows_that_have_to_sum_to_one_and_do_not():
    assert "yours sum to 1.3 in the first row" in said_of(ROWS, ROWS + torch.tensor([0.3, 0.0, 0.0]) * ROWS.ne(0.6))


def test_of_a_list_it_is_said_how_far_it_is_right():
    said = said_of(torch.tensor([5, 6, 7, 8]), torch.tensor([5, 6, 1, 9]))
    assert "The first 2 numbers of your result are right. Then, at index 2, yours is 1, the target 7." in said


def test_of_ids_the_first_wrong_one_is_shown_for_none_is_nearer_than_another():
    said = said_of(torch.tensor([[5, 6], [7, 8], [9, 1]]), torch.tensor([[5, 50256], [4, 80], [2, 1]]), axes="b t")
    assert "The first that is wrong is at [b=0, t=1]: yours is 50256, the target 6. 2 of 6 are right." in said


def test_two_infinities_that_are_alike_are_not_where_numbers_differ_most():
    target = torch.tensor([[float("-inf"), 1.0, 2.0, 0.5], [4.0, 5.0, float("-inf"), 3.0]])
    yours = torch.tensor([[float("-inf"), 1.5, 7.0, 0.4], [4.2, 5.3, float("-inf"), 3.1]])
    assert "They differ most at [0, 2]: yours is 7, the target 2. 2 of 8 are right." in said_of(target, yours)


def test_an_axis_of_length_one_that_got_lost_is_called_so():
    assert "An axis of length one is missing." in said_of(ROWS[None], ROWS, axes="b t s")


def test_a_mask_that_is_turned_round_is_called_so():
    target = torch.tensor([[True, False, False], [True, True, False]])
    assert "False where True is needed" in said_of(target, ~target)


def test_a_number_is_wanted_and_a_number_is_asked_for():
    asked, right = giving(3, accepts="number")
    assert "a single number is needed" in told(asked, right, lambda: [3, 4])
    assert "tensor" not in told(asked, right, lambda: [3, 4])


def test_an_empty_dict_and_a_dict_of_something_else_are_called_what_they_are():
    asked, right = giving(ROWS)
    assert "leaves an empty dict" in told(asked, right, dict)
    assert "Your code returns a dict; one tensor is needed." in told(asked, right, lambda: {"weights": ROWS})


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.filterwarnings("ignore")
def test_a_nested_tensor_is_told_that_a_dense_one_is_needed(layout):
    asked, right = giving(ROWS)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
    assert "a dense one is needed" in told(asked, right, lambda: nested)


# ------------------------------------------------------------------------------------- of which tensor it is said


def pair(draw):
    return draw.normal(2, 3), draw.normal(3, 4)


def pair_with(sign):
    """Like `pair`, the first number of x with this sign."""

    def inputs(draw):
        x, w = pair(draw)
        x[0, 0] = sign * x[0, 0].abs()
        return x, w

    return inputs


PRODUCT = exercise(
    values(1, pair, axes="b d", also={"with a batch of one": lambda draw: (draw.normal(1, 3), draw.normal(3, 4))}),
    gradient(1, pair),
    input_left_alone(0.5, pair),
    any_device(0.5, pair),
)


def product(x, w):
    return x @ w


def test_a_gradient_is_called_by_the_input_it_belongs_to():
    said = told(PRODUCT, product, lambda x, w: x @ w.detach())
    assert "The gradient for your second input is 0 everywhere. It is not used, or something cuts the graph" in said
    assert "or a trip through NumPy or a list of numbers." in said
    assert "gradient 1" not in said.lower()


def test_of_wrong_values_the_gradient_is_no_matter_of_its_own():
    lines = judged(PRODUCT, product, lambda x, w: (x @ w).exp()).aspects
    assert lines[1].says == "Some results above are wrong, so these gradients are too: fix the results first."


def test_gradients_alone_name_no_mistake_whose_values_are_others():
    lines = judged(PRODUCT, product, lambda x, w: 3 * (x @ w) + 1, threefold=lambda x, w: 3 * (x @ w))
    assert lines.slugs == () and lines.aspects[1].says == (
        "These gradients are those of a known mistake: title of threefold. Your results are not, so you make another"
        " one as well, or something else gives the same gradients."
    )
    assert judged(PRODUCT, product, lambda x, w: 3 * (x @ w), threefold=lambda x, w: 3 * (x @ w)).mistakes


def test_advice_for_an_aspect_is_given_where_the_values_above_it_hold():
    def aspect(name, place, missed=""):
        return Aspect(name, 1, lambda answer, draw: answer()[place], missed=missed)

    asked = exercise(aspect("several", 0), aspect("ends", 1, "Look at the end."))
    right = lambda: (NUMBERS, NUMBERS)  # noqa: E731
    assert "Look at the end." in told(asked, right, lambda: (NUMBERS, NUMBERS.sin()))
    said = told(asked, right, lambda: (NUMBERS.cos(), NUMBERS.sin()))
    assert "Look at the end." not in said and MAY_BE_THE_SAME in said
    of_a_kind = told(asked, right, lambda: (NUMBERS.cos(), -NUMBERS))
    assert "with the sign turned round." in of_a_kind and MAY_BE_THE_SAME not in of_a_kind


def test_what_was_measured_is_said_before_the_advice_for_an_aspect():
    asked = exercise(Aspect("ends", 1, lambda answer, draw: answer(), missed="Look at the end."))
    (line,) = judged(asked, lambda: NUMBERS, lambda: NUMBERS.sin()).aspects
    assert line.says.startswith("They differ most at [1, 2, 3]: yours is ") and line.says.endswith(" Look at the end.")
    side = replace(asked.aspects[0], side=True)
    sides = exercise(side, Aspect("values", 1, lambda answer, draw: answer()))
    assert judged(sides, lambda: NUMBERS, lambda: NUMBERS.sin()).aspects[0].says == "Look at the end."


def test_nobody_is_sent_from_few_wrong_numbers_to_many():
    def aspect(name, place, missed):
        return Aspect(name, 1, lambda answer, draw: answer()[place], missed=missed)

    asked = exercise(
        aspect("many", 0, "Look at all."), aspect("more", 1, "Look here."), aspect("few", 2, "Look there.")
    )
    right, wrong = ([f(NUMBERS), f(NUMBERS), f(NUMBERS[0])] for f in (torch.clone, torch.sin))
    many, more, few = (line.says for line in judged(asked, lambda: right, lambda: wrong).aspects)
    assert many.startswith("They differ most at ") and many.endswith(" Look at all.")
    assert more == MAY_BE_THE_SAME
    assert few.startswith("They differ most at ") and few.endswith(" Look there.")
    turned = [-NUMBERS, *wrong[1:]]
    assert judged(asked, lambda: right, lambda: turned).aspects[2].says == MAY_BE_THE_SAME


def test_where_nothing_is_known_of_wrong_values_it_is_said_which_hold():
    asked = exercise(values(1, pair_with(1)), values(1, pair_with(-1), name="other numbers"), gradient(1, pair))
    sometimes = lambda x, w: (x @ w).sin() if x[0, 0] > 0 else x @ w  # noqa: E731
    held = [line.held for line in judged(asked, product, sometimes).aspects[:2]]
    assert held == [False, True]
    said = told(asked, product, sometimes)
    assert "Your answer is right in other numbers. What is different about values?" in said


def test_a_gradient_that_is_partly_wrong_beside_right_values_may_be_cut():
    asked = exercise(values(1, pair), gradient(1, pair))
    said = told(asked, product, lambda x, w: torch.cat([x[:, :2], x[:, 2:].detach()], -1) @ w)
    assert "look for a part of the graph that is cut (detach(), " in said and "or a list of numbers)" in said


def test_a_parameter_of_another_shape_is_told_its_shapes():
    asked = exercise(parameters(1, built()), values(1, lambda draw: (draw.normal(2, 3),), via=built()))
    plain, wide = (lambda: torch.nn.Linear(3, 4, bias=False)), (lambda: torch.nn.Linear(3, 5, bias=False))
    assert "In your module, weight has shape (5, 3) and needs (4, 3)." in told(asked, plain, wide)


def test_gradients_that_are_asked_for_are_no_gradients_of_the_values_above():
    asked = exercise(
        Aspect("one", 1, lambda answer, draw: {"the gradient of w": answer(ROWS)}),
        Aspect("two", 1, lambda answer, draw: {"the gradient of w": answer(ROWS + 1)}),
    )
    said = told(asked, torch.exp, lambda x: x.exp() * 3)
    assert "their gradients are too" not in said and said.count("times 3") == 1 and SAME_CAUSE in said


def test_what_an_aspect_that_was_missed_would_mean_is_not_said_of_code_that_raised():
    def divides():
        return 1 / 0

    asked = exercise(Aspect("turning", 1, lambda answer, draw: answer(), missed="Your products change."))
    assert "products" not in told(asked, lambda: ROWS, divides)


def test_further_inputs_of_an_aspect_are_named_where_they_fail():
    assert "With a batch of one: your result has 1 axis" in told(PRODUCT, product, lambda x, w: (x @ w).squeeze())


def test_the_picture_shows_the_inputs_that_fail():
    further = {"with a batch of one": lambda draw: (draw.normal(1, 3), draw.normal(3, 4))}
    asked = exercise(values(1, pair, also=further, picture=True))
    line = judged(asked, product, lambda x, w: x @ w if len(x) > 1 else -(x @ w)).aspects[0]
    target, yours = line.pair
    assert target.shape == (1, 4) and torch.equal(yours, -target)


def test_of_what_else_is_right_it_is_said_what_it_is():
    two = {f"with {n} rows": lambda draw, n=n: (draw.normal(n, 3), draw.normal(3, 4)) for n in (1, 5)}
    asked = exercise(values(1, pair, also=two), gradient(1, pair))
    one_row = lambda x, w: x @ w if len(x) > 1 else (x @ w).sin()  # noqa: E731
    assert "All other cases are right." in told(asked, product, one_row)
    part = lambda x, w: torch.cat([x[:, :2], x[:, 2:].detach()], dim=1) @ w  # noqa: E731
    assert "The other gradient is right." in told(asked, product, part)


def test_a_tuple_in_place_of_a_tensor_is_called_one_however_many_cases_there_are():
    two = {f"with {n} rows": lambda draw, n=n: (draw.normal(n, 3), draw.normal(3, 4)) for n in (1, 5)}
    asked = exercise(values(1, pair, also=two))
    said = told(asked, product, lambda x, w: (x @ w, w))
    assert "Your code returns a tuple of 2 things; one tensor is needed." in said and "rows" not in said
    assert "one tensor; a tuple of 2 things is needed." in told(asked, lambda x, w: (x @ w, w), product)


@pytest.mark.parametrize(
    ("given", "advised"),
    [([ROWS, ROWS, ROWS], True), ([ROWS, ROWS[0]], False), ([ROWS, ROWS[0], ROWS], False), ([1.0, 2.0, 3.0], False)],
)
def test_stacking_is_advised_where_it_would_make_a_tensor_of_several(given, advised):
    asked, right = giving(ROWS)
    assert ("torch.stack" in told(asked, right, lambda: given)) is advised


def test_an_error_on_further_inputs_says_on_which():
    asked = exercise(values(1, pair, also={"with a batch of one": lambda draw: (draw.normal(1, 3), draw.normal(3, 4))}))
    some, none = (lambda x, w: x @ w if len(x) > 1 else 1 / 0), (lambda x, w: 1 / 0)
    assert "ZeroDivisionError: division by zero (with a batch of one, line " in told(asked, product, some)
    assert "ZeroDivisionError: division by zero (line " in told(asked, product, none)


def test_a_part_that_is_not_written_yet_is_called_so_on_further_inputs_too():
    def half(x, w):
        if len(x) == 1:
            raise NotImplementedError
        return x @ w

    assert "This part still raises NotImplementedError." in told(PRODUCT, product, half)


def test_an_error_comes_with_the_shapes_of_the_tensors_in_its_line(tmp_path):
    file = tmp_path / "cell.py"
    file.write_text("def answer(x, w):\n    return w @ x\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    said = told(PRODUCT, product, names["answer"])
    assert "line 2: return w @ x, where w has shape (3, 4) and x (2, 3)" in said
    assert said.count("mat1 and mat2") == 1 and SAME_CAUSE in said


def test_the_tensors_of_a_module_come_with_their_shapes_too(tmp_path):
    file = tmp_path / "cell.py"
    file.write_text("def answer(layer, w):\n    layer(w); return w @ layer.weight.mT + layer.bias.nothing\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    asked = exercise(Aspect("values", 1, lambda answer, draw: answer(torch.nn.Linear(4, 5), torch.ones(2, 4))))
    said = told(asked, lambda layer, w: w, names["answer"])
    assert "where w has shape (2, 4), layer.weight (5, 4) and layer.bias (5,))" in said


def test_the_cause_stands_first_and_the_same_cause_below_it():
    asked = exercise(any_device(0.5, pair), values(1, pair))
    lines = judged(asked, product, lambda x, w: x @ x).aspects
    assert "raised RuntimeError" in lines[0].says and "device" not in lines[0].says
    assert lines[1].says == SAME_CAUSE or "raised RuntimeError" in lines[1].says


def test_the_panel_of_a_shortcut_ticks_nothing():
    asked = exercise(values(1, pair), by_hand="Write the sum.")
    for given, source in ((lambda x, w: (x @ w).softmax(-1), ""), (product, "def answer(x, w):\n    return x.numel()")):
        by_name = {"numel": "Count them."} if source else {}
        one = replace(asked, forbidden={**asked.forbidden, **by_name})
        verdict = judged(one, product, given, source=source)
        assert verdict.state == NOT_ALLOWED
        assert "✓" not in as_text(verdict) + as_html(verdict)


# ----------------------------------------------------------------------------------------- when a mistake is named


def test_numbers_that_cannot_be_there_by_chance_name_a_mistake():
    assert judged(PRODUCT, product, lambda x, w: -(x @ w), sign=lambda x, w: -x @ w).slugs == ("sign",)


def test_errors_are_compared_in_all_their_words():
    def refusing(text):
        def probe(answer, draw):
            raise Fault(text + answer())

        return probe

    long = "Your function is asked for three more tokens and what it returns is then not "
    asked = exercise(Aspect("values", 1, lambda answer, draw: refusing(long)(answer, draw) if answer() else ROWS))
    assert judged(asked, lambda: "", lambda: "long enough.", other=lambda: "a tensor of ids.").slugs == ()
    assert judged(asked, lambda: "", lambda: "a tensor of ids.", other=lambda: "a tensor of ids.").slugs == ("other",)


def test_nothing_returned_names_no_mistake_that_once_returned_nothing():
    asked = exercise(Aspect("one", 1, lambda answer, draw: answer(1)), Aspect("two", 1, lambda answer, draw: answer(2)))
    verdict = judged(asked, lambda n: ROWS * n, lambda n: None, forgot=lambda n: None if n == 2 else ROWS + 1)
    assert verdict.slugs == ()


def test_no_change_in_place_is_named_where_the_input_was_left_alone():
    def in_place(x, w):
        x *= 2
        return x @ w

    assert judged(PRODUCT, product, in_place, in_place=in_place).slugs == ("in_place",)
    assert judged(PRODUCT, product, lambda x, w: 2 * x @ w, in_place=in_place).slugs == ()


def test_what_a_mistake_would_lose_and_the_answer_holds_speaks_against_it():
    def wide(draw):
        return draw.normal(2, 9), draw.normal(9, 4)

    asked = exercise(values(1, pair), values(1, wide, name="another width"))
    root = lambda x, w: x @ w / x.shape[-1] ** 0.5  # noqa: E731
    cut = lambda x, w: x @ w / int(x.shape[-1] ** 0.5)  # noqa: E731
    verdict = judged(asked, root, cut, not_scaled=product)
    assert verdict.slugs == () and verdict.points == 1
    assert "Your numbers are the right ones times √3" in as_text(verdict)


def test_a_mistake_with_the_same_numbers_is_mentioned_where_nothing_better_is_known():
    def shuffled(x, w):
        return (x @ w).exp().sin()

    asked = exercise(values(1, pair_with(1)), values(1, pair_with(-1), name="other numbers"))
    sometimes = lambda x, w: shuffled(x, w) if x[0, 0] > 0 else x @ w  # noqa: E731
    said = told(asked, product, sometimes, wave=shuffled)
    assert (
        "Here your numbers are those of a known mistake: title of wave. But your answer is right in other numbers, "
        "where that mistake fails: you make only a part of it, or something else gives the same numbers here."
    ) in said
    twice = lambda x, w: 2 * (x @ w) if x[0, 0] > 0 else x @ w  # noqa: E731
    said = told(asked, product, twice, doubled=lambda x, w: 2 * (x @ w))
    assert "the right ones times 2. Here your numbers are those of a known mistake: title of doubled." in said


def test_a_mistake_without_numbers_is_named_only_where_the_other_values_are_right():
    def cut(x, w):
        return (x @ w).detach()

    asked = exercise(values(1, pair), gradient(1, pair))
    assert judged(asked, product, lambda x, w: (x @ w).detach().clone(), detached=cut).slugs == ("detached",)
    wrong = judged(asked, product, lambda x, w: (x @ w).exp().detach(), detached=cut)
    assert wrong.slugs == () and "No gradient flows" in wrong.aspects[1].says


def test_what_an_answer_leaves_alone_pays_only_beside_a_right_result_whether_its_mistake_has_a_name_or_not():
    wrong = lambda x, w: x[:, :1] + w[:1]  # noqa: E731
    assert judged(PRODUCT, product, wrong).points == 0
    assert judged(PRODUCT, product, wrong, known=wrong).points == 0


# ------------------------------------------------------------------------------------------ causes, and their place


def test_two_mistakes_with_the_same_numbers_are_both_named():
    def once(answer, draw):
        return answer(*pair(draw))

    asked = exercise(*(Aspect(name, 1, once) for name in ("one", "two", "three")))

    def with_states(states):
        """An answer that gives something else each time it is called."""
        calls = iter(states)
        return lambda x, w: next(calls)(x @ w)

    same, sine, tanh, cosine = torch.clone, torch.sin, torch.tanh, torch.cos
    mistakes = {"first": with_states([sine, tanh, same]), "second": with_states([sine, same, tanh])}
    verdict = judged(asked, product, with_states([sine, cosine, cosine]), **mistakes)
    assert [m.title for m in verdict.mistakes] == ["title of first, or title of second"]
    assert "Either title of first: This is first. Or title of second" in verdict.aspects[0].says


def test_the_cause_is_told_at_the_first_cross():
    asked = exercise(
        values(1, pair, also={"with a batch of one": lambda draw: (draw.normal(1, 3), draw.normal(3, 4))}),
        values(1, pair, name="again"),
    )
    wrong = lambda x, w: (x @ w).sin()  # noqa: E731
    verdict = judged(asked, product, lambda x, w: wrong(x, w) if len(x) > 1 else x @ w + 1, sine=wrong)
    assert [line.says for line in verdict.aspects] == ["This is sine.", SAME_CAUSE]


def test_the_cause_is_told_where_it_was_recognised_if_the_first_cross_has_other_numbers():
    asked = exercise(
        values(1, pair, also={"with a batch of one": lambda draw: (draw.normal(1, 3), draw.normal(3, 4))}),
        values(1, pair, name="again"),
    )
    calls = iter([torch.cos, torch.sin, torch.sin])  # the numbers of the mistake with a batch of one only
    verdict = judged(asked, product, lambda x, w: next(calls)(x @ w), sine=lambda x, w: (x @ w).sin())
    assert "sine" not in verdict.aspects[0].says and verdict.aspects[1].says == "This is sine."


def test_nothing_is_said_of_a_cut_graph_or_a_reshape_where_the_values_are_wrong():
    said = told(PRODUCT, product, lambda x, w: (x @ w.detach()).exp())
    assert "The gradient for your second input is 0 everywhere, as if your result did not depend on it." in said
    assert "detach" not in said and "reshape" not in said


def test_of_parameters_that_are_not_asked_for_it_is_said_how_many():
    asked = exercise(parameters(1, built()), values(1, lambda draw: (draw.normal(2, 3),), via=built()))
    plain, biased = (lambda: torch.nn.Linear(3, 4, bias=False)), (lambda: torch.nn.Linear(3, 4))
    assert "has bias (4,), which is not asked for" in told(asked, plain, biased)
    layer = lambda: torch.nn.Sequential(torch.nn.Linear(3, 4))  # noqa: E731
    assert "0.bias (4,) and 0.weight (4, 3), which are not asked for" in told(asked, plain, layer)


# --------------------------------------------------------------------------------------------------- errors, Markdown


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda x, w: w @ x, "A matrix product needs the last axis"),
        (lambda x, w: x + w, "The shapes do not fit together"),
        (lambda x, w: x.mT.view(6) @ w, "view() cannot be used"),
        (lambda x, w: (x @ w).view(5, 5), "The new shape needs another number of entries"),
        (lambda x, w: x @ w.long(), "Another type of numbers is needed"),
        (lambda x, w: x[:, 9], "An index is not below the length"),
        (lambda x, w: x.sum(4), "The tensor has fewer axes than your code expects"),
        (lambda x, w: x @ w if x > 0 else w, "need a single truth value"),
        (lambda x, w: (x or w) @ w, "whether something is None is asked with `is None`"),
        (lambda x, w: torch.cat([x, w]), "Tensors that are joined"),
    ],
)
def test_an_error_of_torch_comes_with_what_it_means(answer, says):
    said = told(PRODUCT, product, answer)
    assert says in said and "Your code raised" in said


def test_what_is_written_over_is_told_where_the_gradient_raises():
    def over(x, w):
        result = (x @ w).exp()
        result.div_(2)
        return result

    said = told(PRODUCT, lambda x, w: (x @ w).exp() / 2, over)
    assert "Your code writes over a tensor that is still needed" in said


def over_what_is_needed(x, w):
    result = (x @ w).exp()
    result += 1
    return result


def into_views(x, w):
    rows = (x @ w).unbind()
    for row in rows:
        row *= 2
    return torch.stack(rows)


def into_a_view_made_without_gradients(x, w):
    with torch.no_grad():
        first = x[:1]
    first *= 2
    return x @ w


class Unrecorded(torch.autograd.Function):
    """Recomputes in its backward pass, and forgets to record what it does there."""

    @staticmethod
    def forward(context, x, w):
        context.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(context, slope):
        x, w = (tensor.detach().requires_grad_() for tensor in context.saved_tensors)
        return torch.autograd.grad(x @ w, (x, w), slope)


def test_an_error_in_a_functions_backward_is_told_that_nothing_is_recorded_there():
    said = told(PRODUCT, product, Unrecorded.apply)
    assert "A gradient is asked for where none was recorded: under no_grad, in a Function without enable_grad" in said


@pytest.mark.parametrize("answer", [over_what_is_needed, into_views, into_a_view_made_without_gradients])
def test_an_error_of_autograd_about_a_change_in_place_comes_with_what_to_write_instead(answer):
    asked = exercise(gradient(1, pair))
    said = told(asked, product, answer)
    assert "Make a new tensor instead: x = x + y for x += y, " in said
    assert said.index("Make a new tensor") < said.index("Your code raised RuntimeError: ")


def test_a_mistakes_words_are_rendered_wherever_they_are_shown():
    text = "Only who is *looked at* is masked: `x * 2 * y`, not 2 * x * y, nor *args or <b>."
    html = "Only who is <em>looked at</em> is masked: <code>x * 2 * y</code>, not 2 * x * y, nor *args or &lt;b&gt;."
    assert marked(text) == html == str(marked_on_pages(text))
    assert without_emphasis(text) == text.replace("*looked at*", "looked at")
    asked, right = giving(ROWS)
    known = KnownMistake("m", "*one* mistake", text, run(asked, lambda: -ROWS, SEED).outcomes)
    verdict = judge(asked, run(asked, lambda: -ROWS, SEED), ExerciseKey(run(asked, right, SEED).outcomes, (known,)))
    assert html in as_html(verdict) and "<em>one</em> mistake" in as_html(verdict)
    assert "*looked" not in as_text(verdict)
