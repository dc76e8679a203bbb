"""What students get wrong in lesson 5, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

PAIRS, CAUSAL, PADDING, SOFTMAX, ATTENTION, LEAK, HURRIED = (
    "next_token_pairs",
    "causal_mask",
    "padding_mask",
    "masked_softmax",
    "CausalSelfAttention",
    "leak_map",
    "HurriedAttention",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ----------------------------------------------------------------------------------- next_token_pairs
    Mistake(PAIRS, "not-shifted", edit=("tokens[:, 1:]", "tokens[:, :-1]"), title="targets not shifted",
            says="Your targets are your inputs: the model is asked for the token that it has just read, and will learn "
                 "to repeat it. The target of position i is the token after it."),
    Mistake(PAIRS, "wrong-way", edit=("return inputs, targets", "return targets, inputs"),
            title="shifted the wrong way",
            says="You go backwards: each of your targets comes before its input, so the model is asked what it has "
                 "already read. Inputs are everything but the last token, targets everything but the first, and they "
                 "are returned in that order."),
    Mistake(PAIRS, "rolled", edit=(("tokens[:, :-1]", "tokens"), ("tokens[:, 1:]", "torch.roll(tokens, -1, dims=1)")),
            title="inputs and targets one position too long",
            says="Your inputs have t + 1 positions, and nothing that we know of follows the last one. Leave it out of "
                 "the inputs, so that each side has t; then no target has to be made up, or to come round from the "
                 "front."),
    Mistake(PAIRS, "inputs-uncut", edit=("tokens[:, :-1]", "tokens"), title="the last token left in the inputs",
            says="Your targets are right, and your inputs have one position more than they: the last token, after "
                 "which "
                 "nothing is known. Each side has t."),
    Mistake(PAIRS, "both-shifted", edit=("tokens[:, :-1]", "tokens[:, 1:]"), title="the inputs shifted as well",
            says="Your inputs begin with the second token, like your targets, so that the model is asked for the token "
                 "that it has just read. Inputs begin with the first."),
    Mistake(PAIRS, "first-lost", edit=(("tokens[:, :-1]", "tokens[:, 1:-1]"), ("tokens[:, 1:]", "tokens[:, 2:]")),
            title="the first token left out",
            says="Your pairs begin one token too late: the first token is an input as well, and the second one its "
                 "target."),
    Mistake(PAIRS, "halves",
            edit=(("tokens[:, :-1]", "tokens[:, :tokens.shape[1] // 2]"),
                  ("tokens[:, 1:]", "tokens[:, tokens.shape[1] // 2:]")), title="the row cut in two halves",
            says="You cut each row in two: its beginning and its end. Every token but the last is an input, and every "
                 "token but the first a target, so that the two overlap."),
    Mistake(PAIRS, "plus-one", edit=("targets = tokens[:, 1:]", "targets = tokens[:, :-1] + 1"),
            title="1 added to the token ids",
            says="You add 1 to the ids. The next token is the one at the next *position*; its id can be any."),
    Mistake(PAIRS, "squeezed", edit=("return inputs, targets", "return inputs.squeeze(), targets.squeeze()"),
            title="axes of length 1 squeezed out",
            says="Your numbers are right, but an axis of length 1 gets lost: with a batch of one, or t = 1, the result "
                 "has too few axes. Both axes stay, whatever their lengths."),
    Mistake(PAIRS, "batch", edit=(("tokens[:, :-1]", "tokens[:-1]"), ("tokens[:, 1:]", "tokens[1:]")),
            title="shifted along the batch",
            says="You cut along axis 0: your targets are the next *sentence* of the batch. Positions are axis 1; put a "
                 "colon in front."),
    Mistake(PAIRS, "by-two", edit=(("tokens[:, :-1]", "tokens[:, :-2]"), ("tokens[:, 1:]", "tokens[:, 2:]")),
            title="shifted by two",
            says="There are two places between your inputs and your targets, and one is meant: the very next token."),
    Mistake(PAIRS, "last-token-only", edit=("tokens[:, 1:]", "tokens[:, -1:]"), title="only the last token as a target",
            says="You give one target for each sentence. Every position has one: the token after it, (b, t) in all."),
    Mistake(PAIRS, "in-place",
            edit=("targets = tokens[:, 1:]",
                  "targets = tokens[:, 1:].clone()\n    tokens[:, -1] = 0\n    tokens[:, :-1] += 0"),
            title="the last token overwritten",
            says="You write into the caller's tokens on the way. Slices are enough; nothing has to be overwritten."),
    Accepted(PAIRS, "any-axes-in-front", instead="return tokens[..., :-1], tokens[..., 1:]"),
    Accepted(PAIRS, "narrow", instead="""
        b, length = tokens.shape
        return tokens.narrow(1, 0, length - 1), tokens.narrow(1, 1, length - 1)
    """),
    Accepted(PAIRS, "columns", instead="""
        inputs, targets = [], []
        for i in range(tokens.size(1) - 1):
            inputs.append(tokens[:, i])
            targets.append(tokens[:, i + 1])
        return [torch.stack(inputs, dim=1), torch.stack(targets, dim=1)]
    """),
    Accepted(PAIRS, "roll-and-cut", instead="return tokens[:, :-1].clone(), torch.roll(tokens, -1, dims=1)[:, :-1]"),
    Shortcut(PAIRS, "finished-part", instead="return finished_masks.next_token_pairs(tokens)"),
    Shortcut(PAIRS, "imported", instead="""
        from helpers.parts.masks import next_token_pairs
        return next_token_pairs(tokens)
    """),
    # ---------------------------------------------------------------------------------------- causal_mask
    Mistake(CAUSAL, "diagonal-too", edit=("all_pairs.tril()", "all_pairs.tril(-1)"), title="the diagonal hidden too",
            says="In your mask no position may look at itself, and the first one at none at all: its row will be NaN "
                 "in a plain softmax. Input i is what was read last, not the answer; j = i is allowed."),
    # the published form of it: hide the upper triangle, with an offset of 0
    Alias(CAUSAL, "triu-offset-zero", of="diagonal-too", edit=("all_pairs.tril()", "~all_pairs.triu(0)")),
    Mistake(CAUSAL, "upside-down", edit=("all_pairs.tril()", "all_pairs.triu()"), title="the triangle upside down",
            says="In your mask every position looks at the future and none at the past. Rows are who looks, columns "
                 "who is looked at: row i has to be True up to column i."),
    # a symmetric grid: to exchange the axes is to turn the triangle over
    Alias(CAUSAL, "transposed", of="upside-down", edit=("all_pairs.tril()", "all_pairs.tril().T")),
    Mistake(CAUSAL, "swapped", edit=("all_pairs.tril()", "~all_pairs.tril()"), title="True and False swapped",
            says="Your mask is True where something has to be hidden. In this course True means that i may look at j."),
    Alias(CAUSAL, "what-to-hide", of="swapped", edit=("all_pairs.tril()", "all_pairs.triu(1)")),
    Mistake(CAUSAL, "one-ahead", edit=("all_pairs.tril()", "all_pairs.tril(1)"), title="one position too many",
            says="Each position may look at the one after it, and that is exactly where its answer stands."),
    Mistake(CAUSAL, "numbers", edit=("dtype=torch.bool, ", ""), title="zeros and ones that are not booleans",
            says="The pattern is right, but these are numbers. `~mask` and `masked_fill` want booleans."),
    Mistake(CAUSAL, "scores-to-add",
            edit=("return all_pairs.tril()",
                  "return torch.zeros(t, t, device=device).masked_fill(~all_pairs.tril(), -math.inf)"),
            title="a mask of 0 and −∞",
            says="You return numbers to add to the scores. Other libraries do it like that; here a mask is made of "
                 "booleans, True where i may look."),
    Mistake(CAUSAL, "device-ignored", edit=("dtype=torch.bool, device=device", "dtype=torch.bool"),
            title="made on the CPU, whatever device was asked for",
            says="Your function takes `device` and does not use it, so the mask stays on the CPU and will not meet "
                 "scores on a GPU. Hand it on to the function that makes the tensor."),
    Mistake(CAUSAL, "everything", edit=("all_pairs.tril()", "everybody"), title="everybody may look everywhere",
            says="Every entry of your mask is True, so it hides nothing. The entries with j > i have to be False."),
    Mistake(CAUSAL, "diagonal-only", edit=("all_pairs.tril()", "all_pairs.tril().triu()"), title="only the diagonal",
            says="Your mask lets each position look at itself and at no other. What came before may be seen as "
                 "well: "
                 "j ≤ i."),
    Mistake(CAUSAL, "mirrored", edit=("all_pairs.tril()", "all_pairs.tril().flip(1)"), title="the triangle mirrored",
            says="Your triangle has its right angle in the wrong corner: position 0 sees the last position only. Row i "
                 "is True from column 0 up to column i."),
    Mistake(CAUSAL, "one-larger", edit=("torch.ones(t, t,", "torch.ones(t + 1, t + 1,"),
            title="one row and column too many",
            says="Your mask is (t + 1, t + 1). There are t positions."),
    Accepted(CAUSAL, "compare", instead="""
        places = torch.arange(t, device=device)
        return places[:, None] >= places[None, :]
    """),
    Accepted(CAUSAL, "not-upper", instead="return torch.triu(torch.ones((t, t), device=device), diagonal=1) == 0"),
    Accepted(CAUSAL, "loops", instead="""
        mask = torch.zeros(t, t, device=device).bool()
        for i in range(t):
            for j in range(i + 1):
                mask[i, j] = True
        return mask
    """),
    Accepted(CAUSAL, "list",
        instead="return torch.tensor([[j <= i for j in range(t)] for i in range(t)], device=device)"),
    Accepted(CAUSAL, "moved-afterwards", instead="return torch.tril(torch.ones(t, t)).to(device).type(torch.bool)"),
    Shortcut(CAUSAL, "finished-part", instead="return finished_masks.causal_mask(t, device)"),
    Shortcut(CAUSAL, "imported", instead="""
        from helpers.parts.masks import causal_mask
        return causal_mask(t, device)
    """),
    # --------------------------------------------------------------------------------------- padding_mask
    Mistake(PADDING, "off-by-one", edit=("positions < lengths", "positions <= lengths"), title="one position too many",
            says="Your mask lets one token of padding through in each sentence. Positions count from 0: a sentence of "
                 "3 tokens holds the positions 0, 1 and 2."),
    Mistake(PADDING, "swapped", edit=("positions < lengths", "positions >= lengths"), title="True and False swapped",
            says="Your mask is True on the padding. In this course True means that a position may be looked at."),
    Mistake(PADDING, "query-side", edit=("real.unsqueeze(1) ", "real.unsqueeze(2) "),
            title="padding masked on the query side",
            says="Your mask is (b, t, 1): it says who may look, and not who may be looked at. It would blank the rows "
                 "of the padding and let every real token look at it. The axis of length 1 stands in the middle."),
    Mistake(PADDING, "axis-missing", edit=("return real.unsqueeze(1) ", "return real "),
            title="the middle axis is missing",
            says="Your mask is (b, t), and against scores of shape (b, t, t) its b would line up with their rows. Put "
                 "an axis of length 1 in the middle, (b, 1, t)."),
    Mistake(PADDING, "both-sides", edit=("return real.unsqueeze(1) ", "return real.unsqueeze(1) & real.unsqueeze(2) "),
            title="the rows of the padding masked as well",
            says="Your mask is (b, t, t) and leaves the rows of the padding with nothing to see. What padding looks at "
                 "does not matter; the mask depends on who is looked at only, (b, 1, t)."),
    Mistake(PADDING, "longest", edit=("torch.arange(t, ", "torch.arange(int(lengths.max()), "),
            title="as long as the longest sentence, not t",
            says="The last axis of your mask is as long as the longest sentence. The batch was padded to t, which may "
                 "be more."),
    Mistake(PADDING, "in-front", edit=("positions < lengths.unsqueeze(1)", "positions >= t - lengths.unsqueeze(1)"),
            title="padding taken to be in front",
            says="Your mask puts the real tokens at the end. In this exercise sentences begin at position 0 and are "
                 "padded at their end."),
    Mistake(PADDING, "numbers", edit=("return real.unsqueeze(1) ", "return real.unsqueeze(1).float() "),
            title="zeros and ones that are not booleans",
            says="The pattern is right, but these are numbers. `~mask` and `&` want booleans."),
    Mistake(PADDING, "on-the-cpu", edit=("torch.arange(t, device=lengths.device)", "torch.arange(t)"),
            title="positions made on the CPU",
            says="Your positions are on the CPU, wherever the lengths are; on a GPU the two do not meet. "
                 "`device=lengths.device` puts them where they belong."),
    Mistake(PADDING, "in-place", edit=("positions = torch", "lengths -= 1\n    positions = torch"),
            title="the lengths changed in place",
            says="`lengths -= ...` changes the caller's own tensor: the next call will get other lengths."),
    Mistake(PADDING, "one-too-few", edit=("positions < lengths.unsqueeze(1)", "positions < lengths.unsqueeze(1) - 1"),
            title="one position too few",
            says="Your mask hides the last real token of each sentence. Positions count from 0: a sentence of 3 tokens "
                 "holds the positions 0, 1 and 2."),
    Mistake(PADDING, "not-upright", edit=("lengths.unsqueeze(1)", "lengths"), title="the lengths not set upright",
            says="You compare t positions with b lengths, lying side by side: they meet entry by entry, which fails "
                 "unless b and t happen to be equal. Every length has to meet every position: set the lengths upright, "
                 "(b, 1)."),
    Mistake(PADDING, "one-position", edit=("positions < lengths", "positions == lengths"),
            title="the first position of the padding only",
            says="Your mask is True at one position of each sentence, the first one behind its end. It has to be True "
                 "at "
                 "all positions before that."),
    Mistake(PADDING, "first-for-all", edit=("positions < lengths.unsqueeze(1)",
                                            "(positions < lengths[0]).expand(len(lengths), t)"),
            title="the first sentence's length for all",
            says="All your rows are the first sentence's. Each sentence has a length of its own."),
    Mistake(PADDING, "longest-for-all", edit=("positions < lengths.unsqueeze(1)",
                                              "(positions < lengths.max()).expand(len(lengths), t)"),
            title="the longest sentence's length for all",
            says="All your rows have as many True as the longest sentence has tokens. Each sentence has a length of "
                 "its "
                 "own."),
    Mistake(PADDING, "everything", edit=("positions < lengths", "positions < t + 0 * lengths"), title="nothing hidden",
            says="Every entry of your mask is True, so that padding is looked at. Positions from the sentence's length "
                 "on have to be False."),
    Mistake(PADDING, "axis-too-many", edit=("return real.unsqueeze(1) ", "return real.unsqueeze(1).unsqueeze(1) "),
            title="an axis too many",
            says="Your mask is (b, 1, 1, t), with an axis for heads. Here it is (b, 1, t); a layer with heads puts in "
                 "one "
                 "more."),
    Mistake(PADDING, "squeezed", edit=("return real.unsqueeze(1) ", "return real.unsqueeze(1).squeeze() "),
            title="axes of length 1 squeezed out",
            says="Your mask loses its axis of length 1 again, and every other one that has this length. All three axes "
                 "stay: (b, 1, t)."),
    Accepted(PADDING, "index-none", instead="""
        b = lengths.shape[0]
        return torch.arange(t, device=lengths.device).expand(b, 1, t) < lengths[:, None, None]
    """),
    Accepted(PADDING, "loops", instead="""
        mask = torch.zeros(len(lengths), 1, t, dtype=torch.bool, device=lengths.device)
        for k, length in enumerate(lengths):
            mask[k, 0, :length] = True
        return mask
    """),
    Accepted(PADDING, "greater-than",
        instead="return lengths.view(-1, 1, 1) > torch.arange(t).to(lengths).view(1, 1, -1)"),
    Accepted(PADDING, "sums", instead="""
        ones = torch.ones(lengths.size(0), t, dtype=torch.long, device=lengths.device)
        return (ones.cumsum(1) <= lengths.reshape(-1, 1)).unsqueeze(-2)
    """),
    Shortcut(PADDING, "finished-part", instead="return finished_masks.padding_mask(lengths, t)"),
    Shortcut(PADDING, "imported", instead="""
        from helpers.parts.masks import padding_mask
        return padding_mask(lengths, t)
    """),
    # ------------------------------------------------------------------------------------- masked_softmax
    Mistake(SOFTMAX, "after", edit=("scores.masked_fill(~mask, lowest)", "scores"),
            title="masked after the softmax only",
            says="You take the softmax over everything and clear the hidden weights afterwards. Then a row no longer "
                 "sums to 1, and what is left still depends on the hidden scores. They have to go before the softmax."),
    Mistake(SOFTMAX, "zero", instead="return torch.softmax(scores.masked_fill(~mask, 0.0), dim=-1)",
            title="0 filled in where −∞ is meant",
            says="A score of 0 is not nothing: exp(0) is 1, and often more than the visible ones get. A hidden score "
                 "has to be so low that exp of it is 0."),
    # scores * mask is the same fill of zeros
    Alias(SOFTMAX, "times-mask", of="zero", instead="return torch.softmax(scores * mask, dim=-1)"),
    Mistake(SOFTMAX, "zero-then-cleared", edit=("lowest = torch.finfo(scores.dtype).min", "lowest = 0.0"),
            title="0 filled in where −∞ is meant, and the weights cleared afterwards",
            says="You put 0 in the place of the hidden scores, and exp(0) = 1 takes its share of the sum before you "
                 "clear it. Rows then sum to less than 1. Fill in something so low that exp of it is 0."),
    Mistake(SOFTMAX, "swapped",
            edit=(("scores.masked_fill(~mask, lowest)", "scores.masked_fill(mask, lowest)"),
                  ("weights.masked_fill(~mask, 0.0)", "weights.masked_fill(mask, 0.0)")),
            title="True and False swapped",
            says="You hide what may be seen and show what may not. True means that i may look at j; masked_fill writes "
                 "where its mask is True, so what it needs is the opposite."),
    Mistake(SOFTMAX, "nan-rows", instead="return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)",
            title="NaN where a row may see nothing",
            says="With −∞ in every place of a row, softmax divides 0 by 0. Where something may be seen, your weights "
                 "are right; a row that may see nothing has to come out as zeros."),
    Mistake(SOFTMAX, "uniform-rows", edit=("return weights.masked_fill(~mask, 0.0)", "return weights"),
            title="a row that may see nothing looks at everything",
            says="In a row in which every score is equally low, softmax gives every entry the same weight, 1/s: the "
                 "position attends evenly to all that is hidden from it. Such a row has to be all zeros."),
    Mistake(SOFTMAX, "nan-gradient", instead="""
        hidden = torch.zeros_like(scores).masked_fill(~mask, -math.inf)
        return torch.softmax(scores + hidden, dim=-1).nan_to_num(0.0)
    """, title="NaN cleared on the way forward, not in the gradient",
            says="Your weights are right, and the gradient of a row that may see nothing is NaN: on the way back, "
                 "softmax multiplies by the NaN that you cleared only afterwards. Do not let the NaN come about, or "
                 "fill in the scores in a way that stops their gradient."),
    Alias(SOFTMAX, "nan-gradient-cleared-by-mask", of="nan-gradient", instead="""
        hidden = torch.where(mask, 0.0, -math.inf).to(scores.dtype)
        return torch.softmax(scores + hidden, -1).masked_fill(~mask, 0)
    """),
    Mistake(SOFTMAX, "does-not-fit", edit=("lowest = torch.finfo(scores.dtype).min", "lowest = -1e20"),
            title="a number that half precision cannot hold",
            says="The number that you fill in is too large for float16, which ends at −65,504, and PyTorch refuses it. "
                 "`torch.finfo(scores.dtype).min` is the lowest number of the scores' own type."),
    Alias(SOFTMAX, "billion-does-not-fit", of="does-not-fit",
          edit=("lowest = torch.finfo(scores.dtype).min", "lowest = -1e9")),
    Mistake(SOFTMAX, "infinite-in-half",
            instead="return torch.softmax(torch.where(mask, scores, -1e20), dim=-1) * mask",
            title="NaN in half precision, where numbers end sooner",
            says="In float32 a row that may see nothing comes out right, in float16 as NaN. float16 ends at −65,504, "
                 "so −1e9 or −1e20 turns into −∞ there; and it holds nothing below 6e-8, so that a 1e-9 put into a "
                 "division to be safe is 0. `torch.finfo(scores.dtype)` knows the limits of each type."),
    Alias(SOFTMAX, "billion-infinite-in-half", of="infinite-in-half", instead="""
        low = torch.tensor(-1e9, dtype=scores.dtype, device=scores.device)
        return torch.softmax(torch.where(mask, scores, low), dim=-1) * mask
    """),
    Mistake(SOFTMAX, "not-low-enough", edit=("lowest = torch.finfo(scores.dtype).min", "lowest = -100.0"),
            title="the filled-in score is not low enough",
            says="You fill in a number that is low for small scores only. When the visible scores of a row are lower "
                 "still, the hidden ones win the softmax. Softmax looks at differences: take something that is below "
                 "every score there can be."),
    # -10000 is as low for these scores, and as little for those around −1,000,000
    Alias(SOFTMAX, "ten-thousand-not-low-enough", of="not-low-enough",
          edit=("lowest = torch.finfo(scores.dtype).min", "lowest = -1e4")),
    Mistake(SOFTMAX, "divided-again", instead="""
        weights = torch.softmax(scores, dim=-1) * mask
        return weights / weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).tiny)
    """, title="masked after the softmax and divided again",
            says="On paper your way is right. In floating point, hidden scores that lie far above the visible ones "
                 "leave these a weight of 0, and dividing does not bring it back. Hide the scores before the softmax "
                 "sees them."),
    Mistake(SOFTMAX, "zero-over-zero", instead="""
        weights = torch.softmax(scores, dim=-1) * mask
        return weights / weights.sum(dim=-1, keepdim=True)
    """, title="masked after the softmax and divided again, by 0",
            says="You divide each row by what is left of its sum. For a row that may see nothing that is 0/0, and "
                 "where hidden scores lie far above the visible ones as well. Hide the scores before the softmax sees "
                 "them, and look after empty rows."),
    Mistake(SOFTMAX, "columns", edit=("dim=-1", "dim=-2"), title="softmax over the columns",
            says="Your columns add up to 1; the rows have to. Row i holds the weights of the position that looks, so "
                 "the softmax runs over the last axis."),
    Mistake(SOFTMAX, "one-shape-only", instead="""
        filled = scores.clone()
        filled[~mask] = torch.finfo(scores.dtype).min
        weights = torch.softmax(filled, dim=-1)
        return torch.where(mask, weights, torch.zeros_like(weights))
    """, title="the mask is not broadcast",
            says="An index, `scores[~mask]`, wants a mask of the scores' full shape and does not broadcast it. A "
                 "causal mask is (t, t) for the whole batch, a padding mask (b, 1, t): use something that broadcasts, "
                 "such as masked_fill or torch.where."),
    Mistake(SOFTMAX, "stays-wide",
            edit=("torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)",
                  "torch.softmax(scores.masked_fill(~mask, lowest).float(), dim=-1)"),
            title="half precision in, single precision out",
            says="Your weights are right but come back as float32, and then they do not multiply with values in half "
                 "precision. If you compute in float32, return to `scores.dtype` at the end."),
    Mistake(SOFTMAX, "in-place", edit=("scores.masked_fill(~mask, lowest)", "scores.masked_fill_(~mask, lowest)"),
            title="the scores changed in place",
            says="`masked_fill_`, with its underscore, writes into the caller's scores. `masked_fill` makes a new "
                 "tensor."),
    Mistake(SOFTMAX, "no-softmax", edit=("torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)", "scores"),
            title="masked scores, and no softmax",
            says="You clear what is hidden and return the scores as they are. What is asked for are weights: rows of "
                 "positive numbers that add up to 1."),
    Mistake(SOFTMAX, "no-maximum", instead="""
        powers = scores.exp() * mask
        return powers / powers.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).tiny)
    """, title="exp of the scores as they are",
            says="exp overflows for large scores, hidden ones included, and ∞ times 0 is NaN. torch.softmax takes care "
                 "of that, if the hidden scores have been filled in before."),
    Mistake(SOFTMAX, "weights-in-place", instead="""
        weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
        weights[weights.isnan()] = 0.0
        return weights
    """, title="the weights changed in place before the gradient needs them",
            says="Softmax keeps its result for the way back, and `weights[...] = 0`, or a method whose name ends in _, "
                 "writes into just that tensor, so autograd refuses. Make a new tensor: masked_fill, torch.where or "
                 "nan_to_num."),
    Mistake(SOFTMAX, "exp-by-hand", instead="""
        powers = scores.exp().masked_fill(~mask, 0.0)
        total = powers.sum(dim=-1, keepdim=True)
        return powers / total.masked_fill(total == 0, 1.0)
    """, title="exp of the visible scores as they are",
            says="exp overflows for large scores, and ∞/∞ is NaN; and where all visible scores are very low, nothing "
                 "is "
                 "left of the row. torch.softmax takes away the row's largest score first, which changes no weight."),
    Mistake(SOFTMAX, "common-maximum", instead="""
        low = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        powers = torch.exp(low - low.max()).masked_fill(~mask, 0.0)
        total = powers.sum(dim=-1, keepdim=True)
        return powers / total.masked_fill(total == 0, 1.0)
    """, title="one maximum for all rows",
            says="You take away the largest score of the whole tensor. Rows that lie far below it come out as zeros: "
                 "every row needs its own largest score."),
    Mistake(SOFTMAX, "twice", edit=("lowest), dim=-1)", "lowest), dim=-1).softmax(dim=-1)"),
            title="softmax of a softmax",
            says="The softmax runs twice. The second one makes the rows nearly even, and gives hidden entries a share "
                 "before they are cleared. Once is right."),
    Mistake(SOFTMAX, "logarithms", edit=("torch.softmax(", "torch.log_softmax("), title="the logarithms of the weights",
            says="log_softmax gives the logarithms of the weights, negative numbers. The weights themselves are asked "
                 "for."),
    Mistake(SOFTMAX, "sigmoid", edit=("torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)", "scores.sigmoid()"),
            title="a sigmoid for each entry",
            says="A sigmoid looks at each score by itself, so that rows do not sum to 1. Softmax divides a row's "
                 "exponentials by their sum."),
    Mistake(SOFTMAX, "even", edit=("scores.masked_fill(~mask, lowest)", "(0.0 * scores).masked_fill(~mask, lowest)"),
            title="the same weight for all that may be seen",
            says="All visible entries of a row get the same weight: the scores play no part. They decide how the unit "
                 "is "
                 "shared."),
    Mistake(SOFTMAX, "fills-the-smallest", edit=("torch.finfo(scores.dtype).min", "scores.min().detach()"),
            title="the smallest score filled in",
            says="You give the hidden entries the smallest score that there is. Softmax looks at differences, so they "
                 "keep a share of the sum until you clear them. Fill in something far below all scores."),
    Mistake(SOFTMAX, "detached", edit=("return weights.masked", "return weights.detach().masked"),
            title="cut off from the gradient",
            says="No gradient flows back to the scores: detach(), .data or no_grad() cuts the graph, or the result is "
                 "not made of the scores, and nothing before the softmax could learn."),
    Mistake(SOFTMAX, "squeezed", edit=("masked_fill(~mask, 0.0)", "masked_fill(~mask, 0.0).squeeze()"),
            title="axes of length 1 squeezed out",
            says="Your numbers are right, but an axis of length 1 gets lost: with a batch of one, or a single row, the "
                 "result has too few axes. It has the shape of the scores, whatever that is."),
    Accepted(SOFTMAX, "minus-infinity-cleared", instead="""
        weights = F.softmax(scores.masked_fill(mask == False, float("-inf")), dim=-1)
        return torch.nan_to_num(weights, nan=0.0)
    """),
    Accepted(SOFTMAX, "where-and-times", instead="""
        low = torch.finfo(scores.dtype).min
        return torch.softmax(torch.where(mask, scores, low), dim=-1) * mask
    """),
    Accepted(SOFTMAX, "billion-in-single-precision", instead="""
        wide = scores.float().masked_fill(mask.logical_not(), -1e9)
        return (wide.softmax(-1) * mask).to(scores.dtype)
    """),
    Accepted(SOFTMAX, "added-minimum", instead="""
        hidden = (~mask).to(scores.dtype) * torch.finfo(scores.dtype).min
        return torch.softmax(torch.where(mask, scores, 0) + hidden, dim=-1) * mask.to(scores.dtype)
    """),
    Accepted(SOFTMAX, "exp-and-sum", instead="""
        low = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        powers = torch.exp(low - low.amax(dim=-1, keepdim=True)) * mask
        return powers / powers.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).tiny)
    """),
    Accepted(SOFTMAX, "empty-rows-first", instead="""
        sees = mask.any(dim=-1, keepdim=True)
        filled = scores.masked_fill(~mask & sees, -math.inf)
        return torch.softmax(filled, dim=-1) * sees
    """),
    Accepted(SOFTMAX, "row-by-row", instead="""
        mask = mask.expand(scores.shape).reshape(-1, scores.shape[-1])
        rows = []
        for row, seen in zip(scores.reshape(-1, scores.shape[-1]), mask):
            weights = torch.zeros_like(row)
            if seen.any():
                weights[seen] = torch.softmax(row[seen], dim=0)
            rows.append(weights)
        return torch.stack(rows).reshape(scores.shape)
    """),
    Shortcut(SOFTMAX, "finished-part", instead="return finished_masks.masked_softmax(scores, mask)"),
    Shortcut(SOFTMAX, "imported", instead="""
        from helpers.parts.masks import masked_softmax
        return masked_softmax(scores, mask)
    """),
    # -------------------------------------------------------------------------------- CausalSelfAttention
    Mistake(ATTENTION, "no-mask", instead="""
        scores = q @ k.transpose(-2, -1) / math.sqrt(d)
        return self.unify((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, t, e))
    """, title="no mask",
            says="Nothing is hidden: every position looks at every other, at the answer too. If you have made the "
                 "mask, see that the softmax gets it."),
    Mistake(ATTENTION, "padding-ignored", edit=("if padding is not None:", "if False:"), title="padding ignored",
            says="Time is masked, padding is not. When `padding` is given, a position may look where both masks allow "
                 "it."),
    Mistake(ATTENTION, "padding-only",
            edit=("if padding is not None:\n            mask = (mask & padding)",
                  "if padding is not None:\n            mask = padding.expand(b, t, t)"),
            title="with padding, the triangle is lost",
            says="As soon as padding is given, you mask padding and nothing else, and the future is open again. Both "
                 "have to hold: `&`."),
    Mistake(ATTENTION, "or", edit=("mask & padding", "mask | padding"), title="one mask or the other",
            says="Your mask is True where one of the two allows it, so a real token in the future can be seen. Both "
                 "have to allow it: `&`."),
    Mistake(ATTENTION, "padding-query-side", edit=("mask & padding", "mask & padding.transpose(1, 2)"),
            title="padding masked on the query side",
            says="You blank the rows of the padding: padding looks at nothing. But real tokens still look at the "
                 "padding. It is the columns that have to be hidden; padding comes as (b, 1, t), and that is how it is "
                 "joined."),
    Mistake(ATTENTION, "heads-meet-the-batch", edit=("(mask & padding).unsqueeze(1) ", "mask & padding "),
            title="the batch of the mask meets the heads",
            says="With padding, the batch axis of your mask stands where the scores, (b, h, t, t), have their heads: "
                 "broadcasting lines up axes from the right, and b meets h. The heads need an axis of length 1, right "
                 "behind b. (If b and h happen to be equal, nothing raises, and each head gets another sentence's "
                 "padding.)"),
    Mistake(ATTENTION, "sized-by-width",
            edit=("finished_masks.causal_mask(t, device", "finished_masks.causal_mask(e, device"),
            title="the mask is sized by the width",
            says="Your triangle is (e, e). It is positions that may or may not look at each other, t of them; how wide "
                 "their vectors are does not matter."),
    Mistake(ATTENTION, "cut-from-width",
            edit=("finished_masks.causal_mask(t, device=x.device) ",
                  "finished_masks.causal_mask(e, device=x.device)[:t, :t] "),
            title="the mask is cut from one of the model's width",
            says="Your triangle is made with e rows and cut down to t. That works until a text has more positions than "
                 "the model has components. Make it of size t."),
    Mistake(ATTENTION, "diagonal-too",
            edit=("finished_masks.causal_mask(t, device=x.device) ",
                  "finished_masks.causal_mask(t, device=x.device).tril(-1) "), title="the diagonal hidden too",
            says="No position may look at itself in your layer, and the first one may look at none. Input i was read "
                 "last and is not the answer: j = i is allowed."),
    Mistake(ATTENTION, "upside-down",
            edit=("finished_masks.causal_mask(t, device=x.device) ",
                  "finished_masks.causal_mask(t, device=x.device).T "), title="the triangle upside down",
            says="Your positions look at the future and not at the past: the triangle is transposed. Rows are who "
                 "looks."),
    Mistake(ATTENTION, "swapped",
            edit=("finished_masks.causal_mask(t, device=x.device) ",
                  "~finished_masks.causal_mask(t, device=x.device) "), title="True and False swapped",
            says="You hide the past and show the future. In this course True means that i may look at j, and "
                 "`masked_softmax` takes its mask like that."),
    Mistake(ATTENTION, "after-softmax",
            edit=("finished_masks.masked_softmax(scores, mask)", "torch.softmax(scores, dim=-1) * mask"),
            title="masked after the softmax",
            says="You clear the hidden weights after the softmax: rows no longer sum to 1, and the hidden scores have "
                 "had their share in them. Mask before it, or leave both to `finished_masks.masked_softmax`."),
    Mistake(ATTENTION, "zero",
            edit=("finished_masks.masked_softmax(scores, mask)", "torch.softmax(scores * mask, dim=-1)"),
            title="0 where −∞ is meant",
            says="`scores * mask` puts a score of 0 where nothing may be seen, and exp(0) is 1: the future keeps a "
                 "good share of the weight. A hidden score has to be −∞, or leave it to "
                 "`finished_masks.masked_softmax`."),
    Mistake(ATTENTION, "weights-transposed", edit=("weights @ v ", "weights.transpose(-2, -1) @ v "),
            title="weights transposed before the average",
            says="Row i of the weights makes output i. You transpose them first, so each output collects from the "
                 "positions that look at it: from the future."),
    Mistake(ATTENTION, "nan-rows",
            edit=("finished_masks.masked_softmax(scores, mask)",
                  "torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)"),
            title="NaN where a position may see nothing",
            says="With padding in front, the first positions may see nothing, and softmax over −∞ alone is NaN. "
                 "`finished_masks.masked_softmax` gives such a row zeros."),
    Mistake(ATTENTION, "no-scale", edit=(" / math.sqrt(d)", ""), title="not divided by √d",
            says="The scores are the right dot products, but are not divided by the root of the head's width."),
    Mistake(ATTENTION, "scaled-by-width", edit=("math.sqrt(d)", "math.sqrt(e)"), title="divided by √e instead of √d",
            says="You divide by the root of the whole width e. Each product is over the d = e/h components of one "
                 "head."),
    Mistake(ATTENTION, "scaled-by-d", edit=("math.sqrt(d)", "d"), title="divided by d instead of √d",
            says="You divide by the width of a head; its root is meant."),
    Mistake(ATTENTION, "heads-scrambled", edit=("heads.transpose(1, 2).reshape(b, t, e)", "heads.reshape(b, t, e)"),
            title="heads and positions mixed up",
            says="Your heads are (b, h, t, d), and reshape reads them in that order: pieces of different positions end "
                 "up in one. Exchange h and t first."),
    Mistake(ATTENTION, "no-unify",
            edit=("self.unify(heads.transpose(1, 2).reshape(b, t, e))", "heads.transpose(1, 2).reshape(b, t, e)"),
            title="the last projection is missing",
            says="The heads stand side by side, and nothing mixes them: pass the result through `self.unify`."),
    Mistake(ATTENTION, "on-the-cpu",
            edit=("finished_masks.causal_mask(t, device=x.device)", "finished_masks.causal_mask(t)"),
            title="the mask is made on the CPU",
            says="`causal_mask(t)` puts the triangle on the CPU, wherever x is. Hand it the device of x."),
    Mistake(ATTENTION, "padding-both-sides", edit=("mask & padding", "mask & padding & padding.transpose(1, 2)"),
            title="the rows of the padding masked as well",
            says="Your mask hides the padding's columns, which is right, and blanks its rows as well. What padding "
                 "looks "
                 "at does not matter: only who is *looked at* is masked."),
    Mistake(ATTENTION, "padding-swapped", edit=("mask & padding", "mask & ~padding"),
            title="padding the wrong way round",
            says="You let positions look at the padding and at nothing else. `padding` is True where a token is real."),
    Mistake(ATTENTION, "padding-of-the-first", edit=("mask & padding", "mask & padding[:1]"),
            title="the first sentence's padding for all",
            says="All sentences get the first one's padding. Each has its own."),
    Mistake(ATTENTION, "padding-after-softmax",
            edit=(("mask = (mask & padding).unsqueeze(1) ", "pass"),
                  ("heads = weights", "weights = weights if padding is None else weights * padding.unsqueeze(1)\n      "
                                      "  "
                                      "heads = weights")), title="padding cleared after the softmax",
            says="The triangle is masked before the softmax, padding only after it: rows no longer sum to 1. Join the "
                 "two masks and hand both to the softmax."),
    # a weight of 0 and a value of 0 come to the same
    Alias(ATTENTION, "values-of-padding-cleared", of="padding-after-softmax",
          edit=(("mask = (mask & padding).unsqueeze(1) ", "v = v * padding.transpose(1, 2).unsqueeze(1)"),)),
    Mistake(ATTENTION, "padding-outputs-cleared", instead="""
        scores = q @ k.transpose(-2, -1) / math.sqrt(d)
        weights = finished_masks.masked_softmax(scores, finished_masks.causal_mask(t, device=x.device))
        y = self.unify((weights @ v).transpose(1, 2).reshape(b, t, e))
        return y if padding is None else y * padding.transpose(1, 2)
    """, title="the outputs of the padding cleared",
            says="You clear the padding's own outputs, and real tokens still look at the padding. It is the columns of "
                 "the scores that have to be hidden, before the softmax."),
    Mistake(ATTENTION, "uniform-rows",
            edit=("finished_masks.masked_softmax(scores, mask)", "torch.softmax(scores.masked_fill(~mask, -1e9), "
                 "dim=-1)"),
            title="a position that may see nothing looks at everything",
            says="With padding in front, the first positions may see nothing. A softmax over equally low scores gives "
                 "all of them the same weight, so that such a position looks at what is hidden from it. "
                 "`finished_masks.masked_softmax` gives such a row zeros."),
    Mistake(ATTENTION, "scaled-too-late",
            edit=((" / math.sqrt(d)", ""), ("(scores, mask)", "(scores, mask) / math.sqrt(d)")),
            title="scaled after the softmax",
            says="You divide the finished weights by √d, so that a row no longer sums to 1, and the softmax has seen "
                 "the "
                 "large scores all the same. It is the scores that are divided."),
    Mistake(ATTENTION, "multiplied", edit=(" / math.sqrt(d)", " * math.sqrt(d)"), title="multiplied by √d",
            says="You multiply the scores by √d. They have to get smaller: divide."),
    Mistake(ATTENTION, "residual", edit=("return self.unify(", "return x + self.unify("),
            title="the input added to the output",
            says="You add x to what unify gives. Many models do so around the attention; the layer itself returns what "
                 "unify gives and nothing else."),
    Mistake(ATTENTION, "values-are-keys", edit=("weights @ v", "weights @ k"), title="the keys averaged",
            says="You average the keys. What is averaged are the values."),
    Mistake(ATTENTION, "roles-exchanged", edit=("q @ k.transpose(-2, -1)", "k @ q.transpose(-2, -1)"),
            title="queries and keys exchanged",
            says="Row i of your scores compares position i's *key* with the queries of all positions. Row i is asked "
                 "by position "
                 "i: its query meets the keys."),
    Mistake(ATTENTION, "softmax-twice", edit=("(scores, mask)", "(scores, mask).softmax(dim=-1)"),
            title="softmax of a softmax",
            says="The softmax runs twice. The second one makes the rows nearly even and gives the future a share "
                 "again. "
                 "Once is right."),
    Mistake(ATTENTION, "softmax-before", edit=("(scores, mask)", "(scores.softmax(dim=-1), mask)"),
            title="a softmax before the masked one",
            says="The scores go through a softmax before they go through the masked one. `masked_softmax` is the "
                 "softmax; "
                 "give it the scores."),
    Mistake(ATTENTION, "columns", edit=("finished_masks.masked_softmax(scores, mask)",
                                       "finished_masks.masked_softmax(scores.mT, mask).mT"),
            title="softmax over the queries",
            says="In your weights the columns sum to 1. Row i makes output i, so the sum runs over the last axis."),
    Mistake(ATTENTION, "interleaved", edit=("heads.transpose(1, 2)", "heads.permute(0, 2, 3, 1)"),
            title="heads dealt out like cards",
            says="The first components of all heads stand side by side, then the second ones. A head's d components "
                 "stay "
                 "together: (b, t, h, d), and then one name for the last two axes."),
    Mistake(ATTENTION, "view-refused", edit=("transpose(1, 2).reshape(b, t, e)", "transpose(1, 2).view(b, t, e)"),
            title="view after a transpose",
            says="`view` gives a new shape to numbers as they lie in memory, and after a transpose they lie in another "
                 "order. `reshape` copies when it must."),
    Mistake(ATTENTION, "bias-not-added",
            edit=("self.unify(heads.transpose(1, 2).reshape(b, t, e))",
                  "heads.transpose(1, 2).reshape(b, t, e) @ self.unify.weight.T"), title="unify's bias not added",
            says="Your outputs lack unify's bias: you multiply with its weight only. Call the layer, "
                 "`self.unify(...)`."),
    Mistake(ATTENTION, "unify-cut-off",
            edit=("self.unify(heads.transpose(1, 2).reshape(b, t, e))",
                  "F.linear(heads.transpose(1, 2).reshape(b, t, e), self.unify.weight.data, self.unify.bias.data)"),
            title="unify cut off from the gradient",
            says="Your numbers are right, but no gradient reaches unify's weight and bias: .data or detach() cuts them "
                 "off, and they would never learn. Call the layer as it is."),
    Mistake(ATTENTION, "squeezed", edit=(".reshape(b, t, e))", ".reshape(b, t, e)).squeeze()"),
            title="axes of length 1 squeezed out",
            says="Your numbers are right, but an axis of length 1 gets lost: with a batch of one, or a single "
                 "position, "
                 "the result has too few axes. All three axes stay, whatever their lengths."),
    Accepted(ATTENTION, "library", instead="""
        mask = finished_masks.causal_mask(t, x.device)[None, None]
        if padding is not None:
            mask = mask & padding[:, None]
        return self.unify(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))
    """),
    Accepted(ATTENTION, "einsum", instead="""
        allowed = torch.tril(torch.ones(t, t, device=x.device)).bool().expand(b, 1, t, t)
        if padding is not None:
            allowed = torch.logical_and(allowed, padding.view(b, 1, 1, t))
        a = torch.einsum("nhid,nhjd->nhij", q / d ** 0.5, k)
        a = F.softmax(a.masked_fill(~allowed, -1e9), dim=-1) * allowed
        return self.unify(torch.einsum("nhij,nhjd->nihd", a, v).reshape(b, t, e))
    """),
    Accepted(ATTENTION, "each-side-early", instead="""
        mask = finished_masks.causal_mask(t, device=x.device)
        if padding is not None:
            mask = (mask & padding).repeat_interleave(self.h, dim=0)
        q, k, v = (part.reshape(b * self.h, t, d) for part in (q, k, v))
        scores = torch.bmm(q / d ** 0.25, (k / d ** 0.25).transpose(1, 2))
        y = torch.bmm(finished_masks.masked_softmax(scores, mask), v)
        return self.unify(y.view(b, self.h, t, d).permute(0, 2, 1, 3).contiguous().view(b, t, e))
    """),
    Accepted(ATTENTION, "position-by-position", instead="""
        outputs = []
        for i in range(t):
            scores = (q[:, :, i:i + 1] * k[:, :, :i + 1]).sum(-1) / math.sqrt(d)    # (b, h, i + 1)
            seen = torch.ones_like(scores).bool() if padding is None else padding[:, :, :i + 1]
            weights = finished_masks.masked_softmax(scores, seen)
            outputs.append(torch.matmul(weights.unsqueeze(-2), v[:, :, :i + 1]).reshape(b, e))
        return self.unify(torch.stack(outputs, dim=1))
    """),
    Shortcut(ATTENTION, "finished-part", instead="return finished_masks.CausalSelfAttention.forward(self, x, padding)"),
    # ------------------------------------------------------------------------------------------- leak_map
    Mistake(LEAK, "transposed", edit=("return torch.stack(rows)", "return torch.stack(rows, dim=1)"),
            title="inputs and outputs exchanged",
            says="Your map is the transpose: its rows belong to the inputs. Entry [i, j] is about output i and input "
                 "j, so the gradient of one output fills a row. (The wrong way round, a causal model looks as if it "
                 "saw only the future.)"),
    Mistake(LEAK, "components-summed", instead="""
        x = x.detach().clone().requires_grad_()
        y = model(x)
        rows = []
        for i in range(y.shape[1]):
            slopes, = torch.autograd.grad(y[:, i].sum(), x, retain_graph=True)
            rows.append(slopes.abs().amax(dim=(0, 2)))
        return torch.stack(rows)
    """, title="the components of an output added up before differentiating",
            says="You differentiate the sum of an output's components. Where one rises and another falls, the two "
                 "cancel, and a dependence goes unseen. Take each component by itself, and the largest of them."),
    Mistake(LEAK, "no-abs", edit=("slopes.abs().amax(", "slopes.amax("),
            title="the largest derivative without its absolute value",
            says="You take the largest derivative as it is, so that a strong but negative one counts for nothing. It "
                 "is the size that matters: `.abs()` first."),
    Mistake(LEAK, "mean", edit=("slopes.abs().amax(dim=(0, 2))", "slopes.abs().mean(dim=(0, 2))"),
            title="the mean derivative instead of the largest",
            says="You average over the batch and the input's components. One component that leaks is lost among many "
                 "that do not: take the largest."),
    Mistake(LEAK, "summed-up",
            edit=("torch.maximum(row, slopes.abs().amax(dim=(0, 2)))", "row + slopes.abs().sum(dim=(0, 2))"),
            title="the derivatives added up instead of the largest",
            says="You add up the sizes of all derivatives. That would find a leak as well, but it is another number: "
                 "the largest is asked for."),
    Mistake(LEAK, "first-sentence", edit=("y[:, i, c].sum()", "y[0, i, c]"),
            title="only the first sequence of the batch",
            says="You differentiate the outputs of the first sequence only. How strongly an output depends on an input "
                 "differs from sequence to sequence; the largest over all of them is asked for."),
    Mistake(LEAK, "last-component",
            edit=("row = torch.maximum(row, slopes.abs().amax(dim=(0, 2)))", "row = slopes.abs().amax(dim=(0, 2))"),
            title="only the last component of the output",
            says="Each component of the output overwrites what the one before has found. Keep the larger of the two."),
    Mistake(LEAK, "accumulated", instead="""
        x = x.detach().clone().requires_grad_()
        y = model(x)
        leak = x.new_zeros(x.shape[1], x.shape[1])
        for i in range(y.shape[1]):
            for c in range(y.shape[2]):
                y[:, i, c].sum().backward(retain_graph=True)
                leak[i] = torch.maximum(leak[i], x.grad.abs().amax(dim=(0, 2)))
        return leak
    """, title="gradients pile up from one output to the next",
            says="`backward()` adds to `x.grad` and does not replace it, so each gradient still holds all those before "
                 "it. Set `x.grad` to None before each call, or use torch.autograd.grad, which keeps nothing."),
    Mistake(LEAK, "norm", instead="""
        slopes = torch.autograd.functional.jacobian(model, x)
        return slopes.norm(dim=(2, 5)).amax(dim=(0, 2))
    """, title="the root of the sum of squares instead of the largest",
            says="You measure each pair of positions by the root of the summed squares of its derivatives. It finds "
                 "leaks just as well, but is another number: the largest single one is asked for."),
    Mistake(LEAK, "width-of-the-input", edit=("range(y.shape[2])", "range(x.shape[2])"),
            title="as many components of the output as the input has",
            says="Your inner loop counts the components of x. The output may be wider, (b, t, f): what its last "
                 "components depend on is missed."),
    Mistake(LEAK, "no-gradient-asked-for", edit=("x.detach().clone().requires_grad_()", "x.detach().clone()"),
            title="nothing to differentiate by",
            says="Autograd follows only tensors that it was told to follow. Give your copy of x a `requires_grad_()` "
                 "before it goes into the model."),
    Mistake(LEAK, "on-the-cpu", edit=("x.new_zeros(x.shape[1])", "torch.zeros(x.shape[1])"),
            title="a row made on the CPU",
            says="You make a tensor of zeros on the CPU, and it meets gradients that are wherever x is. "
                 "`device=x.device`, or `x.new_zeros`."),
    Mistake(LEAK, "in-place",
            edit=("x = x.detach().clone().requires_grad_()",
                  "x.sub_(x.mean())\n    x = x.detach().clone().requires_grad_()"), title="the input changed in place",
            says="Your code writes into the caller's x before it measures, so the model is measured somewhere else "
                 "than it was asked about. Work on a copy: `x.detach().clone()`."),
    Mistake(LEAK, "mean-of-all", instead="""
        slopes = torch.autograd.functional.jacobian(model, x).abs()    # (b, t, f, b, t, e)
        return slopes.mean(dim=(0, 2, 3, 5))
    """, title="the mean of all derivatives instead of the largest",
            says="You average over the batch and the components. One component that leaks is lost among many that do "
                 "not, and "
                 "where two sequences of the batch meet there are zeros: take the largest."),
    Mistake(LEAK, "first-component", instead="""
        slopes = torch.autograd.functional.jacobian(model, x).abs()    # (b, t, f, b, t, e)
        return slopes[:, :, 0].amax(dim=(0, 2, 4))
    """, title="only the first component of the output",
            says="You look at the first component of each output only. The others may depend on more: take the largest "
                 "over "
                 "all of them."),
    Mistake(LEAK, "first-input-component", instead="""
        slopes = torch.autograd.functional.jacobian(model, x).abs()    # (b, t, f, b, t, e)
        return slopes[..., 0].amax(dim=(0, 2, 3))
    """, title="only the first component of the input",
            says="You look at the first component of each input only. An output may depend on the others: take the "
                 "largest "
                 "over all of them."),
    Mistake(LEAK, "summed-over-inputs", instead="""
        slopes = torch.autograd.functional.jacobian(model, x).abs()    # (b, t, f, b, t, e)
        return slopes.sum(dim=5).amax(dim=(0, 2, 3))
    """, title="the sizes added up over the input's components",
            says="You add up the sizes over the components of an input. The largest single one is asked for."),
    Mistake(LEAK, "mean-over-the-batch", instead="""
        slopes = torch.autograd.functional.jacobian(model, x).abs()    # (b, t, f, b, t, e)
        return slopes.amax(dim=(2, 5)).diagonal(dim1=0, dim2=2).mean(dim=-1)
    """, title="the mean over the batch",
            says="You average over the sequences of the batch. The largest over all of them is asked for."),
    Mistake(LEAK, "mean-then-largest", instead="""
        slopes = torch.autograd.functional.jacobian(model, x).abs().diagonal(dim1=0, dim2=3)    # (t, f, t, e, b)
        return slopes.mean(dim=-1).amax(dim=(1, 3))
    """, title="the mean over the batch, and the largest of that",
            says="You average over the sequences of the batch. The largest over all of them is asked for."),
    Mistake(LEAK, "squares", instead="""
        slopes = torch.autograd.functional.jacobian(model, x).abs()    # (b, t, f, b, t, e)
        return slopes.square().amax(dim=(0, 2, 3, 5))
    """, title="the squares of the derivatives",
            says="Your numbers are the squares of the right ones. The size of a derivative is its absolute value."),
    Mistake(LEAK, "yes-or-no", instead="""
        slopes = torch.autograd.functional.jacobian(model, x).abs()    # (b, t, f, b, t, e)
        return (slopes.amax(dim=(0, 2, 3, 5)) > 0).to(x.dtype)
    """, title="only whether there is a dependence",
            says="Your map says whether an output depends on an input, 1 or 0. How *much* it does is asked for."),
    Mistake(LEAK, "normalised", instead="""
        slopes = torch.autograd.functional.jacobian(model, x).abs()    # (b, t, f, b, t, e)
        leak = slopes.amax(dim=(0, 2, 3, 5))
        return leak / leak.max()
    """, title="divided by the largest entry",
            says="You divide the map by its largest entry. The sizes themselves are asked for, so that two maps can be "
                 "compared."),
    Mistake(LEAK, "mean-of-the-batch", instead="""
        slopes = torch.autograd.functional.jacobian(model, x).abs()    # (b, t, f, b, t, e)
        return slopes.amax(dim=(0, 2, 3, 5)) / x.shape[0]
    """, title="divided by the number of sequences",
            says="Your numbers are the right ones divided by the number of sequences: a mean over the batch instead of "
                 "a sum "
                 "before you differentiate. The sum keeps each sequence's own derivatives as they are."),
    Mistake(LEAK, "norm-of-the-output", instead="""
        x = x.detach().clone().requires_grad_()
        rows = [torch.autograd.grad(output.norm(), x, retain_graph=True)[0] for output in model(x).unbind(1)]
        return torch.stack([row.abs().amax(dim=(0, 2)) for row in rows])
    """, title="the norm of an output differentiated",
            says="You differentiate the length of an output. A component may change while the length hardly does: take "
                 "each "
                 "component by itself, and the largest of them."),
    Mistake(LEAK, "moved-by-one", instead="""
        y, columns = model(x), []
        for j in range(x.shape[1]):
            moved = x.clone()
            moved[:, j] += 1
            columns.append((model(moved) - y).abs().amax(dim=(0, 2)))
        return torch.stack(columns, dim=1)
    """, title="an input moved by 1 instead of a derivative",
            says="You move an input by 1 and look how far the outputs move. That shows leaks too, but a derivative is "
                 "about "
                 "small steps, and about one component at a time: let autograd differentiate."),
    Mistake(LEAK, "graph-freed", instead="""
        x = x.detach().clone().requires_grad_()
        y, rows = model(x), []
        for i in range(y.shape[1]):
            slopes = [torch.autograd.grad(y[:, i, c].sum(), x)[0].abs().amax(dim=(0, 2)) for c in range(y.shape[2])]
            rows.append(torch.stack(slopes).amax(dim=0))
        return torch.stack(rows)
    """, title="the graph thrown away after the first derivative",
            says="Autograd throws its graph away once it has gone through it, and you differentiate the same outputs "
                 "again. "
                 "`retain_graph=True` keeps it for the next time."),
    Mistake(LEAK, "squeezed", edit=("return torch.stack(rows)", "return torch.stack(rows).squeeze()"),
            title="axes of length 1 squeezed out",
            says="Your numbers are right, but for a single position the map loses its axes. It is (t, t), whatever t "
                 "is."),
    Accepted(LEAK, "jacobian", instead="""
        slopes = torch.autograd.functional.jacobian(model, x)    # (b, t, f, b, t, e)
        return slopes.abs().amax(dim=(0, 2, 3, 5))
    """),
    Accepted(LEAK, "backward-and-clear", instead="""
        x = x.clone().detach()
        x.requires_grad = True
        b, t, e = x.shape
        f = model(x).shape[-1]
        leak = torch.zeros(t, t, device=x.device)
        for i in range(t):
            for c in range(f):
                x.grad = None
                model(x)[:, i, c].sum().backward()
                for j in range(t):
                    leak[i, j] = torch.max(leak[i, j], x.grad[:, j].abs().max())
        return leak
    """),
    Accepted(LEAK, "sentence-by-sentence", instead="""
        maps = []
        for sentence in x:
            own = sentence.detach().clone().unsqueeze(0).requires_grad_(True)
            y = model(own)[0]
            one = lambda part: torch.autograd.grad(part, own, retain_graph=True)[0][0].abs().max(-1).values
            rows = [torch.stack([one(part) for part in output]).max(0).values for output in y]
            maps.append(torch.stack(rows))
        return torch.stack(maps).max(dim=0).values
    """),
    Accepted(LEAK, "jacrev", instead="""
        slopes = torch.func.jacrev(lambda x: model(x).sum(0))(x)    # (t, f, b, t, e)
        return slopes.abs().amax(dim=(1, 2, 4))
    """),
    # ------------------------------------------------------------- mutants that are right all the same
    *(EquivalentMutant(exercise, f"return {result}", f"return {result}.detach()", "booleans have no gradient")
      for exercise, result in ((CAUSAL, "all_pairs.tril()"), (PADDING, "real.unsqueeze(1)"))),
    EquivalentMutant(PADDING, "real.unsqueeze(1)", "real.unsqueeze(-2)",
        "real has two axes: 1 and −2 put the new one at the same "
                 "place"),
    EquivalentMutant(PADDING, "lengths.unsqueeze(1)", "lengths.unsqueeze(-1)",
        "lengths have one axis: 1 and −1 are the same "
                 "place"),
    EquivalentMutant(ATTENTION, "-2", "2", "axis 2 of four is axis −2"),
    EquivalentMutant(LEAK, "return torch.stack(rows)", "return torch.stack(rows).detach()",
          "a map that is only looked at needs no graph, and torch.autograd.grad builds none unless it is asked to"),
    EquivalentMutant(LEAK, "torch.maximum(row, slopes.abs().amax(dim=(0, 2)))",
        "torch.maximum(slopes.abs().amax(dim=(0, 2)), "
                 "row)",
          "the larger of two is the same in either order"),
    EquivalentMutant(LEAK, "slopes.abs()", "slopes.abs_()", "the gradient is a new tensor that no other name holds"),
    EquivalentMutant(LEAK, "torch.autograd.grad(number, x, retain_graph=True)[0]",
          "torch.autograd.grad(number, x, retain_graph=True)[-1]", "one input gives one gradient, the first and the "
                 "last"),
    EquivalentMutant(LEAK, "x.detach()", "x", "a copy inside a graph can be differentiated by as well"),

    Mistake(HURRIED, "unchanged", instead="heads = self.attend(q, k, v)", title="the bug is still there",
            says="The layer computes what it computed before. Put it under your leak map, and follow what is built in "
                 "the constructor to the line that needs it."),
    Mistake(HURRIED, "whole-triangle", edit=("self.triangle[:t, :t]", "self.triangle"),
            title="the whole triangle, whatever the length",
            says="You hand over all of the triangle, (t_max, t_max). The scores are (b, h, t, t), and a text is seldom "
                 "as long as the longest: take the part that belongs to the t positions at hand."),
    Mistake(HURRIED, "rows-only", edit=("self.triangle[:t, :t]", "self.triangle[:t]"),
            title="the triangle cut on one side",
            says="You cut the rows of the triangle to t and leave its columns at t_max. Both who looks and who is "
                 "looked at are t positions."),
    Mistake(HURRIED, "upside-down", edit=("self.triangle[:t, :t]", "self.triangle[:t, :t].T"),
            title="the triangle upside down",
            says="A mask arrives now, and it is transposed: positions look at the future and not at the past. Rows are "
                 "who looks."),
    Mistake(HURRIED, "swapped",
            edit=("masked_fill(~mask", "masked_fill(mask"),
            title="True and False swapped",
            says="A mask arrives now, and you also changed what it means: the past is hidden and the future shown. In "
                 "this layer, as in the course, True means that i may look at j."),
    Mistake(HURRIED, "diagonal-too", edit=("dtype=torch.bool).tril()", "dtype=torch.bool).tril(-1)"),
            title="the diagonal hidden too",
            says="Your triangle lacks its diagonal: no position may look at itself, and the first one sees nothing at "
                 "all. Input i was read last and is not the answer: j = i is allowed."),
    Mistake(HURRIED, "after-softmax",
            edit=("scores = scores.masked_fill(~mask, -math.inf)", "return torch.softmax(scores, -1) * mask @ v"),
            title="masked after the softmax",
            says="You clear the hidden weights after the softmax, where the hidden scores have had their share in the "
                 "sum: the future still comes through. `attend` masked at the right place before."),
    Mistake(HURRIED, "made-on-the-cpu",
            edit=("self.triangle[:t, :t]", "torch.ones(t, t, dtype=torch.bool).tril()"),
            title="a new triangle, always on the CPU",
            says="You make a new triangle in `forward`, on the CPU whatever device the scores are on. The layer keeps "
                 "one that moves with it."),
    Mistake(HURRIED, "no-buffer",
            edit=(('self.register_buffer("triangle", torch.ones(t_max, t_max, dtype=torch.bool).tril())',
                   "pass"),
                  ("self.triangle[:t, :t]", "torch.ones(t, t, dtype=torch.bool, device=x.device).tril()")),
            title="the stored triangle was removed",
            says="The outputs are right, and the layer no longer stores its triangle: a file of weights that holds one "
                 "does not fit any more."),
    Alias(HURRIED, "last-row", of="unchanged", edit=("self.triangle[:t, :t]", "self.triangle[t - 1, :t]")),
    Alias(HURRIED, "not-asked-for", of="unchanged", edit=("self.triangle[:t, :t]", "mask=None")),
    Accepted(HURRIED, "by-name", edit=("k, v, self.triangle[:t, :t]", "k, v, mask=self.triangle[:t, :t]")),
    Accepted(HURRIED, "in-attend", edit=(("if mask is not None:", "t = q.shape[-2]\n        if True:"),
                                     ("masked_fill(~mask,", "masked_fill(~self.triangle[:t, :t],"),
                                     ("k, v, self.triangle[:t, :t]", "k, v"))),
    Accepted(HURRIED, "made-anew", edit=("self.triangle[:t, :t]",
                                     "torch.ones(t, t, dtype=torch.bool, device=x.device).tril()")),
    Accepted(HURRIED, "torchs-own", edit=("self.attend(q, k, v, self.triangle[:t, :t])",
                                      "F.scaled_dot_product_attention(q, k, v, is_causal=True)")),
    EquivalentMutant(HURRIED, "self.triangle", "self.triangle.detach()",
        "booleans have no gradient to be cut off from"),
    Accepted(HURRIED, "last-corner", edit=("self.triangle[:t, :t]", "self.triangle[-t:, -t:]")),
]
