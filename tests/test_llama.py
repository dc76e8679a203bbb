"""The Llama of lesson 18: its parts beside PyTorch's, and the whole beside LlamaForCausalLM."""

import pytest
import torch

from helpers.parts import llama
from helpers.parts.cache import cache_bytes
from helpers.parts.gpt2 import KeyValueCache, LayerCache, generate_cached

transformers = pytest.importorskip("transformers")
CONFIGS = {
    "groups": llama.LlamaConfig(n=37, e=24, h=6, groups=2, depth=2, hidden=40),
    "one group": llama.LlamaConfig(n=29, e=32, h=4, groups=1, depth=3, hidden=24, theta=500.0, epsilon=1e-3),
    "as many groups as heads": llama.LlamaConfig(n=50, e=16, h=2, groups=2, depth=1, hidden=64, tied=True),
    "tied, in groups": llama.LlamaConfig(n=41, e=48, h=8, groups=4, depth=2, hidden=30, tied=True, epsilon=1e-6),
}


def theirs_of(config, **more):
    """LlamaForCausalLM of the same sizes, with random weights, the norms' too."""
    settings = transformers.LlamaConfig(
        vocab_size=config.n,
        hidden_size=config.e,
        intermediate_size=config.hidden,
        num_hidden_layers=config.depth,
        num_attention_heads=config.h,
        num_key_value_heads=config.groups,
        rms_norm_eps=config.epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": config.theta},
        tie_word_embeddings=config.tied,
        attn_implementation="eager",
        **more,
    )
    model = transformers.LlamaForCausalLM(settings).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def test_the_norm_measures_in_32_bits_and_answers_in_the_precision_of_its_input():
    x = torch.full((1, 8), 300.0, dtype=torch.float16)  # 300² is more than float16 can hold
    out = llama.RMSNorm(8).half()(x)
    assert out.dtype == torch.float16
    torch.testing.assert_close(out, torch.ones_like(x))


@pytest.mark.parametrize("cuts", [(3, 4), (1, 1, 1, 4), (7,), (6, 1)])
def test_a_cache_changes_nothing_and_holds_the_groups_alone(cuts):
    layer, x, past = llama.GroupedQueryAttention(24, 6, 2), torch.randn(2, 7, 24), LayerCache(9)
    parts = torch.cat([layer(part, past) for part in x.split(cuts, dim=1)], dim=1)
    torch.testing.assert_close(parts, layer(x))
    assert past.keys.shape == past.values.shape == (2, 2, 9, 4)


def test_the_size_of_a_cache_is_that_of_what_it_holds():
    config = CONFIGS["groups"]
    model, cache = llama.Llama(config).eval(), KeyValueCache(config.depth, 11)
    with torch.no_grad():
        model(torch.randint(config.n, (1, 11)), cache)
    held = sum(part.numel() * part.element_size() for layer in cache.layers for part in (layer.keys, layer.values))
    assert cache_bytes(11, config.groups, config.e // config.h, [None] * config.depth, bits=32) == held


def test_the_two_orders_undo_each_other():
    weight = torch.randn(24, 10)
    assert torch.equal(llama.pairs_from_halves(llama.halves_from_pairs(weight, 3), 3), weight)
    with pytest.raises(ValueError, match="even width"):
        llama.halves_from_pairs(torch.randn(9, 4), 3)


def test_the_order_is_that_of_the_script_that_converted_metas_files():
    weight = torch.randn(24, 10)
    theirs = weight.view(3, 24 // 3 // 2, 2, 10).transpose(1, 2).reshape(24, 10)  # permute() in convert_llama_weights
    assert torch.equal(llama.halves_from_pairs(weight, 3), theirs)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_folder_that_transformers_wrote_is_read(name, tmp_path):
    config = CONFIGS[name]
    theirs = theirs_of(config)
    theirs.save_pretrained(tmp_path)
    ours = llama.load(tmp_path)
    assert ours.config == config
    ids = torch.randint(config.n, (2, 19))
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-5, atol=1e-5)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


def test_the_cache_writes_what_the_model_writes_without_it():
    config = CONFIGS["groups"]
    model, ids = llama.Llama(config).eval(), torch.randint(config.n, (2, 5))
    written = generate_cached(model, ids, 6, temperature=0)
    whole = torch.cat([ids, written], dim=1)
    with torch.no_grad():
        assert torch.equal(model(whole[:, :-1])[:, 4:].argmax(dim=-1), written)


@pytest.mark.parametrize("name", CONFIGS)
def test_attention_weights_are_those_of_the_independent_model(name):
    config = CONFIGS[name]
    theirs, ids = theirs_of(config), torch.randint(config.n, (2, 7))
    with torch.no_grad():
        known = torch.stack(theirs(ids, output_attentions=True).attentions)
    ours = llama.from_published(theirs.state_dict(), config)
    torch.testing.assert_close(ours.attention_weights(ids), known, rtol=1e-4, atol=1e-5)
