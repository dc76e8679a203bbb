"""The sentence of lessons 1 to 7 is what the published model makes of it, and lessons may say what they say of it."""

import pytest
import torch

from helpers.data.sentence import LENGTH, WORDS, block_weights, queries_keys_values, word_vectors
from helpers.parts.scaling import scaled_scores


def weights(head, positions=False):
    q, k, _ = queries_keys_values(head, positions)
    return scaled_scores(q, k).softmax(dim=-1)


def test_all_words_have_vectors_of_one_length():
    x = word_vectors()
    assert x.shape == (len(WORDS), 384)
    assert torch.allclose(x.norm(dim=-1), torch.full((len(WORDS),), float(LENGTH)), atol=1e-2)


@pytest.mark.parametrize("head", range(12))
def test_a_head_with_positions_is_the_one_in_the_models_own_maps(head):
    """Half precision and a softmax leave a difference of some thousandths."""
    assert torch.allclose(weights(head, positions=True), block_weights(1)[head], atol=0.02)


def test_without_positions_words_that_are_equal_look_alike():
    the = [place for place, word in enumerate(WORDS) if word == "the"]
    for head in range(12):
        q, k, v = queries_keys_values(head)
        assert all(torch.equal(part[the[0]], part[the[1]]) for part in (q, k, v))


def test_with_positions_one_head_looks_one_word_back_and_without_them_none_does():
    back = [weights(2, positions).diagonal(-1).mean().item() for positions in (False, True)]
    assert back[0] < 0.2 and back[1] > 0.98


@pytest.mark.parametrize("call", [lambda: queries_keys_values(12), lambda: block_weights(0), lambda: block_weights(7)])
def test_what_the_model_does_not_have_is_told(call):
    with pytest.raises(ValueError, match="and no (head|block)"):
        call()


@pytest.mark.needs("real data", "minilm/model.safetensors")
def test_the_record_is_what_transformers_computes():
    transformers = pytest.importorskip("transformers")
    from helpers.data.datasets import minilm_files

    folder = minilm_files(say=lambda line: None).folder
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    ids = torch.tensor([[vocabulary.index(word) for word in WORDS]])
    with torch.no_grad():
        found = model(ids, output_attentions=True).attentions
    for block, published in enumerate(found, 1):
        assert torch.allclose(block_weights(block), published[0], atol=1e-3)
    table = model.embeddings.word_embeddings.weight.detach()
    x = torch.nn.functional.normalize(table[ids[0]] - table.mean(dim=0), dim=-1)
    assert torch.allclose(word_vectors() / LENGTH, x, atol=1e-3)
