"""What students get wrong in lesson 9, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

BATCH, MODEL, HEAT, TOP_P, GENERATE, WINDOWS, SLIDING = (
    "sample_batch",
    "CharTransformer",
    "apply_temperature",
    "keep_top_p",
    "generate",
    "bits_of_windows",
    "sliding_window_bits",
)

LOOP = """
    training = model.training
    model.eval()
    tokens = prompt
    for _ in range(count):
        logits = finished_temperature(model(tokens[:, -model.t_max:])[:, -1], temperature)
        logits = logits if top_k is None else finished_top_k(logits, top_k)
        logits = logits if top_p is None else finished_top_p(logits, top_p)
        {draw}
        tokens = torch.cat([tokens, drawn], dim=1)
    model.train(training)
    return tokens[:, prompt.shape[1]:]
"""

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # --------------------------------------------------------------------------------------- sample_batch
    Mistake(BATCH, "last-start-missing", edit=("len(data) - t, (batch,)", "max(1, len(data) - t - 1), (batch,)"),
            title="the last start is never drawn",
            says="The last slice of the text never comes up: your starts end one too early. `torch.randint` leaves its "
                 "upper end out already; a slice that begins at len(data) − t − 1 ends with the very last byte."),
    Mistake(BATCH, "first-start-missing",
            edit=("starts = torch.randint(len(data) - t, (batch,), generator=generator)",
                  "starts = torch.randint(min(1, len(data) - t - 1), len(data) - t, (batch,), generator=generator)"),
            title="the first start is never drawn",
            says="No slice of yours begins at the first byte of the text."),
    Mistake(BATCH, "start-too-late",
            edit=("torch.randint(len(data) - t, (batch,)", "torch.randint(len(data) - t + 1, (batch,)"),
            title="a start from which the slice runs off the end",
            says="Now and then a slice begins so late that its last byte lies beyond the end of the text. A slice is t "
                 "+ 1 bytes long, one more than t: count again from where it may begin."),
    Mistake(BATCH, "not-shifted", edit=("slices[:, 1:]", "slices[:, :-1]"), title="targets are the inputs themselves",
            says="Input and target are the same bytes. The model would learn to copy what it sees, with a splendid "
                 "loss. The target is the *next* byte: one position later."),
    Mistake(BATCH, "shifted-backwards",
            edit=("return slices[:, :-1], slices[:, 1:]", "return slices[:, 1:], slices[:, :-1]"),
            title="targets are the bytes before",
            says="Your target is the byte *before* the input, which the model has just read. Predicting the past is "
                 "easy. Which of the two parts is the later one?"),
    Mistake(BATCH, "two-ahead",
            edit=("return slices[:, :-1], slices[:, 1:]", "return slices[:, :-1], slices.roll(-2, dims=1)[:, :-1]"),
            title="targets two bytes ahead",
            says="Your targets are two positions after the inputs. One."),
    Mistake(BATCH, "bytes", edit=("data[places].long()", "data[places]"), title="bytes that stay uint8",
            says="The numbers are right, and their type is not: you return uint8, as the data has it. An embedding and "
                 "a cross-entropy want int64."),
    Mistake(BATCH, "generator-ignored", edit=(", generator=generator)", ")"), title="the generator is not used",
            says="You take a generator and draw without it, so the same seed gives another batch each time. Hand it on "
                 "to the function that draws."),
    Mistake(BATCH, "one-start", edit=("(batch,)", "(1,)"), title="one start for the whole batch",
            says="You draw one start. Each row of the batch needs a start of its own."),
    Mistake(BATCH, "same-row", edit=("(batch,), generator=generator)", "(1,), generator=generator).expand(batch)"),
            title="the same slice in every row",
            says="All rows of your batch are the same slice: the start is drawn once, and not once for each row."),
    Mistake(BATCH, "in-a-row",
            edit=("torch.randint(len(data) - t, (batch,), generator=generator)",
                  "torch.arange(batch) * t % (len(data) - t)"), title="slices in a row instead of random ones",
            says="Your slices follow each other in the text, and each batch is the same. Draw where they begin."),
    Mistake(BATCH, "on-a-grid",
            edit=("torch.randint(len(data) - t, (batch,), generator=generator)",
                  "t * torch.randint((len(data) - 1) // t, (batch,), generator=generator)"),
            title="starts at multiples of t only",
            says="Your slices begin at multiples of t only, so a byte is always asked for at the same place of its "
                 "window. Any byte may be the first of a slice."),
    Mistake(BATCH, "last-target-only", edit=("slices[:, 1:]", "slices[:, -1]"), title="one target for each slice",
            says="You return one target for each slice, the byte after its end. Every position is a question: t "
                 "inputs, t targets."),
    Mistake(BATCH, "no-slice-twice",
            edit=("torch.randint(len(data) - t, (batch,), generator=generator)",
                  "torch.randperm(len(data) - t, generator=generator)[:batch]"),
            title="drawn without putting back",
            says="No slice comes twice in a batch of yours, and where the batch is larger than the number of slices, "
                 "rows are missing. Each row is drawn for itself, whatever the others are."),
    Mistake(BATCH, "neighbours",
            edit=("torch.randint(len(data) - t, (batch,), generator=generator)",
                  "(torch.randint(len(data) - t, (1,), generator=generator) + torch.arange(batch)) % (len(data) - t)"),
            title="one start drawn, the other rows follow it",
            says="You draw one start, and the other rows of the batch follow from it. Each row needs a start of its "
                 "own."),
    Mistake(BATCH, "own-seed",
            edit=("    starts = torch.randint(len(data) - t, (batch,), generator=generator)",
                  "    chance = torch.Generator().manual_seed(0)\n"
                  "    starts = torch.randint(len(data) - t, (batch,), generator=chance)"),
            title="the same seed every time",
            says="You set a seed of your own, so every batch is the same, whatever generator comes in. Draw with the "
                 "generator that is given."),
    Mistake(BATCH, "last-target-rolled", edit=("slices[:, 1:]", "slices[:, :-1].roll(-1, dims=1)"),
            title="the last target is the slice's first byte",
            says="All of your targets are right but the last of each row, which is the first byte of its own input. "
                 "The byte after the last input stands in the text: a slice of t + 1 bytes holds it."),
    Accepted(BATCH, "slice-by-slice", instead="""
        starts = torch.randint(0, len(data) - t, (batch,), generator=generator).tolist()
        inputs = torch.stack([data[s:s + t] for s in starts])
        targets = torch.stack([data[s + 1:s + 1 + t] for s in starts])
        return inputs.long(), targets.to(torch.int64)
    """),
    Accepted(BATCH, "unfold", instead="""
        windows = data.unfold(0, t + 1, 1)
        rows = windows[torch.randint(len(windows), (batch,), generator=generator)].to(torch.int64)
        return rows[:, :t], rows[:, 1:]
    """),
    EquivalentMutant(BATCH, "starts.unsqueeze(1)", "starts.unsqueeze(-1)", "starts have one axis"),
    Accepted(BATCH, "rand-and-floor",
         edit=("torch.randint(len(data) - t, (batch,), generator=generator)",
               "(torch.rand(batch, generator=generator) * (len(data) - t)).long()")),
    # ------------------------------------------------------------------------------------ CharTransformer
    Mistake(MODEL, "no-mask",
            edit=("self.transformer(x, causal_mask(ids.shape[1], ids.device))", "self.transformer(x)"), title="no mask",
            says="Every position sees all others, the next byte included, which is the one it has to guess. Training "
                 "would look wonderful. `Transformer` takes a mask as its second argument."),
    Mistake(MODEL, "mask-upside-down",
            edit=("causal_mask(ids.shape[1], ids.device)", "causal_mask(ids.shape[1], ids.device).T"),
            title="the triangle upside down",
            says="Your positions see the future and not the past. True means *may look*, and position i may look at j "
                 "≤ i."),
    Mistake(MODEL, "mask-inverted",
            edit=("causal_mask(ids.shape[1], ids.device)", "~causal_mask(ids.shape[1], ids.device)"),
            title="True and False exchanged in the mask",
            says="You hand the mask on inverted. In this course True means *may look*; `causal_mask` is made so "
                 "already."),
    Mistake(MODEL, "mask-of-t-max",
            edit=("causal_mask(ids.shape[1], ids.device)", "causal_mask(self.t_max, ids.device)"),
            title="a mask of t_max × t_max",
            says="Your mask is as large as the longest window. These windows can be shorter: take t from the ids."),
    Mistake(MODEL, "mask-on-the-cpu", edit=("causal_mask(ids.shape[1], ids.device)", "causal_mask(ids.shape[1])"),
            title="a mask on the CPU",
            says="The mask is made on the CPU, wherever the ids are. Pass their device on."),
    Mistake(MODEL, "no-positions", edit=("self.positions(self.tokens(ids))", "self.tokens(ids)"),
            title="positions are made and not added",
            says="`positions` is there and `forward` does not use it. The mask alone tells a position how many came "
                 "before it, not in which order."),
    Mistake(MODEL, "positions-at-the-end",
            edit=(("self.positions(self.tokens(ids))", "self.tokens(ids)"),
                  ("return self.to_logits(x)", "return self.to_logits(self.positions(x))")),
            title="positions added after the blocks",
            says="You add the positions after the blocks, where attention is over. They belong before, or the blocks "
                 "cannot use them."),
    Mistake(MODEL, "norm-last", edit=("Transformer(e, h, depth, pre_norm=True)", "Transformer(e, h, depth)"),
            title="blocks that normalise last",
            says="Your blocks normalise last, and there is no norm after the stack. Norm first is asked for: "
                 "`pre_norm=True`."),
    Mistake(MODEL, "softmax", edit=("return self.to_logits(x)", "return torch.softmax(self.to_logits(x), dim=-1)"),
            title="probabilities instead of logits",
            says="You return probabilities. The cross-entropy applies a softmax of its own, and a softmax of a softmax "
                 "is nearly flat: the model would hardly learn. Return the logits as they are."),
    Mistake(MODEL, "log-softmax",
            edit=("return self.to_logits(x)", "return torch.log_softmax(self.to_logits(x), dim=-1)"),
            title="log-probabilities instead of logits",
            says="You return log-probabilities. The cross-entropy takes logits and does this step itself."),
    Mistake(MODEL, "last-only", edit=("return self.to_logits(x)", "return self.to_logits(x[:, -1])"),
            title="logits for the last position only",
            says="You return the logits of the last position. In training every position is a question: (b, t, n). "
                 "Whoever generates takes the last one then."),
    Mistake(MODEL, "pooled",
            edit=("return self.to_logits(x)", "return self.to_logits(x.mean(dim=1, keepdim=True).expand_as(x))"),
            title="averaged over the positions",
            says="You average over the positions, as the classifier of lesson 8 does. Here each position has a "
                 "prediction of its own; and an average over all of them lets the future in."),
    Mistake(MODEL, "embedding-swapped", edit=("nn.Embedding(n, e)", "nn.Embedding(e, n)"),
            title="the arguments of nn.Embedding exchanged",
            says="`nn.Embedding(rows, width)` wants first how many tokens there are, then how wide a vector is. You "
                 "have them the other way round."),
    Mistake(MODEL, "depth-and-heads",
            edit=("Transformer(e, h, depth, pre_norm=True)", "Transformer(e, depth, h, pre_norm=True)"),
            title="heads and depth exchanged",
            says="You make as many heads as there should be blocks, and the other way round: the order is "
                 "`Transformer(e, h, depth, ...)`."),
    Mistake(MODEL, "one-block", edit=("Transformer(e, h, depth, pre_norm=True)", "Transformer(e, h, 1, pre_norm=True)"),
            title="depth ignored",
            says="Your stack has one block, whatever `depth` is."),
    Mistake(MODEL, "no-t-max", edit=("self.t_max = t_max\n", "pass\n"), title="t_max is not kept",
            says="The model works, and cannot be asked how long its windows may be: keep `t_max` as an attribute."),
    Mistake(MODEL, "no-bias", edit=("nn.Linear(e, n)", "nn.Linear(e, n, bias=False)"), title="to_logits without a bias",
            says="`to_logits` has no bias. Leave nn.Linear's default: the bias can hold how frequent each byte is, "
                 "before anything is read."),
    Mistake(MODEL, "mask-one-too-far",
            edit=("causal_mask(ids.shape[1], ids.device)",
                  "torch.ones(ids.shape[1], ids.shape[1], device=ids.device).tril(1).bool()"),
            title="the mask shows the next byte",
            says="Every position sees one byte too many: the next one, which it has to guess. Position i may look at "
                 "j ≤ i, and at no later one."),
    Mistake(MODEL, "sees-itself-alone",
            edit=("causal_mask(ids.shape[1], ids.device)", "torch.eye(ids.shape[1], device=ids.device).bool()"),
            title="every position sees itself alone",
            says="Your mask lets every position look at itself and at nothing else, so nothing is known of what came "
                 "before."),
    Mistake(MODEL, "does-not-see-itself",
            edit=("causal_mask(ids.shape[1], ids.device)",
                  "torch.ones(ids.shape[1], ids.shape[1], device=ids.device).tril(-1).bool()"),
            title="a position may not look at itself",
            says="Your mask hides every position from itself. Position i may look at j ≤ i, itself included; the first "
                 "one has no other."),
    Mistake(MODEL, "no-last-norm",
            edit=("x = self.transformer(x, causal_mask(ids.shape[1], ids.device))",
                  "for block in self.transformer.blocks:\n"
                  "            x = block(x, causal_mask(ids.shape[1], ids.device))"),
            title="no norm after the stack",
            says="You go through the blocks by hand and leave out the norm after the last of them. Calling "
                 "`transformer` does both."),
    Mistake(MODEL, "stack-twice", edit=("return self.to_logits(x)",
            "return self.to_logits(self.transformer(x, causal_mask(ids.shape[1], ids.device)))"),
            title="through the stack twice",
            says="What comes out of the stack goes through it once more."),
    Mistake(MODEL, "positions-twice",
            edit=("self.positions(self.tokens(ids))", "self.positions(self.positions(self.tokens(ids)))"),
            title="positions added twice",
            says="You add the positions twice. `PositionEmbedding` takes (b, t, e) and returns it with the positions "
                 "added already."),
    Mistake(MODEL, "tokens-scaled",
            edit=("self.positions(self.tokens(ids))",
                  "self.positions(self.tokens(ids) * self.tokens.embedding_dim ** 0.5)"),
            title="token vectors multiplied by √e",
            says="You multiply the token vectors by √e, as the transformer of 2017 does. This model takes them as they "
                 "are."),
    Mistake(MODEL, "norm-again",
            edit=("return self.to_logits(x)", "return self.to_logits(self.transformer.norm(x))"),
            title="the last norm applied twice",
            says="You apply a norm to what the stack returns. With `pre_norm=True` the `Transformer` ends in its own "
                 "norm already."),
    Mistake(MODEL, "shortcut-around-the-stack",
            edit=("x = self.transformer(x, causal_mask(ids.shape[1], ids.device))",
                  "x = x + self.transformer(x, causal_mask(ids.shape[1], ids.device))"),
            title="a shortcut around the whole stack",
            says="You add what goes into the stack to what comes out of it. The shortcuts are inside the blocks; "
                 "around the stack there is none."),
    Mistake(MODEL, "tied",
            edit=("return self.to_logits(x)", "return x @ self.tokens.weight.T"),
            title="the output layer is not used",
            says="You compare the last vectors with the token vectors. Here `to_logits` does that with weights and a "
                 "bias of its own."),
    Mistake(MODEL, "graph-cut", edit=("return self.to_logits(x)", "return self.to_logits(x).detach()"),
            title="the gradient is cut off",
            says="No gradient flows from your logits back to the weights: the model could not learn. Something cuts "
                 "the graph: `detach()`, `.data`, or `no_grad()`."),
    Accepted(MODEL, "parts-by-hand", instead=("""
        self.t_max, self.to_logits = t_max, nn.Linear(e, n)
        self.transformer = Transformer(e, h, depth=depth, pre_norm=True)
        self.tokens, self.positions = nn.Embedding(n, e), PositionEmbedding(t_max, e)
    """, """
        b, t = ids.shape
        places = torch.arange(t, device=ids.device)
        x = self.tokens(ids) + self.positions.table(places)
        mask = places.unsqueeze(1) >= places
        return self.to_logits(self.transformer(x, mask))
    """)),
    Accepted(MODEL, "block-by-block", instead=("", """
        b, t = ids.shape
        x, mask = self.positions(self.tokens(ids)), torch.ones(b, t, t, device=ids.device).tril().bool()
        for block in self.transformer.blocks:
            x = block(x, mask)
        return F.linear(self.transformer.norm(x), self.to_logits.weight, self.to_logits.bias)
    """)),
    Accepted(MODEL, "mask-as-buffer", instead=("""
        self.t_max = t_max
        self.tokens = nn.Embedding(n, e)
        self.positions = PositionEmbedding(t_max, e)
        self.transformer = Transformer(e, h, depth, True)
        self.to_logits = nn.Linear(e, n)
        self.register_buffer("triangle", causal_mask(t_max), persistent=False)
    """, """
        t = ids.shape[1]
        return self.to_logits(self.transformer(self.positions(self.tokens(ids)), self.triangle[:t, :t]))
    """)),
    # ---------------------------------------------------------------------------------- apply_temperature
    Mistake(HEAT, "multiplied", edit=("logits / temperature", "logits * temperature"),
            title="multiplied by the temperature",
            says="You multiply. Then a temperature above 1 makes differences larger, and the distribution sharper, the "
                 "wrong way round: heat flattens."),
    Mistake(HEAT, "after-softmax", edit=("logits / temperature", "logits.softmax(dim=-1) / temperature"),
            title="the temperature after the softmax",
            says="You divide probabilities, and what you return is taken through a softmax once more. The temperature "
                 "acts on the logits, before any softmax."),
    Mistake(HEAT, "power-of-probabilities",
            edit=("logits / temperature", "logits.softmax(dim=-1) ** (1 / temperature)"),
            title="powers of probabilities instead of logits",
            says="Probabilities to the power 1/T are proportional to the right ones, but they are not logits: whatever "
                 "applies a softmax to them gets something else. Work on the logits."),
    Mistake(HEAT, "root", edit=("logits / temperature", "logits / temperature ** 0.5"),
            title="divided by the root of the temperature",
            says="You divide by √T. The d of attention needs a root; the temperature does not."),
    Mistake(HEAT, "squared", edit=("logits / temperature", "logits / temperature ** 2"),
            title="divided by the square of the temperature",
            says="You divide by T². Once."),
    Mistake(HEAT, "divides-by-zero", edit=("temperature > 0:", "temperature >= 0:"), title="divided by 0",
            says="At temperature 0 you divide by it, and infinities and NaN come out. 0 is a case of its own: only the "
                 "largest stays possible."),
    Mistake(HEAT, "temperature-ignored", edit=("logits / temperature", "logits.clone()"), idle=True,
            title="the temperature changes nothing",
            says="Above 0 your logits mean the same probabilities whatever the temperature is, those of "
                 "temperature 1."),
    Mistake(HEAT, "probabilities",
            edit=("return logits / temperature", "return (logits / temperature).softmax(dim=-1)"),
            title="probabilities instead of logits",
            says="You divide and then apply a softmax. Logits are asked for: the softmax comes once, when all filters "
                 "are done, and of probabilities it makes something else."),
    Mistake(HEAT, "nearly-zero", instead="""
        if temperature < 0:
            raise ValueError(temperature)
        return logits / max(temperature, 1e-6)
    """, title="a small number instead of 0",
            says="At temperature 0 you divide by a small number. Where the two largest logits are close, both keep a "
                 "chance then; 0 stands for greedy, and only the largest is left, however close the next one is."),
    Alias(HEAT, "plus-a-little", of="nearly-zero", instead="""
        if temperature < 0:
            raise ValueError(temperature)
        if temperature == 0:
            temperature = 1e-6
        return torch.div(logits, temperature)
    """),
    Mistake(HEAT, "infinite-at-best", edit=("scatter(-1, best, 0.0)", "scatter(-1, best, torch.inf)"),
            title="+∞ at the largest",
            says="At temperature 0 the largest has +∞, and a softmax of that is NaN. The others have −∞; the largest "
                 "itself has to stay finite."),
    Mistake(HEAT, "zeros-at-zero",
            edit=("torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)",
                  "torch.zeros_like(logits).scatter(-1, best, logits.gather(-1, best))"),
            title="0 for the others at temperature 0",
            says="At temperature 0 you give the others a 0. That is a logit like any other; what must never be drawn "
                 "has −∞."),
    Mistake(HEAT, "graph-cut", edit=("logits / temperature", "(logits / temperature).detach()"),
            title="the gradient is cut off",
            says="No gradient flows from your result back to the logits. A division does all that is needed; "
                 "`detach()`, `.data` and `.tolist()` cut the graph."),
    Mistake(HEAT, "zero-changes-nothing",
            edit=("return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)", "return logits"), idle=True,
            title="temperature 0 changes nothing",
            says="At temperature 0 you return the logits as they are, which is temperature 1. As T falls to 0 all "
                 "probability goes to the largest logit."),
    Mistake(HEAT, "one-hot",
            edit=("torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)",
                  "torch.zeros_like(logits).scatter(-1, best, 1.0)"), title="ones and zeros where logits are asked for",
            says="At temperature 0 you return probabilities, a 1 and zeros. As logits they mean something else: after "
                 "a softmax the 1 is only e times as likely as each 0. What must never be drawn has the logit −∞."),
    Mistake(HEAT, "smallest", edit=("logits.argmax", "logits.argmin"), title="the smallest at temperature 0",
            says="At temperature 0 you keep the smallest logit."),
    Mistake(HEAT, "of-the-whole-batch",
            edit=("best = logits.argmax(dim=-1, keepdim=True)    # (..., 1)\n    return torch.full_like(logits, "
                  "-torch.inf).scatter(-1, best, 0.0)",
                  "return torch.where(logits == logits.max(), 0.0, -torch.inf)"),
            title="the largest of the whole batch",
            says="At temperature 0 you look for the largest logit of the whole tensor. Each row has a largest of its "
                 "own; the other rows are left with nothing."),
    Mistake(HEAT, "index", edit=("return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)", "return best"),
            title="the index of the largest instead of logits",
            says="At temperature 0 you return which token is the largest. Logits are asked for at every temperature: "
                 "the caller does not want to care which one it was."),
    Mistake(HEAT, "in-place", edit=("return logits / temperature", "logits /= temperature\n        return logits"),
            title="the input changed in place",
            says="`logits /= temperature` writes into the caller's tensor. Make a new one."),
    Mistake(HEAT, "negative-accepted", edit=("temperature < 0:", "False:"), title="a negative temperature is accepted",
            says="A negative temperature goes through, and comes out as something. It would make the most improbable "
                 "the most probable: raise a ValueError."),
    Mistake(HEAT, "zero-refused", edit=("temperature < 0:", "temperature <= 0:"), title="temperature 0 is refused",
            says="You raise for temperature 0 as well. It is asked for: it means greedy."),
    Mistake(HEAT, "assertion",
            edit=('if temperature < 0:\n        raise ValueError(f"A temperature cannot be negative; this one is '
                  '{temperature}.")',
                  "assert temperature >= 0"), title="an assertion instead of a ValueError",
            says="You refuse a negative temperature with an assertion. Assertions are for what cannot happen, and "
                 "vanish under `python -O`; a wrong argument is a ValueError."),
    Mistake(HEAT, "on-the-cpu", edit=("torch.full_like(logits, -torch.inf)", "torch.full(logits.shape, -torch.inf)"),
            title="a tensor made on the CPU",
            says="`torch.full(shape, ...)` makes its tensor on the CPU. `full_like` takes the device from another "
                 "tensor."),
    Accepted(HEAT, "masked-fill", instead="""
        if not temperature >= 0:
            raise ValueError("the temperature must not be negative")
        if temperature == 0:
            largest = logits.max(dim=-1, keepdim=True).values
            return logits.masked_fill(logits < largest, -1e9)
        return torch.mul(logits, 1 / temperature)
    """),
    Accepted(HEAT, "log-probabilities", edit=("logits / temperature", "logits.log_softmax(dim=-1).div(temperature)")),
    Accepted(HEAT, "one-hot-and-where", instead="""
        if temperature < 0:
            raise ValueError(f"temperature is {temperature}")
        if temperature == 0:
            chosen = F.one_hot(logits.argmax(-1), logits.shape[-1]).bool()
            return torch.where(chosen, logits, float("-inf"))
        return logits * (1.0 / temperature)
    """),
    EquivalentMutant(HEAT, "0.0", "1.0", "any finite logit will do where all the others are −∞"),
    EquivalentMutant(HEAT, "return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)",
          "return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0).detach()",
          "at temperature 0 nothing depends on the logits smoothly: there is no gradient to cut"),
    # ----------------------------------------------------------------------------------------- keep_top_p
    Mistake(TOP_P, "first-over-dropped", edit=("order, before >= p)", "order, before + chances > p)"),
            title="the first one over the threshold is dropped",
            says="You drop the token that crosses p. What is left has less than p together, and with a small p nothing "
                 "is left at all. The nucleus has p *or more*: the one that crosses belongs to it."),
    Mistake(TOP_P, "one-too-many",
            edit=("order, before >= p)", "order, (before >= p).roll(1, dims=-1) & (before >= p))"),
            title="one too many is kept",
            says="You keep the token that crosses p, and one more after it. The fewest that have p together: look "
                 "whether those *before* a token have it."),
    Mistake(TOP_P, "ascending", edit=("descending=True", "descending=False"), title="ranked from the least probable",
            says="You rank from the least probable up, so your nucleus is the tail. The most probable come first."),
    Mistake(TOP_P, "not-sorted", instead="""
        chances = logits.softmax(dim=-1)
        before = chances.cumsum(dim=-1) - chances
        return logits.masked_fill(before >= p, -torch.inf)
    """, title="summed in the order of the vocabulary",
            says="You add probabilities up in the order of the vocabulary. The ranking is by probability: sort first."),
    Mistake(TOP_P, "stays-sorted",
            edit=("return logits.masked_fill(dropped, -torch.inf)",
                  "return ranked.masked_fill(before >= p, -torch.inf)"), title="the result is in the sorted order",
            says="Your logits come back sorted, so every token has another one's logit. What was decided for a rank "
                 "has to be carried back to the place it came from."),
    Mistake(TOP_P, "decisions-stay-sorted",
            edit=("return logits.masked_fill(dropped, -torch.inf)",
                  "return logits.masked_fill(before >= p, -torch.inf)"), title="decisions by rank applied by place",
            says="Your decisions stand in the order of the ranking, and you apply them to logits in the order of the "
                 "vocabulary. Entry r of `order` says where rank r came from."),
    Mistake(TOP_P, "gather-for-scatter",
            edit=("torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before >= p)",
                  "(before >= p).gather(-1, order)"), title="gather where scatter is needed",
            says="`gather` with `order` sorts; you need the way back. It is the inverse order: `scatter` with `order`, "
                 "or `gather` with `order.argsort(-1)`."),
    Mistake(TOP_P, "logits-summed", edit=("ranked.softmax(dim=-1)", "ranked"),
            title="logits added up, not probabilities",
            says="You add up logits. p is a sum of probabilities: softmax first."),
    Mistake(TOP_P, "single-probabilities", edit=("order, before >= p)", "order, chances < 1 - p)"),
            title="single probabilities compared with p",
            says="You compare each token's own probability with a threshold. It is the *sum* of the more probable ones "
                 "that decides."),
    Mistake(TOP_P, "over-the-batch", edit=("chances.cumsum(dim=-1)", "chances.cumsum(dim=-2)"),
            title="summed over the rows",
            says="Your running sum goes down the rows. It has to run along the tokens of each row."),
    Mistake(TOP_P, "complement", edit=("order, before >= p)", "order, before >= 1 - p)"), title="1 − p instead of p",
            says="Your nucleus has 1 − p, not p. What stays has p or more together; what goes has the rest."),
    Mistake(TOP_P, "zeros", edit=("dropped, -torch.inf", "dropped, 0.0"), title="0 instead of −∞",
            says="You set the others to 0. That is a logit like any other; a probability of 0 has the logit −∞."),
    Mistake(TOP_P, "probabilities",
            edit=("return logits.masked_fill(dropped, -torch.inf)",
                  "return logits.masked_fill(dropped, -torch.inf).softmax(dim=-1)"),
            title="probabilities instead of logits",
            says="You return probabilities, and a softmax of them gives something flatter. Return logits."),
    Mistake(TOP_P, "nucleus-dropped",
            edit=("logits.masked_fill(dropped, -torch.inf)", "logits.masked_fill(~dropped, -torch.inf)"),
            title="the nucleus is dropped and the tail kept",
            says="You drop the nucleus and keep the tail."),
    Mistake(TOP_P, "first-row-decides", edit=("before >= p)", "(before >= p).flatten(0, -2)[0].expand_as(before))"),
            title="as many as in the first row",
            says="You keep as many in every row as the first row needs. How many it takes is what the nucleus decides "
                 "anew for each row."),
    Mistake(TOP_P, "in-place", edit=("logits.masked_fill(", "logits.masked_fill_("), title="the input changed in place",
            says="A method whose name ends in _ writes into its tensor, here the caller's. Without the _ it makes a "
                 "new one."),
    Mistake(TOP_P, "on-the-cpu",
            edit=("torch.zeros_like(logits, dtype=torch.bool)", "torch.zeros(logits.shape, dtype=torch.bool)"),
            title="a tensor made on the CPU",
            says="`torch.zeros(shape)` makes its tensor on the CPU, wherever the logits are."),
    Mistake(TOP_P, "compared-with-p", edit=("order, before >= p)", "order, chances < p)"),
            title="each probability compared with p",
            says="You keep a token when its own probability is p or more, and often nothing is left. It is what the "
                 "more probable ones have *together* that decides."),
    Mistake(TOP_P, "only-the-first-rescued",
            edit=("order, before >= p)", "order, (before + chances > p) & (before > 0))"),
            title="the first one over the threshold is dropped, but for the first of all",
            says="The most probable token stays always, which is right; and the one that crosses p is dropped, "
                 "wherever else it is. What is left has less than p together: the one that crosses belongs to it."),
    Mistake(TOP_P, "rolled-round",
            edit=("order, before >= p)", "order, (before + chances >= p).roll(1, dims=-1))"),
            title="the most probable token is dropped",
            says="You drop the most probable token. A decision that is rolled one place on brings the last one round "
                 "to the front."),
    Mistake(TOP_P, "log-probabilities",
            edit=("return logits.masked_fill(dropped, -torch.inf)",
                  "return logits.log_softmax(dim=-1).masked_fill(dropped, -torch.inf)"),
            title="log-probabilities instead of logits",
            says="You keep the right places and put log-probabilities there. What stays, stays as it was: each logit "
                 "in its place."),
    Mistake(TOP_P, "normalised-again",
            edit=("return logits.masked_fill(dropped, -torch.inf)",
                  "return logits.masked_fill(dropped, -torch.inf).log_softmax(dim=-1)"),
            title="logarithms of the probabilities that are left",
            says="You keep the right places and normalise what is left. What stays, stays as it was: each logit in its "
                 "place."),
    Mistake(TOP_P, "nothing-left-out", instead="return logits.clone()", idle=True, title="nothing is left out",
            says="Your logits come back as they went in: nothing is left out."),
    Mistake(TOP_P, "graph-cut", edit=("logits.masked_fill(dropped, -torch.inf)",
                                      "logits.detach().masked_fill(dropped, -torch.inf)"),
            title="the gradient is cut off",
            says="No gradient flows from your result back to the logits that stay. `detach()`, `.data` and "
                 "`.tolist()` cut the graph."),
    EquivalentMutant(TOP_P, "before >= p", "before > p",
        "whether probabilities add up to p exactly is a matter of rounding"),
    Accepted(TOP_P, "from-below", instead="""
        ranked, order = logits.sort(dim=-1)
        dropped = ranked.softmax(dim=-1).cumsum(dim=-1) <= 1 - p
        return logits.masked_fill(dropped.scatter(-1, order, dropped), -torch.inf)
    """),
    Accepted(TOP_P, "shift-the-mask", instead="""
        ranked, order = torch.sort(logits, dim=-1, descending=True)
        beyond = ranked.softmax(dim=-1).cumsum(dim=-1) >= p
        beyond = torch.cat([torch.zeros_like(beyond[..., :1]), beyond[..., :-1]], dim=-1)
        return logits.masked_fill(beyond.gather(-1, order.argsort(dim=-1)), -1e9)
    """),
    Accepted(TOP_P, "lowest-kept", instead="""
        ranked = logits.sort(dim=-1, descending=True).values
        chances = ranked.softmax(dim=-1)
        inside = chances.cumsum(dim=-1) - chances < p
        lowest = ranked.masked_fill(~inside, torch.inf).min(dim=-1, keepdim=True).values
        return torch.where(logits >= lowest, logits, -torch.inf)
    """),
    Accepted(TOP_P, "sum-of-the-larger", instead="""
        chances = logits.softmax(dim=-1)
        larger = chances.unsqueeze(-2) > chances.unsqueeze(-1)    # (..., n, n)
        before = (larger * chances.unsqueeze(-2)).sum(dim=-1)
        return logits.masked_fill(before >= p, float("-inf"))
    """),
    Accepted(TOP_P, "one-by-one", instead="""
        result = torch.full_like(logits, -torch.inf)
        n = logits.shape[-1]
        for row, chances, new in zip(logits.view(-1, n), logits.softmax(-1).view(-1, n), result.view(-1, n)):
            total = 0.0
            for place in chances.argsort(descending=True).tolist():
                new[place] = row[place]
                total += chances[place].item()
                if total >= p:
                    break
        return result
    """),
    # ------------------------------------------------------------------------------------------- generate
    Mistake(GENERATE, "returns-the-prompt", edit=("return tokens[:, prompt.shape[1]:]", "return prompt"), idle=True,
            title="the prompt is returned",
            says="You draw and append, and then return the prompt, untouched. What was drawn is in the longer tensor."),
    Mistake(GENERATE, "prompt-and-sample", edit=("return tokens[:, prompt.shape[1]:]", "return tokens"),
            title="prompt and sample together",
            says="You return the prompt as well. Only what was drawn: (b, count)."),
    Mistake(GENERATE, "not-cropped", edit=("tokens[:, -model.t_max:]", "tokens"), title="the window is not cropped",
            says="The whole text goes into the model, and one day it is longer than t_max. Hand in its last t_max "
                 "tokens."),
    Mistake(GENERATE, "cropped-at-the-wrong-end", edit=("tokens[:, -model.t_max:]", "tokens[:, :model.t_max]"),
            title="the first t_max tokens instead of the last",
            says="You hand in the *first* t_max tokens. Once the text is longer, the model never sees what it has "
                 "written, and predicts the same place again and again."),
    Mistake(GENERATE, "window-too-short", edit=("tokens[:, -model.t_max:]", "tokens[:, -(model.t_max - 1):]"),
            title="one token of the window given away",
            says="Your window is t_max − 1 long. The model takes t_max."),
    Mistake(GENERATE, "only-the-last-token", edit=("tokens[:, -model.t_max:]", "tokens[:, -1:]"),
            title="the model sees one token",
            says="You hand in the last token alone, so everything before it is forgotten. The model keeps nothing from "
                 "call to call; it needs the window."),
    Mistake(GENERATE, "cropped-to-the-prompt",
            edit=("tokens[:, -model.t_max:]", "tokens[:, -min(prompt.shape[1], model.t_max):]"),
            title="the window never grows beyond the prompt",
            says="Your window stays as long as the prompt was. It may grow to t_max."),
    Mistake(GENERATE, "training-mode", edit=("model.eval()\n", "model.train()\n"), title="training mode while sampling",
            says="The model is in training mode while you use it: a model with dropout would drop part of every "
                 "prediction."),
    Mistake(GENERATE, "no-eval", edit=("model.eval()\n", "pass\n"), title="the mode is left as it comes",
            says="You use the model in whatever mode it comes. In the middle of a training that is training mode, in "
                 "which a model with dropout drops part of every prediction."),
    Mistake(GENERATE, "mode-not-restored", edit=("model.train(training)\n", "pass\n"),
            title="the model is left in evaluation mode",
            says="The model comes back in evaluation mode, whatever mode it came in. A training that samples now and "
                 "then would go on without its dropout."),
    Mistake(GENERATE, "always-training-after", edit=("model.train(training)\n", "model.train()\n"),
            title="the model is left in training mode",
            says="You put the model into training mode at the end, even if it was not in it before. Remember "
                 "`model.training` first."),
    Mistake(GENERATE, "first-position", edit=("[:, -1]    # (b, n)", "[:, 0]    # (b, n)"),
            title="the logits of the first position",
            says="You take the logits of the first position. They predict the second token of the window, which is "
                 "there already; the last position predicts what is new."),
    Mistake(GENERATE, "second-to-last", edit=("[:, -1]    # (b, n)", "[:, -2]    # (b, n)"),
            title="the logits of the position before the last",
            says="You take the logits of the position before the last one. They predict the last token of the window, "
                 "which is there already."),
    Mistake(GENERATE, "all-positions", edit=("[:, -1]    # (b, n)", ".mean(dim=1)    # (b, n)"),
            title="all positions instead of the last",
            says="You mix the predictions of all positions. All but the last are about tokens that are there already."),
    Mistake(GENERATE, "samples-every-position",
            edit=(("[:, -1]    # (b, n)", "    # (b, t, n)"),
                  ("torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)",
                   "torch.multinomial(logits.softmax(dim=-1).flatten(0, 1), 1, generator=generator).view(len(tokens), "
                   "-1)")), title="a token is drawn for every position",
            says="You draw a token for every position of the window and append them all. Only the last position is "
                 "about something new: one token a turn."),
    Mistake(GENERATE, "not-appended", instead="""
        training = model.training
        model.eval()
        tokens = prompt
        for _ in range(count):
            logits = finished_temperature(model(prompt[:, -model.t_max:])[:, -1], temperature)
            logits = logits if top_k is None else finished_top_k(logits, top_k)
            logits = logits if top_p is None else finished_top_p(logits, top_p)
            drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
            tokens = torch.cat([tokens, drawn], dim=1)
        model.train(training)
        return tokens[:, prompt.shape[1]:]
    """, title="the model never sees what was drawn",
            says="You collect what is drawn, but the model is asked with the prompt alone, every time. What was drawn "
                 "is part of the text."),
    Mistake(GENERATE, "one-too-many", edit=("range(count)", "range(count + 1)"), title="one token too many",
            says="You draw count + 1 tokens."),
    Mistake(GENERATE, "one-too-few", edit=("range(count)", "range(count - 1)"), title="one token too few",
            says="You draw count − 1 tokens."),
    Mistake(GENERATE, "last-cut-off",
            edit=("return tokens[:, prompt.shape[1]:]", "return tokens[:, prompt.shape[1] - 1:-1]"),
            title="cut off by one",
            says="You cut at the wrong place: the last token of the prompt is in what you return, and the last one "
                 "drawn is missing."),
    Mistake(GENERATE, "first-cut-off",
            edit=("return tokens[:, prompt.shape[1]:]", "return tokens[:, prompt.shape[1] + 1:]"),
            title="the first drawn token is cut off",
            says="You cut off one column too many: the first token that was drawn is missing."),
    Mistake(GENERATE, "temperature-ignored", edit=("finished_temperature(logits, temperature)", "logits"),
            title="the temperature is not used",
            says="You take a temperature and do not use it."),
    Mistake(GENERATE, "top-k-ignored", edit=("top_k is not None", "False"), title="top_k is not used",
            says="You take `top_k` and do not use it."),
    Mistake(GENERATE, "top-p-ignored", edit=("top_p is not None", "False"), title="top_p is not used",
            says="You take `top_p` and do not use it."),
    Mistake(GENERATE, "top-p-before-top-k", instead="""
        training = model.training
        model.eval()
        tokens = prompt
        for _ in range(count):
            logits = finished_temperature(model(tokens[:, -model.t_max:])[:, -1], temperature)
            logits = logits if top_p is None else finished_top_p(logits, top_p)
            logits = logits if top_k is None else finished_top_k(logits, top_k)
            drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
            tokens = torch.cat([tokens, drawn], dim=1)
        model.train(training)
        return tokens[:, prompt.shape[1]:]
    """, title="top-p before top-k",
            says="You apply top-p before top-k. The order matters: what top-k leaves has larger probabilities, and "
                 "top-p then needs fewer of them."),
    Mistake(GENERATE, "top-p-first", instead="""
        training = model.training
        model.eval()
        tokens = prompt
        for _ in range(count):
            logits = model(tokens[:, -model.t_max:])[:, -1]
            logits = logits if top_p is None else finished_top_p(logits, top_p)
            logits = logits if top_k is None else finished_top_k(logits, top_k)
            logits = finished_temperature(logits, temperature)
            drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
            tokens = torch.cat([tokens, drawn], dim=1)
        model.train(training)
        return tokens[:, prompt.shape[1]:]
    """, title="top-p before everything else",
            says="You apply top-p first. How many tokens it takes to reach p depends on their probabilities, which the "
                 "temperature changes, and on what top-k has left: both come before it."),
    Mistake(GENERATE, "temperature-last", instead="""
        training = model.training
        model.eval()
        tokens = prompt
        for _ in range(count):
            logits = model(tokens[:, -model.t_max:])[:, -1]
            logits = logits if top_k is None else finished_top_k(logits, top_k)
            logits = logits if top_p is None else finished_top_p(logits, top_p)
            logits = finished_temperature(logits, temperature)
            drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
            tokens = torch.cat([tokens, drawn], dim=1)
        model.train(training)
        return tokens[:, prompt.shape[1]:]
    """, title="the temperature after the filters",
            says="You apply the temperature last. It changes the probabilities, and so how many of them it takes to "
                 "reach p: the temperature comes first."),
    Mistake(GENERATE, "always-greedy",
            edit=("torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)",
                  "logits.argmax(dim=-1, keepdim=True)"), title="always the most probable",
            says="You always take the most probable token, whatever the temperature is. Draw by the probabilities; at "
                 "temperature 0 that comes to the same by itself."),
    Mistake(GENERATE, "uniform-over-kept", edit=("logits.softmax(dim=-1), 1", "logits.isfinite().float(), 1"),
            title="equal chances for all that are left",
            says="You draw evenly among the tokens that are left. They have probabilities: draw by them."),
    Mistake(GENERATE, "one-draw-for-all-rows",
            edit=("torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)",
                  "torch.multinomial(logits.softmax(dim=-1)[:1], 1, generator=generator).expand(len(tokens), 1)"),
            title="one draw for the whole batch",
            says="You draw once, from the first row, and give the token to all rows. Each row has its own prediction "
                 "and its own draw."),
    Mistake(GENERATE, "generator-ignored", edit=(", 1, generator=generator)", ", 1)"),
            title="the generator is not used",
            says="You take a generator and draw without it, so the same seed gives another text each time."),
    Mistake(GENERATE, "on-the-cpu",
            edit=("tokens = prompt\n",
                  "tokens = torch.empty(len(prompt), 0, dtype=torch.long)\n    tokens = torch.cat([tokens, prompt], "
                  "dim=1)\n"), title="a tensor made on the CPU",
            says="You make a tensor without saying where, and it lands on the CPU, wherever the prompt is."),
    Mistake(GENERATE, "prompt-overwritten", instead="""
        training = model.training
        model.eval()
        tokens, text = prompt, []
        window = prompt[:, -model.t_max:].clone()
        for _ in range(count):
            logits = finished_temperature(model(window)[:, -1], temperature)
            logits = logits if top_k is None else finished_top_k(logits, top_k)
            logits = logits if top_p is None else finished_top_p(logits, top_p)
            drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
            text.append(drawn)
            window = torch.cat([window, drawn], dim=1)[:, -model.t_max:]
        prompt[:, -1:] = drawn
        model.train(training)
        return torch.cat(text, dim=1)
    """, title="the prompt is written over",
            says="You write into the prompt. It is the caller's tensor: after the call it holds other tokens."),
    EquivalentMutant(GENERATE, "return tokens[:, prompt.shape[1]:]", "return tokens[:, prompt.shape[1]:].detach()",
          "ids have no gradient"),
    EquivalentMutant(GENERATE, "torch.cat([tokens, drawn], dim=1)", "torch.cat([tokens, drawn], dim=-1)",
          "tokens have two axes: 1 is the last"),
    EquivalentMutant(GENERATE, "logits.softmax(dim=-1)", "logits.softmax(dim=1)",
        "logits (b, n) have two axes: 1 is the last"),
    Accepted(GENERATE, "temperature-after-top-k", instead="""
        mode = model.training
        model.eval()
        tokens = prompt.clone()
        for _ in range(count):
            logits = model(tokens[:, -model.t_max:])[:, -1]
            if top_k:
                logits = finished_top_k(logits, top_k)
            logits = finished_temperature(logits, temperature)
            if top_p:
                logits = finished_top_p(logits, top_p)
            drawn = torch.multinomial(F.softmax(logits, dim=-1), 1, generator=generator)
            tokens = torch.cat((tokens, drawn), -1)
        model.train(mode)
        return tokens[:, -count:]
    """),
    Accepted(GENERATE, "list-of-draws", instead="""
        was_training = model.training
        model.eval()
        window, text = prompt, []
        for _ in range(count):
            window = window[:, -model.t_max:]
            logits = finished_temperature(model(window)[:, -1, :], temperature)
            logits = logits if top_k is None else finished_top_k(logits, top_k)
            logits = logits if top_p is None else finished_top_p(logits, top_p)
            text.append(torch.multinomial(torch.softmax(logits, -1), num_samples=1, generator=generator))
            window = torch.cat((window, text[-1]), dim=1)
        if was_training:
            model.train()
        return torch.hstack(text)
    """),
    Accepted(GENERATE, "gumbel", instead=LOOP.format(
            draw="""noise = torch.rand(logits.shape, device=logits.device, generator=generator).clamp_min(1e-20)
        drawn = (logits - (-noise.log()).log()).argmax(dim=-1, keepdim=True)"""
        )),
    Accepted(GENERATE, "cumulated", instead=LOOP.format(
            draw="""chances = logits.softmax(dim=-1).cumsum(dim=-1)
        needle = torch.rand(len(tokens), 1, device=logits.device, generator=generator) * chances[:, -1:]
        drawn = (chances <= needle).sum(dim=-1, keepdim=True)"""
        )),
    Accepted(GENERATE, "room-made-first", instead="""
        mode, (b, t) = model.training, prompt.shape
        model.eval()
        tokens = prompt.new_zeros(b, t + count)
        tokens[:, :t] = prompt
        for place in range(t, t + count):
            logits = finished_temperature(model(tokens[:, max(0, place - model.t_max):place])[:, -1], temperature)
            logits = finished_top_k(logits, top_k or logits.shape[-1])
            logits = finished_top_p(logits, top_p) if top_p else logits
            tokens[:, place] = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
        model.train(mode)
        return tokens[:, t:]
    """),
    # ----------------------------------------------------------------------------------- bits_of_windows
    Mistake(WINDOWS, "unchanged",
            edit=(("    bits, count = 0.0, 0\n", "    bits = 0.0\n"),
                  ("        count += t\n", ""),
                  ("bits / count", "bits")),
            title="the bits of all bytes together",
            says="The number grows with the text: a text of twice the length gets about twice as many bits. That is "
                 "the "
                 "size of the compressed text, not what *one* byte costs."),
    Mistake(WINDOWS, "by-windows", edit=("count += t", "count += 1"), title="bits per window",
            says="You divide by the number of windows. A window predicts t bytes, so this is t times what a byte "
                 "costs: "
                 "of a model without an opinion it says 8·t."),
    Mistake(WINDOWS, "by-length", edit=("bits / count", "bits / len(data)"), title="divided by the length of the text",
            says="You divide by the length of the text. Not every byte of it was predicted: the first one has nothing "
                 "before it, and bytes at the end may fill no window. Count what was added up."),
    Mistake(WINDOWS, "by-length-less-one", edit=("bits / count", "bits / (len(data) - 1)"),
            title="divided by the bytes after the first",
            says="That is right where the windows fill the text. Where bytes at the end fill no window, they were "
                 "never "
                 "predicted, and you count them all the same."),
    Mistake(WINDOWS, "by-bytes-of-windows", edit=("count += t", "count += len(window)"),
            title="the first byte of each window counted too",
            says="A window holds t + 1 bytes and predicts t of them: its first byte is only read. You count all t + "
                 "1."),
    Mistake(WINDOWS, "by-t", edit=("bits / count", "bits / t"), title="the windows' means, added up",
            says="Your number still grows with the number of windows: it is as if each window's mean were added to the "
                 "others. All predictions of *all* windows are to be divided by how many they are."),
    Mistake(WINDOWS, "mean-twice", edit=(', reduction="sum"', ""), title="a mean divided once more",
            says="The loss of a window is now a mean over its t predictions, and you divide by the number of "
                 "predictions "
                 "as well. Either add up sums and divide once, or take the mean of the windows' means."),
    Alias(WINDOWS, "mean-added-up", of="by-t", edit=((', reduction="sum"', ""), ("bits / count", "bits"))),
    Mistake(WINDOWS, "last-window", edit=(("bits += nats", "bits = nats"), ("count += t", "count = t")),
            title="the last window alone",
            says="Only the last window enters your number. All of them have to."),
    Mistake(WINDOWS, "nats", edit=("nats.item() / math.log(2)", "nats.item()"), title="nats per byte",
            says="You return nats. The uniform model has 5.545 of them for each byte, and 8 bits."),
    Mistake(WINDOWS, "overlapping", edit=("unfold(0, t + 1, t)", "unfold(0, t + 1, 1)"), title="windows that overlap",
            says="Your windows begin one byte apart, so most bytes are predicted t times. Here they do not overlap; "
                 "the "
                 "fair measurement is the next exercise."),
    Mistake(WINDOWS, "gap", edit=("unfold(0, t + 1, t)", "unfold(0, t + 1, t + 1)"),
            title="a byte lost between windows",
            says="Your windows lie t + 1 bytes apart, so the first byte of each window is predicted by none. The last "
                 "byte of a window is the first of the next one: once predicted, once read."),
    Accepted(WINDOWS, "mean-of-means", instead="""
        means = []
        for window in data.long().unfold(0, t + 1, t):
            means.append(F.cross_entropy(model(window[None, :-1])[0], window[1:]))
        return bits_per_byte(torch.stack(means).mean()).item()
    """),
    Accepted(WINDOWS, "all-windows-at-once", instead="""
        windows = data.long().unfold(0, t + 1, t)
        logits = model(windows[:, :-1])
        return F.cross_entropy(logits.transpose(1, 2), windows[:, 1:]) / math.log(2)
    """),
    EquivalentMutant(WINDOWS, "model(window[None, :-1])[0]", "model(window[None, :-1])[-1]",
        "the batch holds one window"),
    Accepted(WINDOWS, "windows-times-t", edit=(("count += t", "count += 1"), ("bits / count", "bits / (count * t)"))),
    # -------------------------------------------------------------------------------- sliding_window_bits
    Mistake(SLIDING, "total", edit=("nats / (len(data) - 1) / math.log(2)", "nats / math.log(2)"),
            title="total bits reported as bits per byte",
            says="You return the bits of the whole text. Per byte they are to be divided by how many bytes were "
                 "predicted: a model without an opinion has 8."),
    Mistake(SLIDING, "nats", edit=("/ math.log(2)", ""), title="nats reported as bits",
            says="You return nats per byte. A model without an opinion would have 5.545; in bits it has 8."),
    Mistake(SLIDING, "per-all-bytes", edit=("(len(data) - 1)", "len(data)"), title="divided by one byte too many",
            says="You divide by the length of the text. Its first byte is never predicted, so one fewer is to be "
                 "counted."),
    Mistake(SLIDING, "slices", edit=("data.unfold(0, t + 1, 1)[1:]", "data.unfold(0, t + 1, t)[1:]"),
            title="windows that do not overlap",
            says="Your windows start t bytes apart, and of all but the first you count one prediction: most bytes are "
                 "left out of the sum. Slide by *one* byte."),
    Mistake(SLIDING, "no-sliding", instead="""
        training = model.training
        model.eval()
        data = data.long()
        nats = 0.0
        for start in range(0, len(data) - 1, t):
            part = data[start:start + t + 1]
            nats = nats + F.cross_entropy(model(part[None, :-1])[0], part[1:], reduction="sum")
        model.train(training)
        return nats / (len(data) - 1) / math.log(2)
    """, title="slices without context",
            says="You cut the text into slices that do not overlap, so the first bytes of each are predicted from next "
                 "to nothing. Every byte should see the t bytes before it: slide by one, count the last."),
    Mistake(SLIDING, "all-positions", instead="""
        training = model.training
        model.eval()
        data = data.long()
        windows = data.unfold(0, min(t + 1, len(data)), 1)
        losses = F.cross_entropy(model(windows[:, :-1]).transpose(1, 2), windows[:, 1:])
        model.train(training)
        return losses / math.log(2)
    """, title="all positions of every window counted",
            says="You slide by one and then average over all positions of every window, those with hardly any context "
                 "included. Of each window but the first, only the last prediction counts."),
    Mistake(SLIDING, "beginning-left-out",
            edit=('nats = F.cross_entropy(model(head[None, :-1])[0], head[1:], reduction="sum")',
                  'nats = F.cross_entropy(model(head[None, :-1])[0, -1], head[-1], reduction="sum")'),
            title="the beginning is not counted",
            says="The first t − 1 predicted bytes are missing from your sum. They have less than t bytes before them; "
                 "take what there is."),
    Mistake(SLIDING, "beginning-twice", edit=("data.unfold(0, t + 1, 1)[1:]", "data.unfold(0, t + 1, 1)"),
            title="one byte counted twice",
            says="Byte t is counted twice: as the last prediction of the first window, and again."),
    Mistake(SLIDING, "last-byte-missing", edit=("data.unfold(0, t + 1, 1)[1:]", "data.unfold(0, t + 1, 1)[1:-1]"),
            title="the last byte is left out",
            says="The last byte of the text is never predicted."),
    Mistake(SLIDING, "context-too-short", instead="""
        training = model.training
        model.eval()
        data, nats = data.long(), 0.0
        for i in range(1, len(data)):
            logits = model(data[max(0, i - t + 1):i][None])[0, -1]
            nats = nats + F.cross_entropy(logits, data[i])
        model.train(training)
        return nats / (len(data) - 1) / math.log(2)
    """, title="one byte of the context given away",
            says="Your bytes are predicted from t − 1 bytes before them. The window holds t."),
    Mistake(SLIDING, "context-all", instead="""
        training = model.training
        model.eval()
        data = data.long()
        loss = F.cross_entropy(model(data[None, :-1])[0], data[1:])
        model.train(training)
        return loss / math.log(2)
    """, title="the whole text as one window",
            says="You hand the whole text to the model at once. It takes windows of t bytes, and no more."),
    Mistake(SLIDING, "first-logits", edit=("logits = model(part[:, :-1])[:, -1]", "logits = model(part[:, :-1])[:, 0]"),
            title="the logits of the first position",
            says="Of each further window you take the logits of its first position. The last one has the full context, "
                 "and is about the byte that is new."),
    Mistake(SLIDING, "target-off-by-one",
            edit=('F.cross_entropy(logits, part[:, -1], reduction="sum")',
                  'F.cross_entropy(logits, part[:, -2], reduction="sum")'), title="compared with the byte before",
            says="You hold the prediction against the last byte of the *input*. It is about the one after."),
    Mistake(SLIDING, "mean-of-means",
            edit=('F.cross_entropy(logits, part[:, -1], reduction="sum")', "F.cross_entropy(logits, part[:, -1])"),
            title="a mean where a sum is needed",
            says="You add the *mean* of each batch of windows to a sum, so the batches count for next to nothing. Add "
                 "up everything, and divide once."),
    Mistake(SLIDING, "training-mode", edit=("model.eval()\n", "model.train()\n"), title="training mode while measuring",
            says="The model is in training mode while it is measured."),
    Mistake(SLIDING, "no-eval", edit=("model.eval()\n", "pass\n"), title="the mode is left as it comes",
            says="You measure the model in whatever mode it comes. In the middle of a training that is training mode, "
                 "and dropout makes it look worse than it is."),
    Mistake(SLIDING, "mode-not-restored", edit=("model.train(training)\n", "pass\n"),
            title="the model is left in evaluation mode",
            says="The model comes back in evaluation mode, whatever mode it came in. A training that measures now and "
                 "then would go on without its dropout."),
    Mistake(SLIDING, "on-the-cpu",
            edit=("data = data.long()\n", "data = torch.zeros(len(data), dtype=torch.long) + data\n"),
            title="a tensor made on the CPU",
            says="You make a tensor without saying where, and it lands on the CPU, wherever the data are."),
    Mistake(SLIDING, "mean-of-the-parts", instead="""
        training = model.training
        model.eval()
        data = data.long()
        head = data[: t + 1]
        means = [F.cross_entropy(model(head[None, :-1])[0], head[1:])]
        if len(data) > t + 1:
            for part in data.unfold(0, t + 1, 1)[1:].split(64):
                means.append(F.cross_entropy(model(part[:, :-1])[:, -1], part[:, -1]))
        model.train(training)
        return torch.stack(means).mean() / math.log(2)
    """, title="a mean of the parts' means",
            says="You take the mean of each batch of windows, and then the mean of these. The first window and the "
                 "batches hold different numbers of predictions: add all of them up, and divide once."),
    Mistake(SLIDING, "stays-bytes", edit=("data = data.long()\n", "pass\n"), title="bytes that stay uint8",
            says="The text is of type uint8. An embedding and a cross-entropy want int64."),
    Mistake(SLIDING, "two-parts-averaged", instead="""
        training = model.training
        model.eval()
        data = data.long()
        head, windows = data[: t + 1], data.unfold(0, min(t + 1, len(data)), 1)[1:]
        nats = F.cross_entropy(model(head[None, :-1])[0], head[1:])
        if len(windows):
            later = F.cross_entropy(model(windows[:, :-1])[:, -1], windows[:, -1])
            nats = (nats + later) / 2
        model.train(training)
        return nats / math.log(2)
    """, title="the mean of two means",
            says="You average the first window, average the others, and take the mean of the two. They hold different "
                 "numbers of predictions: add all of them up, and divide once."),
    Mistake(SLIDING, "beginning-one-too-few", instead="""
        training = model.training
        model.eval()
        data, nats = data.long(), 0.0
        for i in range(t, len(data)):
            nats = nats + F.cross_entropy(model(data[i - t:i][None])[:, -1], data[i:i + 1])
        model.train(training)
        return torch.as_tensor(nats) / max(len(data) - t, 1) / math.log(2)
    """, title="only bytes with full context are counted",
            says="You count the bytes that have t others before them, and leave out those at the beginning. They "
                 "count too, with as many before them as there are."),
    EquivalentMutant(SLIDING, "return nats / (len(data) - 1) / math.log(2)",
        "return (nats / (len(data) - 1) / math.log(2)).mT",
          "one number has no axes to exchange"),
    EquivalentMutant(SLIDING, "return nats / (len(data) - 1) / math.log(2)",
          "return (nats / (len(data) - 1) / math.log(2)).squeeze()", "one number has no axes"),
    EquivalentMutant(SLIDING, "return nats / (len(data) - 1) / math.log(2)",
          "return (nats / (len(data) - 1) / math.log(2)).detach()", "the function runs under no_grad"),
    EquivalentMutant(SLIDING, "64", "128", "how many windows go in at once is free"),
    EquivalentMutant(SLIDING, "64", "65", "how many windows go in at once is free"),
    EquivalentMutant(SLIDING, "len(data) > t + 1", "len(data) >= t + 1",
        "with t + 1 bytes there is no further window to add"),
    EquivalentMutant(SLIDING, "t + 1", "t", "with t + 1 bytes there is no further window to add"),
    EquivalentMutant(SLIDING, "model(head[None, :-1])[0]", "model(head[None, :-1])[-1]", "a batch of one"),
    Accepted(SLIDING, "one-after-the-other", instead="""
        mode = model.training
        model.eval()
        losses = []
        for i in range(1, len(data)):
            window = data[max(0, i - t):i].long()
            losses.append(F.cross_entropy(model(window.unsqueeze(0))[:, -1], data[i:i + 1].long()))
        model.train(mode)
        return torch.stack(losses).mean() * math.log2(math.e)
    """),
    Accepted(SLIDING, "as-a-number", instead="""
        mode = model.training
        model.eval()
        bits = 0.0
        for i in range(1, len(data)):
            chances = model(data[max(0, i - t):i].long()[None])[0, -1].softmax(-1)
            bits -= math.log2(chances[data[i].long()].item())
        model.train(mode)
        return bits / (len(data) - 1)
    """),
    Accepted(SLIDING, "log-probabilities", instead="""
        was_training = model.training
        model.eval()
        ids = data.to(torch.int64)
        windows = ids.unfold(0, min(t, len(ids) - 1), 1)[:-1]
        logs = model(windows).log_softmax(dim=-1)
        said = [logs[0].gather(-1, ids[1:windows.shape[1] + 1, None])[:, 0]]
        said.append(logs[1:, -1].gather(-1, ids[windows.shape[1] + 1:, None])[:, 0])
        if was_training:
            model.train()
        return -torch.cat(said).mean() / torch.log(torch.tensor(2.0, device=ids.device))
    """),
    Shortcut(HEAT, "finished-part", instead="return finished_temperature(logits, temperature)"),
    Shortcut(TOP_P, "finished-part", instead="return finished_top_p(logits, p)"),
]
