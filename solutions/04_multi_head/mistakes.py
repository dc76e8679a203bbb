"""What students get wrong in lesson 4, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

SPLIT, MERGE, NARROW, FOLDED, FUSE, COUNT = (
    "split_heads",
    "merge_heads",
    "MultiHeadAttention",
    "folded_heads",
    "fuse_heads",
    "count_parameters",
)

REFUSAL = """if e % h != 0:
        raise ValueError(f"e = {e} is not divisible by h = {h}")
    """
REFUSAL_IN_CLASS = REFUSAL.replace("\n    ", "\n        ")
CUT = "x = x.reshape(b, t, h, e // h)\n    return x.transpose(1, 2)"
CHECKED = "b, t, e = x.shape\nif e % h:\n    raise ValueError(f'{e} cannot be cut into {h} equal parts')\n"

QUERY, KEY, VALUE = (
    f"{name} = finished_split(self.to_{whole}(x), self.h)"
    for name, whole in (("q", "queries"), ("k", "keys"), ("v", "values"))
)


def cut(how):
    """Edits that split queries, keys and values in another way: `how`, with {} for the tensor to split."""
    return tuple(
        (line, f"{line[0]} = {how.format(line[line.index('self.to') : line.index(', self.h')])}")
        for line in (QUERY, KEY, VALUE)
    )


SCORES, WEIGHTS, UNIFIED = (
    "scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])",
    "weights = torch.softmax(scores, dim=-1)",
    "return self.unify(y)",
)
AVERAGED = "y = finished_merge(weights @ v)"


def mistaken(slug, edit, title, says):
    """A mistake in the module, its fields by place."""
    return Mistake(NARROW, slug, edit=edit, title=title, says=says)


FOLD = "x.reshape(b, t, h, d).transpose(1, 2)"


def folded(ending, fold=FOLD, root="math.sqrt(d)", over=-1):
    """The body of folded_heads with that ending, or folded, scaled or softmaxed in another way."""
    return f"""
        b, t, e = q.shape
        d = e // h
        folded = ({fold} for x in (q, k, v))
        q, k, v = (x.reshape(b * h, t, d) for x in folded)
        scores = torch.bmm(q, k.transpose(1, 2)) / {root}
        weights = torch.softmax(scores, dim={over})
        y = torch.bmm(weights, v)
        {ending}
    """


UNFOLDED = "return y.reshape(b, h, t, d).transpose(1, 2).reshape(b, t, e)"


# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ---------------------------------------------------------------------------------------- split_heads
    Mistake(SPLIT, "no-transpose-view", edit=(CUT, "return x.reshape(b, h, t, e // h)"),
            title="reshaped straight to (b, h, t, d): heads scrambled over positions",
            says="The shape is right, the numbers are not where they belong. A reshape moves nothing: your head 1 "
                 "holds the numbers that come first in memory, which are the first positions with their whole width. "
                 "Give the last axis two names first, and exchange axes after that."),
    Mistake(SPLIT, "not-exchanged", edit=("x.transpose(1, 2)", "x"), title="heads and positions not exchanged",
            says="Your result is (b, t, h, d). That is the first of the two steps; positions have to come after the "
                 "heads, or the matrix product would compare the heads of one position with each other."),
    Mistake(SPLIT, "interleaved", edit=(CUT, "x = x.reshape(b, t, e // h, h)\n    return x.permute(0, 3, 1, 2)"),
            title="components dealt out like cards",
            says="Your head 0 gets components 0, h, 2h and so on. The heads are blocks: head 0 gets the first d "
                 "components, head 1 the next d. In the reshape, h comes before d."),
    Mistake(SPLIT, "width-before-positions", edit=("x.transpose(1, 2)", "x.permute(0, 2, 3, 1)"),
            title="the last two axes exchanged",
            says="Your result is (b, h, d, t). The vectors of width d belong on the last axis, positions before them."),
    Mistake(SPLIT, "heads-first", edit=("x.transpose(1, 2)", "x.permute(2, 0, 1, 3)"), title="heads before the batch",
            says="Your result is (h, b, t, d). The batch stays in front; only axes 1 and 2 are exchanged."),
    Mistake(SPLIT, "folded-into-batch", edit=("x.transpose(1, 2)", "x.transpose(1, 2).reshape(b * h, t, e // h)"),
            title="heads folded into the batch",
            says="Your result is (b·h, t, d). That is a way to go on, for a product with one batch axis; here the "
                 "heads keep an axis of their own."),
    Mistake(SPLIT, "not-refused", edit=(REFUSAL, ""), title="e not divisible by h is not refused by name",
            says="With e = 22 and h = 6 your code stops in the reshape, with an error about sizes that does not say "
                 "what is wrong. Look first whether h divides e, and raise a ValueError that says so and names both."),
    Mistake(SPLIT, "cut-off",
            edit=(REFUSAL + CUT, "x = x[:, :, :h * (e // h)].reshape(b, t, h, e // h)\n    return x.transpose(1, 2)"),
            title="e not divisible by h accepted in silence",
            says="When h does not divide e, your code goes on without a word: components are lost, or the heads come "
                 "out unequal. Nobody would ever notice. Refuse instead: a ValueError that names e and h."),
    Mistake(SPLIT, "assert", edit=(REFUSAL, "assert e % h == 0\n    "), title="an assert where an error is asked for",
            says="An assert is a note to yourself: `python -O` leaves it out, and this one does not say what is wrong. "
                 "Raise a ValueError whose message names e and h."),
    Mistake(SPLIT, "detached", edit=("x.reshape(b, t, h, e // h)", "x.detach().reshape(b, t, h, e // h)"),
            title="cut off from the gradient",
            says="No gradient flows back through your result: detach(), .data or a trip through NumPy cuts the graph, "
                 "and the three projections could not learn."),
    Mistake(SPLIT, "not-cut", edit=(CUT, "return x.clone()"), idle=True, title="nothing cut",
            says="You return x as it came, (b, t, e). Its last axis has to be cut into heads: (b, h, t, d)."),
    Mistake(SPLIT, "batch-and-positions", edit=("b, t, e = x.shape", "t, b, e = x.shape"),
            title="batch and positions exchanged",
            says="Your batch axis has the length of the positions, and the other way round. In this course x is (b, t, "
                 "e): first the sentences, then their positions."),
    Mistake(SPLIT, "width-and-heads", edit=("x.reshape(b, t, h, e // h)", "x.reshape(b, t, e // h, h)"),
            title="d heads of width h",
            says="You cut the width into e/h heads of width h: the two sizes are exchanged. There have to be h heads, "
                 "each e/h wide."),
    Mistake(SPLIT, "exchanged-first", edit=("x = x.reshape(b, t, h, e // h)\n    return x.transpose(1, 2)",
                                           "return x.transpose(1, 2).reshape(b, h, t, e // h)"),
            title="axes exchanged before the width was cut",
            says="You exchange axes first and reshape then, so that positions and components come in the wrong order "
                 "out of memory. First give the last axis two names, then exchange axes."),
    Mistake(SPLIT, "heads-reversed", edit=("x.transpose(1, 2)", "x.transpose(1, 2).flip(1)"),
            title="the heads in reverse order",
            says="Your heads are the right ones, the last one first. Head 0 gets the first d components."),
    Mistake(SPLIT, "squeezed", edit=("return x.transpose(1, 2)", "return x.transpose(1, 2).squeeze()"),
            title="axes of length 1 squeezed out",
            says="Your numbers are right, but an axis of length 1 gets lost: with a batch of one, a single position or "
                 "a single head the result has too few axes. All four axes stay, whatever their lengths."),
    Accepted(SPLIT, "view", instead=CHECKED + "return x.view(b, t, h, -1).permute(0, 2, 1, 3).contiguous()"),
    Accepted(SPLIT, "chunks", instead=CHECKED + "return torch.stack(x.chunk(h, dim=-1), dim=1)"),
    Accepted(SPLIT, "einsum", instead=CHECKED + "return torch.einsum('nlkw->nklw', x.unflatten(-1, (h, e // h)))"),
    Accepted(SPLIT, "slices",
         instead=CHECKED
                 + "d = e // h\nreturn torch.stack([x[:, :, k * d:(k + 1) * d] for k in range(h)]).transpose(0, 1)"),
    Accepted(SPLIT, "by-the-columns",
         instead=CHECKED + "return x.transpose(1, 2).reshape(b, h, e // h, t).transpose(2, 3)"),
    Shortcut(SPLIT, "finished", instead="return finished_split(x, h)"),
    Shortcut(SPLIT, "imported",
             instead="from helpers.parts.multi_head import split_heads as ready\nreturn ready(x, h)"),
    # ---------------------------------------------------------------------------------------- merge_heads
    Mistake(MERGE, "no-transpose", edit=(".transpose(1, 2)", ""), title="merged without exchanging axes",
            says="The shape is right, the numbers are not: reshape reads head 1 with all its positions before head 2, "
                 "so that a row of your result holds pieces of several positions. Bring the positions before the heads "
                 "first."),
    Mistake(MERGE, "interleaved", edit=(".transpose(1, 2)", ".permute(0, 2, 3, 1)"), title="heads dealt out like cards",
            says="In your result the first components of all heads stand side by side, then the second ones. Each "
                 "head's d components stay together: heads before d, then one name for both."),
    Mistake(MERGE, "heads-reversed", edit=(".transpose(1, 2)", ".flip(1).transpose(1, 2)"),
            title="the heads in reverse order",
            says="Your heads lie side by side, the last one first. Head 1 gets the first d components."),
    Mistake(MERGE, "summed", edit=("x.transpose(1, 2).reshape(b, t, h * d)", "x.sum(dim=1)"),
            title="the heads added up",
            says="You add the heads, which leaves (b, t, d). Adding is for `unify`, with weights; here they are laid "
                 "side by side, and nothing is lost."),
    Mistake(MERGE, "not-merged", edit=(".reshape(b, t, h * d)", ""), title="two axes left where one is asked",
            says="Your result is (b, t, h, d): the axes are in the right order, and the last two still have to become "
                 "one, of length h·d."),
    Mistake(MERGE, "view-refused", edit=(".reshape(", ".view("), title="view after a transpose",
            says="`view` gives a new shape to numbers as they lie in memory, and after a transpose they lie in another "
                 "order. `reshape` copies when it must; `.contiguous()` before the view does it by hand."),
    Mistake(MERGE, "along-the-positions",
            edit=("x.transpose(1, 2).reshape(b, t, h * d)", "torch.cat(list(x.unbind(1)), dim=1)"),
            title="joined along the positions",
            says="Your result is (b, h·t, d): the heads follow one another as if they were more positions. Join them "
                 "along the width, the last axis."),
    Mistake(MERGE, "as-it-came", edit=("x.transpose(1, 2).reshape(b, t, h * d)", "x.clone()"), idle=True,
            title="nothing merged",
            says="You return x as it came, (b, h, t, d). The heads have to lie side by side: (b, t, h·d)."),
    Mistake(MERGE, "flattened", edit=("x.transpose(1, 2).reshape(b, t, h * d)", "x.flatten(2)"),
            title="positions and components made one axis",
            says="Your result is (b, h, t·d): the last two axes became one as they stood, and these are positions and "
                 "the components of one head. Heads and components are to become one axis, so they have to stand side "
                 "by side first."),
    Mistake(MERGE, "averaged", edit=("x.transpose(1, 2).reshape(b, t, h * d)", "x.mean(dim=1)"),
            title="the heads averaged",
            says="You average the heads, which leaves (b, t, d). Here they are laid side by side, and nothing is "
                 "lost."),
    Mistake(MERGE, "wrong-pair", edit=(".transpose(1, 2)", ".transpose(2, 3)"), title="the wrong two axes exchanged",
            says="You exchange positions and components. Before the heads can be joined, *heads* and positions have to "
                 "change places: (b, t, h, d)."),
    Mistake(MERGE, "positions-first", edit=(".transpose(1, 2)", ".permute(2, 0, 1, 3)"),
            title="the positions before the batch",
            says="You bring the positions in front of the batch and reshape then, so that rows of different sentences "
                 "change places. The batch stays in front; only axes 1 and 2 are exchanged."),
    Mistake(MERGE, "sentences-joined",
            edit=("x.transpose(1, 2).reshape(b, t, h * d)", "torch.cat(list(x.unbind(0)), dim=-1)"),
            title="sentences joined instead of heads",
            says="You take x apart along its first axis and lay *sentences* side by side. Heads are axis 1 of (b, h, "
                 "t, d)."),
    Mistake(MERGE, "everything-flat", edit=("reshape(b, t, h * d)", "flatten(1)"), title="the positions flattened too",
            says="Your result is (b, t·h·d): the positions went into the last axis as well. They keep an axis of their "
                 "own, (b, t, h·d)."),
    Mistake(MERGE, "squeezed", edit=("reshape(b, t, h * d)", "reshape(b, t, h * d).squeeze()"),
            title="axes of length 1 squeezed out",
            says="Your numbers are right, but an axis of length 1 gets lost: with a batch of one, or a single "
                 "position, the result has too few axes. All three axes stay, whatever their lengths."),
    Mistake(MERGE, "detached", edit=("return x.transpose(1, 2)", "return x.detach().transpose(1, 2)"),
            title="cut off from the gradient",
            says="No gradient flows back through your result: detach(), .data or a trip through NumPy cuts the graph, "
                 "and nothing before the merge could learn."),
    Accepted(MERGE, "contiguous-view",
         instead="b, h, t, d = x.size()\nreturn x.transpose(1, 2).contiguous().view(b, -1, h * d)"),
    Accepted(MERGE, "cat", instead="return torch.cat([x[:, k] for k in range(x.shape[1])], dim=-1)"),
    Accepted(MERGE, "einsum", instead="return torch.einsum('nhlw->nlhw', x).flatten(2)"),
    Accepted(MERGE, "filled-in", instead="""
        b, h, t, d = x.shape
        y = torch.empty(b, t, h * d, dtype=x.dtype, device=x.device)
        for k in range(h):
            y[:, :, k * d:(k + 1) * d] = x[:, k]
        return y
    """),
    Shortcut(MERGE, "finished", instead="return finished_merge(x)"),
    # --------------------------------------------------------------------------------- MultiHeadAttention
    Mistake(NARROW, "scrambled", edit=cut("{}.reshape(x.shape[0], self.h, x.shape[1], -1)"),
            title="reshaped straight to (b, h, t, d): heads scrambled over positions",
            says="Your heads are cut out of memory as it lies, so that a head holds a few positions with their whole "
                 "width instead of all positions with a part of it. Split the last axis first, then exchange axes; "
                 "finished_split does both."),
    # a fold that goes straight to (b·h, t, d) reads memory in the same order, and merges it back in the same order
    Alias(NARROW, "scrambled-by-folding", of="scrambled",
          edit=(*cut("{}.reshape(x.shape[0] * self.h, x.shape[1], -1)"),
               ("finished_merge(weights @ v)",
                "finished_merge((weights @ v).reshape(x.shape[0], self.h, x.shape[1], -1))"))),
    Mistake(NARROW, "merge-scrambled", edit=("finished_merge(weights @ v)", "(weights @ v).reshape(x.shape)"),
            title="merged without exchanging axes",
            says="Your heads are right until they are merged. (b, h, t, d) reshaped straight to (b, t, e) puts one "
                 "head's outputs for several positions into one row. Exchange axes 1 and 2 first; finished_merge "
                 "does."),
    Mistake(NARROW, "scrambled-both-ways",
            edit=cut("{}.reshape(x.shape[0], self.h, x.shape[1], -1)")
                 + (("finished_merge(weights @ v)", "(weights @ v).reshape(x.shape)"),),
            title="split and merged without exchanging axes",
            says="Both on the way in and on the way out you reshape straight between (b, t, e) and (b, h, t, d). "
                 "Everything comes back to its place, so it looks consistent; but in between, a head saw a few "
                 "positions with their whole width instead of all positions with a part of it."),
    Mistake(NARROW, "root-of-e", edit=("math.sqrt(q.shape[-1])", "math.sqrt(x.shape[-1])"), title="divided by √e",
            says="You divide by the root of the whole width. The dot products are taken inside a head and have d = e/h "
                 "terms, so their variance is d: the root is that of one head's width. (A widely copied tutorial makes "
                 "this slip.)"),
    Mistake(NARROW, "not-scaled", edit=(" / math.sqrt(q.shape[-1])", ""), title="not scaled",
            says="Your scores are plain dot products. Divide them by √d, d the width of one head."),
    Mistake(NARROW, "scaled-too-late",
            edit=((" / math.sqrt(q.shape[-1])", ""), ("dim=-1)", "dim=-1) / math.sqrt(q.shape[-1])")),
            title="scaled after the softmax",
            says="You divide the finished weights by √d, so that a row no longer adds up to 1, and the softmax has "
                 "seen the large scores all the same. It is the scores that are divided."),
    Mistake(NARROW, "divided-by-d", edit=("math.sqrt(q.shape[-1])", "q.shape[-1]"),
            title="divided by d, not by its root",
            says="You divide the scores by d, or twice by √d. It is their standard deviation that has to come down to "
                 "1, and that is √d."),
    Mistake(NARROW, "root-of-h", edit=("math.sqrt(q.shape[-1])", "math.sqrt(self.h)"), title="divided by √h",
            says="You divide by the root of the number of heads. How many heads there are does not change a dot "
                 "product; how many terms it has does, and that is d = e/h."),
    Mistake(NARROW, "no-mixing", edit=("return self.unify(y)", "return y"), title="no output mixing",
            says="You return the merged heads as they are. Each head's findings stay in its own d components; the last "
                 "step, unify, mixes them."),
    Mistake(NARROW, "softmax-over-heads", edit=("dim=-1", "dim=1"), title="softmax over the heads",
            says="Axis 1 of (b, h, t, t) is the heads: in your weights the *heads* share one unit for every pair of "
                 "positions. Each head weighs by itself: every row sums to 1 over the last axis."),
    Mistake(NARROW, "softmax-over-queries", edit=("dim=-1", "dim=-2"), title="softmax over the queries",
            says="In your weights the columns add up to 1. Row i makes output i, so the sum runs over the last axis."),
    Mistake(NARROW, "heads-attend-to-heads",
            edit=cut("{}.reshape(*x.shape[:2], self.h, -1)")
                 + (("finished_merge(weights @ v)", "(weights @ v).reshape(x.shape)"),),
            title="heads compared with heads, positions never",
            says="Your tensors are (b, t, h, d) when they are multiplied, so the scores are (b, t, h, h): within every "
                 "position its heads look at each other, and no position ever sees another. Positions have to be on "
                 "the last axis but one."),
    Mistake(NARROW, "batch-mixed",
            edit=(*cut("finished_split({}, self.h).transpose(0, 1).reshape(-1, x.shape[1], x.shape[2] // self.h)"),
                  ("finished_merge(weights @ v)",
                   "finished_merge((weights @ v).reshape(x.shape[0], self.h, x.shape[1], -1))")),
            title="heads mixed with the batch",
            says="You fold as (h·b, t, d) and unfold as (b, h, t, d): the number of rows fits, so pieces of one "
                 "sentence land in another. Folding and unfolding need the same order of the two axes."),
    Mistake(NARROW, "interleaved", edit=cut("{}.reshape(*x.shape[:2], -1, self.h).permute(0, 3, 1, 2)"),
            title="components dealt out like cards",
            says="Your head 0 has components 0, h, 2h and so on of the queries, keys and values. Heads are blocks of d "
                 "neighbours: (b, t, h, d), h before d."),
    Mistake(NARROW, "roles-exchanged",
            edit=((QUERY, QUERY.replace("queries", "keys")), (KEY, KEY.replace("keys", "queries"))),
            title="queries and keys exchanged",
            says="Your queries come from to_keys and your keys from to_queries. Row i of the scores is asked by "
                 "position i: its *query* is compared with everybody's keys."),
    Mistake(NARROW, "weights-transposed", edit=("weights @ v", "weights.mT @ v"),
            title="weights transposed before the average",
            says="You average with the columns of the weights. Row i of the weights makes output i: weights @ v, as "
                 "they are."),
    Mistake(NARROW, "values-are-keys", edit=(VALUE, VALUE.replace("values", "keys")),
            title="the keys averaged instead of the values",
            says="Your values come from to_keys. What is summed has a projection of its own: to_values."),
    Mistake(NARROW, "first-head-everywhere", edit=("finished_merge(weights @ v)", "finished_merge(weights[:, :1] @ v)"),
            title="the first head's weights used by all",
            says="All your heads average with the weights of head 1. Every head has its own: (b, h, t, t) @ (b, h, t, "
                 "d)."),
    Mistake(NARROW, "biased-projections",
            edit=(("self.to_queries = nn.Linear(e, e, bias=False)", "self.to_queries = nn.Linear(e, e)"),
                  ("self.to_keys = nn.Linear(e, e, bias=False)", "self.to_keys = nn.Linear(e, e)"),
                  ("self.to_values = nn.Linear(e, e, bias=False)", "self.to_values = nn.Linear(e, e)")),
            title="projections with a bias",
            says="Your three projections have a bias. In this module only unify has one: nn.Linear needs to be told, "
                 "bias=False."),
    Mistake(NARROW, "unify-without-bias",
            edit=("self.unify = nn.Linear(e, e)", "self.unify = nn.Linear(e, e, bias=False)"),
            title="unify without its bias",
            says="Your unify has no bias. The three projections go without; unify has one."),
    Mistake(NARROW, "heads-of-width-h", edit=cut("finished_split({}, x.shape[-1] // self.h)"),
            title="d heads of width h",
            says="You split into e/h heads of width h: the two sizes are exchanged. finished_split wants to know how "
                 "many heads there are, which is h."),
    Mistake(NARROW, "heads-of-width-h-by-d",
            edit=(*cut("finished_split({}, x.shape[-1] // self.h)"),
                  ("math.sqrt(q.shape[-1])", "math.sqrt(x.shape[-1] // self.h)")), title="d heads, scaled by √d",
            says="You split into e/h heads of width h: the two sizes are exchanged. finished_split wants to know how "
                 "many heads there are, which is h."),
    Mistake(NARROW, "never-split", edit=(*cut("{}"), ("finished_merge(weights @ v)", "weights @ v")),
            title="one head of the whole width",
            says="Your queries, keys and values are never split, so there is a single head as wide as the model, and h "
                 "makes no difference. Split all three before the scores, and merge after the average."),
    Mistake(NARROW, "never-split-by-d",
            edit=(*cut("{}"), ("finished_merge(weights @ v)", "weights @ v"),
                  ("math.sqrt(q.shape[-1])", "math.sqrt(x.shape[-1] // self.h)")),
            title="one head of the whole width, divided by √d",
            says="Your queries, keys and values are never split, so there is a single head as wide as the model. Split "
                 "all three before the scores, and merge after the average."),
    Mistake(NARROW, "values-not-projected", edit=(VALUE, VALUE.replace("self.to_values(x)", "x")),
            title="x averaged instead of the values",
            says="You average pieces of x as they come. What is averaged are the values, and to_values makes them."),
    Mistake(NARROW, "unify-transposed",
            edit=(UNIFIED, "return nn.functional.linear(y, self.unify.weight.T, self.unify.bias)"),
            title="unify's weight the wrong way round",
            says="You multiply with unify's weight the wrong way round: nn.Linear stores (outputs, inputs). Call the "
                 "layer, `self.unify(...)`, and it takes care of that."),
    Mistake(NARROW, "shared-projections",
            edit=(("self.to_queries = nn.Linear(e, e,", "self.to_queries = nn.Linear(e // h, e // h,"),
                  ("self.to_keys = nn.Linear(e, e,", "self.to_keys = nn.Linear(e // h, e // h,"),
                  ("self.to_values = nn.Linear(e, e,", "self.to_values = nn.Linear(e // h, e // h,"),
                  *((line, f"{line[0]} = self.to_{whole}(finished_split(x, self.h))")
                    for line, whole in ((QUERY, "queries"), (KEY, "keys"), (VALUE, "values")))),
            title="one small matrix for all heads",
            says="You cut x into heads first and send each piece through the same (d, d) matrix. That is another "
                 "convention, which this lesson comes to in exercise 6. Here each projection is (e, e): every head "
                 "sees the whole vector, through a matrix of its own. Project first, then split."),
    mistaken("residual", (UNIFIED, "return x + self.unify(y)"), "the input added to the output",
             "You add x to what unify gives. Many models do so around the attention, and this course will in lesson 7; "
             "the module itself returns what unify gives and nothing else."),
    mistaken("softmax-twice", (WEIGHTS, WEIGHTS + ".softmax(dim=-1)"), "softmax of a softmax",
             "The softmax runs twice. The second one makes the rows nearly even: its inputs are weights between 0 and "
             "1 "
             "already. Once is right."),
    mistaken("no-softmax", (WEIGHTS, "weights = scores"), "no softmax",
             "You average with the scores as they are. They have to become weights first: rows of positive numbers "
             "that "
             "sum to 1."),
    mistaken("multiplied", (SCORES, SCORES.replace("/", "*")), "multiplied by the root instead of divided",
             "You multiply the scores by the root of the width. They have to get smaller: divide."),
    mistaken("keys-are-queries", (KEY, KEY.replace("keys", "queries")), "the keys made by to_queries",
             "Your keys come from to_queries, so that every position is compared with the others' questions. Keys have "
             "a projection of their own, to_keys."),
    mistaken("queries-are-keys", (QUERY, QUERY.replace("queries", "keys")), "the queries made by to_keys",
             "Your queries come from to_keys. Queries have a projection of their own, to_queries."),
    mistaken("causal", (WEIGHTS, "weights = torch.softmax(scores + torch.full_like(scores, -math.inf).triu(1), "
                                 "dim=-1)"),
             "the future hidden",
             "Your positions look at none that come after them. Hiding the future is lesson 5's business; here every "
             "position looks at every other."),
    mistaken("merge-interleaved", (AVERAGED, "y = (weights @ v).permute(0, 2, 3, 1).flatten(2)"),
             "merged with the heads dealt out like cards",
             "When you merge, the first components of all heads come to stand side by side, then the second ones. Each "
             "head's components stay together; finished_merge lays them so."),
    mistaken("bias-not-added", (UNIFIED, "return y @ self.unify.weight.T"), "unify's bias not added",
             "Your outputs lack unify's bias: you multiply with its weight only. Call the layer, `self.unify(...)`."),
    mistaken("unify-cut-off", (UNIFIED, "return nn.functional.linear(y, self.unify.weight.data, self.unify.bias.data)"),
             "unify cut off from the gradient",
             "Your numbers are right, but no gradient reaches unify's weight and bias: .data or detach() cuts them "
             "off, "
             "and they would never learn. Call the layer as it is."),
    mistaken("projections-cut-off",
             tuple((line, line.replace(f"self.to_{role}(x)", f"nn.functional.linear(x, self.to_{role}.weight.data)"))
                   for line, role in ((QUERY, "queries"), (KEY, "keys"), (VALUE, "values"))),
             "the projections cut off from the gradient",
             "Your numbers are right, but no gradient reaches the weights of the three projections: .data or detach() "
             "cuts them off, and they would never learn. Call the layers as they are."),
    mistaken("squeezed", (UNIFIED, UNIFIED + ".squeeze()"), "axes of length 1 squeezed out",
             "Your numbers are right, but an axis of length 1 gets lost: with a batch of one, or a single position, "
             "the "
             "result has too few axes. All three axes stay, whatever their lengths."),
    mistaken("first-batch", (UNIFIED, "return self.unify(y)[:1].expand(x.shape)"), "the first sentence for all",
             "Every sentence of the batch gets the result of the first one. Is there an index [0] or [:1] too many?"),
    Mistake(NARROW, "any-h", edit=(REFUSAL_IN_CLASS, ""), title="e not divisible by h accepted in silence",
            says="MultiHeadAttention(22, 6) comes into being without a word, although no head could have a width: it "
                 "breaks in use, or drops components. Refuse in the constructor: a ValueError that names e and h."),
    Mistake(NARROW, "assert", edit=(REFUSAL_IN_CLASS, "assert e % h == 0\n        "),
            title="an assert where an error is asked for",
            says="An assert is a note to yourself: `python -O` leaves it out, and this one does not say what is wrong. "
                 "Raise a ValueError whose message names e and h."),
    Mistake(NARROW, "mask-of-its-own",
            edit=("weights = torch.softmax(scores",
                  "scores = scores + torch.zeros(scores.shape[-2:])\n        weights = torch.softmax(scores"),
            title="a tensor made on the CPU",
            says="You make a tensor without saying where, so it is on the CPU, wherever x is. A tensor that forward "
                 "makes has to be made where x is: pass device=x.device."),
    Accepted(NARROW, "by-hand", instead=("", """
        b, t, e = x.shape
        h, d = self.h, e // self.h
        q, k, v = (to(x).view(b, t, h, d).transpose(1, 2) for to in (self.to_queries, self.to_keys, self.to_values))
        a = torch.nn.functional.softmax(torch.matmul(q, k.mT) * d ** -0.5, -1)
        return self.unify(torch.matmul(a, v).transpose(1, 2).contiguous().view(b, t, e))
    """)),
    Accepted(NARROW, "einsum", instead=("", """
        n, l, w = x.shape
        q = self.to_queries(x).reshape(n, l, self.h, -1)
        k = self.to_keys(x).reshape(n, l, self.h, -1)
        v = self.to_values(x).reshape(n, l, self.h, -1)
        s = torch.einsum("nqhc,nkhc->nhqk", q, k) / (w // self.h) ** 0.5
        return self.unify(torch.einsum("nhqk,nkhc->nqhc", s.softmax(-1), v).reshape(n, l, w))
    """)),
    Accepted(NARROW, "bmm", instead=("", """
        b, t, e = x.shape
        h, d = self.h, e // self.h
        def fold(y):
            return y.view(b, t, h, d).transpose(1, 2).reshape(b * h, t, d)
        q, k, v = fold(self.to_queries(x)) / d ** 0.25, fold(self.to_keys(x)) / d ** 0.25, fold(self.to_values(x))
        y = torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)), dim=2), v)
        return self.unify(y.view(b, h, t, d).transpose(1, 2).reshape(b, t, e))
    """)),
    Accepted(NARROW, "head-by-head", instead=("", """
        q, k, v, d = self.to_queries(x), self.to_keys(x), self.to_values(x), x.shape[-1] // self.h
        heads = []
        for i in range(0, x.shape[-1], d):
            scores = q[..., i:i + d] @ k[..., i:i + d].transpose(1, 2) / d ** 0.5
            heads.append(torch.softmax(scores, dim=-1) @ v[..., i:i + d])
        return self.unify(torch.cat(heads, dim=-1))
    """)),
    Accepted(NARROW, "scaled-dot-product", instead=("""
        if e % h:
            raise ValueError(f"{h} heads do not divide a width of {e}")
        self.h, self.e = h, e
        self.unify = nn.Linear(e, e)
        self.to_values, self.to_keys, self.to_queries = (nn.Linear(e, e, bias=False) for _ in range(3))
    """, """
        q, k, v = (finished_split(to(x), self.h) for to in (self.to_queries, self.to_keys, self.to_values))
        return self.unify(finished_merge(torch.nn.functional.scaled_dot_product_attention(q, k, v)))
    """)),
    Shortcut(NARROW, "library", instead=("""
        if e % h:
            raise ValueError(f"e = {e} is not divisible by h = {h}")
        self.whole = nn.MultiheadAttention(e, h, batch_first=True)
    """,
                                         "return self.whole(x, x, x)[0]")),
    Shortcut(NARROW, "library-function", instead=("", """
        w = torch.cat([self.to_queries.weight, self.to_keys.weight, self.to_values.weight])
        z = x.transpose(0, 1)
        y, _ = nn.functional.multi_head_attention_forward(z, z, z, x.shape[-1], self.h, w, None, None, None, False, 0.0,
                                                          self.unify.weight, self.unify.bias)
        return y.transpose(0, 1)
    """)),
    # ------------------------------------------------------------------------------------- folded_heads
    Mistake(FOLDED, "unchanged", instead=folded("return y.reshape(b, t, e)"), title="the code as it came",
            says="Your numbers are those of the code as it came. Follow one of them through it, by its sentence, its "
                 "head and its position: one line puts it where the docstring does not want it."),
    Mistake(FOLDED, "positions-before-heads",
            instead=folded("return y.reshape(b, t, h, d).transpose(1, 2).reshape(b, t, e)"),
            title="the product's result read as (b, t, h, d)",
            says="You unfold as if the positions came before the heads. What the product returns is (b·h, t, d): in "
                 "memory all positions of one head come before those of the next."),
    Mistake(FOLDED, "heads-before-sentences",
            instead=folded("return y.reshape(h, b, t, d).permute(1, 2, 0, 3).reshape(b, t, e)"),
            title="the folded axis taken apart as (h, b)",
            says="You take the first axis apart with the heads in front. It was folded with the sentences in front: "
                 "first all heads of sentence 0, then those of sentence 1. With a batch of one the two are the same."),
    Alias(FOLDED, "chunks", of="heads-before-sentences", instead=folded("return torch.cat(y.chunk(h), dim=-1)")),
    Mistake(FOLDED, "interleaved",
            instead=folded("return y.reshape(b, h, t, d).permute(0, 2, 3, 1).reshape(b, t, e)"),
            title="heads dealt out like cards",
            says="The positions are in their places. Within a position, the first components of all heads come first, "
                 "then the second ones; each head's components should stay together."),
    Mistake(FOLDED, "width-and-positions", instead=folded("return y.transpose(1, 2).reshape(b, t, e)"),
            title="positions and width exchanged",
            says="You exchange the positions with the width of a head, and the heads stay where they were. Which "
                 "axis has to pass which?"),
    Mistake(FOLDED, "folded-without-transpose", instead=folded("return y.reshape(b, t, e)", "x"),
            title="fold and unfold agree, on the wrong numbers",
            says="Your fold and your unfold undo each other now, but what goes into the product is wrong: each of its "
                 "b·h *sentences* holds pieces of a few positions with their whole width, and not one head of all of "
                 "them. The fold was right as it came."),
    Mistake(FOLDED, "fold-broken", instead=folded(UNFOLDED, "x"),
            title="a fold that scrambles the heads",
            says="Your last lines are fine. The fold was right as it came, and is not any more: reshaped straight to "
                 "(b·h, t, d), each of the b·h rows holds a few positions with their whole width."),
    Mistake(FOLDED, "root-of-e", instead=folded(UNFOLDED, root="math.sqrt(e)"), title="divided by √e",
            says="The heads are in their places now. But the scores were divided by the right root before: a head's "
                 "dot products have d terms, and you divide by √e."),
    Mistake(FOLDED, "not-scaled", instead=folded(UNFOLDED, root="1"), title="not scaled",
            says="The heads are in their places now, but your scores are not divided by √d any more."),
    Mistake(FOLDED, "softmax-over-queries", instead=folded(UNFOLDED, over=1), title="softmax over the queries",
            says="The heads are in their places now, but the softmax runs over the queries. It ran over the keys, the "
                 "last axis, and that was right."),
    Mistake(FOLDED, "positions-first",
            instead=folded("return y.reshape(b, h, t, d).permute(2, 0, 1, 3).reshape(b, t, e)"),
            title="positions before the batch",
            says="You carry the positions past the heads and past the batch as well. The sentences stay in front."),
    Mistake(FOLDED, "not-joined", instead=folded("return y.reshape(b, h, t, d).transpose(1, 2)"),
            title="two axes left where one is asked",
            says="Your result is (b, t, h, d), with everything in its place. What is missing is the last step: one "
                 "name for the last two axes."),
    Mistake(FOLDED, "summed", instead=folded("return y.reshape(b, h, t, d).sum(dim=1).repeat(1, 1, h)"),
            title="the heads added up",
            says="You add the heads up. They stay apart here, side by side; mixing them is the business of unify."),
    Mistake(FOLDED, "detached",
            instead=folded("return y.detach().reshape(b, h, t, d).transpose(1, 2).reshape(b, t, e)"),
            title="cut off from the gradient",
            says="The numbers are right, but no gradient flows back: detach() or .data cuts the graph."),
    Mistake(FOLDED, "squeezed", instead=folded(UNFOLDED + ".squeeze()"), title="axes of length 1 squeezed out",
            says="Your numbers are right, but an axis of length 1 gets lost: with a batch of one, or a single "
                 "position, the result has too few axes."),
    Accepted(FOLDED, "finished-merge", instead=folded("return finished_merge(y.reshape(b, h, t, d))")),
    Accepted(FOLDED, "cat", instead=folded("return torch.cat(y.reshape(b, h, t, d).unbind(1), dim=-1)")),
    Accepted(FOLDED, "not-folded-at-all", instead="""
        q, k, v = finished_split(q, h), finished_split(k, h), finished_split(v, h)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return finished_merge(weights @ v)
    """),
    Accepted(FOLDED, "heads-in-front-both-ways", instead="""
        b, t, e = q.shape
        q, k, v = (torch.cat(x.chunk(h, dim=-1)) for x in (q, k, v))
        y = torch.softmax(q @ k.mT / math.sqrt(e // h), dim=-1) @ v
        return torch.cat(y.split(b), dim=-1)
    """),
    Accepted(FOLDED, "scaled-dot-product", instead=folded(
        "return nn.functional.scaled_dot_product_attention(q, k, v).unflatten(0, (b, h)).transpose(1, 2).flatten(2)")),
    # ----------------------------------------------------------------------------------------- fuse_heads
    Mistake(FUSE, "side-by-side",
            edit=(("w_q = torch.cat([head.to_queries.weight for head in heads])",
                   "w_q = torch.cat([head.to_queries.weight for head in heads], dim=1)"),
                  ("w_k = torch.cat([head.to_keys.weight for head in heads])",
                   "w_k = torch.cat([head.to_keys.weight for head in heads], dim=1)"),
                  ("w_v = torch.cat([head.to_values.weight for head in heads])",
                   "w_v = torch.cat([head.to_values.weight for head in heads], dim=1)")),
            title="joined along the inputs",
            says="Your weights are (d, h·e): the heads' *inputs* stand side by side, as if every head read a vector of "
                 "its own. All heads read the same x and differ in what they produce, and outputs are the rows of an "
                 "nn.Linear's weight."),
    Mistake(FUSE, "transposed", edit=("return w_q, w_k, w_v", "return w_q.T, w_k.T, w_v.T"),
            title="the formula's layout instead of nn.Linear's",
            says="Your weights are (e, h·d), ready for x @ w. nn.Linear stores (outputs, inputs), and that is what is "
                 "asked for here: (h·d, e)."),
    Mistake(FUSE, "stacked",
            edit=("return w_q, w_k, w_v",
                  "return tuple(w.reshape(len(heads), -1, w.shape[-1]) for w in (w_q, w_k, w_v))"),
            title="an axis too many",
            says="Your weights are (h, d, e), with an axis for the heads. A fused layer has one matrix, (h·d, e): "
                 "torch.cat joins, torch.stack adds an axis."),
    Mistake(FUSE, "interleaved",
            edit=("return w_q, w_k, w_v",
                  "return tuple(torch.stack(w.chunk(len(heads)), dim=1).reshape(w.shape) for w in (w_q, w_k, w_v))"),
            title="rows dealt out like cards",
            says="The rows of your heads alternate: row 0 of each head, then row 1 of each. A head's d rows stay "
                 "together, or the split would give every head a piece of all of them."),
    Mistake(FUSE, "reversed",
            edit=("return w_q, w_k, w_v",
                  "return tuple(torch.cat(w.chunk(len(heads))[::-1]) for w in (w_q, w_k, w_v))"),
            title="the heads in reverse order",
            says="The last head comes first in your weights. Rows 0 to d − 1 are those of the first head."),
    Mistake(FUSE, "first-head-only",
            edit=("return w_q, w_k, w_v",
                  "d = len(w_q) // len(heads)\n    return tuple(w[:d].repeat(len(heads), 1) for w in (w_q, w_k, w_v))"),
            title="the first head, h times",
            says="Every block of your weights is the first head's. Is there a heads[0] where the loop's own head is "
                 "meant?"),
    Mistake(FUSE, "scaled", edit=("return w_q, w_k, w_v", "return w_q * (len(w_q) // len(heads)) ** 0.5, w_k, w_v"),
            title="queries scaled on the way",
            says="Your query weights are √d times the copied ones. That is what it takes to put them into a module "
                 "that divides its scores; the function itself copies the numbers as they are."),
    Mistake(FUSE, "scaled-down",
            edit=("return w_q, w_k, w_v", "return w_q / (len(w_q) // len(heads)) ** 0.5, w_k, w_v"),
            title="queries divided by √d on the way",
            says="You divide the query weights by √d. The single heads are unscaled, and the fused weights have to "
                 "give the same outputs as they do: copy the numbers as they are."),
    Mistake(FUSE, "roles-exchanged", edit=("return w_q, w_k, w_v", "return w_k, w_q, w_v"),
            title="queries and keys exchanged",
            says="Your first weight is that of the keys and your second that of the queries. Return them in the order "
                 "queries, keys, values."),
    Mistake(FUSE, "values-are-keys", edit=("head.to_values.weight", "head.to_keys.weight"),
            title="the keys copied for the values",
            says="Your third weight comes from to_keys. The values have a projection of their own."),
    Mistake(FUSE, "written-back",
            edit=("return w_q, w_k, w_v",
                  "for head in heads:\n        head.to_queries.weight.data.copy_(heads[0].to_queries.weight)\n    "
                  "return w_q, w_k, w_v"), title="the single heads changed",
            says="After the call the heads that were handed in are no longer what they were. Copy from them; write "
                 "nothing into them."),
    Mistake(FUSE, "written-over",
            edit=("w_q = torch.cat([head.to_queries.weight for head in heads])",
                  "w_q = torch.cat([head.to_queries.weight.data.mul_(1.0 + k) / (1.0 + k) for k, head in "
                  "enumerate(heads)])"), title="the single heads' queries scaled in place",
            says="On the way you multiply the heads' own weights in place: names that end in _ change their tensor. "
                 "Copy first."),
    Mistake(FUSE, "values-before-keys", edit=("return w_q, w_k, w_v", "return w_q, w_v, w_k"),
            title="keys and values exchanged",
            says="Your second weight is that of the values and your third that of the keys. Return them in the order "
                 "queries, keys, values."),
    Mistake(FUSE, "keys-are-queries", edit=("head.to_keys.weight", "head.to_queries.weight"),
            title="the queries copied for the keys",
            says="Your second weight comes from to_queries. The keys have a projection of their own."),
    Mistake(FUSE, "all-queries",
            edit=(("head.to_keys.weight", "head.to_queries.weight"),
                  ("head.to_values.weight", "head.to_queries.weight")),
            title="the queries copied three times",
            says="All three weights come from to_queries. Keys and values have projections of their own."),
    Mistake(FUSE, "all-scaled-down",
            edit=("return w_q, w_k, w_v", "return tuple(w / (len(w_q) // len(heads)) ** 0.5 for w in (w_q, w_k, w_v))"),
            title="all three weights divided by √d",
            says="You divide all three weights by √d. The single heads are unscaled: copy the numbers as they are."),
    Mistake(FUSE, "added-up", edit=("return w_q, w_k, w_v",
                                   "return tuple(sum(w.chunk(len(heads))) for w in (w_q, w_k, w_v))"),
            title="the heads' weights added up",
            says="You add the heads' weights, which leaves (d, e) and one head. Every head keeps rows of its own: "
                 "(h·d, "
                 "e)."),
    Mistake(FUSE, "averaged", edit=("return w_q, w_k, w_v",
                                   "return tuple(sum(w.chunk(len(heads))) / len(heads) for w in (w_q, w_k, w_v))"),
            title="the heads' weights averaged",
            says="You average the heads' weights, which leaves (d, e) and one head. Every head keeps rows of its own: "
                 "(h·d, e)."),
    Mistake(FUSE, "transposed-below",
            edit=("return w_q, w_k, w_v",
                  "return tuple(torch.cat([p.T for p in w.chunk(len(heads))]) for w in (w_q, w_k, w_v))"),
            title="each head's weight transposed",
            says="Your weights are (h·e, d): each head's weight lies the wrong way round before they are joined. An "
                 "nn.Linear's weight is (outputs, inputs) already; join them as they are."),
    Mistake(FUSE, "own-weights",
            edit=("w_q = torch", "if len(heads) == 1:\n        return tuple(heads[0].parameters())\n    w_q = torch"),
            title="a single head's own weights returned",
            says="For a list of one head you return the head's own weights: whoever writes into them later changes the "
                 "head. The weights have to be new tensors, however many heads there are."),
    Accepted(FUSE, "stack-and-flatten", instead="""
        return tuple(torch.stack([getattr(head, name).weight for head in heads]).flatten(0, 1)
                     for name in ("to_queries", "to_keys", "to_values"))
    """),
    Accepted(FUSE, "vstack", instead="""
        q = torch.vstack([one.to_queries.weight.detach().clone() for one in heads])
        k = torch.vstack([one.to_keys.weight.detach().clone() for one in heads])
        v = torch.vstack([one.to_values.weight.detach().clone() for one in heads])
        return q, k, v
    """),
    Accepted(FUSE, "row-by-row", instead="""
        d, e = heads[0].to_queries.weight.shape
        fused = torch.zeros(3, len(heads) * d, e, device=heads[0].to_queries.weight.device)
        for k, head in enumerate(heads):
            for role, layer in enumerate((head.to_queries, head.to_keys, head.to_values)):
                fused[role, k * d:(k + 1) * d] = layer.weight
        return fused[0], fused[1], fused[2]
    """),
    Accepted(FUSE, "parameters", instead="""
        with torch.no_grad():
            alike = zip(*[[p for p in head.parameters()] for head in heads])
            rows = [nn.Parameter(torch.cat(list(layers), 0)) for layers in alike]
        return rows
    """),
    # ----------------------------------------------------------------------------------- count_parameters
    Mistake(COUNT, "bias-forgotten",
            edit=(("projections, unify = 3 * e * e, e * e + e", "projections, unify = 3 * e * e, e * e"),
                  ("(h * e) * e + e", "(h * e) * e"),
                  ("e * (e // h), e * e + e", "e * (e // h), e * e")), title="the bias of unify forgotten",
            says="Your number is e too small: unify has a bias, one number for each of its e outputs."),
    Mistake(COUNT, "biases-everywhere",
            edit=(("3 * e * e, e", "3 * (e * e + e), e"),
                  ("3 * e * (h * e)", "3 * (e * (h * e) + h * e)"),
                  ("2 * e * (e // h)", "e + 2 * (e + 1) * (e // h)")), title="biases counted that are not there",
            says="You count a bias for the three projections as well. They have none; only unify has."),
    Mistake(COUNT, "unify-forgotten", edit=("return projections + unify", "return projections"),
            title="unify forgotten",
            says="You count the three projections only. unify has parameters too: its weight and its bias."),
    Mistake(COUNT, "one-projection", edit=("return projections + unify", "return projections // 3 + unify"),
            title="one projection where there are three",
            says="You count one projection. Queries, keys and values have one each."),
    Mistake(COUNT, "narrow-times-h", edit=("3 * e * e, e", "3 * h * e * e, h * e"), title="narrow counted h times",
            says="You count h full matrices for the narrow kind. Its heads *share* the width: h matrices of (e, d) "
                 "with d = e/h are one of (e, e), whatever h is."),
    Mistake(COUNT, "narrow-divided", edit=("3 * e * e, e", "3 * e * (e // h), e"), title="one narrow head counted",
            says="You count the projections of a single narrow head, e × d. There are h of them, which makes e × e for "
                 "the queries, the keys and the values each."),
    Mistake(COUNT, "wide-unify", edit=("(h * e) * e + e", "e * e + e"), title="unify too small for wide heads",
            says="Your unify for wide heads is e × e. What it reads is h heads side by side, each e wide."),
    Mistake(COUNT, "wide-bias", edit=("(h * e) * e + e", "(h * e) * e + h * e"),
            title="a bias for every input of unify",
            says="A bias has one number for each *output*. unify leads from h·e back to e, so its bias has e numbers."),
    Mistake(COUNT, "multi-query-per-head", edit=("2 * e * (e // h)", "2 * e * e"),
            title="keys and values counted once a head",
            says="For the kind \"multi-query\" you count keys and values for every head. All heads read the same: one "
                 "projection to keys of width d, one to values of width d."),
    # the queries shared as well, or unify for a single head: the same number
    Mistake(COUNT, "multi-query-e-by-d", edit=("e * e + 2 * e * (e // h)", "3 * e * (e // h)"),
            title="three projections of e × d, or a small unify",
            says="For the kind \"multi-query\" one of your e × e matrices is e × d. Only keys and values are shared: "
                 "every head has queries of its own, and unify reads the outputs of all heads."),
    Alias(COUNT, "multi-query-small-unify", of="multi-query-e-by-d",
          edit=("e * (e // h), e * e + e", "e * (e // h), (e // h) * e + e")),
    Mistake(COUNT, "multi-query-from-d", edit=("2 * e * (e // h)", "2 * (e // h) ** 2"),
            title="keys and values from d numbers",
            says="Your shared projections lead from d to d. They read x, which is e wide, and make d numbers of it."),
    Mistake(COUNT, "multi-query-one-for-both", edit=("2 * e * (e // h)", "e * (e // h)"),
            title="one projection for keys and values",
            says="For the kind \"multi-query\" you count one projection for keys and values together. They are shared "
                 "among the heads, not with each other: there is one for the keys and one for the values."),
    Mistake(COUNT, "as-a-float", edit=("2 * e * (e // h)", "2 * e * (e / h)"),
            title="a float where a count is asked for",
            says="Your number is right, but it is a float: `/` makes one even of 6 / 3. A count is an integer; `//` "
                 "divides whole numbers and stays whole."),
    Mistake(COUNT, "kind-ignored", edit=("if kind == \"narrow\":", "if True:"), title="the same count for every kind",
            says="Your function returns the same number for every kind. Projections of the wide kind are h times as "
                 "large as those of the narrow one, and multi-query needs fewer for its keys and values."),
    Mistake(COUNT, "wide-projections-narrow", edit=("3 * e * (h * e)", "3 * e * e"),
            title="the wide kind's projections too small",
            says="Your projections for the wide kind are e × e. They make h heads, each e wide."),
    Mistake(COUNT, "two-projections",
            edit=("return projections + unify", "return projections // 3 * 2 + unify"),
            title="two projections where there are three",
            says="You count two projections. Queries, keys and values have one each."),
    Mistake(COUNT, "wide-squared",
            edit=("3 * e * (h * e), (h * e) * e + e", "3 * (h * e) * (h * e), (h * e) * e + e"),
            title="wide projections from h·e to h·e",
            says="Your wide projections lead from h·e to h·e. They read x, which is e wide, and make h·e numbers of "
                 "it."),
    Mistake(COUNT, "multi-query-without-unify", edit=("e * (e // h), e * e + e", "e * (e // h), 0"),
            title="multi-query without unify",
            says="For the kind \"multi-query\" you count the projections only. It has the same unify as the narrow "
                 "kind, e × e with its bias."),
    Accepted(COUNT, "closed-form",
         instead='return {"narrow": 4 * e**2 + e, "wide": 4 * h * e**2 + e, "multi-query": 2 * e**2 + 2 * e * (e // h) '
                 "+ e}[kind]"),
    Accepted(COUNT, "layers", instead="""
        d = e if kind == "wide" else e // h
        shared = d if kind == "multi-query" else h * d
        layers = [nn.Linear(e, n, bias=False) for n in (h * d, shared, shared)] + [nn.Linear(h * d, e)]
        return sum(p.numel() for layer in layers for p in layer.parameters())
    """),
    Accepted(COUNT, "as-a-tensor", instead="""
        d = e if kind == "wide" else e // h
        shared = d if kind == "multi-query" else h * d
        return torch.tensor(e * (h * d + 2 * shared) + h * d * e + e)
    """),
    # ------------------------------------------------------------- mutants that are right all the same
    *(EquivalentMutant(NARROW, "q", other,
                       "math.sqrt(q.shape[-1]): queries, keys and values of a head are equally wide")
      for other in ("k", "v")),
    EquivalentMutant(NARROW, "-2", "2", "axis 2 of four is axis −2"),
    *(EquivalentMutant(FOLDED, "q", other, "q.shape: queries, keys and values have the same") for other in ("k", "v")),
    *(EquivalentMutant(FUSE, f"head.to_{role}.weight", f"head.to_{role}.weight.detach()",
            "copied numbers are asked for, not gradients: a student who writes detach().clone() is right")
      for role in ("queries", "keys", "values")),
]
