"""Lesson 10's translator at the published base size, with random weights: ours, and `transformers`' MarianMTModel."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from helpers.benchmarks.parts_speed.comparison import Comparison
from helpers.parts.encoder_decoder import EncoderDecoder, beam_search, greedy_decode

SIDES = ("the lesson's parts", "transformers' Marian")
SIZES: dict[str, Any] = {"n_source": 8000, "n_target": 8000, "e": 512, "h": 8, "depth": 6, "t_max": 128}
PAD, START, NEVER = 0, 1, -1  # no token ends a sentence: both sides write as many as they may
SENTENCES, READ, WRITE, WIDTH = 16, 30, 30, 4


def comparisons() -> Iterator[Comparison]:
    """Writing greedily, many sentences at once, and with several beams, one sentence."""
    if importlib.util.find_spec("transformers") is None:
        sys.exit("The translator is compared with the package transformers, of the test extra, which is not installed.")
    sides = pair()
    sources = texts()
    for beams, source in ((1, sources), (WIDTH, sources[:1])):
        how = f"with {beams} beams" if beams > 1 else "greedily"
        work = f"lesson 10, {len(source)} x {WRITE} tokens written {how}, after {READ} read"
        calls = [lambda write=write, beams=beams, source=source: write(source, beams) for write in map(writer, sides)]
        yield Comparison(work, len(source) * WRITE, dict(zip(SIDES, calls, strict=True)))


def texts() -> torch.Tensor:
    """Sources (SENTENCES, READ) of drawn lengths, padded."""
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(2, SIZES["n_source"], (SENTENCES, READ), generator=draw)
    lengths = torch.randint(READ // 2, READ + 1, (SENTENCES, 1), generator=draw)
    lengths[0] = READ
    return ids.where(torch.arange(READ) < lengths, PAD)


def writer(model: nn.Module) -> Callable[[torch.Tensor, int], torch.Tensor]:
    """A function of sources (b, s) and a number of beams that returns what is written, (b, WRITE)."""
    if isinstance(model, EncoderDecoder):
        return lambda source, beams: (
            greedy_decode(model, source, START, NEVER, WRITE)
            if beams == 1
            else beam_search(model, source, START, NEVER, WRITE, beams).unsqueeze(0)
        )

    @torch.no_grad()
    def write(source, beams):
        how = {"max_new_tokens": WRITE, "num_beams": beams, "do_sample": False, "length_penalty": 0.0}
        return model.generate(source, attention_mask=(source != PAD).long(), **how)[:, 1:]

    return write


def pair() -> tuple[nn.Module, nn.Module]:
    """(ours, theirs), with the same weights; Marian's projections have biases besides, which become 0."""
    torch.manual_seed(0)
    ours = EncoderDecoder(**SIZES, pad=PAD, share=True).eval()
    return ours, _theirs(ours)


@torch.no_grad()
def _theirs(ours):
    """A MarianMTModel that computes the same."""
    import transformers

    transformers.logging.set_verbosity_error()
    e, h, depth, hidden = SIZES["e"], SIZES["h"], SIZES["depth"], 4 * SIZES["e"]
    config = transformers.MarianConfig(
        vocab_size=SIZES["n_target"],
        d_model=e,
        encoder_layers=depth,
        decoder_layers=depth,
        encoder_attention_heads=h,
        decoder_attention_heads=h,
        encoder_ffn_dim=hidden,
        decoder_ffn_dim=hidden,
        max_position_embeddings=SIZES["t_max"],
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        decoder_start_token_id=START,
        eos_token_id=None,
        bos_token_id=None,
        forced_eos_token_id=None,
    )
    model = transformers.MarianMTModel(config).eval()
    model.generation_config.eos_token_id = model.generation_config.forced_eos_token_id = None
    inner = model.model
    inner.shared.weight.copy_(ours.source_tokens.weight)
    model.final_logits_bias.copy_(ours.to_logits.bias)
    for half, blocks in ((inner.encoder, ours.encoder), (inner.decoder, ours.decoder)):
        half.embed_positions.weight.copy_(ours.positions)
        for layer, block in zip(half.layers, blocks, strict=True):
            _copy_block(layer, block)
    return model


def _copy_block(layer, block):
    decoder = hasattr(block, "cross_attention")
    attentions = [(layer.self_attn, block.self_attention if decoder else block.attention)]
    norms = [(layer.self_attn_layer_norm, block.norm1), (layer.final_layer_norm, block.norm2)]
    if decoder:
        attentions.append((layer.encoder_attn, block.cross_attention))
        norms = [norms[0], (layer.encoder_attn_layer_norm, block.norm2), (layer.final_layer_norm, block.norm3)]
    for attention, own in attentions:
        names = {"q_proj": own.to_queries, "k_proj": own.to_keys, "v_proj": own.to_values, "out_proj": own.unify}
        for name, projection in names.items():
            getattr(attention, name).weight.copy_(projection.weight)
            getattr(attention, name).bias.copy_(0.0 if projection.bias is None else projection.bias)
    feed_forward = [(layer.fc1, block.feed_forward.widen), (layer.fc2, block.feed_forward.narrow)]
    for one, own in [*norms, *feed_forward]:
        one.load_state_dict(own.state_dict())
