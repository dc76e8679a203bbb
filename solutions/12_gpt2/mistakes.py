"""What students get wrong in lesson 12, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

CONV, BLOCK, MODEL, RENAME, LINEAR, CACHED, PERPLEXITY, INDUCTION = (
    "Conv1D",
    "GPT2Block",
    "GPT2",
    "rename_weights",
    "for_linear",
    "generate_cached",
    "perplexity",
    "induction_score",
)

DECIDES = 'if ".c_" in name and name.endswith(".weight"):'  # the line of for_linear on which all depends

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # --------------------------------------------------------------------------------------------- Conv1D
    Mistake(CONV, "transposed",
            edit=(("torch.randn(n_in, n_out)", "torch.randn(n_out, n_in)"), ("x @ self.weight", "x @ self.weight.T")),
            title="the weight stored as nn.Linear stores it",
            says="Your weight is (n_out, n_in), as in nn.Linear. GPT-2's were published as (n_in, n_out); yours could "
                 "not take them."),
    Mistake(CONV, "linear-inside", instead=("self.linear = nn.Linear(n_in, n_out)", "return self.linear(x)"),
            title="an nn.Linear inside",
            says="There is an nn.Linear in your module, so its parameters have other names, and the weight another "
                 "shape, than the published ones."),
    Mistake(CONV, "no-bias",
            edit=(("        self.bias = nn.Parameter(torch.zeros(n_out))\n", ""), (" + self.bias", "")),
            title="no bias",
            says="Your layer has no parameter called `bias`: there is none, or it is a plain tensor, which is neither "
                 "trained nor loaded. All linear layers of GPT-2 have one."),
    Mistake(CONV, "bias-not-used", edit=(" + self.bias", ""), title="the bias is not added",
            says="Your bias is made and never added. (It starts at zero, so that a fresh model does not show it.)"),
    Alias(CONV, "bias-no-parameter", of="no-bias", edit=("nn.Parameter(torch.zeros(n_out))", "torch.zeros(n_out)")),
    Mistake(CONV, "bias-first", edit=("x @ self.weight + self.bias", "(x + self.bias[: x.shape[-1]]) @ self.weight"),
            title="bias added before the product",
            says="You add the bias to x. It has n_out components and belongs to the result."),
    Mistake(CONV, "flattened",
            edit=("return x @ self.weight + self.bias",
                  "y = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)\n        return y"),
            title="the axes in front are gone",
            says="You lay all positions into one long axis for the product and leave them so. The result has to have "
                 "the axes that x had: (..., n_out)."),
    Mistake(CONV, "three-axes-only",
            edit=("x @ self.weight + self.bias", 'torch.einsum("bti,io->bto", x, self.weight) + self.bias'),
            title="three axes only",
            says="Your einsum wants exactly three axes. The layer takes any number of axes in front: `...` in einsum, "
                 "or a plain `@`."),
    Mistake(CONV, "transposed-in-use", edit=("x @ self.weight", "x @ self.weight.T"),
            title="the weight transposed on the way",
            says="Your weight is stored as (n_in, n_out), and transposed again when it is used, as F.linear does. x @ "
                 "w takes it as it is."),
    Mistake(CONV, "minus-bias", edit=("+ self.bias", "- self.bias"), title="the bias is subtracted",
            says="The bias is added."),
    Mistake(CONV, "bias-twice", edit=("+ self.bias", "+ 2 * self.bias"), title="the bias is added twice",
            says="The bias is in your result twice."),
    Mistake(CONV, "used-without-gradient",
            edit=("x @ self.weight + self.bias", "x @ self.weight.data + self.bias.data"),
            title="the parameters are used without their gradients",
            says="Your numbers are right, and no gradient gets to the parameters, so they would never learn. Use the "
                 "parameters themselves, without `.data` or `.detach()`."),
    Mistake(CONV, "start-variance", edit=("0.02 * torch.randn", "math.sqrt(0.02) * torch.randn"),
            title="0.02 taken for the variance",
            says="Your weight starts with a standard deviation of 0.14, whose square is 0.02. The standard deviation "
                 "itself is to be 0.02."),
    Mistake(CONV, "start-too-large", edit=("0.02 * torch.randn", "torch.randn"), title="the start is too large",
            says="Your weight starts with a standard deviation of 1. It is to be 0.02."),
    Mistake(CONV, "start-uniform", edit=("0.02 * torch.randn(n_in, n_out)", "0.02 * torch.rand(n_in, n_out)"),
            title="a uniform start",
            says="`torch.rand` draws uniformly, between 0 and 1. Normal numbers are asked for, around 0."),
    Mistake(CONV, "start-bias", edit=("torch.zeros(n_out)", "0.02 * torch.randn(n_out)"),
            title="the bias does not start at 0", says="Your bias starts at drawn numbers. It starts at 0."),
    Mistake(CONV, "start-bias-ones", edit=("torch.zeros(n_out)", "torch.ones(n_out)"), title="the bias starts at 1",
            says="Your bias starts at 1. It starts at 0."),
    Mistake(CONV, "start-zeros", edit=("0.02 * torch.randn(n_in, n_out)", "torch.zeros(n_in, n_out)"),
            title="the weight starts at 0",
            says="Your weight starts at zeros, so that all its columns would learn the same. Start it at normal "
                 "numbers."),
    Mistake(CONV, "start-as-linear",
            edit=("0.02 * torch.randn(n_in, n_out)", "(2 * torch.rand(n_in, n_out) - 1) / math.sqrt(n_in)"),
            title="the start of nn.Linear",
            says="Your weight starts at uniform numbers, as that of nn.Linear does. Normal numbers of standard "
                 "deviation 0.02 are asked for."),
    Accepted(CONV, "addmm", instead=("""
        self.weight = nn.Parameter(torch.empty(n_in, n_out).normal_(std=0.02))
        self.bias = nn.Parameter(torch.zeros(n_out))
    """, """
        flat = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)
        return flat.reshape(*x.shape[:-1], -1)
    """)),
    Accepted(CONV, "functional", instead=("", "return F.linear(x, self.weight.T, self.bias)")),
    Accepted(CONV, "einsum", instead=("""
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.weight = nn.Parameter(torch.zeros(n_in, n_out))
        nn.init.normal_(self.weight, std=0.02)
    """,
                                  "return self.bias + torch.einsum('...i,io->...o', x, self.weight)")),
    Shortcut(CONV, "finished-part", instead=("", "return finished_gpt2.Conv1D.forward(self, x)")),
    # ------------------------------------------------------------------------------------------ GPT2Block
    Mistake(BLOCK, "no-mask", edit=("scores.masked_fill(future, -torch.inf)", "scores"), title="no causal mask",
            says="Every position of yours looks at the whole text, at the token that it is to predict too. (A "
                 "published walk-through builds the triangle and never uses it.) Hide what lies in the future before "
                 "the softmax."),
    Mistake(BLOCK, "no-scale", edit=(" / math.sqrt(e // self.h)", ""), title="scores not divided by √d",
            says="Your scores are not divided by √d. A published walk-through has a switch for it, and leaves it off; "
                 "the weights were trained with it on."),
    Mistake(BLOCK, "neither",
            edit=((" / math.sqrt(e // self.h)", ""), ("scores.masked_fill(future, -torch.inf)", "scores")),
            title="neither scaled nor masked",
            says="Your scores are not divided by √d, and nothing hides the future. Two things to mend."),
    Mistake(BLOCK, "scaled-by-e", edit=("math.sqrt(e // self.h)", "math.sqrt(e)"), title="scores divided by √e",
            says="You divide by the root of the whole width. d is the width of one head, e/h."),
    Mistake(BLOCK, "scaled-by-d", edit=("math.sqrt(e // self.h)", "(e // self.h)"), title="scores divided by d",
            says="You divide by d, the width of one head. By its *root* is asked for."),
    Mistake(BLOCK, "scaled-by-h", edit=("math.sqrt(e // self.h)", "math.sqrt(self.h)"), title="scores divided by √h",
            says="You divide by the root of the number of heads. d is the width of one head, e/h."),
    Mistake(BLOCK, "scaled-by-t", edit=("math.sqrt(e // self.h)", "math.sqrt(t)"), title="scores divided by √t",
            says="You divide by the root of the number of positions. d is the width of one head, e/h."),
    Mistake(BLOCK, "multiplied-by-root", edit=("/ math.sqrt", "* math.sqrt"), title="scores times √d",
            says="You multiply by √d. The scores are divided by it, so that they stay small."),
    Mistake(BLOCK, "whole-root", edit=("math.sqrt(e // self.h)", "int(math.sqrt(e // self.h))"),
            title="the root rounded to a whole number",
            says="Your √d is cut to a whole number. Take it as it is."),
    Mistake(BLOCK, "zeros-before-softmax", edit=("masked_fill(future, -torch.inf)", "masked_fill(future, 0.0)"),
            title="scores of 0 for the future",
            says="You give the future a score of 0. e⁰ is 1, so it gets its share of the weight all the same. What is "
                 "hidden needs a score of −∞."),
    Mistake(BLOCK, "softmax-over-queries", edit=("-torch.inf), dim=-1)", "-torch.inf), dim=-2)"),
            title="softmax over the queries",
            says="Your softmax goes over the wrong axis of (b, h, t, t): each row, of one who looks, has to sum to 1."),
    Mistake(BLOCK, "no-softmax",
            edit=("torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)", "scores.masked_fill(future, 0.0)"),
            title="no softmax", says="Your scores are used as weights as they are. A softmax makes weights of them."),
    Mistake(BLOCK, "mask-after-softmax",
            edit=("torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)",
                  "torch.softmax(scores, dim=-1).masked_fill(future, 0.0)"), title="the mask after the softmax",
            says="You hide the future after the softmax: the rows no longer add up to 1, and the future has taken its "
                 "share. The mask comes before."),
    Mistake(BLOCK, "diagonal-hidden", edit=(".triu(1)", ".triu()"), title="the diagonal hidden too",
            says="A position of yours may not look at itself, and the first may look nowhere: its row is NaN. Only "
                 "what lies after it is the future."),
    Mistake(BLOCK, "upside-down", edit=(".triu(1)", ".tril(-1)"), title="the triangle upside down",
            says="You hide the past and show the future. Row i is who looks: hide the columns j > i."),
    Mistake(BLOCK, "mask-turned-round", edit=("masked_fill(future,", "masked_fill(~future,"),
            title="the mask turned round",
            says="You hide what may be seen and show the future. The last position has none, so its row is NaN."),
    Mistake(BLOCK, "nearly-hidden", edit=("-torch.inf)", "-1.0)"), title="the future is not hidden enough",
            says="The scores of the future get a number that is not small enough: e to it is no zero, so the future "
                 "keeps a share. −∞ leaves none."),
    Mistake(BLOCK, "q-and-k-swapped", edit=("q, k, v = (split_heads", "k, q, v = (split_heads"),
            title="queries and keys exchanged",
            says="You take the first third for the keys. Published order: queries, keys, values."),
    Mistake(BLOCK, "values-first", edit=("q, k, v = (split_heads", "v, q, k = (split_heads"), title="values first",
            says="You take the first third for the values. Published order: queries, keys, values."),
    Mistake(BLOCK, "values-second", edit=("q, k, v = (split_heads", "q, v, k = (split_heads"),
            title="keys and values exchanged",
            says="You take the second third for the values. Published order: queries, keys, values."),
    Mistake(BLOCK, "exchanged-ends", edit=("q, k, v = (split_heads", "v, k, q = (split_heads"),
            title="values, keys, queries",
            says="You take the thirds in the order values, keys, queries. Published order: queries, keys, values."),
    Mistake(BLOCK, "keys-values-queries", edit=("q, k, v = (split_heads", "k, v, q = (split_heads"),
            title="keys, values, queries",
            says="You take the thirds in the order keys, values, queries. Published order: queries, keys, values."),
    Mistake(BLOCK, "three-per-head",
            edit=((".chunk(3, dim=-1)", ""),
                  ("(split_heads(part, self.h) for part in three)", "split_heads(three, self.h).chunk(3, dim=-1)")),
            title="heads first, then queries, keys and values",
            says="You cut into heads first and each head into three. The layer gives all queries, then all keys, then "
                 "all values: cut into three first, and each of them into heads."),
    Mistake(BLOCK, "heads-not-split",
            edit=("(split_heads(part, self.h) for part",
                  "(part.reshape(-1, self.h, t, e // self.h) for part"),
            title="heads cut without exchanging axes",
            says="(b, t, e) laid out as (b, h, t, d) mixes positions with heads. `split_heads` cuts the width, and "
                 "then exchanges the axes."),
    Mistake(BLOCK, "as-many-heads-as-wide", edit=("(split_heads(part, self.h) for part",
                                                  "(split_heads(part, e // self.h) for part"),
            title="d heads of width h",
            says="You cut into d heads of width h. The second argument of `split_heads` is the number of heads."),
    Mistake(BLOCK, "heads-not-merged", edit=("merge_heads(weights @ v)", "(weights @ v).reshape(*x.shape)"),
            title="heads put together without exchanging axes",
            says="(b, h, t, d) laid out as (b, t, e) mixes heads with positions. `merge_heads` exchanges the axes "
                 "first."),
    Mistake(BLOCK, "one-head", edit=("(split_heads(part, self.h) for part", "(split_heads(part, 1) for part"),
            title="one head",
            says="Your attention has a single head. `split_heads(part, self.h)` cuts it into h."),
    Mistake(BLOCK, "no-unify", edit=("self.attention.unify(merge_heads(weights @ v))", "merge_heads(weights @ v)"),
            title="heads not mixed",
            says="What the heads bring has to go through `unify` at the end."),
    Mistake(BLOCK, "unify-twice", edit=("self.attention.unify(merge_heads(weights @ v))",
                                         "self.attention.unify(self.attention.unify(merge_heads(weights @ v)))"),
            title="`unify` twice", says="What the heads bring goes through `unify` twice in yours."),
    Mistake(BLOCK, "attention-not-normalised", edit=("self.attend(self.norm1(x))", "self.attend(x)"),
            title="the attention reads x without a norm",
            says="The attention has to read a normalised x, as the network does: `norm1`."),
    Mistake(BLOCK, "norms-exchanged", edit=(("self.attend(self.norm1(x))", "self.attend(self.norm2(x))"),
                                            ("widen(self.norm2(x))", "widen(self.norm1(x))")),
            title="norm1 and norm2 exchanged", says="`norm1` stands before the attention, `norm2` before the network."),
    Mistake(BLOCK, "norm-of-what-is-added", instead=("", """
        x = x + self.norm1(self.attend(x))
        hidden = finished_gelu(self.feed_forward.widen(x))
        return x + self.norm2(self.feed_forward.narrow(hidden))
    """), title="the norm after each layer",
            says="You normalise what each layer gives, before it is added. GPT-2 normalises what each layer *reads*."),
    Mistake(BLOCK, "added-twice", edit=("return self.attention.unify(merge_heads(weights @ v))",
                                        "return x + self.attention.unify(merge_heads(weights @ v))"),
            title="`attend` adds its own input",
            says="`attend` gives what the attention brings and no more. The shortcut is in `forward`; in yours "
                 "something is added in both."),
    Mistake(BLOCK, "network-twice", edit=("return x + self.feed_forward.narrow(hidden)",
                                          "return x + x + self.feed_forward.narrow(hidden)"),
            title="x is added twice", says="x is in your last sum twice. The shortcut carries it once."),
    Mistake(BLOCK, "no-shortcuts", instead=("", """
        x = self.attend(self.norm1(x))
        return self.feed_forward.narrow(finished_gelu(self.feed_forward.widen(self.norm2(x))))
    """), title="no shortcut at all",
            says="Neither the attention nor the network has a shortcut around it in yours: x has to be added to what "
                 "each of them gives."),
    Mistake(BLOCK, "network-first", instead=("", """
        hidden = finished_gelu(self.feed_forward.widen(self.norm2(x)))
        x = x + self.feed_forward.narrow(hidden)
        return x + self.attend(self.norm1(x))
    """), title="the network before the attention", says="The attention comes first, then the network."),
    Mistake(BLOCK, "gelu-at-the-end", edit=(("finished_gelu(self.feed_forward.widen(self.norm2(x)))",
                                             "self.feed_forward.widen(self.norm2(x))"),
                                            ("self.feed_forward.narrow(hidden)",
                                             "finished_gelu(self.feed_forward.narrow(hidden))")),
            title="GELU after the second layer", says="GELU stands between the two layers of the network, where it is "
                                                      "wide. In yours it comes after both."),
    Mistake(BLOCK, "attention-only", instead=("", "return x + self.attend(self.norm1(x))"),
            title="the network is missing", says="After the attention comes the network, with a norm and a shortcut of "
                                                 "its own."),
    Mistake(BLOCK, "norm-at-the-end", edit=("return x + self.feed_forward.narrow(hidden)",
                                            "return self.norm2(x + self.feed_forward.narrow(hidden))"),
            title="one norm too many at the end", says="You normalise the last sum. The block returns it as it is; the "
                                                       "next layer that reads it has a norm."),
    Mistake(BLOCK, "detached", edit=("return self.attention.unify(merge_heads(weights @ v))",
                                     "return self.attention.unify(merge_heads(weights @ v)).detach()"),
            title="no gradient through the attention",
            says="Your numbers are right, and no gradient flows back through `attend`: its layers would never learn. "
                 "Something cuts the graph there, such as detach(), .data or no_grad()."),
    Mistake(BLOCK, "post-norm", instead=("", """
        x = self.norm1(x + self.attend(x))
        hidden = finished_gelu(self.feed_forward.widen(x))
        return self.norm2(x + self.feed_forward.narrow(hidden))
    """), title="norm last",
            says="You normalise after the sums, as the transformer of 2017 did. GPT-2 normalises first: the norm is "
                 "inside the detour, and the shortcut carries x as it came in."),
    Mistake(BLOCK, "shortcut-after-norm", instead=("", """
        x = self.norm1(x)
        x = x + self.attend(x)
        x = self.norm2(x)
        return x + self.feed_forward.narrow(finished_gelu(self.feed_forward.widen(x)))
    """), title="the shortcut starts after the norm",
            says="You normalise x and then add to the *normalised* x. The shortcut carries x as it came in."),
    Mistake(BLOCK, "attention-shortcut-after-norm",
            edit=("x = x + self.attend(self.norm1(x))", "x = self.norm1(x)\n        x = x + self.attend(x)"),
            title="the attention's shortcut starts after the norm",
            says="Around the attention you add to the *normalised* x. The shortcut carries x as it came in."),
    Mistake(BLOCK, "network-shortcut-after-norm",
            edit=("hidden = finished_gelu(self.feed_forward.widen(self.norm2(x)))",
                  "x = self.norm2(x)\n        hidden = finished_gelu(self.feed_forward.widen(x))"),
            title="the network's shortcut starts after the norm",
            says="Around the network you add to the *normalised* x. The shortcut carries x as it was before `norm2`."),
    Mistake(BLOCK, "no-shortcut",
            edit=("return x + self.feed_forward.narrow(hidden)", "return self.feed_forward.narrow(hidden)"),
            title="no shortcut around the network",
            says="The network's output is returned alone. x has to be added to it."),
    Mistake(BLOCK, "no-shortcut-attention",
            edit=("x = x + self.attend(self.norm1(x))", "x = self.attend(self.norm1(x))"),
            title="no shortcut around the attention",
            says="What the attention gives replaces x. It has to be added to it."),
    Mistake(BLOCK, "side-by-side",
            edit=("x = x + self.attend(self.norm1(x))\n        hidden = "
                  "finished_gelu(self.feed_forward.widen(self.norm2(x)))\n        return x + "
                  "self.feed_forward.narrow(hidden)",
                  "hidden = finished_gelu(self.feed_forward.widen(self.norm2(x)))\n        return x + "
                  "self.attend(self.norm1(x)) + self.feed_forward.narrow(hidden)"), title="both layers read the same x",
            says="Your network reads the x that came into the block. It comes second, and reads what the attention has "
                 "added too."),
    Mistake(BLOCK, "exact-gelu", edit=("finished_gelu(self", "F.gelu(self"), title="the exact GELU",
            says="`F.gelu` is the exact one unless told otherwise. GPT-2's weights were trained with the approximation "
                 "by tanh: a small difference, in every block."),
    Mistake(BLOCK, "relu", edit=("finished_gelu(self", "torch.relu(self"), title="ReLU",
            says="Lesson 7's network has a ReLU. GPT-2's has GELU."),
    Mistake(BLOCK, "no-activation",
            edit=("finished_gelu(self.feed_forward.widen(self.norm2(x)))", "self.feed_forward.widen(self.norm2(x))"),
            title="nothing between the two layers",
            says="Two linear layers with nothing between them are one linear layer. GELU belongs in the middle."),
    Mistake(BLOCK, "one-norm", edit=("self.norm2(x)", "self.norm1(x)"), title="norm1 used twice",
            says="You use `norm1` for both layers. `norm2` has a weight and a bias of its own, and belongs to the "
                 "network."),
    Mistake(BLOCK, "network-not-normalised",
            edit=("self.feed_forward.widen(self.norm2(x))", "self.feed_forward.widen(x)"),
            title="the network reads x without a norm",
            says="The network has to read a normalised x, as the attention does: `norm2`."),
    Mistake(BLOCK, "mask-on-the-cpu", edit=("dtype=torch.bool, device=x.device)", "dtype=torch.bool)"),
            title="a triangle made on the CPU",
            says="Your triangle is made on the CPU, wherever x is. Pass `device=x.device`."),
    Mistake(BLOCK, "in-place", edit=("x = x + self.attend(self.norm1(x))", "x += self.attend(self.norm1(x))"),
            title="the input changed in place",
            says="`x += ...` writes into the caller's tensor. Make a new one: x + ..."),
    EquivalentMutant(BLOCK, "scores.masked_fill(future, -torch.inf)", "scores.masked_fill_(future, -torch.inf)",
          "the scores are the function's own, and nobody reads them afterwards"),
    EquivalentMutant(BLOCK, "-2", "2", "k has four axes, so axis 2 is axis -2"),
    Accepted(BLOCK, "pytorchs-attention", instead=("""
        b, t, e = x.shape
        q, k, v = [split_heads(part, self.h) for part in self.attention["to_qkv"](x).split(e, dim=2)]
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.attention["unify"](merge_heads(out))
    """, """
        x = x + self.attend(self.norm1(x))
        return x + self.feed_forward.narrow(F.gelu(self.feed_forward.widen(self.norm2(x)), approximate="tanh"))
    """)),
    Accepted(BLOCK, "large-negative", instead=("""
        b, t, e = x.shape
        d = e // self.h
        three = self.attention.to_qkv(x).view(b, t, 3, self.h, d).permute(2, 0, 3, 1, 4)
        q, k, v = three.unbind(0)
        scores = torch.einsum("bhtd,bhsd->bhts", q / d ** 0.5, k)
        past = torch.tril(torch.ones(t, t, device=x.device))
        weights = torch.where(past == 1, scores, -1e9).softmax(-1)
        return self.attention.unify((weights @ v).transpose(1, 2).reshape(b, t, e))
    """,
                                           "")),
    Accepted(BLOCK, "head-by-head", instead=("""
        b, t, e = x.shape
        d = e // self.h
        three = self.attention.to_qkv(x)
        outputs = []
        for head in range(self.h):
            q, k, v = [three[..., part * e + head * d : part * e + (head + 1) * d] for part in range(3)]
            scores = q @ k.mT * d ** -0.5
            hidden = torch.arange(t, device=x.device)[None, :] > torch.arange(t, device=x.device)[:, None]
            scores = scores + torch.zeros_like(scores).masked_fill(hidden, float("-inf"))
            outputs.append(F.softmax(scores, -1) @ v)
        return self.attention.unify(torch.cat(outputs, -1))
    """, """
        after = x + self.attend(self.norm1(x))
        inside = finished_gelu(self.feed_forward["widen"](self.norm2(after)))
        return self.feed_forward["narrow"](inside) + after
    """)),
    Shortcut(BLOCK, "finished-part", instead=("", "return FinishedBlock.forward(self, x)")),
    # ----------------------------------------------------------------------------------------------- GPT2
    Mistake(MODEL, "no-final-norm", edit=("self.norm(x) @ self.tokens.weight.T", "x @ self.tokens.weight.T"),
            title="the final norm is missing",
            says="The sum that leaves the last block has been normalised by nobody. One more norm comes before the "
                 "logits."),
    Mistake(MODEL, "no-final-norm-at-all",
            edit=(("        self.norm = nn.LayerNorm(config.e, eps=config.epsilon)\n", ""),
                  ("self.norm(x) @ self.tokens.weight.T", "x @ self.tokens.weight.T")),
            title="the final norm is missing, and its parameters too",
            says="The sum that leaves the last block has been normalised by nobody. One more norm, `norm`, comes "
                 "before the logits; the well-known drawing forgets it as well."),
    Mistake(MODEL, "head-not-tied",
            edit=(("self.norm = nn.LayerNorm(config.e, eps=config.epsilon)",
                   "self.norm = nn.LayerNorm(config.e, eps=config.epsilon)\n        self.head = nn.Linear(config.e, "
                   "config.n, bias=False)"),
                  ("self.norm(x) @ self.tokens.weight.T", "self.head(self.norm(x))")), title="the head is not tied",
            says="Your output layer has a matrix of its own. GPT-2 takes the table of tokens a second time: nothing "
                 "more to learn, and nothing more to load."),
    Mistake(MODEL, "head-with-bias",
            edit=(("self.norm = nn.LayerNorm(config.e, eps=config.epsilon)",
                   "self.norm = nn.LayerNorm(config.e, eps=config.epsilon)\n        self.head = nn.Linear(config.e, "
                   "config.n)\n        self.head.weight = self.tokens.weight"),
                  ("self.norm(x) @ self.tokens.weight.T", "self.head(self.norm(x))")), title="the head has a bias",
            says="Your head is tied, and has a bias besides. GPT-2's has none."),
    Mistake(MODEL, "positions-from-one",
            edit=("torch.arange(ids.shape[1], device=ids.device)",
                  "torch.arange(1, ids.shape[1] + 1, device=ids.device)"), title="positions start at 1",
            says="Your first token stands at position 1, and in a full window the last falls off the table. Positions "
                 "are 0 to t − 1."),
    Mistake(MODEL, "positions-from-the-end",
            edit=("torch.arange(ids.shape[1], device=ids.device)",
                  "torch.arange(ids.shape[1] - 1, -1, -1, device=ids.device)"), title="positions counted from the end",
            says="Your positions run backwards: the last token stands at 0. The first does."),
    Mistake(MODEL, "no-positions", edit=("x = self.tokens(ids) + self.positions(places)", "x = self.tokens(ids)"),
            title="positions not added",
            says="The vectors of positions are made and never added: your model does not know where a token stands."),
    Mistake(MODEL, "positions-multiplied", edit=("self.tokens(ids) + self", "self.tokens(ids) * self"),
            title="positions multiplied with tokens",
            says="You multiply the vectors of tokens and positions. They are added."),
    Mistake(MODEL, "positions-after-the-blocks",
            edit=(("self.tokens(ids) + self.positions(places)", "self.tokens(ids)"),
                  ("return self.norm(x) @", "return self.norm(x + self.positions(places)) @")),
            title="positions added after the blocks",
            says="You add the positions after the blocks, so that no block knows where a token stands. They are added "
                 "at the entrance."),
    Mistake(MODEL, "tokens-as-positions", edit=("self.positions(places)", "self.tokens(places)"),
            title="positions looked up in the table of tokens",
            says="You look positions up in the table of tokens. They have a table of their own."),
    Mistake(MODEL, "positions-by-token", edit=("self.positions(places)", "self.positions(ids)"),
            title="positions looked up by the ids of the tokens",
            says="You look up the table of positions with the ids. It wants to know *where* a token stands: 0 to "
                 "t − 1."),
    Mistake(MODEL, "one-position", edit=("self.positions(places)", "self.positions(places)[-1]"),
            title="one position for all tokens",
            says="All your tokens get the vector of one and the same position, the last. Each has its own."),
    Mistake(MODEL, "first-position-for-all", edit=("self.positions(places)", "self.positions(places)[0]"),
            title="position 0 for all tokens",
            says="All your tokens get the vector of position 0. Each has its own."),
    Mistake(MODEL, "positions-without-gradient", edit=("self.positions(places)", "self.positions(places).detach()"),
            title="the table of positions gets no gradient",
            says="Your numbers are right, and no gradient gets to the table of positions, so it would never learn. "
                 "Something cuts the graph there, such as detach() or .data."),
    Mistake(MODEL, "head-without-gradient", edit=("@ self.tokens.weight.T", "@ self.tokens.weight.detach().T"),
            title="no gradient through the head",
            says="Your logits are right, and the table of tokens learns nothing from its second job: at the head "
                 "something cuts the graph, such as detach() or .data."),
    Mistake(MODEL, "default-epsilon", edit=("nn.LayerNorm(config.e, eps=config.epsilon)", "nn.LayerNorm(config.e)"),
            title="the last norm has an epsilon of its own",
            says="Your last norm has PyTorch's epsilon. It is a setting: config.epsilon, as in the blocks."),
    Mistake(MODEL, "one-block",
            edit=("nn.ModuleList([FinishedBlock(config) for _ in range(config.depth)])",
                  "nn.ModuleList([FinishedBlock(config)] * config.depth)"), title="one block, depth times",
            says="`[block] * depth` is a list with one block in it, again and again. Each needs weights of its own: "
                 "make a new one each time round."),
    Mistake(MODEL, "copy-not-imported",
            edit=("nn.ModuleList([FinishedBlock(config) for _ in range(config.depth)])",
                  "nn.ModuleList([copy.deepcopy(FinishedBlock(config)) for _ in range(config.depth)])"),
            title="a name that was never imported",
            says="You use `copy`, and nothing has imported it; a published walk-through does the same. You do not need "
                 "it: call FinishedBlock once for each block."),
    Mistake(MODEL, "backwards", edit=("for block in self.blocks:", "for block in reversed(self.blocks):"),
            title="the last block first",
            says="You go through the blocks from the last to the first."),
    Mistake(MODEL, "first-block-only",
            edit=("            x = block(x)\n        return",
                  "            y = block(x)\n        x = y\n        return"), title="every block reads what came in",
            says="Each of your blocks reads the embeddings, and only what the last one gives is kept. A block reads "
                 "what the one before it has made."),
    Mistake(MODEL, "norm-in-between", edit=("x = block(x)", "x = self.norm(block(x))"),
            title="the final norm after every block",
            says="You normalise after each block. The last norm comes once, after all of them."),
    Mistake(MODEL, "norm-at-the-entrance",
            edit=(("    # (b, t, e)\n        for block", "\n        x = self.norm(x)\n        for block"),
                  ("self.norm(x) @ self.tokens.weight.T", "x @ self.tokens.weight.T")),
            title="the norm before the blocks",
            says="You normalise what enters the first block. The norm comes after the last one, before the logits."),
    Mistake(MODEL, "norm-twice", edit=("return self.norm(x) @", "return self.norm(self.norm(x)) @"),
            title="the last norm twice", says="Your sum goes through the last norm twice."),
    Mistake(MODEL, "last-block-missing", edit=("for block in self.blocks:", "for block in self.blocks[:-1]:"),
            title="the last block is left out", says="Your loop leaves the last block out."),
    Mistake(MODEL, "shortcut-around-blocks", edit=("x = block(x)", "x = x + block(x)"),
            title="a shortcut too many",
            says="You add x to what a block gives. The shortcuts are inside the blocks already."),
    Mistake(MODEL, "log-probabilities",
            edit=("return self.norm(x) @ self.tokens.weight.T",
                  "return (self.norm(x) @ self.tokens.weight.T).log_softmax(-1)"),
            title="log-probabilities instead of logits",
            says="You return log-probabilities. Logits are asked for: the loss takes the softmax itself."),
    Mistake(MODEL, "probabilities",
            edit=("return self.norm(x) @ self.tokens.weight.T",
                  "return (self.norm(x) @ self.tokens.weight.T).softmax(-1)"), title="probabilities instead of logits",
            says="You return probabilities. Logits are asked for: the loss takes the softmax itself."),
    Mistake(MODEL, "last-position-only",
            edit=("return self.norm(x) @ self.tokens.weight.T", "return self.norm(x[:, -1:]) @ self.tokens.weight.T"),
            title="the last position only",
            says="You return the logits of the last position. All positions predict their next token: (b, t, n)."),
    Mistake(MODEL, "scaled-embedding",
            edit=("x = self.tokens(ids) + ", "x = self.tokens(ids) * math.sqrt(self.config.e) + "),
            title="embeddings times √e",
            says="You multiply the vectors of the tokens by √e, as the transformer of 2017 did. GPT-2 does not."),
    Mistake(MODEL, "swapped-arguments",
            edit=("nn.Embedding(config.t_max, config.e)", "nn.Embedding(config.e, config.t_max)"),
            title="the arguments of nn.Embedding exchanged",
            says="nn.Embedding takes the number of rows first, then the width. Your table of positions has e rows of "
                 "width t_max."),
    Mistake(MODEL, "norm-without-weights",
            edit=("nn.LayerNorm(config.e, eps=config.epsilon)", "nn.LayerNorm(config.e, elementwise_affine=False)"),
            title="a last norm without weights",
            says="Your last norm has no weight and no bias. It has both, as all norms of GPT-2."),
    Mistake(MODEL, "on-the-cpu", edit=("torch.arange(ids.shape[1], device=ids.device)", "torch.arange(ids.shape[1])"),
            title="positions made on the CPU",
            says="Your positions are made on the CPU, wherever the ids are. Pass `device=ids.device`."),
    Accepted(MODEL, "tied-linear", instead=("""
        self.norm = nn.LayerNorm(config.e, eps=config.epsilon)
        self.head = nn.Linear(config.e, config.n, bias=False)
        self.tokens = nn.Embedding(config.n, config.e)
        self.head.weight = self.tokens.weight
        self.positions = nn.Embedding(config.t_max, config.e)
        self.blocks = nn.Sequential(*(FinishedBlock(config) for _ in range(config.depth)))
    """, """
        b, t = ids.shape
        x = self.positions(torch.arange(t, device=ids.device)).unsqueeze(0) + self.tokens(ids)
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)
    """)),
    Accepted(MODEL, "einsum", instead=("", """
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for i in range(self.config.depth):
            x = self.blocks[i](x)
        return torch.einsum("bte,ne->btn", self.norm(x), self.tokens.weight)
    """)),
    Accepted(MODEL, "positions-for-each", instead=("""
        c = config
        self.tokens, self.positions = nn.Embedding(c.n, c.e), nn.Embedding(c.t_max, c.e)
        self.blocks = nn.ModuleList()
        for _ in range(c.depth):
            self.blocks.append(FinishedBlock(c))
        self.norm = nn.LayerNorm([c.e], c.epsilon)
    """, """
        places = torch.arange(ids.size(1), device=ids.device).expand_as(ids)
        x = self.tokens(ids) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return torch.matmul(self.norm(x), self.tokens.weight.transpose(0, 1))
    """)),
    Shortcut(MODEL, "finished-part", instead=("", "return finished_gpt2.GPT2.forward(self, ids)")),
    # ------------------------------------------------------------------------------------- rename_weights
    Mistake(RENAME, "prefix-left", edit=('name.removeprefix("transformer.")', "name"), title="the prefix is left in",
            says="Names that begin with `transformer.` keep it. Files of both kinds are in use: take the prefix off "
                 "where there is one."),
    Mistake(RENAME, "prefix-always-cut", edit=('name.removeprefix("transformer.")', 'name[len("transformer."):]'),
            title="the beginning cut off every name",
            says="You cut twelve characters off every name, also where there is no `transformer.` to cut."),
    Mistake(RENAME, "prefix-cut-first",
            edit=('for name, tensor in published.items():', 'for name, tensor in ((name[len("transformer."):], tensor) '
                  'for name, tensor in published.items()):'),
            title="the beginning cut off every name",
            says="You cut twelve characters off every name, also where there is no `transformer.` to cut."),
    Mistake(RENAME, "masks-kept", edit=(' or name.endswith((".attn.bias", ".attn.masked_bias"))', ""),
            title="the masks are kept",
            says="`attn.bias` and `attn.masked_bias` are still there. They are the triangle that older files hold, and "
                 "no weights."),
    Mistake(RENAME, "c-attn-bias-lost",
            edit=('name.endswith((".attn.bias", ".attn.masked_bias"))', '"attn.bias" in name or "masked_bias" in name'),
            title="the bias of to_qkv is lost",
            says='"attn.bias" stands in "c_attn.bias" too, which is a weight. Look for the name with the point before '
                 "it, and at its end."),
    Mistake(RENAME, "one-mask-kept", edit=('(".attn.bias", ".attn.masked_bias")', '".attn.bias"'),
            title="masked_bias is kept",
            says="`attn.bias` is gone, `attn.masked_bias` is still there. Older files hold both."),
    Mistake(RENAME, "biases-lost", edit=('name.endswith((".attn.bias", ".attn.masked_bias"))', 'name.endswith("bias")'),
            title="all biases are lost",
            says="You leave out everything whose name ends in `bias`. Only two of them are masks."),
    Mistake(RENAME, "head-kept", edit=('name == "lm_head.weight" or ', ""), title="lm_head is kept",
            says="`lm_head.weight` is the table of tokens a second time. The head is tied, so there is no place for "
                 "it."),
    Mistake(RENAME, "head-instead-of-table",
            edit=('name == "lm_head.weight" or name',
                  'name.endswith("wte.weight") and "lm_head.weight" in published or name'),
            title="the head instead of the table",
            says="Where the file has `lm_head.weight` you keep it and drop the table of tokens. The table is the one "
                 "with a place in the model."),
    Mistake(RENAME, "transposed",
            edit=("renamed[name[1:]] = tensor",
                  'renamed[name[1:]] = tensor.T if tensor.dim() == 2 and "blocks" in name else tensor'),
            title="weights transposed",
            says="You transpose the matrices, which one does on the way into nn.Linear. Conv1D takes them as they were "
                 "published."),
    Mistake(RENAME, "all-transposed",
            edit=("renamed[name[1:]] = tensor", "renamed[name[1:]] = tensor.T if tensor.dim() == 2 else tensor"),
            title="weights and tables transposed",
            says="You transpose every matrix, the two tables included. All of them fit as they were published."),
    Mistake(RENAME, "projections-mixed",
            edit=("name = name.replace(theirs, ours)",
                  'name = name.replace(theirs, ours.replace("feed_forward.narrow", "attention.unify"))'),
            title="both c_proj under one name",
            says="Attention and network have a `c_proj` each. Yours end up under one name, so that one overwrites the "
                 "other: look at what stands before it."),
    Mistake(RENAME, "norms-exchanged",
            edit=("name = name.replace(theirs, ours)",
                  'name = name.replace(theirs, {".norm1.": ".norm2.", ".norm2.": ".norm1."}.get(ours, ours))'),
            title="norm1 and norm2 exchanged",
            says="`ln_1` is the norm before the attention, norm1; you have exchanged the two."),
    Mistake(RENAME, "first-block-only",
            edit=("name = name.replace(theirs, ours)",
                  'name = name.replace(theirs, ours) if "10" not in name else name'),
            title="block numbers of two digits not recognised",
            says="Your renaming works for block 0 and not for block 10. A number may have two digits."),
    Mistake(RENAME, "point-in-front", edit=("renamed[name[1:]]", "renamed[name]"),
            title="a point in front of every name",
            says="Your names begin with a point. It was put there to make beginnings like middles; take it off again."),
    Mistake(RENAME, "no-point-in-front",
            edit=(('"." + name.removeprefix', 'name.removeprefix'), ("renamed[name[1:]]", "renamed[name]")),
            title="names are not changed at their beginning",
            says="The keys of `OURS` have a point on both sides, and your names have none at their beginning: `wte`, "
                 "`wpe`, `h` and `ln_f` stay as they are."),
    Mistake(RENAME, "nothing-renamed", edit=("name = name.replace(theirs, ours)", "name.replace(theirs, ours)"),
            title="names as they were published", idle=True,
            says="Your names are still the published ones. `replace` changes nothing in place: it returns a new text."),
    Mistake(RENAME, "first-replacement-only",
            edit=("            name = name.replace(theirs, ours)\n",
                  "            if theirs in name:\n                name = name.replace(theirs, ours)\n"
                  "                break\n"),
            title="one replacement a name",
            says="You stop after the first piece of a name that you know. `h.3.ln_1` has two."),
    Mistake(RENAME, "tables-exchanged",
            edit=("name = name.replace(theirs, ours)",
                  'other = {".tokens.": ".positions.", ".positions.": ".tokens."}\n            '
                  'name = name.replace(theirs, other.get(ours, ours))'),
            title="the two tables exchanged", says="`wte` is the table of tokens, `wpe` that of positions."),
    Mistake(RENAME, "prefix-hides-masks",
            edit=('name.endswith((".attn.bias", ".attn.masked_bias"))',
                  'name.startswith("h.") and name.endswith((".attn.bias", ".attn.masked_bias"))'),
            title="the masks are kept where there is a prefix",
            says="With `transformer.` before the names your code keeps the masks. A file may have both."),
    Mistake(RENAME, "callers-dict",
            edit=("    renamed = {}\n    for name, tensor in published.items():",
                  "    renamed = {}\n    for name in list(published):\n        tensor = published.pop(name)"),
            title="the caller's dict is emptied",
            says="You take the tensors out of the caller's dict. Make a new dict, and leave theirs as it is."),
    Accepted(RENAME, "by-parts", instead="""
        table = {"wte": "tokens", "wpe": "positions", "h": "blocks", "ln_f": "norm", "ln_1": "norm1", "ln_2": "norm2",
                 "c_attn": "to_qkv", "c_fc": "widen", "attn": "attention", "mlp": "feed_forward"}
        state = {}
        for name, tensor in published.items():
            parts = [part for part in name.split(".") if part != "transformer"]
            if parts[0] == "lm_head" or parts[-2:] in (["attn", "bias"], ["attn", "masked_bias"]):
                continue
            last = "unify" if "attn" in parts else "narrow"
            state[".".join(last if part == "c_proj" else table.get(part, part) for part in parts)] = tensor
        return state
    """),
    Accepted(RENAME, "no-prefix-first", instead="""
        plain = {name.replace("transformer.", "", 1): tensor for name, tensor in published.items()}
        plain.pop("lm_head.weight", None)
        result = {}
        for name in plain:
            if ".attn.bias" in name or "masked_bias" in name:
                continue
            ours = f".{name}"
            for old, new in OURS.items():
                ours = ours.replace(old, new)
            result[ours.lstrip(".")] = plain[name].clone()
        return result
    """),
    Accepted(RENAME, "with-detach", instead="""
        def ours(name):
            name = "." + (name[12:] if name.startswith("transformer.") else name)
            for theirs in OURS:
                name = name.replace(theirs, OURS[theirs])
            return name[1:]

        masks = [["attn", "bias"], ["attn", "masked_bias"]]
        keep = lambda name: not name.startswith("lm_head") and name.split(".")[-2:] not in masks
        return {ours(name): tensor.detach() for name, tensor in published.items() if keep(name)}
    """),
    Shortcut(RENAME, "finished-part", instead="return finished_gpt2.rename_weights(published)"),
    # ----------------------------------------------------------------------------------------- for_linear
    Mistake(LINEAR, "unchanged", edit=(DECIDES, "if tensor.shape != shapes[name]:"),
            title="turned where the shape does not fit",
            says="One matrix of each block comes out as it was published. Look at all shapes of a block: which matrix "
                 "fits either way?"),
    Mistake(LINEAR, "every-matrix", edit=(DECIDES, "if tensor.dim() == 2:"), title="the tables turned too",
            says="You turn every matrix, the tables of tokens and positions with them. An embedding is no linear "
                 "layer: its rows stay rows."),
    Mistake(LINEAR, "square-ones-too",
            edit=(DECIDES, "if tensor.shape != shapes[name] or tensor.dim() == 2 and len(set(tensor.shape)) == 1:"),
            title="square tables turned too",
            says="You turn whatever is square. In a model with as many tokens or positions as components a table is "
                 "square, and has to stay as it is."),
    Mistake(LINEAR, "only-the-square-one", edit=(DECIDES, 'if name.endswith("attn.c_proj.weight"):'),
            title="only the matrix after the heads turned",
            says="You turn the matrix after the heads, and now the other three stay as they were published. All four "
                 "of a block are stored as (n_in, n_out)."),
    Mistake(LINEAR, "projections-only", edit=(DECIDES, 'if ".c_proj." in name:'),
            title="only the two c_proj turned",
            says="You turn the two matrices called `c_proj`. `c_attn` and `c_fc` are of Conv1D too."),
    Mistake(LINEAR, "attention-only", edit=('".c_" in name', '".attn.c_" in name'),
            title="only the attention's matrices turned",
            says="You turn the matrices of the attention. Those of the feed-forward network, `c_fc` and its `c_proj`, "
                 "are of Conv1D too."),
    Mistake(LINEAR, "network-only", edit=('".c_" in name', '".mlp.c_" in name'),
            title="only the network's matrices turned",
            says="You turn the matrices of the feed-forward network. Those of the attention, `c_attn` and its "
                 "`c_proj`, are of Conv1D too."),
    Mistake(LINEAR, "without-projections", edit=('".c_" in name', '".c_" in name and "c_proj" not in name'),
            title="neither c_proj turned",
            says="You leave out both matrices called `c_proj`. They are of Conv1D too."),
    Mistake(LINEAR, "never", edit=("tensor = tensor.T", "pass"), title="nothing turned", idle=True,
            says="All tensors come out as they were published. nn.Linear has its weight as (n_out, n_in)."),
    Mistake(LINEAR, "reshaped", edit=("tensor = tensor.T", "tensor = tensor.reshape(shapes[name])"),
            title="reshaped instead of transposed",
            says="Your matrices have the right shapes, and their numbers stand in the wrong places: `reshape` reads "
                 "them row by row. A transpose exchanges rows and columns."),
    Accepted(LINEAR, "by-a-list",
        edit=(DECIDES, 'if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):')),
    Accepted(LINEAR, "by-the-last-parts", edit=((DECIDES,
                                             'if name.split(".")[-2:] in (["c_attn", "weight"], ["c_proj", "weight"], '
                                             '["c_fc", "weight"]):'), ("tensor.T", "tensor.transpose(0, 1)"))),
    Accepted(LINEAR, "inside-a-block", edit=((DECIDES, 'if name.startswith("h.") and tensor.ndim == 2:'),
                                         ("tensor.T", "tensor.t().contiguous()"))),
    # ------------------------------------------------------------------------------------ generate_cached
    Mistake(CACHED, "positions-forgotten", edit=("model.embed(new, cache.length)", "model.embed(new, 0)"),
            title="the cache forgets positions",
            says="Each new token enters as if it stood at position 0. Keys and values come from the cache; where the "
                 "token stands you have to say yourself."),
    Mistake(CACHED, "position-one-too-far",
            edit=("model.embed(new, cache.length)", "model.embed(new, cache.length + (1 if chosen else 0))"),
            title="positions one too far",
            says="Your new tokens stand one position too far on. When c positions have been read, 0 to c − 1, the next "
                 "is c."),
    Mistake(CACHED, "positions-from-one",
            edit=("model.embed(new, cache.length)", "model.embed(new, cache.length + 1)"),
            title="positions start at 1",
            says="All your tokens stand one position too far on, the prompt's too. The first token of the text stands "
                 "at 0."),
    Mistake(CACHED, "no-positions", edit=("model.embed(new, cache.length)", "model.tokens(new)"),
            title="no positions",
            says="Your tokens enter without the vectors of their positions. `model.embed` adds them, if you tell it "
                 "where the tokens stand."),
    Mistake(CACHED, "every-block-reads-the-entrance",
            edit=("        for block, past in zip(model.blocks, cache.layers):\n            x = block(x, past)\n",
                  "        entered = x\n        for block, past in zip(model.blocks, cache.layers):\n            "
                  "x = block(entered, past)\n"), title="every block reads what came in",
            says="Each of your blocks reads the embeddings. A block reads what the one before it has made."),
    Mistake(CACHED, "one-block", edit=("zip(model.blocks, cache.layers)", "zip(model.blocks, cache.layers[:1])"),
            title="only the first block", says="Your tokens go through the first block only. They go through all."),
    Mistake(CACHED, "position-one-too-early",
            edit=("model.embed(new, cache.length)", "model.embed(new, cache.length - (1 if chosen else 0))"),
            title="positions one too early",
            says="Your new tokens stand where the last one stood. When c positions have been read, 0 to c − 1, the "
                 "next is c."),
    Mistake(CACHED, "position-stays",
            edit=("model.embed(new, cache.length)", "model.embed(new, ids.shape[1] if chosen else 0)"),
            title="the position does not move on",
            says="All your new tokens stand at the place of the first of them. Each stands one further on."),
    Mistake(CACHED, "position-counts-steps", edit=("model.embed(new, cache.length)", "model.embed(new, step)"),
            title="positions counted without the prompt",
            says="Your new tokens stand at 1, 2, 3 …, as if there were no prompt before them."),
    Mistake(CACHED, "whole-text-into-the-cache",
            edit=("        chosen.append(new)\n",
                  "        chosen.append(new)\n        new = torch.cat([ids, *chosen], dim=1)\n"),
            title="the whole text in every round, and a cache besides",
            says="Your code sends the whole text through the blocks in every round, and the cache keeps all of it each "
                 "time, until it is full. After the prompt only the new token goes in."),
    Mistake(CACHED, "prompt-again",
            edit=("        new = logits.argmax(dim=-1, keepdim=True)\n        chosen.append(new)",
                  "        chosen.append(logits.argmax(dim=-1, keepdim=True))"),
            title="the prompt in every round",
            says="Your code sends the prompt through the blocks in every round, until the cache is full. After the "
                 "first round the token just chosen goes in."),
    Mistake(CACHED, "axis-lost", edit=("argmax(dim=-1, keepdim=True)", "argmax(dim=-1)"),
            title="the axis of the new token is lost",
            says="Your new tokens have shape (b,). What goes into the model is (b, t), here (b, 1): keep the axis."),
    Mistake(CACHED, "best-of-the-batch",
            edit=("logits.argmax(dim=-1, keepdim=True)", "logits.argmax().expand(len(ids), 1)"),
            title="one place in the whole batch",
            says="Your argmax runs over all rows at once and gives one number, a place in the whole table of logits. "
                 "Each row needs the best of its own: argmax along the last axis."),
    Mistake(CACHED, "norm-everywhere", edit=("x = block(x, past)", "x = model.norm(block(x, past))"),
            title="the final norm after every block",
            says="You normalise after each block. The last norm comes once, after all of them."),
    Mistake(CACHED, "tables-mixed", edit=("@ model.tokens.weight.T", "@ model.positions.weight.T"),
            title="the table of positions as the head",
            says="Your logits come from the table of positions. The head is the table of tokens."),
    Mistake(CACHED, "no-cache", edit=("x = block(x, past)", "x = block(x)"),
            title="the cache is not used, or begins empty in every round",
            says="Each new token goes through the blocks alone, sees nothing of what came before, and stands at "
                 "position 0: the blocks did not get their caches, or get empty ones in every round."),
    Alias(CACHED, "cache-anew", of="no-cache",
          edit=("    for step in range(count):\n",
                "    for step in range(count):\n        cache = KeyValueCache(model.config.depth, ids.shape[1] + "
                "count)\n")),
    Mistake(CACHED, "one-cache-for-all",
            edit=("for block, past in zip(model.blocks, cache.layers):",
                  "for block, past in zip(model.blocks, [cache.layers[0]] * 99):"), title="one cache for all blocks",
            says="All your blocks write into one cache. Every block has keys and values of its own, and `cache.layers` "
                 "a cache for each."),
    Mistake(CACHED, "only-the-last-of-the-prompt", edit=("new, chosen = ids, []", "new, chosen = ids[:, -1:], []"),
            title="only the last token of the prompt is read",
            says="Only the last token of the prompt goes through the model. In the first round all of it has to, so "
                 "that its keys and values are there."),
    Mistake(CACHED, "whole-text-again",
            edit=("        chosen.append(new)\n",
                  "        chosen.append(new)\n        new = torch.cat([ids, *chosen], dim=1)\n        cache = "
                  "KeyValueCache(model.config.depth, new.shape[1])\n"), title="the whole text in every round",
            says="The tokens are right, and every round sends the whole text through the model: that is generation "
                 "without a cache. What has been read once is in the cache."),
    Mistake(CACHED, "first-position", edit=("model.norm(x[:, -1])", "model.norm(x[:, 0])"),
            title="logits of the first position",
            says="You take the logits at the first position of what went in. In the first round that is the beginning "
                 "of the prompt; what comes after it is said by the last."),
    Mistake(CACHED, "no-norm", edit=("model.norm(x[:, -1])", "x[:, -1]"), title="the final norm is missing",
            says="The last norm is missing between the blocks and the logits."),
    Mistake(CACHED, "prompt-too", edit=("torch.cat(chosen, dim=1)", "torch.cat([ids, *chosen], dim=1)"),
            title="the prompt is returned as well",
            says="You return the prompt with the new tokens. The new ones alone are asked for, (b, count)."),
    Mistake(CACHED, "one-too-many", edit=("range(count)", "range(count + 1)"), title="one token too many",
            says="You return one token more than was asked for, or run out of room in the cache."),
    Mistake(CACHED, "one-too-few", edit=("torch.cat(chosen, dim=1)", "torch.cat(chosen[1:] or chosen, dim=1)"),
            title="the first new token is lost",
            says="The token chosen from the prompt itself is missing: it is the first new one."),
    Mistake(CACHED, "least-likely", edit=("logits.argmax(", "logits.argmin("), title="the least probable token",
            says="You take the smallest logit. The largest is the most probable token."),
    Mistake(CACHED, "stacked",
            edit=("argmax(dim=-1, keepdim=True)\n        chosen.append(new)\n    return torch.cat(chosen, dim=1)",
                  "argmax(dim=-1, keepdim=True)\n        chosen.append(new)\n    return torch.stack(chosen, dim=1)"),
            title="an axis too many",
            says="Your tokens are (b, 1) each, and `stack` adds an axis: (b, count, 1). `cat` along axis 1 gives (b, "
                 "count)."),
    Mistake(CACHED, "one-for-the-batch",
            edit=("new = logits.argmax(dim=-1, keepdim=True)",
                  "new = logits.argmax(dim=-1, keepdim=True)[:1].expand(len(ids), 1)"),
            title="the first row decides for all",
            says="All rows go on with the token of the first. Each has its own."),
    EquivalentMutant(CACHED, "return torch.cat(chosen, dim=1)", "return torch.cat(chosen, dim=1).detach()",
          "ids have no gradient"),
    EquivalentMutant(CACHED, "torch.cat(chosen, dim=1)", "torch.cat(chosen, dim=-1)",
        "each is (b, 1), so axis 1 is the last"),
    EquivalentMutant(CACHED, "logits.argmax(dim=-1, keepdim=True)", "logits.argmax(dim=1, keepdim=True)",
          "the logits are (b, n), so axis 1 is the last"),
    Accepted(CACHED, "the-model-itself", instead="""
        tokens = ids
        for _ in range(count):
            logits = model(tokens[:, cache.length:], cache)[:, -1]
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], dim=1)
        return tokens[:, ids.shape[1]:]
    """),
    Accepted(CACHED, "positions-by-hand", instead="""
        b, t = ids.shape
        result = torch.empty(b, count, dtype=ids.dtype, device=ids.device)
        fresh, seen = ids, 0
        for i in range(count):
            places = torch.arange(seen, seen + fresh.shape[1], device=ids.device)
            x = model.tokens(fresh) + model.positions(places)
            for k in range(model.config.depth):
                x = model.blocks[k](x, cache.layers[k])
            seen += fresh.shape[1]
            scores = F.linear(model.norm(x), model.tokens.weight)[:, -1]
            fresh = scores.softmax(-1).max(dim=-1).indices.unsqueeze(1)
            result[:, i] = fresh[:, 0]
        return result
    """),
    Accepted(CACHED, "prompt-first", instead="""
        def step(tokens, start):
            x = model.embed(tokens, start)
            for block, past in zip(model.blocks, cache.layers):
                x = block(x, past)
            return (model.norm(x)[:, -1:] @ model.tokens.weight.mT).topk(1).indices[..., 0]

        chosen = [step(ids, 0)]
        while len(chosen) < count:
            chosen.append(step(chosen[-1], ids.size(1) + len(chosen) - 1))
        return torch.hstack(chosen)
    """),
    Shortcut(CACHED, "finished-part", instead="return finished_gpt2.generate_cached(model, ids, count, temperature=0)"),
    # ----------------------------------------------------------------------------------------- perplexity
    Mistake(PERPLEXITY, "not-shifted", edit=("inputs, targets = ids[:-1], ids[1:]", "inputs, targets = ids, ids"),
            title="targets not shifted",
            says="You ask the model at each position for the token that stands there. It predicts the *next* one: the "
                 "targets are shifted by one."),
    Mistake(PERPLEXITY, "shifted-back",
            edit=("inputs, targets = ids[:-1], ids[1:]", "inputs, targets = ids[1:], ids[:-1]"),
            title="shifted the wrong way",
            says="You ask for the token *before* each position. The targets are the tokens after the inputs."),
    Mistake(PERPLEXITY, "no-exponential",
            edit=("F.cross_entropy(logits, targets).exp()", "F.cross_entropy(logits, targets)"),
            title="the exponential is missing",
            says="You return the cross-entropy. The perplexity is e to this."),
    Mistake(PERPLEXITY, "base-two",
            edit=("F.cross_entropy(logits, targets).exp()", "torch.exp2(F.cross_entropy(logits, targets))"),
            title="2 to the nats",
            says="The cross-entropy is in nats, and you take 2 to it. Nats go with e; 2 goes with bits."),
    Mistake(PERPLEXITY, "bits",
            edit=("F.cross_entropy(logits, targets).exp()", "(F.cross_entropy(logits, targets) / math.log(2)).exp()"),
            title="e to the bits",
            says="You turn the cross-entropy into bits and then take e to it. Bits go with 2, nats with e."),
    Mistake(PERPLEXITY, "sum",
            edit=("F.cross_entropy(logits, targets).exp()", 'F.cross_entropy(logits, targets, reduction="sum").exp()'),
            title="the sum instead of the mean",
            says="You take e to the *sum* of all surprises, which grows with the length of the text. The mean comes "
                 "first."),
    Mistake(PERPLEXITY, "mean-of-exponentials",
            edit=("F.cross_entropy(logits, targets).exp()",
                  'F.cross_entropy(logits, targets, reduction="none").exp().mean()'),
            title="the mean of the exponentials",
            says="You take the exponential of each surprise and then the mean, so that one improbable token outweighs "
                 "all others. First the mean, then the exponential."),
    Mistake(PERPLEXITY, "mean-probability",
            edit=("F.cross_entropy(logits, targets).exp()",
                  "1 / logits.softmax(-1).gather(1, targets.unsqueeze(1)).mean()"),
            title="the mean of the probabilities",
            says="You average the probabilities and take the reciprocal. It is the *logarithms* that are averaged."),
    Mistake(PERPLEXITY, "softmax-twice",
            edit=("F.cross_entropy(logits, targets).exp()", "F.cross_entropy(logits.softmax(-1), targets).exp()"),
            title="softmax twice",
            says="F.cross_entropy takes logits, and the softmax is in it. You give it probabilities, so that it is "
                 "taken twice."),
    Mistake(PERPLEXITY, "divided-by-all",
            edit=("F.cross_entropy(logits, targets).exp()",
                  '(F.cross_entropy(logits, targets, reduction="sum") / len(ids)).exp()'),
            title="divided by one token too many",
            says="You divide by the number of all tokens. The first is never predicted: one less."),
    Mistake(PERPLEXITY, "last-only",
            edit=("F.cross_entropy(logits, targets).exp()", "F.cross_entropy(logits[-1:], targets[-1:]).exp()"),
            title="the last token only",
            says="Only the last token counts in yours. All but the first do."),
    Mistake(PERPLEXITY, "no-minus",
            edit=("F.cross_entropy(logits, targets).exp()", "(-F.cross_entropy(logits, targets)).exp()"),
            title="the reciprocal",
            says="Your number is below 1: it is the (geometric) mean probability, and the perplexity is one over it. "
                 "Look at the sign."),
    Mistake(PERPLEXITY, "logits-as-log-probabilities",
            edit=("F.cross_entropy(logits, targets).exp()", "F.nll_loss(logits, targets).exp()"),
            title="logits taken for log-probabilities",
            says="You average the logits of the right tokens. A logit is no log-probability yet: the softmax is "
                 "missing, which F.cross_entropy has in it."),
    Mistake(PERPLEXITY, "first-missing",
            edit=("F.cross_entropy(logits, targets).exp()", "F.cross_entropy(logits[1:], targets[1:]).exp()"),
            title="the second token is left out",
            says="You leave out one prediction too many at the beginning. Only the first token is never predicted."),
    Mistake(PERPLEXITY, "end-missing",
            edit=("F.cross_entropy(logits, targets).exp()", "F.cross_entropy(logits[:-1], targets[:-1]).exp()"),
            title="the last token is left out",
            says="You leave out the last token. It is predicted by the position before it, and counts."),
    Mistake(PERPLEXITY, "ten-to-the-nats",
            edit=("F.cross_entropy(logits, targets).exp()", "10 ** F.cross_entropy(logits, targets)"),
            title="10 to the nats", says="The cross-entropy is in nats, and you take 10 to it. Nats go with e."),
    Mistake(PERPLEXITY, "root-of-the-length",
            edit=("F.cross_entropy(logits, targets).exp()",
                  'F.cross_entropy(logits, targets, reduction="sum").exp() / len(targets)'),
            title="divided after the exponential",
            says="You divide by the number of tokens after the exponential. First the mean, then the exponential."),
    Mistake(PERPLEXITY, "best-guess",
            edit=("F.cross_entropy(logits, targets).exp()", "F.cross_entropy(logits, logits.argmax(-1)).exp()"),
            title="the surprise at the model's own guess",
            says="You measure how surprised the model is at its own best guess. What counts is the token that came."),
    Mistake(PERPLEXITY, "wrong-way-to-bits",
            edit=("F.cross_entropy(logits, targets).exp()", "2 ** (F.cross_entropy(logits, targets) * math.log(2))"),
            title="bits computed the wrong way",
            says="From nats to bits one *divides* by ln 2; you multiply. With e for the base there is nothing to turn "
                 "into anything."),
    Mistake(PERPLEXITY, "token-by-token-alone",
            edit=("model(inputs.unsqueeze(0))[0]", "model(inputs.unsqueeze(1))[:, 0]"),
            title="every token a text of its own",
            says="Your batch has as many texts as there are tokens, of one token each: the model sees nothing of what "
                 "came before. The batch is (1, t)."),
    Mistake(PERPLEXITY, "product",
            edit=("F.cross_entropy(logits, targets).exp()",
                  "logits.softmax(-1).gather(1, targets[:, None]).prod() ** (-1 / len(targets))"),
            title="a product that is too small for a float",
            says="You multiply all probabilities, and with a longer text the product is smaller than a float can hold. "
                 "Add up logarithms instead."),
    Mistake(PERPLEXITY, "entropy",
            edit=("F.cross_entropy(logits, targets).exp()",
                  "torch.distributions.Categorical(logits=logits).entropy().mean().exp()"),
            title="how unsure it feels, not how surprised it is",
            says="You measure the entropy of the model's own predictions, and never look at what came. The surprise at "
                 "the *actual* next token counts."),
    EquivalentMutant(PERPLEXITY, "return F.cross_entropy(logits, targets).exp()",
          "return F.cross_entropy(logits, targets).exp().mT", "a single number is its own transpose"),
    EquivalentMutant(PERPLEXITY, "return F.cross_entropy(logits, targets).exp()",
          "return F.cross_entropy(logits, targets).exp().squeeze()", "a single number has no axes"),
    EquivalentMutant(PERPLEXITY, "return F.cross_entropy(logits, targets).exp()",
          "return F.cross_entropy(logits, targets).exp().detach()", "there is no gradient under no_grad"),
    EquivalentMutant(PERPLEXITY, "F.cross_entropy(logits, targets).exp()", "F.cross_entropy(logits, targets).exp_()",
          "the loss is the function's own"),
    EquivalentMutant(PERPLEXITY, "model(inputs.unsqueeze(0))[0]", "model(inputs.unsqueeze(0))[-1]",
          "in a batch of one the first is the last"),
    EquivalentMutant(PERPLEXITY, "inputs.unsqueeze(0)", "inputs.unsqueeze(-2)",
        "inputs have one axis, and -2 comes before it"),
    Accepted(PERPLEXITY, "log-probabilities", instead="""
        chances = model(ids.unsqueeze(0))[0, :-1].log_softmax(dim=-1)
        nats = -chances.gather(1, ids[1:].unsqueeze(1)).squeeze(1)
        return math.e ** nats.mean()
    """),
    Accepted(PERPLEXITY, "batch-kept", instead="""
        ids = ids[None]
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="sum") / (ids.shape[1] - 1)
        return torch.exp(loss)
    """),
    Accepted(PERPLEXITY, "token-by-token", instead="""
        logits = model(ids[:-1].reshape(1, -1))[0]
        total = 0.0
        for row, target in zip(logits, ids[1:]):
            total = total + torch.logsumexp(row, 0) - row[target]
        return torch.exp(total / (len(ids) - 1))
    """),
    Accepted(PERPLEXITY, "bits-and-two", instead="""
        loss = nn.CrossEntropyLoss()(model(ids[:-1][None, :]).squeeze(0), ids[1:])
        return 2 ** (loss / math.log(2))
    """),
    Shortcut(PERPLEXITY, "finished-part", instead="return finished_gpt2.perplexity(model, ids)"),
    # ------------------------------------------------------------------------------------ induction_score
    Mistake(INDUCTION, "same-token", edit=("(1 - period, -2, -1)[..., 1:]", "(-period, -2, -1)"),
            title="the same token before, not what followed it",
            says="You read the weight on the earlier copy of the token itself. An induction head looks one position "
                 "further: at the token that *followed* that copy."),
    Mistake(INDUCTION, "one-further", edit=("(1 - period,", "(2 - period,"), title="one position too far",
            says="You read the weight on the second token after the earlier copy. The one right after it is asked "
                 "for."),
    Mistake(INDUCTION, "one-before", edit=("(1 - period, -2, -1)[..., 1:]", "(-1 - period, -2, -1)"),
            title="the token before the earlier copy",
            says="You read the weight on the token that came *before* the earlier copy. The one after it is asked "
                 "for."),
    Mistake(INDUCTION, "first-kept", edit=("[..., 1:]", ""), title="one position that repeats nothing",
            says="Your mean takes in position period − 1, which looks at position 0. Its token has not been there "
                 "before: the first that has stands at position period."),
    Mistake(INDUCTION, "two-left-out", edit=("[..., 1:]", "[..., 2:]"), title="the first repeated token left out",
            says="You leave out one position too many. The first token that has been there before stands at position "
                 "period, and counts."),
    Mistake(INDUCTION, "end-left-out", edit=("[..., 1:]", "[..., 1:-1]"), title="the last position left out",
            says="You leave out the last position. What it looks at was written earlier, so it counts."),
    Mistake(INDUCTION, "upside-down", edit=("(1 - period,", "(period - 1,"), title="the future instead of the past",
            says="You read above the diagonal, where a causal model has zeros. Row i is the position that looks, and "
                 "what it looks at stands in an earlier column."),
    Alias(INDUCTION, "axes-exchanged", of="upside-down", edit=("-2, -1)", "-1, -2)")),
    Mistake(INDUCTION, "front-axes", edit=("(1 - period, -2, -1)", "(1 - period)"),
            title="the diagonal of the wrong axes",
            says="`diagonal` takes the first two axes unless told otherwise: blocks and heads. Positions are the last "
                 "two."),
    Mistake(INDUCTION, "sum", edit=(".mean(dim=-1)", ".sum(dim=-1)"), title="the sum instead of the mean",
            says="You add the weights up, so a longer text scores higher. The mean is asked for."),
    Mistake(INDUCTION, "largest", edit=(".mean(dim=-1)", ".amax(dim=-1)"), title="the largest weight",
            says="You take the largest of the weights. One position may look there by chance; the mean is asked for."),
    Mistake(INDUCTION, "all-heads-together", edit=(".mean(dim=-1)", ".mean()"), title="one number for all heads",
            says="Your mean goes over all axes and leaves one number. Each head needs its own: (...)."),
    Mistake(INDUCTION, "mean-of-the-wrong-axis", edit=(".mean(dim=-1)", ".mean(dim=0)"),
            title="the mean over the first axis",
            says="Your mean runs over the first axis. It has to run over the positions, the last."),
    Mistake(INDUCTION, "half-of-the-text",
            edit=("return weights.diagonal(1 - period",
                  "period = weights.shape[-1] // 2\n    return weights.diagonal(1 - period"),
            title="half the text instead of the period",
            says="You take half the length for the period. A text may come more than twice, or be cut off: `period` "
                 "says after how many tokens it repeats."),
    Mistake(INDUCTION, "previous-token", edit=("(1 - period,", "(-1,"), title="the previous token",
            says="You measure the weight on the previous token, which is another kind of head."),
    Mistake(INDUCTION, "divided-by-all",
            edit=(".mean(dim=-1)", ".sum(dim=-1) / weights.shape[-1]"), title="divided by all positions",
            says="You divide by the number of all positions. Only those count whose token has been there before: "
                 "t − period."),
    Mistake(INDUCTION, "last-position", edit=("[..., 1:].mean(dim=-1)", "[..., -1]"), title="the last position alone",
            says="You look at the last position alone. The mean over all positions that repeat is asked for."),
    Mistake(INDUCTION, "share-of-hits",
            edit=("return weights.diagonal(1 - period, -2, -1)[..., 1:].mean(dim=-1)",
                  "places = torch.arange(period, weights.shape[-1], device=weights.device)\n    return "
                  "(weights[..., period:, :].argmax(dim=-1) == places - period + 1).float().mean(dim=-1)"),
            title="how often it is the largest weight",
            says="You count how often that weight is the largest of its row. The weight itself is asked for, on the "
                 "mean."),
    EquivalentMutant(INDUCTION, "return weights.diagonal(1 - period, -2, -1)[..., 1:].mean(dim=-1)",
          "return weights.diagonal(1 - period, -2, -1)[..., 1:].mean(dim=-1).detach()",
          "a score is looked at, and nothing is trained by it"),
    Shortcut(INDUCTION, "finished-part", instead="return finished_gpt2.induction_score(weights, period)"),
    Accepted(INDUCTION, "by-index", instead="""
        places = torch.arange(period, weights.shape[-1], device=weights.device)
        return weights[..., places, places + 1 - period].mean(-1)
    """),
    Accepted(INDUCTION, "loop", instead="""
        t = weights.shape[-1]
        total = 0
        for i in range(period, t):
            total = total + weights[..., i, i - period + 1]
        return total / (t - period)
    """),
    Accepted(INDUCTION, "cut-first", instead="""
        inner = weights[..., period:, 1:]
        return torch.diagonal(inner, dim1=-2, dim2=-1).sum(-1) / (weights.size(-1) - period)
    """),
]
