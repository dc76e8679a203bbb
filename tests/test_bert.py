"""The finished BERT: against `transformers` layer by layer, `tokenizers`, counts, the model card, and broken files."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers.data import store
from helpers.parts import bert
from helpers.parts.bert import NOT_ASKED, Bert, BertConfig, LowRank, PieceTokenizer

MINILM = ("minilm/model.safetensors", "minilm/vocab.txt", "minilm/config.json")
CONFIGS = [  # n, t_max, e, h, depth, hidden, segments
    (7, 5, 4, 1, 1, None, 2),
    (19, 11, 12, 3, 2, 20, 2),
    (50, 16, 8, 8, 3, None, 1),
    (33, 9, 20, 5, 4, 7, 3),
    (13, 8, 6, 2, 5, None, 2),
]
CARD = [0.0677, 0.0635, 0.0487, 0.0793, 0.0374]  # the first numbers for "This is an example sentence"


def theirs_of(sizes, kind="BertModel", small=False):
    transformers = pytest.importorskip("transformers")
    n, t_max, e, h, depth, hidden, segments = sizes
    settings = transformers.BertConfig(
        vocab_size=n,
        max_position_embeddings=t_max,
        hidden_size=e,
        num_attention_heads=h,
        num_hidden_layers=depth,
        intermediate_size=hidden or 4 * e,
        type_vocab_size=segments,
        attn_implementation="eager",
    )
    model = getattr(transformers, kind)(settings).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn_like(p))
        if small:  # inputs of so small a variance that the norm's epsilon decides
            for p in model.bert.embeddings.parameters() if kind != "BertModel" else model.embeddings.parameters():
                p.mul_(1e-3)
    return model


def ours_of(sizes, theirs):
    n, t_max, e, h, depth, hidden, segments = sizes
    ours = Bert(BertConfig(n, t_max, e, h, depth, hidden, segments)).eval()
    ours.load_state_dict(bert.rename_bert(theirs.state_dict()))
    return ours


def a_batch(sizes, b=3):
    n, t_max, *_, segments = sizes
    ids, kinds = torch.randint(n, (b, t_max)), torch.randint(segments, (b, t_max))
    mask = torch.arange(t_max) < torch.tensor([t_max, max(1, t_max - 2), max(1, t_max // 2)])[:b, None]
    return ids, kinds, mask


@pytest.mark.parametrize("sizes", CONFIGS)
@pytest.mark.parametrize("small", [False, True])
@torch.no_grad()
def test_every_stage_is_that_of_transformers(sizes, small):
    theirs = theirs_of(sizes, small=small)
    ours = ours_of(sizes, theirs)
    ids, kinds, mask = a_batch(sizes)
    said = theirs(ids, attention_mask=mask.long(), token_type_ids=kinds, output_hidden_states=True)
    for mine, their in zip(ours.hidden(ids, kinds, mask), said.hidden_states, strict=True):
        torch.testing.assert_close(mine[mask], their[mask], rtol=0, atol=1e-5)
    hidden, pooled = ours(ids, kinds, mask)
    torch.testing.assert_close(pooled, said.pooler_output, rtol=0, atol=1e-5)
    torch.testing.assert_close(hidden[mask], said.last_hidden_state[mask], rtol=0, atol=1e-5)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


@torch.no_grad()
def test_without_segments_row_0_is_added_all_the_same():
    theirs = theirs_of(CONFIGS[1])
    ours = ours_of(CONFIGS[1], theirs)
    ids, *_ = a_batch(CONFIGS[1])
    torch.testing.assert_close(ours(ids)[0], theirs(ids).last_hidden_state, rtol=0, atol=1e-5)
    with torch.no_grad():
        ours.segments.weight[0] += torch.randn(12)
    assert not torch.allclose(ours(ids)[0], theirs(ids).last_hidden_state, atol=1e-2)


@torch.no_grad()
def test_attention_weights_are_those_of_transformers():
    theirs = theirs_of(CONFIGS[3])
    ids, kinds, mask = a_batch(CONFIGS[3])
    said = theirs(ids, attention_mask=mask.long(), token_type_ids=kinds, output_attentions=True).attentions
    ours = ours_of(CONFIGS[3], theirs).attention_weights(ids, kinds, mask)
    torch.testing.assert_close(ours, torch.stack(said), rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_head_for_words_is_that_of_transformers():
    sizes = CONFIGS[1]
    theirs = theirs_of(sizes, "BertForMaskedLM")
    state = theirs.state_dict()
    ours = Bert(BertConfig(*sizes)).eval()
    told = ours.load_state_dict(bert.rename_bert(state), strict=False)
    assert told.missing_keys == ["pooler.weight", "pooler.bias"] and not told.unexpected_keys
    head = bert.WordHead(ours)
    names = {"transform.dense": "linear", "transform.LayerNorm": "norm"}
    head.load_state_dict(
        {
            f"{ours_}.{k}": state[f"cls.predictions.{their}.{k}"]
            for their, ours_ in names.items()
            for k in ("weight", "bias")
        }
        | {"bias": state["cls.predictions.bias"]}
    )
    ids, kinds, mask = a_batch(sizes)
    said = theirs(ids, attention_mask=mask.long(), token_type_ids=kinds).logits
    torch.testing.assert_close(head(ours(ids, kinds, mask)[0])[mask], said[mask], rtol=0, atol=1e-5)
    with_head = sum(p.numel() for p in head.parameters()) + sum(p.numel() for p in ours.parameters())
    pooler = sum(p.numel() for p in ours.pooler.parameters())
    assert with_head - pooler == sum(p.numel() for p in theirs.parameters())


@pytest.mark.parametrize(
    ("kind", "pooler"),
    [
        ("BertForMaskedLM", False),
        ("BertForPreTraining", True),
        ("BertForSequenceClassification", True),
        ("BertForTokenClassification", False),
        ("BertForQuestionAnswering", False),
    ],
)
@torch.no_grad()
def test_a_checkpoint_of_one_task_is_loaded_and_said_what_it_lost(kind, pooler, tmp_path):
    sizes = CONFIGS[1]
    theirs = theirs_of(sizes, kind)
    theirs.save_pretrained(tmp_path)
    with pytest.warns(UserWarning) as said:
        ours = bert.load(tmp_path)
    words = " ".join(str(each.message) for each in said)
    head = {name for name in theirs.state_dict() if not name.startswith("bert.")}
    assert all(name in words for name in head if name in saved_names(tmp_path)) and "left out" in words
    assert ("no pooler" in words) is not pooler and (ours.pooler is not None) is pooler
    ids, kinds, mask = a_batch(sizes)
    hidden, pooled = ours(ids, kinds, mask)
    expected = theirs.bert(ids, attention_mask=mask.long(), token_type_ids=kinds)
    torch.testing.assert_close(hidden[mask], expected.last_hidden_state[mask], rtol=0, atol=1e-5)
    assert pooled is None or torch.allclose(pooled, expected.pooler_output, atol=1e-5)


def test_half_a_pooler_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    theirs_of(CONFIGS[1]).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["pooler.dense.bias"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="missing: pooler.dense.bias"):
        bert.load(tmp_path)


def saved_names(folder):
    """The names of the tensors in a folder's file."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="pt") as file:
        return set(file.keys())


@pytest.mark.parametrize(
    ("name", "count"),
    [("bert-base-uncased", 109_482_240), ("bert-large-uncased", 335_141_888), ("all-MiniLM-L6-v2", 22_713_216)],
)
def test_parameters_are_as_many_as_were_published(name, count):
    config = BertConfig.published(name)
    with torch.device("meta"):
        model = Bert(config)
    assert sum(p.numel() for p in model.parameters()) == count


##### The published model


@pytest.fixture(scope="module")
def published():
    folder = store.folder() / "minilm"
    return folder, bert.load(folder), PieceTokenizer.from_folder(folder)


@pytest.mark.needs("real data", *MINILM)
@torch.no_grad()
def test_the_published_model_is_that_of_transformers_layer_by_layer(published):
    transformers = pytest.importorskip("transformers")
    folder, ours, tokenizer = published
    theirs = transformers.BertModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    texts = ["This is an example sentence", "Each sentence is converted", ("The kid is asleep.", "A child sleeps!")]
    ids, kinds, mask = tokenizer.batch(texts)
    said = theirs(ids, attention_mask=mask.long(), token_type_ids=kinds, output_hidden_states=True)
    for mine, their in zip(ours.hidden(ids, kinds, mask), said.hidden_states, strict=True):
        torch.testing.assert_close(mine[mask], their[mask], rtol=0, atol=1e-5)
    torch.testing.assert_close(ours(ids, kinds, mask)[1], said.pooler_output, rtol=0, atol=1e-5)
    assert sum(p.numel() for p in ours.parameters()) == 22_713_216


@pytest.mark.needs("real data", *MINILM)
@torch.no_grad()
def test_the_published_model_gives_the_numbers_on_its_card(published):
    _, ours, tokenizer = published
    ids, kinds, mask = tokenizer.batch(["This is an example sentence", "Each sentence is converted, at greater length"])
    x = ours(ids, kinds, mask)[0][0][mask[0]]
    assert F.normalize(x.mean(dim=0), dim=0)[:5].tolist() == pytest.approx(CARD, abs=1e-4)


@pytest.mark.needs("real data", *MINILM, "minilm/tokenizer.json")
def test_words_are_cut_as_the_tokenizers_library_cuts_them(published):
    tokenizers = pytest.importorskip("tokenizers")
    folder, _, ours = published
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs.no_padding()
    theirs.no_truncation()
    texts = [
        "Walking: unaffable embeddings, vegan; don't!",
        "Ärger über naïve Cafés – “quoted” … 50% off?",
        "名前 is a word, Καλημέρα κόσμε, привет",
        "tabs\tand\nlines\u200b and \x07 bells",
        "x" * 101 + " " + "y" * 100,
        "👍 thumbs [MASK] up [SEP]",
        "",
    ]
    for text in texts:
        assert ours.encode(text)[0] == theirs.encode(text).ids, text
    for a, b in zip(texts, texts[1:], strict=False):
        said = theirs.encode(a, b)
        assert ours.encode(a, b) == (said.ids, said.type_ids)
    assert ours.pieces("walking unaffable embeddings vegan") == [
        *("walking", "una", "##ffa", "##ble"),
        *("em", "##bed", "##ding", "##s", "vega", "##n"),
    ]


@pytest.mark.needs("real data", *MINILM)
def test_the_low_rank_steps_of_the_published_model_have_the_published_count(published):
    folder, *_ = published
    model = bert.load(folder)
    made = bert.add_low_rank(model, rank=8, alpha=16)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert (len(made), trained) == (12, 73_728)


##### Words


@pytest.mark.parametrize(
    ("word", "vocabulary", "pieces"),
    [
        ("unaffable", ["un", "una", "##aff", "##ffa", "##able", "##ble"], ["una", "##ffa", "##ble"]),
        ("vegan", ["vega", "##n", "v", "##egan"], ["vega", "##n"]),
        ("ab", ["a", "b"], ["[UNK]"]),
        ("ab", ["##a", "##b", "##ab"], ["[UNK]"]),
        ("abcx", ["ab", "##c"], ["[UNK]"]),
        ("", ["a"], []),
    ],
)
def test_a_word_is_cut_from_the_left_by_the_longest_piece_or_not_at_all(word, vocabulary, pieces):
    assert bert.wordpiece(word, dict.fromkeys(vocabulary, 0)) == pieces


def test_a_word_beyond_the_limit_is_unknown():
    assert bert.wordpiece("aaa", {"a": 0, "##a": 1}, limit=3) == ["a", "##a", "##a"]
    assert bert.wordpiece("aaaa", {"a": 0, "##a": 1}, limit=3) == ["[UNK]"]


def test_of_the_unprintable_characters_only_those_of_control_and_format_vanish():
    assert bert.split_words("a\u200db\x07c") == ["abc"]
    assert bert.split_words("a\u0378b \ue000") == ["a\u0378b", "\ue000"]  # unassigned, and for private use


def test_a_pair_is_cut_at_the_end_of_the_longer_one():
    assert bert.pair_input([5, 6], None, 1, 2, 9) == ([1, 5, 6, 2], [0] * 4)
    assert bert.pair_input([5, 6, 7], [8], 1, 2, 6) == ([1, 5, 6, 2, 8, 2], [0, 0, 0, 0, 1, 1])
    assert bert.pair_input([5, 6], [7, 8], 1, 2, 6) == ([1, 5, 6, 2, 7, 2], [0, 0, 0, 0, 1, 1])
    with pytest.raises(ValueError, match="no room"):
        bert.pair_input([5], [6], 1, 2, 2)


def test_a_vocabulary_that_is_learned_cuts_its_own_texts_without_an_unknown():
    texts = ["the cats walked, walking and talking", "a dog talked and walked"]
    vocabulary = bert.learn_pieces(texts, 80)
    tokenizer = PieceTokenizer(vocabulary)
    assert len(vocabulary) <= 80 and sorted(vocabulary.values()) == list(range(len(vocabulary)))
    assert all("[UNK]" not in tokenizer.pieces(text) for text in texts)


##### What is asked


def test_the_shares_of_what_is_hidden_are_those_of_the_paper():
    ids = torch.randint(5, 2000, (400, 200))
    special = torch.rand(ids.shape) < 0.1
    before = ids.clone()
    inputs, targets = bert.corrupt(ids, special, 4, 2000, torch.Generator().manual_seed(1))
    asked = targets != NOT_ASKED
    assert torch.equal(ids, before) and not (asked & special).any()
    assert torch.equal(targets[asked], ids[asked]) and torch.equal(inputs[~asked], ids[~asked])
    count = asked.sum().item()

    def near(share, of, wanted):
        return abs(share - wanted) < 5 * (wanted * (1 - wanted) / of) ** 0.5

    assert near(count / (~special).sum().item(), (~special).sum().item(), 0.15)
    assert near((inputs == 4)[asked].float().mean().item(), count, 0.8)
    assert near((inputs == ids)[asked].float().mean().item(), count, 0.1 + 0.1 / 2000)


def test_the_loss_is_the_mean_over_what_is_asked_and_0_without_a_gradient_where_nothing_is():
    logits, targets = torch.randn(3, 4, 7, requires_grad=True), torch.full((3, 4), NOT_ASKED)
    nothing = bert.masked_loss(logits, targets)
    (grad,) = torch.autograd.grad(nothing, logits)
    assert nothing.item() == 0 and not grad.any()
    assert F.cross_entropy(logits.flatten(0, 1), targets.flatten()).isnan(), "what PyTorch alone says"
    targets[0, 1], targets[2, 3] = 0, 5
    expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    torch.testing.assert_close(bert.masked_loss(logits, targets), expected)


##### Low-rank steps


def test_a_low_rank_step_begins_at_nothing_learns_and_merges_once():
    linear = nn.Linear(5, 4)
    x = torch.randn(3, 5)
    as_published = linear(x).detach()
    layer = LowRank(linear, rank=2, alpha=6)
    torch.testing.assert_close(layer(x), as_published)
    layer(x).square().sum().backward()
    assert linear.weight.grad is None and layer.B.grad.any() and not layer.A.grad.any()
    with torch.no_grad():
        layer.B.normal_()
    wanted = layer(x).detach()
    assert not torch.allclose(wanted, as_published)
    for _ in range(2):
        torch.testing.assert_close(layer.merge()(x), wanted)
        torch.testing.assert_close(layer(x), wanted)
    for _ in range(2):
        layer.unmerge()
        torch.testing.assert_close(layer(x), wanted)
        torch.testing.assert_close(linear(x), as_published)


##### Files


@pytest.fixture
def folder(tmp_path):
    model = Bert(BertConfig(11, 6, 8, 2, 2))
    vocabulary = {piece: i for i, piece in enumerate([*bert.SPECIAL, *"abcdef"])}
    return bert.save(model, vocabulary, tmp_path / "model")


def test_what_is_saved_is_loaded_and_transformers_loads_it_too(folder):
    model, ids = bert.load(folder), torch.randint(11, (2, 6))
    assert PieceTokenizer.from_folder(folder).pieces("A b[MASK]") == ["a", "b", "[MASK]"]
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertModel.from_pretrained(folder).eval()
    with torch.no_grad():
        torch.testing.assert_close(model(ids)[0], theirs(ids).last_hidden_state, rtol=0, atol=1e-5)


@pytest.mark.parametrize("prefix", ["", "bert."])
@pytest.mark.parametrize("old", [False, True])
def test_every_kind_of_file_is_renamed(prefix, old):
    theirs = theirs_of((9, 6, 4, 2, 11, None, 2), "BertForPreTraining").state_dict()
    state = {}
    for name, tensor in theirs.items():
        name = name.replace("bert.", prefix, 1) if name.startswith("bert.") else name
        if old and "LayerNorm" in name:
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        state[name] = tensor
    state[f"{prefix}embeddings.position_ids"] = torch.arange(6)[None]
    with torch.device("meta"):
        expected = Bert(BertConfig(9, 6, 4, 2, 11)).state_dict()
    renamed = bert.rename_bert(state)
    assert {k: v.shape for k, v in renamed.items()} == {k: v.shape for k, v in expected.items()}


@pytest.mark.parametrize("body", [b"", b"a\nb\n", b"[PAD]\n[PAD]\n", b"\xff\xfe\n"])
def test_a_damaged_vocabulary_is_said_in_a_sentence(folder, body):
    (folder / "vocab.txt").write_bytes(body)
    with pytest.raises(ValueError, match="vocab.txt is damaged|has no \\[PAD\\]"):
        PieceTokenizer.from_folder(folder)
