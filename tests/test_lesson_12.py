"""Lesson 12: model, weights, cache, perplexity and heads, against `transformers`."""

import math
import re

import nbformat
import pytest
import torch
import torch.nn.functional as F

from helpers.authoring.lesson_source import Answers, on_the_cpu, sources
from helpers.checking.answers import run
from helpers.checking.keys import ExerciseKey
from helpers.checking.verdicts import RIGHT, judge
from helpers.data.model_files import POCKET
from helpers.data.recorded import recorded
from helpers.data.reference import reference
from helpers.exercises import load_lesson
from helpers.parts import bpe, gpt2

SOURCE = sources(["12_gpt2"])[0]
LESSON = load_lesson("12_gpt2")
ANSWERS = Answers(SOURCE)
PARTS = ["Conv1D", "GPT2Block", "GPT2", "rename_weights", "perplexity", "induction_score"]
CONFIGS = [  # n, t_max, e, h, depth
    (7, 5, 4, 1, 1),
    (19, 11, 12, 3, 2),
    (50, 16, 8, 8, 3),
    (33, 9, 20, 5, 1),
    (101, 24, 16, 2, 4),
    (13, 8, 6, 2, 5),
]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(12)


@pytest.fixture(params=["solution", "part"])
def written(request):
    """An exercise's solution, and the finished part of the same name: what holds of one holds of the other."""
    return lambda name: ANSWERS.make(name) if request.param == "solution" else getattr(gpt2, name)


def solution(name):
    return ANSWERS.make(name)


# ----------------------------------------------------------------------------------------------- model, weights


def theirs_of(config, **options):
    transformers = pytest.importorskip("transformers")
    settings = transformers.GPT2Config(
        vocab_size=config.n,
        n_positions=config.t_max,
        n_embd=config.e,
        n_layer=config.depth,
        n_head=config.h,
        layer_norm_epsilon=config.epsilon,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation="eager",
        **options,
    )
    model = transformers.GPT2LMHeadModel(settings).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return model


def ours_of(config, model):
    """The lesson's GPT2, with the weights that the lesson's function has renamed."""
    ours = solution("GPT2")(config).eval()
    ours.load_state_dict(solution("rename_weights")(model.state_dict()))
    return ours


@pytest.mark.parametrize("sizes", CONFIGS)
def test_logits_are_those_of_transformers(sizes):
    config = gpt2.Config(*sizes)
    theirs = theirs_of(config)
    ours = ours_of(config, theirs)
    for t in (1, config.t_max // 2, config.t_max):
        ids = torch.randint(config.n, (3, t))
        with torch.no_grad():
            torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


@pytest.mark.parametrize("sizes", CONFIGS[:4])
def test_the_lessons_block_is_that_of_transformers(sizes):
    config = gpt2.Config(*sizes)
    theirs = theirs_of(config)
    ours = solution("GPT2Block")(config)
    state = solution("rename_weights")(theirs.state_dict())
    ours.load_state_dict(
        {name.removeprefix("blocks.0."): tensor for name, tensor in state.items() if name.startswith("blocks.0.")}
    )
    x = torch.randn(2, config.t_max, config.e, requires_grad=True)
    found = []
    theirs.transformer.h[0].register_forward_hook(
        lambda module, given, out: found.append((given[0], out[0] if isinstance(out, tuple) else out))
    )
    theirs(inputs_embeds=x)
    given, out = found[0]
    torch.testing.assert_close(ours(given), out, rtol=1e-4, atol=1e-5)
    cotangent = torch.randn_like(out)
    (mine,) = torch.autograd.grad((ours(given) * cotangent).sum(), given, retain_graph=True)
    (their,) = torch.autograd.grad((out * cotangent).sum(), given)
    torch.testing.assert_close(mine, their, rtol=1e-3, atol=1e-4)


def test_the_layer_is_that_of_transformers(written):
    utils = pytest.importorskip("transformers.pytorch_utils")
    layer, theirs = written("Conv1D")(5, 7), utils.Conv1D(7, 5)
    torch.nn.init.normal_(layer.bias)
    theirs.load_state_dict(layer.state_dict())
    for shape in ((5,), (4, 5), (2, 3, 4, 5)):
        x = torch.randn(*shape)
        torch.testing.assert_close(layer(x), theirs(x))


def test_the_activation_is_pytorchs():
    x = torch.linspace(-9, 9, 400, dtype=torch.float64)
    torch.testing.assert_close(gpt2.gelu_tanh(x), F.gelu(x, approximate="tanh"))


@pytest.mark.parametrize("prefix", ["", "transformer."])
@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("masks", [False, True])
def test_every_kind_of_file_is_renamed(written, prefix, head, masks):
    config = gpt2.Config(9, 6, 4, 2, 11)  # blocks of one and of two digits
    state = {
        name: tensor for name, tensor in theirs_of(config).state_dict().items() if head or name != "lm_head.weight"
    }
    state = {
        name if name.startswith("lm_head") else prefix + name.removeprefix("transformer."): tensor
        for name, tensor in state.items()
    }
    if masks:
        for k in range(config.depth):
            state |= {
                f"{prefix}h.{k}.attn.bias": torch.ones(1, 1, 6, 6).tril(),
                f"{prefix}h.{k}.attn.masked_bias": torch.tensor(-1e4),
            }
    before = dict(state)
    renamed = written("rename_weights")(state)
    expected = {name: tuple(p.shape) for name, p in gpt2.GPT2(config).state_dict().items()}
    assert {name: tuple(tensor.shape) for name, tensor in renamed.items()} == expected
    assert state.keys() == before.keys() and all(state[name] is before[name] for name in state)


PUBLISHED = {"gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_counts_are_met_without_their_memory(written, name):
    with torch.device("meta"):
        model = written("GPT2")(gpt2.Config.published(name))
    assert sum(p.numel() for p in model.parameters()) == PUBLISHED[name]


def test_the_drawing_forgets_what_the_lesson_says():
    bias, norm = 3_072 - 768, 2 * 768
    assert (bias, norm, 12 * bias + norm) == (2_304, 1_536, 29_184)
    assert PUBLISHED["gpt2"] - 29_184 == 124_410_624


def test_the_sizes_that_the_prose_gives():
    table = 50_257 * 768
    assert round(table / 1e6, 1) == 38.6 and round((PUBLISHED["gpt2"] + table) / 1e6, 1) == 163.0
    assert 75 < 2 * 1_024 * 768 * 12 * 4 / 1e6 < 76, "megabytes of cache"
    assert list(range(1, 200))[-2:] == [198, 199], "tokens that were read before token 200"
    assert 548 < (PUBLISHED["gpt2"] * 4 + 12 * 1_024**2 * 4) / 1e6 < 550, "the file on the Hub, with its masks"


# --------------------------------------------------------------------------------------- writing and perplexity


@pytest.mark.parametrize("sizes", [(19, 40, 12, 3, 2), (50, 64, 8, 2, 3)])
def test_the_cache_gives_the_tokens_of_transformers_and_of_no_cache(sizes):
    config = gpt2.Config(*sizes)
    theirs = theirs_of(config)
    model = gpt2.GPT2(config).eval()
    model.load_state_dict(solution("rename_weights")(theirs.state_dict()))
    ids = torch.randint(1, config.n, (2, 6))
    count = config.t_max - 6
    mine = solution("generate_cached")(model, ids, count)
    assert torch.equal(mine, gpt2.generate(model, ids, count, temperature=0))
    assert torch.equal(mine, gpt2.generate_cached(model, ids, count, temperature=0))
    text = theirs.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=count,
        min_new_tokens=count,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    assert torch.equal(mine, text[:, 6:])


def test_perplexity_is_e_to_the_loss_of_transformers(written):
    config = gpt2.Config(23, 30, 8, 2, 2)
    theirs = theirs_of(config)
    model = gpt2.GPT2(config).eval()
    model.load_state_dict(gpt2.rename_weights(theirs.state_dict()))
    ids = torch.randint(config.n, (25,))
    with torch.no_grad():
        loss = theirs(ids.unsqueeze(0), labels=ids.unsqueeze(0)).loss
    assert float(written("perplexity")(model, ids)) == pytest.approx(loss.exp().item(), rel=1e-4)


def test_a_model_that_knows_nothing_has_perplexity_n(written):
    model = gpt2.GPT2(gpt2.Config(37, 12, 4, 1, 1)).eval()
    torch.nn.init.zeros_(model.tokens.weight)
    assert float(written("perplexity")(model, torch.randint(37, (10,)))) == pytest.approx(37, rel=1e-5)


# --------------------------------------------------------------------------------------------------------- heads


@pytest.mark.parametrize("t, period", [(8, 4), (9, 4), (13, 4), (7, 6), (48, 24)])
def test_the_induction_score_of_a_head_that_only_copies_is_one(t, period):
    """Row i of the map looks at the last position before i that follows a copy of its token, found by search."""
    text = [i % period for i in range(t)]
    weights = torch.zeros(2, 3, t, t)
    for i in range(t):
        after = [j for j in range(1, i) if text[j - 1] == text[i]]
        weights[:, :, i, max(after) if after else 0] = 1
    score = solution("induction_score")(weights, period)
    torch.testing.assert_close(score, torch.ones(2, 3))
    assert solution("induction_score")(weights[0, 0], period).shape == ()


def test_the_induction_score_of_even_weights_is_one_over_the_positions_seen():
    even = torch.ones(12, 12).tril() / torch.arange(1, 13)[:, None]
    expected = sum(1 / (i + 1) for i in range(5, 12)) / 7
    torch.testing.assert_close(solution("induction_score")(even, 5), torch.tensor(expected))


# ---------------------------------------------------------------------------------------------- with nn.Linear


@pytest.mark.parametrize("sizes", [(9, 6, 4, 2, 1), (4, 4, 4, 1, 2)], ids=["rectangular tables", "square tables"])
def test_turned_weights_give_the_same_numbers_in_a_model_with_linear_layers(sizes):
    config = gpt2.Config(*sizes)
    state = {
        name.removeprefix("transformer."): tensor
        for name, tensor in theirs_of(config).state_dict().items()
        if name != "lm_head.weight"
    }
    layers = {name: p for name, p in state.items() if ".c_" in name and p.dim() == 2}
    shapes = {name: p.T.shape if name in layers else p.shape for name, p in state.items()}
    found = solution("for_linear")(dict(state), shapes)
    assert {name: p.shape for name, p in found.items()} == shapes
    for name, p in state.items():
        if name in layers:
            x = torch.randn(3, p.shape[0])
            torch.testing.assert_close(F.linear(x, found[name]), x @ p)
        else:
            assert found[name] is p


def test_the_converter_that_students_get_misses_the_square_matrix():
    names = {}
    exec(SOURCE.given()["for_linear"], names)
    state = {"h.0.attn.c_proj.weight": torch.randn(3, 3), "h.0.mlp.c_fc.weight": torch.randn(3, 12)}
    found = names["for_linear"](state, {name: p.T.shape for name, p in state.items()})
    assert torch.equal(found["h.0.mlp.c_fc.weight"], state["h.0.mlp.c_fc.weight"].T)
    assert torch.equal(found["h.0.attn.c_proj.weight"], state["h.0.attn.c_proj.weight"]), "and no error says so"


# ------------------------------------------------------------------------------------- what the stored outputs say

of_the_library = pytest.mark.skipif(
    "standard library" not in recorded("pocket_gpt2")["data"]["name"],
    reason="the pocket model of this copy was trained on another text than the lesson speaks of",
)


def told():
    """All text that the lesson's stored outputs hold."""
    outputs = [o for cell in nbformat.read(SOURCE.notebook, as_version=4).cells for o in cell.get("outputs", [])]
    return "".join(o.get("text", "") for o in outputs)


@of_the_library
def test_the_final_norm_is_the_dearest_error_and_the_exact_gelu_cannot_be_seen():
    costs = {name: float(nats) for name, nats in re.findall(r"^ *([\w ]+\w): +([\d.]+) nats a token$", told(), re.M)}
    assert LESSON.prediction("dearest_error").truth == "D" and max(costs, key=costs.get) == "no final norm"
    published = costs["as published"]
    assert costs["unify transposed"] > published + 2 and costs["not scaled"] > published + 0.1
    assert abs(costs["exact GELU"] - published) < 0.005 and abs(costs["positions from 1"] - published) < 0.3
    assert costs["no mask"] < costs["not scaled"]


@of_the_library
def test_one_previous_token_head_carries_all_induction():
    rows = re.findall(r"^ *([\w -]+\w) +([\d.]+) +([\d.]+)$", told(), re.M)
    first, second = ({name: float(row[k]) for name, *row in rows} for k in (0, 1))
    assert LESSON.prediction("switched_off_head").truth == "B"
    assert second["none"] < first["none"] / 5, "what comes a second time is copied"
    assert second["strongest induction head"] < first["none"] / 3 < second["strongest previous-token head"]
    assert second["all induction heads"] > first["none"] / 2
    assert recorded("pocket_gpt2")["settings"]["echoes"].find("(0, 0.5)") > 0, "in half of the windows at first"
    assert first["none"] > math.log(gpt2.Config.from_json(POCKET / "config.json").n)


def test_the_cache_wrote_the_same_tokens_and_the_weights_fit():
    assert "the same tokens without a cache: True" in told() and "missing: []  unexpected: []" in told()
    assert "six and then one are the same as seven: True" in told()


# --------------------------------------------------------------------------------------------- the recorded numbers


@pytest.mark.skipif(not POCKET.is_dir(), reason="this copy of the course has no pocket model")
def test_the_recorded_numbers_are_those_that_transformers_gives_now():
    pytest.importorskip("transformers")
    from helpers.training.gpt2_reference import stages_of_transformers

    known = reference(POCKET)
    assert bpe.Tokenizer.from_folder(POCKET).encode(known.text) == known.ids[0].tolist()
    fresh = stages_of_transformers(POCKET, known.ids)
    assert len(fresh) == len(known.stages)
    for old, new in zip(known.stages, fresh, strict=True):
        torch.testing.assert_close(old, new, rtol=1e-4, atol=1e-4)


def test_other_weights_and_no_record_are_told(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    if POCKET.is_dir():
        with pytest.raises(LookupError, match="other weights.*gpt2_reference"):
            reference(tmp_path)
    with pytest.raises(LookupError, match="gpt2_reference"):
        reference(tmp_path, tmp_path / "nothing.safetensors")


# --------------------------------------------------------------------------------------------------- the checks


@pytest.mark.parametrize("name", [*PARTS, "generate_cached"])
@pytest.mark.parametrize("seed", ["desk", "another"])
def test_the_finished_part_gets_every_point_of_its_exercise(name, seed):
    exercise = LESSON[name]
    part = getattr(gpt2, name)
    if name == "generate_cached":
        part = lambda model, ids, count: gpt2.generate_cached(model, ids, count, temperature=0)  # noqa: E731
    with on_the_cpu():
        key = ExerciseKey(run(exercise, ANSWERS.make(name), seed).outcomes)
        verdict = judge(exercise, run(exercise, part, seed), key)
    says = [a.says for a in verdict.aspects if not a.held]
    assert verdict.state == RIGHT and verdict.points == exercise.points, says
