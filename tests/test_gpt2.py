"""GPT-2: the numbers of `transformers`, files that it reads and writes, and files that are not as they should be."""

from __future__ import annotations

import math
import random
import warnings

import needs
import pytest
import torch
import torch.nn.functional as F
from test_data_hub import server  # noqa: F401  (a small Hub on the loopback)

from helpers.data import store
from helpers.data.datasets import gpt2_files
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.gpt2 import GPT2, Config, KeyValueCache
from helpers.parts.published import published_tensors

needs_transformers = needs.package("transformers")
SMALL = Config(n=97, t_max=40, e=24, h=3, depth=2)


def drawn_config(seed: int) -> Config:
    rng = random.Random(seed)
    h = rng.choice([1, 2, 3, 4, 5, 8])
    return Config(
        n=rng.randrange(60, 400),
        t_max=rng.randrange(70, 90),
        e=h * rng.choice([4, 8, 10, 16]),
        h=h,
        depth=rng.randrange(1, 6),
        epsilon=rng.choice([1e-5, 1e-6, 1e-3]),
        hidden=rng.choice([None, None, 50, 200]),
    )


def reference(config: Config, seed=0, std=0.15):
    """The independent model, in evaluation mode: weights so large that the logits differ widely, biases not 0."""
    import transformers

    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=config.n,
            n_positions=config.t_max,
            n_embd=config.e,
            n_head=config.h,
            n_layer=config.depth,
            n_inner=config.hidden,
            layer_norm_epsilon=config.epsilon,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    theirs.generation_config.eos_token_id = None
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            parameter.normal_(float("ln_" in name and name.endswith("weight")), std)
    return theirs.eval()


def ours_of(theirs, config: Config) -> GPT2:
    with torch.device("meta"):
        model = GPT2(config)
    model.load_state_dict(gpt2.rename_weights(theirs.state_dict()), assign=True)
    return model.eval()


def ids_for(config: Config, b=2, t=None, seed=1):
    return torch.randint(config.n, (b, t or config.t_max), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def assert_same_layers(model: GPT2, theirs, ids) -> None:
    """What enters the first block, what leaves each, the last one's after the norm, and the logits."""
    told, states = theirs(ids, output_hidden_states=True), [model.embed(ids)]
    for block in model.blocks:
        states.append(block(states[-1]))
    states[-1] = model.norm(states[-1])
    for mine, other in zip([*states, model(ids)], [*told.hidden_states, told.logits], strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-4)


def assert_same_continuation(model: GPT2, theirs, ids, count=64) -> None:
    how = {"attention_mask": torch.ones_like(ids), "max_new_tokens": count, "do_sample": False, "pad_token_id": 0}
    expected = theirs.generate(ids, **how)[:, ids.shape[1] :]
    assert expected.shape[1] == count
    assert gpt2.generate(model, ids, count, temperature=0).equal(expected)
    assert gpt2.generate_cached(model, ids, count, temperature=0).equal(expected)


##### The numbers


@needs_transformers
@pytest.mark.parametrize("seed", range(12))
def test_every_layer_and_the_text_of_the_independent_model(seed):
    config = drawn_config(seed)
    theirs = reference(config, seed)
    model = ours_of(theirs, config)
    assert_same_layers(model, theirs, ids_for(config))
    assert_same_continuation(model, theirs, ids_for(config, b=3, t=5))


@needs_transformers
@pytest.mark.deep
def test_every_layer_and_the_text_at_the_size_of_the_smallest_published_one():
    config = Config.published("gpt2")
    theirs = reference(config, std=0.02)
    model = ours_of(theirs, config)
    assert model.tokens.weight.data_ptr() == theirs.transformer.wte.weight.data_ptr(), "there once, not twice"
    assert_same_layers(model, theirs, ids_for(config, b=1, t=96))
    assert_same_continuation(model, theirs, ids_for(config, b=1, t=16))


@needs_transformers
def test_attention_weights_are_those_of_the_independent_model():
    config = drawn_config(3)
    theirs = reference(config)
    theirs.set_attn_implementation("eager")
    ids = ids_for(config)
    weights = ours_of(theirs, config).attention_weights(ids)
    with torch.no_grad():
        expected = torch.stack(theirs(ids, output_attentions=True).attentions)
    assert weights.shape == (config.depth, 2, config.h, config.t_max, config.t_max)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-5)


def test_the_published_sizes_have_the_published_numbers_of_parameters():
    counts = {
        "gpt2": 124_439_808,
        "gpt2-medium": 354_823_168,
        "gpt2-large": 774_030_080,
        "gpt2-xl": 1_557_611_200,
        "distilgpt2": 81_912_576,
    }
    for name, count in counts.items():
        with torch.device("meta"):  # nothing is allocated
            model = GPT2(Config.published(name))
        assert sum(parameter.numel() for parameter in model.parameters()) == count
    with pytest.raises(ValueError, match="gpt2-xl"):
        Config.published("gpt3")


def test_weights_start_as_published():
    model = GPT2(Config(n=500, t_max=64, e=128, h=4, depth=8))
    for name, parameter in model.named_parameters():
        if "norm" in name:
            assert parameter.eq(float(name.endswith("weight"))).all(), name
        elif name.endswith("bias"):
            assert not parameter.any(), name
        else:
            expected = 0.02 / math.sqrt(16) if "unify" in name or "narrow" in name else 0.02
            assert abs(parameter.std() / expected - 1) < 0.03 and abs(parameter.mean()) < expected / 20, name


def test_dropout_is_for_training():
    model = GPT2(Config(**{**SMALL.__dict__, "dropout": 0.5}))
    ids = ids_for(SMALL)
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


##### Other forms of the model


def lengths_agree(other, model: GPT2, lengths=(7, 1, 2, SMALL.t_max - 1, SMALL.t_max), batches=(2, 1)) -> None:
    """The same logits for windows of every kind: a few tokens, one, two, all but one, all."""
    for b in batches:
        for t in lengths:
            ids = ids_for(SMALL, b=b, t=t, seed=t)
            torch.testing.assert_close(other(ids), model(ids), rtol=0, atol=1e-5)


@torch.no_grad()
def test_a_trace_of_the_model_holds_for_every_length_and_says_nothing_of_a_choice_that_it_froze():
    model = large(SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of tracing as a whole: PyTorch would rather export
        warnings.simplefilter("error", torch.jit.TracerWarning)
        traced = torch.jit.trace(model, ids_for(SMALL, t=7))
    lengths_agree(traced, model)


@torch.no_grad()
def test_the_model_is_exported_for_every_length():
    model = large(SMALL)
    sizes = {0: torch.export.Dim("b", min=1, max=8), 1: torch.export.Dim("t", min=1, max=SMALL.t_max)}
    exported = torch.export.export(model, (ids_for(SMALL, t=7),), dynamic_shapes=(sizes,))
    lengths_agree(exported.module(), model)
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        exported.module()(ids_for(SMALL, t=SMALL.t_max + 1))


@torch.no_grad()
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_model_compiles_as_one_graph(backend):
    model = large(SMALL)
    torch.compiler.reset()
    lengths_agree(torch.compile(model, fullgraph=True, backend=backend), model, (7, 1, SMALL.t_max), batches=(2,))


@pytest.mark.parametrize("write", [gpt2.generate, gpt2.generate_cached])
def test_a_compiled_model_writes_the_same(write):
    model, ids = large(SMALL), ids_for(SMALL, t=7)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    assert write(compiled, ids, 3, temperature=0).equal(write(model, ids, 3, temperature=0))


##### The cache, and writing


def large(config: Config, seed=0) -> GPT2:
    """Weights large enough that every token matters to the next."""
    torch.manual_seed(seed)
    model = GPT2(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("parts", [[40], [1] * 40, [17, 1, 1, 1, 20], [3, 5, 32], [1, 39]])
def test_the_cache_changes_no_logit_however_the_text_comes(parts):
    model, ids = large(SMALL), ids_for(SMALL)
    cache = KeyValueCache(SMALL.depth, SMALL.t_max)
    with torch.no_grad():
        logits = torch.cat([model(part, cache) for part in ids.split(parts, dim=1)], dim=1)
        torch.testing.assert_close(logits, model(ids), rtol=0, atol=1e-5)
        torch.testing.assert_close(logits[:, -1:], model(ids, last_only=True), rtol=0, atol=1e-5)
    assert cache.length == 40
    with pytest.raises(ValueError, match="41"):
        model(ids[:, :1], cache)


@pytest.mark.parametrize("t", [1, 7, 39, 40, 55])
@pytest.mark.parametrize(
    "how", [{"temperature": 0}, {"temperature": 1.5}, {"top_k": 5}, {"top_p": 0.7, "temperature": 0.9}]
)
def test_cached_and_plain_write_the_same_past_the_end_of_the_window_too(t, how):
    model, ids = large(SMALL), ids_for(SMALL, t=t)
    plain = gpt2.generate(model, ids, 50, **how, generator=torch.Generator().manual_seed(3))
    cached = gpt2.generate_cached(model, ids, 50, **how, generator=torch.Generator().manual_seed(3))
    assert plain.shape == (2, 50) and plain.equal(cached)
    assert gpt2.generate_cached(model, ids, 0).shape == gpt2.generate(model, ids, 0).shape == (2, 0)


def test_writing_is_lesson_9s_writing_and_leaves_the_mode_alone():
    from helpers.parts.generator import generate

    model, ids = large(SMALL), ids_for(SMALL, t=6)
    model.train()
    expected = generate(model, ids, 45, 0.8, 10, 0.9, torch.Generator().manual_seed(3))
    for write in (gpt2.generate, gpt2.generate_cached):
        assert write(model, ids, 45, 0.8, 10, 0.9, torch.Generator().manual_seed(3)).equal(expected)
        assert model.training


def test_with_the_cache_the_model_reads_the_prompt_once_and_then_one_token_at_a_time(monkeypatch):
    model, read = large(SMALL), []
    monkeypatch.setattr(
        model, "embed", lambda ids, start=0: read.append((start, ids.shape[1])) or GPT2.embed(model, ids, start)
    )
    gpt2.generate_cached(model, ids_for(SMALL, t=30), 13)
    assert read == [(0, 30), *((place, 1) for place in range(30, 40)), (0, 40), (0, 40)]


def test_perplexity_predicts_every_token_but_the_first_once():
    model = large(SMALL)
    text = ids_for(SMALL, b=1, t=203)[0]
    with torch.no_grad():
        for stride in (1, 7, 39, 40):
            nats = []
            for place in range(1, len(text)):  # the window that predicts it first, and what it starts with
                start = 0 if place <= 40 else math.ceil((place - 40) / stride) * stride
                nats.append(F.cross_entropy(model(text[None, start:place])[0, -1], text[place]).item())
            assert gpt2.perplexity(model, text, stride) == pytest.approx(math.exp(sum(nats) / len(nats)), rel=1e-5)
    assert gpt2.perplexity(model, text) == gpt2.perplexity(model, text, 40)
    for short in (2, 40, 41, 42, 81):
        assert math.isfinite(gpt2.perplexity(model, text[:short]))


def test_perplexity_of_a_model_that_knows_nothing_is_the_size_of_its_vocabulary():
    model = GPT2(SMALL)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    assert gpt2.perplexity(model, ids_for(SMALL, b=1, t=100)[0] * 0) == pytest.approx(97)
    assert model.training
    with pytest.raises(ValueError, match="two tokens"):
        gpt2.perplexity(model, torch.tensor([3]))
    with pytest.raises(ValueError, match="stride"):
        gpt2.perplexity(model, torch.arange(9), stride=41)


##### Files


def published(model: GPT2) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in published_tensors(model, gpt2._TENSORS).items()}


@needs_transformers
@pytest.mark.parametrize("seed", range(3))
def test_what_transformers_saves_is_loaded(tmp_path, seed):
    config = drawn_config(seed)
    theirs = reference(config, seed)
    theirs.save_pretrained(tmp_path)
    model, ids = gpt2.load(tmp_path), ids_for(config)
    assert not model.training
    assert all(parameter.requires_grad and parameter.dtype == torch.float32 for parameter in model.parameters())
    with torch.no_grad():
        torch.testing.assert_close(model(ids), theirs(ids).logits, rtol=0, atol=1e-4)
    assert model.config == Config(**{**config.__dict__, "dropout": 0.1})


@needs_transformers
@pytest.mark.parametrize("kind", ["GPT2ForSequenceClassification", "GPT2ForTokenClassification"])
def test_a_classifier_is_loaded_without_its_last_layer_which_is_named(tmp_path, kind):
    import transformers

    config = drawn_config(0)
    settings = reference(config, 0).config
    theirs = getattr(transformers, kind)(settings).eval()
    theirs.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match=r"left out: .*(score|classifier)\.weight"):
        model = gpt2.load(tmp_path)
    ids = ids_for(config)
    with torch.no_grad():
        expected = theirs.transformer(ids).last_hidden_state @ theirs.transformer.wte.weight.T
        torch.testing.assert_close(model(ids), expected, rtol=0, atol=1e-4)


@needs_transformers
@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("prefix", ["transformer.", ""])
@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("old_format", [False, True])
def test_the_older_files_are_loaded(tmp_path, masks, prefix, head, old_format):
    config = drawn_config(5)
    theirs = reference(config)
    theirs.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    weights = {name.replace("transformer.", prefix): tensor for name, tensor in theirs.state_dict().items()}
    if not head:
        del weights["lm_head.weight"]
    for i in range(config.depth if masks else 0):
        triangle = torch.ones(config.t_max, config.t_max, dtype=torch.uint8).tril()
        weights[f"{prefix}h.{i}.attn.bias"] = triangle[None, None]
        weights[f"{prefix}h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(weights, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=not old_format)
    ids = ids_for(config)
    with torch.no_grad():
        torch.testing.assert_close(gpt2.load(tmp_path)(ids), theirs(ids).logits, rtol=0, atol=1e-4)


@needs_transformers
@pytest.mark.parametrize("seed", range(3))
def test_what_is_saved_here_is_loaded_by_transformers(tmp_path, seed):
    import transformers

    config = drawn_config(seed)
    model, ids = large(config), ids_for(config)
    gpt2.save(model, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    theirs, report = transformers.GPT2LMHeadModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    with torch.no_grad():
        torch.testing.assert_close(theirs.eval()(ids).logits, model(ids), rtol=0, atol=1e-4)
        assert gpt2.load(tmp_path)(ids).equal(model(ids))


def test_half_precision_becomes_single_and_the_copy_is_the_files_own(tmp_path):
    model = large(SMALL).half()
    gpt2.save(model, tmp_path)
    loaded = gpt2.load(tmp_path)
    assert all(torch.equal(a, b.float()) for a, b in zip(loaded.parameters(), model.parameters(), strict=True))


UNKNOWN = """
wte wte.bias h.0.ln_1.masked_bias h.0.attn.c_attn h.00.ln_1.weight h.-1.ln_1.weight h.0.ln_3.weight lm_head.bias
h.0.attn.c_attn.scale transformer.transformer.wte.weight model.wte.weight score.weight h.0.attn.bias.bias h.0.weight
h.٣.ln_1.weight h.0.attn.weight"""


@pytest.mark.parametrize("name", ["", *UNKNOWN.split()])
def test_unknown_names_are_refused_by_name(name):
    with pytest.raises(ValueError, match="unexpected") as caught:
        gpt2.rename_weights(published(large(SMALL)) | {name: torch.ones(2), "another": torch.ones(2)})
    assert f"unexpected: {name}\n" in str(caught.value) and "unexpected: another" in str(caught.value)


def test_a_head_that_is_not_the_table_is_refused():
    weights = published(large(SMALL))
    for head in (weights["wte.weight"] + 0.001, weights["wte.weight"][:-1]):
        with pytest.raises(ValueError, match="lm_head.weight differs from wte.weight"):
            gpt2.rename_weights(weights | {"lm_head.weight": head})
    with pytest.raises(ValueError, match="twice.*: transformer.wte.weight"):
        gpt2.rename_weights(weights | {"transformer.wte.weight": weights["wte.weight"]})


def nano(model: GPT2, bias: bool = True, mark: str = "") -> dict:
    """A checkpoint as nanoGPT writes it: linear layers, matrices (n_out, n_in), the head too, and the optimiser."""
    weights = {}
    for name, tensor in published(model).items():
        if bias or not name.endswith("bias"):
            linear = "c_" in name and name.endswith("weight")
            weights[f"{mark}transformer.{name}"] = tensor.T.contiguous() if linear else tensor
    weights[f"{mark}lm_head.weight"] = weights[f"{mark}transformer.wte.weight"]
    config = model.config
    sizes = {"n_layer": config.depth, "n_head": config.h, "n_embd": config.e, "block_size": config.t_max}
    return {
        "model": weights,
        "optimizer": {"state": {0: {"step": torch.tensor(5.0)}}, "param_groups": [{"lr": 1e-3, "params": [0]}]},
        "model_args": {**sizes, "bias": bias, "vocab_size": config.n, "dropout": 0.0},
        "iter_num": 5,
        "best_val_loss": torch.tensor(3.5),
        "config": {"dataset": "shakespeare"},
    }


@pytest.mark.parametrize("mark", ["", "_orig_mod.", "module.", "module._orig_mod."])
@pytest.mark.parametrize("bias", [True, False])
def test_a_checkpoint_of_nano_gpt_is_loaded(tmp_path, bias, mark):
    model = large(SMALL)
    if not bias:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.mul_(not name.endswith("bias"))
    gpt2.save(model, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(nano(model, bias, mark), tmp_path / "pytorch_model.bin")
    torch.testing.assert_close(gpt2.load(tmp_path)(ids_for(SMALL)), model(ids_for(SMALL)))


def test_a_checkpoint_whose_sizes_are_not_those_of_the_config_is_refused(tmp_path):
    model = large(SMALL)
    gpt2.save(model, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    checkpoint = nano(model)
    checkpoint["model_args"]["n_head"] = 4
    torch.save(checkpoint, tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="n_head is 4 in the checkpoint and 3 in config.json"):
        gpt2.load(tmp_path)
    del checkpoint["model"]["transformer.h.0.ln_1.bias"]
    torch.save(checkpoint["model"], tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="missing: h.0.ln_1.bias"):
        gpt2.load(tmp_path)


def test_the_folder_of_nano_gpt_is_known_and_said_what_to_do_with(tmp_path):
    (tmp_path / "ckpt.pt").write_bytes(b"weights")
    with pytest.raises(FileNotFoundError, match="needs config.json.* ckpt.pt, as nanoGPT writes it: call that"):
        gpt2.load(tmp_path)


def test_a_compiled_model_is_saved_as_the_model_that_it_is(tmp_path):
    model = large(SMALL)
    gpt2.save(torch.compile(model, backend="eager"), tmp_path)
    assert gpt2.load(tmp_path)(ids_for(SMALL)).equal(model(ids_for(SMALL)))


##### By name


def a_folder(folder, n=300):
    tokenizer = Tokenizer.learn("the state of the statement is the state of the art " * 3, 280)
    tokenizer.save(folder)
    gpt2.save(large(Config(**{**SMALL.__dict__, "n": n})), folder)
    return folder


def loaded(name: str) -> tuple[GPT2, Tokenizer]:
    folder = gpt2_files(name).folder
    return gpt2.load(folder), Tokenizer.from_folder(folder)


NAMES = [*(f"openai-community/gpt2{size}" for size in ("", "-medium", "-large", "-xl")), "distilbert/distilgpt2"]


@pytest.mark.parametrize("old_format", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_published_models_load_by_name_from_the_hub(tmp_path, monkeypatch, capsys, server, name, old_format):  # noqa: F811
    monkeypatch.setattr(store, "SHA256", {})
    files = {path.name: path.read_bytes() for path in a_folder(tmp_path / "as published").iterdir()}
    expected, _ = loaded(str(tmp_path / "as published"))
    if old_format:
        del files["model.safetensors"]
        torch.save(
            {f"transformer.{theirs}": tensor for theirs, tensor in published(expected).items()}, tmp_path / "weights"
        )
        files["pytorch_model.bin"] = (tmp_path / "weights").read_bytes()
    server.repositories["models", name, "main"] = files
    capsys.readouterr()
    for place in ("from the Hub (kept for next time)", "from $COURSE_DATA"):
        model, tokenizer = loaded(name)
        assert place in capsys.readouterr().out
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), expected.parameters(), strict=True))
        assert tokenizer.decode(tokenizer.encode("a statement")) == "a statement"


def test_a_folder_is_a_name_too(tmp_path):
    model, tokenizer = loaded(str(a_folder(tmp_path)))
    assert model(torch.tensor([tokenizer.encode("the statement")])).shape[-1] == 300


def test_the_published_sizes_are_the_same_in_both_places():
    from helpers.data.model_files import GPT2_SIZES

    configs = {name: Config.published(name) for name in GPT2_SIZES}
    assert {name: (config.e, config.h, config.depth) for name, config in configs.items()} == GPT2_SIZES


# ------------------------------------------------------------------------------------ heads


def random_weights(*shape: int) -> torch.Tensor:
    t = shape[-1]
    future = torch.ones(t, t).triu(1).bool()
    scores = torch.randn(*shape, t, generator=torch.Generator().manual_seed(t))
    return scores.masked_fill(future, -torch.inf).softmax(-1)


@pytest.mark.parametrize("t, period", [(2, 1), (7, 1), (7, 3), (7, 6), (12, 6)])
def test_the_induction_score_is_the_mean_weight_on_what_followed_the_same_token(t, period):
    weights = random_weights(2, 3, t)
    expected = torch.zeros(2, 3)
    for i in range(period, t):
        for j in range(t):
            if j == i - period + 1:
                expected += weights[..., i, j] / (t - period)
    torch.testing.assert_close(gpt2.induction_score(weights, period), expected)


@pytest.mark.parametrize("period", [0, -1, 7, 8])
def test_without_a_repetition_there_is_no_induction_score(period):
    with pytest.raises(ValueError, match=f"after 1 to 6, and period is {period}"):
        gpt2.induction_score(random_weights(7), period)


def test_the_scores_of_previous_and_first_token_and_of_even_weights():
    weights = random_weights(4, 6)
    torch.testing.assert_close(gpt2.previous_score(weights), sum(weights[:, i, i - 1] for i in range(1, 6)) / 5)
    torch.testing.assert_close(gpt2.first_score(weights), sum(weights[:, i, 0] for i in range(2, 6)) / 4)
    assert gpt2.even_weights(3).tolist() == [[1, 0, 0], [0.5, 0.5, 0], pytest.approx([1 / 3] * 3)]


def test_a_head_that_is_switched_off_adds_nothing_and_comes_back():
    model, ids = GPT2(SMALL).eval(), torch.randint(97, (2, 9))
    d = SMALL.e // SMALL.h
    by_hand = GPT2(SMALL).eval()
    by_hand.load_state_dict(model.state_dict())
    with torch.no_grad():
        for block, head in ((0, 2), (1, 0)):
            by_hand.blocks[block].attention.unify.weight[head * d : (head + 1) * d] = 0
        whole = model(ids)
        with gpt2.switched_off(model, (0, 2), (1, 0)) as changed:
            torch.testing.assert_close(changed(ids), by_hand(ids))
        assert not torch.allclose(whole, by_hand(ids), atol=1e-4) and model(ids).equal(whole)
        with pytest.raises(KeyError), gpt2.switched_off(model, (0, 1)):
            raise KeyError
        with gpt2.switched_off(model):
            assert model(ids).equal(whole)


@pytest.mark.parametrize("head", [(2, 0), (0, 3), (-1, 0)])
def test_only_a_head_that_is_there_can_be_switched_off(head):
    with pytest.raises(IndexError, match="blocks are 0 to 1, heads 0 to 2"), gpt2.switched_off(GPT2(SMALL), head):
        pass
