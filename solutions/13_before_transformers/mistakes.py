"""What students get wrong in lesson 13, and what to tell them."""

from helpers.authoring import Accepted, EquivalentMutant, Mistake, Shortcut

SKIP, BACK, READERS, MIX, VECTOR, ADDITIVE, GENERAL, DECODER = (
    "skip_gram_loss",
    "read_backwards",
    "BiLanguageModel",
    "LayerMix",
    "sentence_vector",
    "additive_scores",
    "general_scores",
    "AttentiveDecoder",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # -------------------------------------------------------------------------------------- skip_gram_loss
    # DSKSD/DeepNLP-models-Pytorch, issue 15
    Mistake(SKIP, "log-of-the-sum", edit=("F.logsigmoid(-far).sum(dim=-1)", "F.logsigmoid(-far.sum(dim=-1))"),
            title="the products summed before log σ",
            says="You add up the products with the negatives, and take log σ of the sum. A product of 5 and one of −5 "
                 "then cost no more than two of 0. Each negative is a question of its own: log σ first, then the sum."),
    Mistake(SKIP, "negatives-without-minus", edit=("F.logsigmoid(-far)", "F.logsigmoid(far)"),
            title="negatives treated as neighbours",
            says="Your loss asks the negatives to be near as well. For them it is the probability of *not* being "
                 "neighbours that should be large."),
    Mistake(SKIP, "mean-over-negatives", edit=("F.logsigmoid(-far).sum(dim=-1)", "F.logsigmoid(-far).mean(dim=-1)"),
            title="the mean over the negatives",
            says="You take the mean over the k negatives. The formula has their sum: each of them counts as much as "
                 "the true neighbour."),
    Mistake(SKIP, "log-of-sigmoid",
            edit=("-F.logsigmoid(near) - F.logsigmoid(-far).sum(dim=-1)",
                  "-torch.log(torch.sigmoid(near)) - torch.log(torch.sigmoid(-far)).sum(dim=-1)"),
            title="the logarithm of a sigmoid that is 0",
            says="You take the sigmoid and then its logarithm. In float32 the sigmoid of −200 is 0 and its logarithm "
                 "−∞. F.logsigmoid computes the two as one."),
    Mistake(SKIP, "sum-over-the-batch", edit=("losses.mean()", "losses.sum()"), title="the sum over the batch",
            says="You add up over the batch. The loss is the mean over the pairs."),
    Mistake(SKIP, "no-minus",
            edit=("-F.logsigmoid(near) - F.logsigmoid(-far).sum(dim=-1)",
                  "F.logsigmoid(near) + F.logsigmoid(-far).sum(dim=-1)"), title="the sign turned round",
            says="Your result is the log of the probability, which is to become large. A loss is to become small."),
    Mistake(SKIP, "neighbour-turned", edit=("-F.logsigmoid(near)", "-F.logsigmoid(-near)"),
            title="the neighbour treated as a negative",
            says="Your loss asks the true neighbour to be far away. Only the negatives get the minus inside."),
    Mistake(SKIP, "no-negatives", edit=(" - F.logsigmoid(-far).sum(dim=-1)", ""), title="the negatives left out",
            says="The negatives play no part in your loss. Without them it is smallest when every product is large."),
    Mistake(SKIP, "no-neighbour", edit=("-F.logsigmoid(near) - ", "-"), title="the neighbour left out",
            says="Your loss holds the negatives only. The true neighbour has a term of its own."),
    Mistake(SKIP, "negatives-of-the-context",
            edit=("centre.unsqueeze(1) * negatives", "context.unsqueeze(1) * negatives"),
            title="negatives compared with the context",
            says="You compare the negatives with the context. It is the centre that all are compared with."),
    Mistake(SKIP, "no-log", edit=("-F.logsigmoid(near) - F.logsigmoid(-far).sum(dim=-1)",
                                  "-torch.sigmoid(near) - torch.sigmoid(-far).sum(dim=-1)"), title="no logarithm",
            says="You add up probabilities. The loss is made of their logarithms."),
    Mistake(SKIP, "squared", edit=("near = (centre * context)", "near = (centre - context).square()"),
            title="a distance for a product",
            says="You compare centre and context by the squares of their differences. The formula has their dot "
                 "product."),
    Mistake(SKIP, "one-minus-sigmoid",
            edit=("F.logsigmoid(-far).sum(dim=-1)", "torch.log(1 - torch.sigmoid(far)).sum(dim=-1)"),
            title="the logarithm of 1 − σ",
            says="You take the logarithm of 1 − σ. On paper that is σ(−z); in float32 σ(17) is 1 already, and the "
                 "logarithm of 0 is −∞."),
    Mistake(SKIP, "epsilon-in-the-logarithm",
            edit=("-F.logsigmoid(near) - F.logsigmoid(-far).sum(dim=-1)",
                  "-torch.log(torch.sigmoid(near) + 1e-8) - torch.log(torch.sigmoid(-far) + 1e-8).sum(dim=-1)"),
            title="a small number added in the logarithm",
            says="You add a small number so that the logarithm stays finite. It also caps the loss: a product of −200 "
                 "then costs no more than one of −20, and has no gradient. F.logsigmoid is finite and right."),
    Mistake(SKIP, "mean-over-all", edit=("losses.mean()", "losses.mean() / (negatives.shape[1] + 1)"),
            title="the mean over all k + 1 words",
            says="You divide by the number of words, k + 1. Within a pair the terms are added up; only the pairs are "
                 "averaged."),
    Mistake(SKIP, "softmax-over-the-words", instead="""
        words = torch.cat([context.unsqueeze(1), negatives], dim=1)
        logits = (words * centre.unsqueeze(1)).sum(dim=-1)
        return -logits.log_softmax(dim=-1)[:, 0].mean()
    """, title="a softmax over neighbour and negatives",
            says="You let the words compete in a softmax, so that only differences of products count. Here each "
                 "word is a question of its own, answered by a sigmoid."),
    Mistake(SKIP, "not-summed", edit=("losses.mean()", "losses"), title="one loss a pair",
            says="You return one loss for each pair, (b,). One number is asked for, their mean."),
    EquivalentMutant(SKIP, "return losses.mean()", "return losses.mean().mT",
        "a single number has no axes to exchange"),
    EquivalentMutant(SKIP, "return losses.mean()", "return losses.mean().squeeze()",
        "a single number has no axes to lose"),
    EquivalentMutant(SKIP, "F.logsigmoid(-far).sum(dim=-1)", "F.logsigmoid(-far).sum(dim=1)",
        "of two axes, the last is axis 1"),
    EquivalentMutant(SKIP, "(centre * context).sum(dim=-1)", "(centre * context).sum(dim=1)",
        "of two axes, the last is axis 1"),
    EquivalentMutant(SKIP, "centre.unsqueeze(1)", "centre.unsqueeze(-2)", "of three axes, both are in the middle"),
    Accepted(SKIP, "softplus", instead="""
        near = torch.einsum("be,be->b", centre, context)
        far = torch.einsum("be,bke->bk", centre, negatives)
        return (F.softplus(-near) + F.softplus(far).sum(1)).mean()
    """),
    Accepted(SKIP, "loops", instead="""
        total = 0.0
        for row in range(len(centre)):
            total = total - F.logsigmoid(centre[row] @ context[row])
            for other in negatives[row]:
                total = total - F.logsigmoid(-(centre[row] @ other))
        return total / len(centre)
    """),
    Accepted(SKIP, "cross-entropy", instead="""
        words = torch.cat([context.unsqueeze(1), negatives], dim=1)
        logits = (words @ centre.unsqueeze(-1)).squeeze(-1)
        truth = torch.zeros_like(logits)
        truth[:, 0] = 1.0
        return F.binary_cross_entropy_with_logits(logits, truth, reduction="sum") / len(logits)
    """),
    Shortcut(SKIP, "finished-part", instead="return finished_parts.skip_gram_loss(centre, context, negatives)"),
    # -------------------------------------------------------------------------------------- read_backwards
    Mistake(BACK, "padding-first", instead="return x.flip(1)", title="the whole row turned",
            says="You turn whole rows round, padding and all: a short sentence then begins with its padding. Each row "
                 "is turned within its own length."),
    Mistake(BACK, "off-by-one", edit=("lengths.unsqueeze(1) - 1 - places", "lengths.unsqueeze(1) - places"),
            title="off by one",
            says="The first place of your result takes the vector at place `length`, one behind the last word. Places "
                 "count from 0."),
    Mistake(BACK, "longest-for-all", edit=("turned = lengths.unsqueeze(1) - 1 - places",
                                           "turned = (lengths.max() - 1 - places).expand(len(x), -1)"),
            title="every row turned by the longest length",
            says="You turn every row by the longest length of the batch. Shorter ones then begin with padding."),
    Mistake(BACK, "padding-turned", edit=("torch.where(turned >= 0, turned, places)", "turned % x.shape[1]"),
            title="the padding turned as well",
            says="The words are right, and the padding behind them is turned round too. It should stay as it was."),
    Mistake(BACK, "padding-zero",
            edit=("return x.gather(1, order.unsqueeze(-1).expand_as(x))",
                  "return x.gather(1, order.unsqueeze(-1).expand_as(x)) * (turned >= 0).unsqueeze(-1)"),
            title="zeros for the padding",
            says="The words are right, and you write zeros where padding stands. What is there should stay: twice "
                 "gives x again."),
    Mistake(BACK, "padding-takes-the-first", edit=("torch.where(turned >= 0, turned, places)", "turned.clamp(min=0)"),
            title="the first word at every padding",
            says="At padding you take the first word. Padding stays where it is."),
    Mistake(BACK, "forwards", idle=True, instead="return x.clone()", title="nothing turned",
            says="You return the rows as they came."),
    Mistake(BACK, "across-the-width", instead="return x.flip(-1)", title="the vectors turned, not the order",
            says="You turn the numbers within each vector. It is the order of the positions, axis 1, that is turned."),
    Mistake(BACK, "in-place", instead="""
        for row, length in enumerate(lengths.tolist()):
            x[row, :length] = x[row, :length].flip(0)
        return x
    """, title="the input changed",
            says="Your result is right, and the caller's own tensor has been turned round with it. Fill a copy."),
    Mistake(BACK, "first-length-for-all", edit=("lengths.unsqueeze(1)", "lengths[:1].unsqueeze(1)"),
            title="every row turned by the first length",
            says="You turn every row by the length of the first. Each has a length of its own."),
    Mistake(BACK, "batch-turned", instead="return x.flip(0)", title="the batch turned, not the positions",
            says="You turn the order of the sentences. It is the positions within each, axis 1, that are turned."),
    Mistake(BACK, "first-stays",
            edit=("lengths.unsqueeze(1) - 1 - places", "(lengths.unsqueeze(1) - places) % lengths.unsqueeze(1)"),
            title="the first word left where it is",
            says="You turn round all but the first word, which stays where it is. It should come last."),
    Mistake(BACK, "one-short", edit=("lengths.unsqueeze(1) - 1 - places", "lengths.unsqueeze(1) - 2 - places"),
            title="the last word left where it is",
            says="You turn round all but the last word, which stays where it is. It should come first."),
    Mistake(BACK, "on-the-cpu", edit=("torch.arange(x.shape[1], device=x.device)", "torch.arange(x.shape[1])"),
            title="places made on the CPU",
            says="Your places are made on the CPU, wherever x is. Tell arange the device: x.device."),
    EquivalentMutant(BACK, "x.gather(1, order.unsqueeze(-1).expand_as(x))",
        "x.gather(-2, order.unsqueeze(-1).expand_as(x))",
          "of three axes, both are in the middle"),
    EquivalentMutant(BACK, "lengths.unsqueeze(1)", "lengths.unsqueeze(-1)", "of two axes, both are the second"),
    Accepted(BACK, "rows", instead="""
        rows = [torch.cat([row[:k].flip(0), row[k:]]) for row, k in zip(x, lengths.tolist())]
        return torch.stack(rows)
    """),
    Accepted(BACK, "indexing", instead="""
        t = torch.arange(x.shape[1], device=x.device)[None]
        end = lengths[:, None]
        source = torch.where(t < end, end - 1 - t, t)
        return x[torch.arange(len(x), device=x.device)[:, None], source]
    """),
    Accepted(BACK, "copy-and-fill", instead="""
        result = x.clone()
        for row in range(len(x)):
            k = int(lengths[row])
            result[row, :k] = x[row, :k].flip(0)
        return result
    """),
    Shortcut(BACK, "finished-part", instead="return finished_parts.read_backwards(x, lengths)"),
    # ------------------------------------------------------------------------------------- BiLanguageModel
    # keras, issues 1431 and 3281: go_backwards returns its outputs in reverse
    Mistake(READERS, "not-turned-back",
            edit=("here = finished_parts.read_backwards(back, lengths)", "here = back"),
            title="the backward outputs not turned back",
            says="The outputs of your backward rail stand in the turned order: beside the first word's forward half "
                 "stands what belongs to the last word. Turn them back before the two are joined."),
    # iliaschalkidis/ELMo-keras, issue 2
    Mistake(READERS, "backward-reads-forward",
            edit=("ahead, back = forward(ahead)[0], backward(back)[0]",
                  "ahead = forward(ahead)[0]\n"
                  "            back = backward(finished_parts.read_backwards(ahead, lengths))[0]"),
            title="the backward rail reads the forward one",
            says="Your backward LSTMs read what the forward ones have made, and so they know both sides. Each rail "
                 "goes on with its own outputs."),
    # ematvey/tensorflow-seq2seq-tutorials, issue 1
    Mistake(READERS, "forward-twice",
            edit=("found.append(torch.cat([ahead, here], dim=-1))", "found.append(torch.cat([ahead, ahead], dim=-1))"),
            title="the forward half joined with itself",
            says="You join the forward half with itself. The second half belongs to the backward rail."),
    Mistake(READERS, "never-turned",
            edit=("ahead, back = x, finished_parts.read_backwards(x, lengths)", "ahead, back = x, x"),
            title="both rails read forwards",
            says="Your backward rail is given the sentence in its own order, so it reads forwards like the other, and "
                 "what it gives is then turned round."),
    Mistake(READERS, "padding-first",
            edit=(("ahead, back = x, finished_parts.read_backwards(x, lengths)", "ahead, back = x, x.flip(1)"),
                  ("here = finished_parts.read_backwards(back, lengths)", "here = back.flip(1)")),
            title="the backward rail begins in the padding",
            says="Your backward rail reads the padding first, and then the words. Turn each row within its length."),
    Mistake(READERS, "turned-again-at-each-layer",
            edit=(("here = finished_parts.read_backwards(back, lengths)",
                   "back = here = finished_parts.read_backwards(back, lengths)"),),
            title="the second backward LSTM reads forwards",
            says="You turn the backward rail back after its first LSTM and go on with that, so the second one reads "
                 "forwards. Turn for the result only, and let the rail stay in the turned order."),
    Mistake(READERS, "stacked-behind-t",
            edit=(("return torch.stack(found, dim=1)", "return torch.stack(found, dim=2)"),),
            title="the layers behind the positions",
            says="You stack the layers behind the positions, (b, t, depth + 1, 2e). Their axis stands behind b."),
    Mistake(READERS, "backward-half-first",
            edit=("found.append(torch.cat([ahead, here], dim=-1))", "found.append(torch.cat([here, ahead], dim=-1))"),
            title="the backward half first",
            says="You put the backward half first. The forward half comes first, in every layer."),
    Mistake(READERS, "crossed-lstms",
            edit=("zip(self.forwards, self.backwards)", "zip(self.backwards, self.forwards)"),
            title="the two readers exchanged",
            says="The LSTMs of `backwards` read forwards in your code, and those of `forwards` backwards."),
    Mistake(READERS, "same-lstm-for-both", edit=("backward(back)[0]", "forward(back)[0]"),
            title="one LSTM for both directions",
            says="The same LSTMs read in both directions. The backward reader has its own, in `self.backwards`."),
    Mistake(READERS, "no-layer-0",
            edit=("found = [torch.cat([x, x], dim=-1)]", "found = []"), title="layer 0 missing",
            says="Your layers begin with the first LSTM. Layer 0, the word's vector twice, comes before."),
    Mistake(READERS, "every-lstm-reads-the-words",
            edit=("forward(ahead)[0], backward(back)[0]",
                  "forward(x)[0], backward(finished_parts.read_backwards(x, lengths))[0]"),
            title="every LSTM reads the words",
            says="Each of your LSTMs reads the words' vectors. The second one reads what the first has made."),
    Mistake(READERS, "added-up",
            edit=("found.append(torch.cat([ahead, here], dim=-1))",
                  "found.append(torch.cat([ahead, here], dim=-1) + found[-1])"),
            title="a residual connection between the layers",
            says="You add what is below to each layer. That is a good idea for deep readers, and not asked for here."),
    Mistake(READERS, "state-carried-over",
            edit=("ahead, back = forward(ahead)[0], backward(back)[0]",
                  "kept = self.__dict__.get('kept', {}).get(forward)\n"
                  "            if kept is not None and kept[0].shape[1] != len(ids):\n"
                  "                kept = None\n"
                  "            ahead, kept = forward(ahead, kept)\n"
                  "            self.__dict__.setdefault('kept', {})[forward] = [one.detach() for one in kept]\n"
                  "            back = backward(back)[0]"),
            title="the state of the last call kept",
            says="Your layers depend on what was read in an earlier call: a state is carried over. The published ELMo "
                 "does this on purpose; here each call starts afresh."),
    Mistake(READERS, "both-asked-for-the-next",
            edit=("self.to_logits(back[:, 1:][pair]), ids[:, :-1][pair]",
                  "self.to_logits(back[:, :-1][pair]), ids[:, 1:][pair]"),
            title="both readers asked for the next word",
            says="You ask the backward reader for the next word, which it has read already. It is asked for the "
                 "previous one."),
    Mistake(READERS, "asked-for-what-it-read",
            edit=(("ahead[:, :-1][pair]), ids[:, 1:][pair]", "ahead[:, 1:][pair]), ids[:, 1:][pair]"),
                  ("back[:, 1:][pair]), ids[:, :-1][pair]", "back[:, :-1][pair]), ids[:, :-1][pair]")),
            title="asked for the word just read",
            says="You ask each reader for the word at its own position, which it has just read. It is asked for the "
                 "word beside it, on the side that it has not seen."),
    Mistake(READERS, "padding-counted",
            edit=("pair = padding_mask(lengths, ids.shape[1])[:, 0, 1:]", "pair = torch.ones_like(ids[:, 1:]) > 0"),
            title="padding asked for as well",
            says="Your loss asks for padding too, and counts what was read in it. Only pairs of words count: where the "
                 "later of the two places holds a word."),
    Mistake(READERS, "one-pair-too-many",
            edit=("padding_mask(lengths, ids.shape[1])[:, 0, 1:]", "padding_mask(lengths, ids.shape[1])[:, 0, :-1]"),
            title="the first padding counted",
            says="Your loss counts one pair too many in short texts: the last word and the padding behind it. The "
                 "*later* of the two places has to hold a word."),
    Mistake(READERS, "first-layer-asked", edit=("self.layers(ids, lengths)[:, -1]", "self.layers(ids, lengths)[:, 1]"),
            title="the first LSTM asked",
            says="You ask the vectors of layer 1. The last layer makes the prediction."),
    Mistake(READERS, "the-sum", edit=("return (following + preceding) / 2", "return following + preceding"),
            title="the sum of the two directions",
            says="You add the losses of the two directions. The mean over all words that are asked for is half of it."),
    Mistake(READERS, "forward-only", edit=("return (following + preceding) / 2", "return following"),
            title="the forward reader only",
            says="Your loss holds the forward reader only, so the backward one never learns."),
    Mistake(READERS, "backward-only", edit=("return (following + preceding) / 2", "return preceding"),
            title="the backward reader only",
            says="Your loss holds the backward reader only, so the forward one never learns."),
    Mistake(READERS, "halves-exchanged",
            edit=("ahead, back = self.layers(ids, lengths)", "back, ahead = self.layers(ids, lengths)"),
            title="the halves exchanged in the loss",
            says="In your loss the backward half is asked for the next word and the forward half for the previous:"
                 " each for what it has read."),
    Mistake(READERS, "mean-of-sentences", instead=("", """
        ahead, back = self.layers(ids, lengths)[:, -1].chunk(2, dim=-1)
        parts = []
        for row, k in enumerate(lengths.tolist()):
            if k > 1:
                parts.append(F.cross_entropy(self.to_logits(ahead[row, : k - 1]), ids[row, 1:k]))
                parts.append(F.cross_entropy(self.to_logits(back[row, 1:k]), ids[row, : k - 1]))
        return torch.stack(parts).mean()
    """), title="a mean of means",
            says="You take the mean of each sentence first, and then the mean of those: a word of a short sentence"
                 " then counts more. Every word that is asked for counts alike."),
    EquivalentMutant(READERS, "return (following + preceding) / 2", "return ((following + preceding) / 2).mT",
          "a single number has no axes to exchange"),
    EquivalentMutant(READERS, "return (following + preceding) / 2", "return ((following + preceding) / 2).squeeze()",
          "a single number has no axes to lose"),
    Accepted(READERS, "packed", instead=("""
        x = self.tokens(ids)
        real = torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(1)
        ahead, back = x, finished_parts.read_backwards(x, lengths)
        rows = [torch.cat([x, x], dim=2)]
        for k in range(len(self.forwards)):
            ahead = self.forwards[k](ahead)[0] * real.unsqueeze(-1)
            back = self.backwards[k](back)[0] * real.unsqueeze(-1)
            rows.append(torch.cat([ahead, finished_parts.read_backwards(back, lengths)], dim=2))
        return torch.stack(rows, 1)
    """, "")),
    Accepted(READERS, "one-sum-over-both", instead=("", """
        top = self.layers(ids, lengths)[:, -1]
        e = top.shape[-1] // 2
        t = ids.shape[1]
        places = torch.arange(1, t, device=ids.device)
        real = places < lengths[:, None]
        first = F.cross_entropy(self.to_logits(top[:, :-1, :e]).transpose(1, 2), ids[:, 1:], reduction="none")
        second = F.cross_entropy(self.to_logits(top[:, 1:, e:]).transpose(1, 2), ids[:, :-1], reduction="none")
        return ((first + second) * real).sum() / (2 * real.sum())
    """)),
    Accepted(READERS, "sentence-by-sentence", instead=("""
        result = []
        for row, k in zip(ids, lengths.tolist()):
            x = self.tokens(row[:k]).unsqueeze(0)
            ahead, back, found = x, x.flip(1), [torch.cat([x, x], -1)]
            for one, other in zip(self.forwards, self.backwards):
                ahead, back = one(ahead)[0], other(back)[0]
                found.append(torch.cat([ahead, back.flip(1)], -1))
            result.append(F.pad(torch.cat(found), (0, 0, 0, len(row) - k)))
        return torch.stack(result)
    """, "")),
    # -------------------------------------------------------------------------------------------- LayerMix
    Mistake(MIX, "no-softmax", edit=("torch.softmax(self.raw, dim=0)", "self.raw"), title="the raw numbers as shares",
            says="You weigh the layers with the raw numbers. Their softmax makes shares that are positive and add up "
                 "to 1."),
    Mistake(MIX, "gamma-inside",
            edit=(("torch.softmax(self.raw, dim=0)", "torch.softmax(self.gamma * self.raw, dim=0)"),
                                       ("return self.gamma * torch", "return torch")),
            title="γ inside the softmax",
            says="Your γ stands inside the softmax, where it makes the shares sharper. It multiplies the finished "
                 "mix."),
    Mistake(MIX, "no-gamma", edit=("return self.gamma * torch", "return torch"), title="γ is not used",
            says="γ is not used: the mix is not scaled."),
    Mistake(MIX, "top-layer-only", edit=('torch.einsum("j,bjtw->btw", shares, layers)', "layers[:, -1]"),
            title="the last layer only",
            says="You return the last layer, times γ. All of the layers are mixed."),
    Mistake(MIX, "plain-mean", edit=('torch.einsum("j,bjtw->btw", shares, layers)', "layers.mean(dim=1)"),
            title="the plain mean of the layers",
            says="You take the plain mean. That is how the mix starts; then the shares are learned."),
    Mistake(MIX, "softmax-over-the-layers",
            edit=('torch.einsum("j,bjtw->btw", shares, layers)',
                  "(torch.softmax(self.raw[:, None, None] * layers, dim=1) * layers).sum(1)"),
            title="a softmax of the layers' numbers",
            says="Your softmax runs over the layers' own numbers, so every entry has shares of its own. The shares "
                 "depend on `raw` alone: three numbers for all positions."),
    Mistake(MIX, "starts-at-ones", edit=("torch.zeros(count)", "torch.randn(count)"), title="a random start",
            says="Your raw numbers are random at the start. With zeros all layers have the same share."),
    Mistake(MIX, "gamma-starts-at-zero", edit=("torch.tensor(1.0)", "torch.tensor(0.0)"), title="γ starts at 0",
            says="Your γ starts at 0, so that the mix returns zeros and `raw` gets no gradient. It starts at 1."),
    Mistake(MIX, "buffers",
            edit=("nn.Parameter(torch.zeros(count))", "torch.zeros(count)"), title="nothing to be learned",
            says="Your `raw` is a plain tensor, which no optimiser finds. nn.Parameter makes it one that is learned."),
    Mistake(MIX, "exp-only",
            edit=("torch.softmax(self.raw, dim=0)", "torch.exp(self.raw)"), title="shares that do not add up to 1",
            says="You take exp of the raw numbers and do not divide by their sum."),
    Mistake(MIX, "mean-of-the-shared", edit=('torch.einsum("j,bjtw->btw", shares, layers)',
                                             'torch.einsum("j,bjtw->btw", shares, layers) / len(shares)'),
            title="divided by the count as well",
            says="You weigh the layers with their shares and divide by their count as well. Shares add up to 1 "
                 "already."),
    Mistake(MIX, "sigmoid",
            edit=("torch.softmax(self.raw, dim=0)", "torch.sigmoid(self.raw)"), title="a sigmoid for the softmax",
            says="You take a sigmoid of each raw number. Then the shares do not add up to 1."),
    Mistake(MIX, "shares-detached", edit=("torch.softmax(self.raw, dim=0)", "torch.softmax(self.raw.detach(), dim=0)"),
            title="the shares cannot learn",
            says="Your shares are cut off from `raw`: no gradient reaches it, so they stay as they are."),
    Mistake(MIX, "wrong-axis",
            edit=('torch.einsum("j,bjtw->btw", shares, layers)', "(shares * layers.transpose(1, -1)).sum(-1)"),
            title="the wrong axis left over",
            says="Your sum runs over the layers, but the axes of the result are in another order. (b, t, w) is "
                 "wanted."),
    EquivalentMutant(MIX, "torch.softmax(self.raw, dim=0)", "torch.softmax(self.raw, dim=-1)", "it has one axis"),
    Accepted(MIX, "broadcast", instead=("""
        self.gamma = nn.Parameter(torch.ones(()))
        self.raw = nn.Parameter(torch.zeros(count))
    """, """
        powers = self.raw.exp()
        shares = (powers / powers.sum())[:, None, None]
        return (self.gamma * shares * layers).sum(dim=1)
    """)),
    Accepted(MIX, "loop", instead=("", """
        mixed = 0
        for j, share in enumerate(self.raw.softmax(-1)):
            mixed = mixed + share * layers[:, j]
        return mixed * self.gamma
    """)),
    Shortcut(MIX, "finished-part", instead=("", "return finished_parts.LayerMix.forward(self, layers)")),
    # ------------------------------------------------------------------------------------- sentence_vector
    # yunjey/pytorch-tutorial, bidirectional_recurrent_neural_network
    Mistake(VECTOR, "last-column", instead="return outputs[:, -1]", title="the last column for both halves",
            says="You take the last column for both halves. There the backward half has read one word at most, and for "
                 "short sentences it is padding."),
    Mistake(VECTOR, "last-word-for-both", edit=("first = outputs[:, 0, e:]", "first = outputs[rows, lengths - 1, e:]"),
            title="the last word for both halves",
            says="You take both halves at the last word. The backward half begins there and has read one word; it has "
                 "read everything at the first."),
    Mistake(VECTOR, "padding",
            edit=("outputs[rows, lengths - 1, :e]", "outputs[:, -1, :e]"), title="the last column, padding",
            says="Your forward half is taken at the last column, which is padding in all but the longest sentence."),
    Mistake(VECTOR, "first-word-for-both", edit=("outputs[rows, lengths - 1, :e]", "outputs[:, 0, :e]"),
            title="the first word for both halves",
            says="You take both halves at the first word, where the forward half has read only that."),
    Mistake(VECTOR, "off-by-one", edit=("lengths - 1", "lengths - 2"), title="the last word but one",
            says="Your forward half stands at the last word but one. With places from 0, the last is at length − 1."),
    Mistake(VECTOR, "halves-exchanged", edit=("return torch.cat([last, first]", "return torch.cat([first, last]"),
            title="the backward half first", says="You put the backward half first. The forward half comes first."),
    Mistake(VECTOR, "mean", instead="return outputs.mean(dim=1)", title="a mean over all places",
            says="You take a mean over all places. Asked for is what each direction has when it has read everything."),
    Mistake(VECTOR, "longest-for-all", edit=("outputs[rows, lengths - 1, :e]", "outputs[:, lengths.max() - 1, :e]"),
            title="the longest length for all",
            says="You take the forward half where the *longest* sentence ends. Each sentence ends at a place of "
                 "its own."),
    Mistake(VECTOR, "maximum", instead="return outputs.amax(dim=1)", title="a maximum over all places",
            says="You take the maximum over all places, padding included. Asked for is what each direction has when it "
                 "has read everything."),
    Mistake(VECTOR, "one-too-far",
            edit=("outputs[rows, lengths - 1, :e]", "outputs[rows, lengths.clamp(max=outputs.shape[1] - 1), :e]"),
            title="one place behind the last word",
            says="Your forward half stands one place behind the last word, which is padding in most sentences. With "
                 "places from 0, the last word is at length − 1."),
    Mistake(VECTOR, "backward-in-the-last-column", edit=("outputs[:, 0, e:]", "outputs[:, -1, e:]"),
            title="the backward half in the last column",
            says="Your backward half stands in the last column, where it has read one word at most. It has read "
                 "everything at the first word."),
    Mistake(VECTOR, "added", edit=("torch.cat([last, first], dim=-1)", "last + first"), title="the halves added",
            says="You add the two halves, (b, e). They stand side by side, (b, 2e)."),
    Mistake(VECTOR, "wrong-halves",
            edit=(("lengths - 1, :e]", "lengths - 1, e:]"), ("outputs[:, 0, e:]", "outputs[:, 0, :e]")),
            title="each half taken from the other direction",
            says="You take the backward half at the last word and the forward half at the first: each where it has"
                 " read one word."),
    EquivalentMutant(VECTOR, "torch.cat([last, first], dim=-1)", "torch.cat([last, first], dim=1)",
          "of two axes, the last is axis 1"),
    EquivalentMutant(VECTOR, "torch.arange(len(outputs), device=outputs.device)", "torch.arange(len(outputs))",
          "an index on the CPU picks from a tensor on any device"),
    Accepted(VECTOR, "gather", instead="""
        forward, backward = outputs.chunk(2, dim=-1)
        place = (lengths - 1).view(-1, 1, 1).expand(-1, 1, forward.shape[-1])
        return torch.cat([forward.gather(1, place).squeeze(1), backward[:, 0]], dim=1)
    """),
    Accepted(VECTOR, "loop", instead="""
        half = outputs.shape[2] // 2
        rows = []
        for sentence, k in zip(outputs, lengths.tolist()):
            rows.append(torch.cat([sentence[k - 1][:half], sentence[0][half:]]))
        return torch.stack(rows)
    """),
    Shortcut(VECTOR, "finished-part", instead="return finished_parts.sentence_vector(outputs, lengths)"),
    # ------------------------------------------------------------------------------------- additive_scores
    # keon/seq2seq, model.py, issue 3
    Mistake(ADDITIVE, "unchanged", instead="return (ours + theirs) @ v", title="no tanh between the sum and v",
            says="Without anything bent in between, the state's share of a score is the same for every j, and the "
                 "softmax drops it: the decoder cannot steer. The formula has a function between the sum and v."),
    Mistake(ADDITIVE, "tanh-after", instead="return torch.tanh((ours + theirs) @ v)", title="the tanh after v",
            says="You bend the finished score. Scores then lie between −1 and 1, and the sum under it is not bent. The "
                 "tanh stands before v."),
    Mistake(ADDITIVE, "tanh-apart", instead="return (torch.tanh(ours) + torch.tanh(theirs)) @ v",
            title="each side bent by itself",
            says="You bend each side by itself and add then: the state's share is again the same for every j. The tanh "
                 "is taken of the sum."),
    Mistake(ADDITIVE, "tanh-of-the-memory", instead="return (ours + torch.tanh(theirs)) @ v",
            title="only the memory bent",
            says="You bend the memory's side only, so the state's share of a score is still the same for every j."),
    Mistake(ADDITIVE, "tanh-of-the-state", instead="return (torch.tanh(ours) + theirs) @ v",
            title="only the state bent",
            says="You bend the state's side only, and its share of a score is still the same for every j."),
    Mistake(ADDITIVE, "softmax", instead="return (torch.tanh(ours + theirs) @ v).softmax(dim=-1)",
            title="a softmax inside",
            says="You return weights. These are the scores; the softmax comes later, with the mask."),
    Mistake(ADDITIVE, "relu", instead="return torch.relu(ours + theirs) @ v", title="ReLU for tanh",
            says="You bend with a ReLU. The decoder can steer with that; the formula has a tanh."),
    Mistake(ADDITIVE, "sigmoid", instead="return torch.sigmoid(ours + theirs) @ v", title="sigmoid for tanh",
            says="You bend with a sigmoid. The decoder can steer with that; the formula has a tanh."),
    Mistake(ADDITIVE, "product", instead="return torch.tanh(ours * theirs) @ v", title="a product for the sum",
            says="You multiply the two sides. They are added."),
    Mistake(ADDITIVE, "plain-product", instead="return (ours * theirs) @ v", title="a product and no tanh",
            says="You multiply the two sides. With that the decoder can steer; but the formula adds them and bends the "
                 "sum."),
    Mistake(ADDITIVE, "memory-only", instead="return torch.tanh(theirs) @ v", title="the state left out",
            says="Your scores look at the memory only, so they are the same at every step of the decoder."),
    Mistake(ADDITIVE, "difference", instead="return torch.tanh(ours - theirs) @ v", title="a difference for the sum",
            says="You subtract the memory's side. The two are added."),
    Mistake(ADDITIVE, "without-v", instead="return torch.tanh(ours + theirs).sum(dim=-1)", title="v left out",
            says="You add up the a numbers. v weighs them."),
    Mistake(ADDITIVE, "scaled", instead="return torch.tanh(ours + theirs) @ v / len(v) ** 0.5", title="divided by √a",
            says="You divide by a root, as scaled dot products do. Additive scores are not divided."),
    Accepted(ADDITIVE, "einsum", instead='return torch.einsum("bta,a->bt", (theirs + ours).tanh(), v)'),
    Accepted(ADDITIVE, "sum", instead="return (torch.tanh(theirs + ours) * v).sum(dim=2)"),
    Accepted(ADDITIVE, "from-the-start", instead="""
        scores = []
        for j in range(memory.shape[1]):
            scores.append((s @ w_s + memory[:, j] @ w_h).tanh() @ v)
        return torch.stack(scores, dim=1)
    """),
    Shortcut(ADDITIVE, "finished-part", instead="return finished_parts.additive_scores(s, memory, w_s, w_h, v)"),
    # -------------------------------------------------------------------------------------- general_scores
    Mistake(GENERAL, "w-turned", edit=("s @ w.T", "s @ (w if w.shape[0] == w.shape[1] else w.T)"),
            title="Wᵀ for W where both are square",
            says="Where state and memory are equally wide you take s W for W s. That is the transposed matrix; shapes "
                 "show it only where the widths differ."),
    Mistake(GENERAL, "softmax", edit=(".squeeze(-1)", ".squeeze(-1).softmax(dim=-1)"), title="a softmax inside",
            says="You return weights. These are the scores; the softmax comes later."),
    Mistake(GENERAL, "scaled", edit=("s @ w.T", "s @ w.T / memory.shape[-1] ** 0.5"), title="divided by √m",
            says="You divide by the root of the memory's width. The formula of 2015 does not divide; that came in "
                 "2017."),
    Mistake(GENERAL, "scaled-by-d", edit=("s @ w.T", "s @ w.T / s.shape[-1] ** 0.5"), title="divided by √d",
            says="You divide by the root of the state's width. The formula of 2015 does not divide; that came in "
                 "2017."),
    Mistake(GENERAL, "tanh", edit=(".squeeze(-1)", ".squeeze(-1).tanh()"), title="a tanh",
            says="You bend the scores with a tanh. General scores are a plain product."),
    Mistake(GENERAL, "first-state-for-all", edit=("s @ w.T", "(s @ w.T)[:1].expand(len(s), -1)"),
            title="one state for the whole batch",
            says="You compare every memory with the first state of the batch. Each row has a state of its own."),
    Mistake(GENERAL, "not-squeezed", edit=(".squeeze(-1)", ""), title="an axis of length 1 left",
            says="Your result is (b, t, 1). Scores are (b, t)."),
    Mistake(GENERAL, "mean", edit=("s @ w.T", "s @ w.T / memory.shape[-1]"), title="divided by m",
            says="You take a mean over the width of the memory. A dot product is a sum."),
    Mistake(GENERAL, "minus", edit=("s @ w.T", "-s @ w.T"), title="the sign turned round",
            says="Your scores are the right ones with the sign turned round: what fits best gets the least weight."),
    Mistake(GENERAL, "cosine", instead="""
        return F.cosine_similarity(memory @ w, s.unsqueeze(1), dim=-1)
    """, title="a cosine for a product",
            says="You divide by the lengths of both sides. The score is the plain product: a longer vector may speak "
                 "louder."),
    Mistake(GENERAL, "all-states", edit=("s @ w.T", "(s @ w.T).sum(dim=0, keepdim=True).expand(len(s), -1)"),
            title="the states of the whole batch added up",
            says="You compare every memory with the sum of all states of the batch. Each row has a state of its own."),
    Mistake(GENERAL, "distance", instead="return -(memory - (s @ w.T).unsqueeze(1)).square().sum(dim=-1)",
            title="a distance for a product",
            says="You compare by distance. The score is a product."),
    Accepted(GENERAL, "einsum", instead='return torch.einsum("btm,md,bd->bt", memory, w, s)'),
    Accepted(GENERAL, "memory-first", instead="""
        keys = memory @ w
        return (keys * s.unsqueeze(1)).sum(dim=-1)
    """),
    Accepted(GENERAL, "loops", instead="""
        rows = [[h @ w @ state for h in sentence] for sentence, state in zip(memory, s)]
        return torch.stack([torch.stack(row) for row in rows])
    """),
    Shortcut(GENERAL, "finished-part", instead="return finished_parts.general_scores(s, memory, w)"),
    # ------------------------------------------------------------------------------------ AttentiveDecoder
    Mistake(DECODER, "padding-not-masked", edit=("masked_softmax(scores, mask)", "torch.softmax(scores, dim=-1)"),
            title="padding not masked",
            says="Your softmax gives weight to padding. The mask says which places hold words."),
    # PetrochukM/PyTorch-NLP, issue 2
    Mistake(DECODER, "softmax-over-the-batch",
            edit=("masked_softmax(scores, mask)", "torch.softmax(scores.masked_fill(~mask, -1e9), dim=0)"),
            title="the softmax over the batch",
            says="Your softmax runs over the batch: the sentences compete with one another, and a sentence alone "
                 "gets a weight of 1 everywhere. It runs over the places of one sentence."),
    # pytorch/tutorials, issues 87 and 1098
    Mistake(DECODER, "never-looks",
            edit=("finished_parts.additive_scores(s, memory, self.w_s, self.w_h, self.v)",
                  "finished_parts.additive_scores(s, torch.zeros_like(memory), self.w_s, self.w_h, self.v)"),
            title="scores that do not look at the memory",
            says="Your scores do not depend on the memory, so all words of a sentence get the same weight. They "
                 "compare the state with each of its vectors."),
    Mistake(DECODER, "context-of-the-new-state", instead="""
        first = finished_parts.additive_scores(s, memory, self.w_s, self.w_h, self.v)
        c = (masked_softmax(first, mask).unsqueeze(-1) * memory).sum(dim=1)
        s = self.cell(torch.cat([self.tokens(y), c], dim=-1), s)
        scores = finished_parts.additive_scores(s, memory, self.w_s, self.w_h, self.v)
        weights = masked_softmax(scores, mask)
        c = (weights.unsqueeze(-1) * memory).sum(dim=1)
        return self.to_logits(torch.cat([s, c], dim=-1)), s, weights
    """, title="the context of the new state",
            says="The context in your logits is chosen by the new state. That is the order of Luong et al.; with "
                 "Bahdanau et al. the old state chooses, once, for the state and for the logits."),
    Mistake(DECODER, "context-left-out-of-the-logits",
            edit=("torch.cat([s, c], dim=-1)), s, weights", "torch.cat([s, torch.zeros_like(c)], dim=-1)), s, weights"),
            title="no context in the logits",
            says="The context plays no part in your logits. They come from the new state and the context."),
    Mistake(DECODER, "context-left-out-of-the-cell",
            edit=("torch.cat([self.tokens(y), c], dim=-1)", "torch.cat([self.tokens(y), torch.zeros_like(c)], dim=-1)"),
            title="no context in the cell",
            says="Your GRU cell gets no context. It reads the token and the context side by side."),
    Mistake(DECODER, "same-context-always",
            edit=("c = (weights.unsqueeze(-1) * memory).sum(dim=1)",
                  "c = (memory * mask.unsqueeze(-1)).sum(dim=1) / mask.sum(dim=1, keepdim=True)"),
            title="the same context for every step",
            says="Your context is the plain mean of the words, the same at every step. The weights are there to "
                 "choose."),
    Mistake(DECODER, "logits-of-the-old-state", instead="""
        scores = finished_parts.additive_scores(s, memory, self.w_s, self.w_h, self.v)
        weights = masked_softmax(scores, mask)
        c = (weights.unsqueeze(-1) * memory).sum(dim=1)
        logits = self.to_logits(torch.cat([s, c], dim=-1))
        return logits, self.cell(torch.cat([self.tokens(y), c], dim=-1), s), weights
    """, title="logits of the old state",
            says="Your logits are made of the old state, which does not know the token before. The new one does."),
    Mistake(DECODER, "scores-returned", edit=("), s, weights", "), s, scores"), title="scores for weights",
            says="You return the scores. The weights are asked for."),
    Mistake(DECODER, "old-state-returned",
            edit=(("s = self.cell(", "new = self.cell("), ("torch.cat([s, c], dim=-1)), s, weights",
                                                          "torch.cat([new, c], dim=-1)), s, weights")),
            title="the old state returned",
            says="You return the state that came in. The next step needs the new one."),
    Mistake(DECODER, "context-before-token",
            edit=("torch.cat([self.tokens(y), c], dim=-1)", "torch.cat([c, self.tokens(y)], dim=-1)"),
            title="context and token exchanged",
            says="Your cell gets the context first and the token behind it. The card has them the other way round."),
    Mistake(DECODER, "state-behind-context", edit=("torch.cat([s, c], dim=-1))", "torch.cat([c, s], dim=-1))"),
            title="state and context exchanged in the logits",
            says="Your logits get the context first and the state behind it. The card has them the other way round."),
    Mistake(DECODER, "clear-afterwards",
            edit=("masked_softmax(scores, mask)", "torch.softmax(scores, dim=-1) * mask"),
            title="the mask after the softmax",
            says="You clear the weights of padding after the softmax, and what is left does not add up to 1."),
    Mistake(DECODER, "zero-for-padding", edit=("masked_softmax(scores, mask)", "torch.softmax(scores * mask, dim=-1)"),
            title="a score of 0 for padding",
            says="You give padding a score of 0, which is a score like any other. What must get no weight is left out "
                 "of the softmax."),
    Mistake(DECODER, "mean-of-the-weighted",
            edit=("(weights.unsqueeze(-1) * memory).sum(dim=1)", "(weights.unsqueeze(-1) * memory).mean(dim=1)"),
            title="the weighted vectors averaged",
            says="You take the mean of the weighted vectors, which divides by t once more. The weights add up to 1 "
                 "already: the context is the sum."),
    Mistake(DECODER, "mask-turned", edit=("masked_softmax(scores, mask)", "masked_softmax(scores, ~mask)"),
            title="the mask the wrong way round",
            says="You look at the padding and hide the words. True means \"may look\"."),
    Mistake(DECODER, "softmaxed-logits",
            edit=("return self.to_logits(torch.cat([s, c], dim=-1)), s",
                  "return self.to_logits(torch.cat([s, c], dim=-1)).softmax(-1), s"),
            title="probabilities for logits",
            says="You return probabilities. Logits are asked for; the loss takes their softmax itself."),
    Mistake(DECODER, "hardest-choice",
            edit=("c = (weights.unsqueeze(-1) * memory).sum(dim=1)",
                  "c = memory[torch.arange(len(memory), device=y.device), weights.argmax(dim=-1)]"),
            title="only the largest weight",
            says="Your context is the one vector with the largest weight. It is the sum of all, each with its "
                 "weight: a choice of one has no gradient for the scores."),
    EquivalentMutant(DECODER, "torch.cat([s, c], dim=-1)", "torch.cat([s, c], dim=1)",
        "of two axes, the last is axis 1"),
    EquivalentMutant(DECODER, "torch.cat([self.tokens(y), c], dim=-1)", "torch.cat([self.tokens(y), c], dim=1)",
          "of two axes, the last is axis 1"),
    EquivalentMutant(DECODER, "(weights.unsqueeze(-1) * memory).sum(dim=1)",
        "(weights.unsqueeze(-1) * memory).sum(dim=-2)",
          "of three axes, both are in the middle"),
    Accepted(DECODER, "einsum", instead="""
        scores = torch.tanh((s @ self.w_s)[:, None] + memory @ self.w_h) @ self.v
        weights = scores.masked_fill(~mask, -1e9).softmax(dim=1)
        context = torch.einsum("bt,btm->bm", weights, memory)
        state = self.cell(torch.cat((self.tokens(y), context), 1), s)
        return self.to_logits(torch.cat((state, context), 1)), state, weights
    """),
    Accepted(DECODER, "bmm", instead="""
        scores = finished_parts.additive_scores(s, memory, self.w_s, self.w_h, self.v)
        weights = F.softmax(scores.masked_fill(mask.logical_not(), float("-inf")), dim=-1)
        c = torch.bmm(weights.unsqueeze(1), memory)[:, 0]
        s = self.cell(torch.hstack([self.tokens(y), c]), s)
        return self.to_logits(torch.hstack([s, c])), s, weights
    """),
    Shortcut(DECODER, "finished-part",
             instead="return finished_parts.AttentiveDecoder.step(self, y, s, memory, mask)"),
]
