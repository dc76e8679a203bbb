"""What students get wrong in lesson 6, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

EMBEDDING, SINUSOIDS, SHIFT, BIAS, ROTATE = (
    "PositionEmbedding",
    "sinusoidal_encoding",
    "shift_matrix",
    "relative_bias",
    "rotate",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ---------------------------------------------------------------------------------- PositionEmbedding
    Mistake(EMBEDDING, "swapped", edit=("nn.Embedding(t_max, e)", "nn.Embedding(e, t_max)"),
            title="the arguments of nn.Embedding exchanged",
            says="Your table has e rows of width t_max. `nn.Embedding(rows, width)` wants first how many things there "
                 "are vectors for, the positions, and then how wide a vector is. When the two sizes happen to be "
                 "equal, nothing tells you."),
    Mistake(EMBEDDING, "one-number", edit=("nn.Embedding(t_max, e)", "nn.Embedding(t_max, 1)"),
            title="one number for each position, not a vector",
            says="Your table holds one number for each position, and it is added to every component alike. A position "
                 "needs a vector as wide as the word's."),
    Mistake(EMBEDDING, "no-limit", edit=("t > self.t_max", "False"), title="no check of the length",
            says="A sequence longer than t_max reaches into a table that has no such row, and what PyTorch says then "
                 "does not mention positions at all. Compare t with t_max before you look anything up."),
    Mistake(EMBEDDING, "limit-too-low", edit=("t > self.t_max", "t >= self.t_max"),
            title="a sequence of exactly t_max positions refused",
            says="You refuse sequences of t_max positions. They use the rows 0 to t_max − 1, and these are all there."),
    Mistake(EMBEDDING, "no-numbers",
            edit=('f"{t} positions are too many: the table has {self.t_max}."', '"the sequence is too long"'),
            title="an error that does not name both numbers",
            says="You raise a ValueError at the right moment. Its message has to say how long the sequence is and how "
                 "long it may be: somebody who meets it in the middle of a long program needs both."),
    Mistake(EMBEDDING, "one-number-named",
            edit=('f"{t} positions are too many: the table has {self.t_max}."', 'f"at most {self.t_max} positions"'),
            title="an error that does not name the sequence's length",
            says="You raise a ValueError at the right moment, and its message does not say how long the sequence is. "
                 "Somebody who meets it needs both numbers: how long it is, and how long it may be."),
    Mistake(EMBEDDING, "assertion",
            edit=('if t > self.t_max:\n            raise ValueError(f"{t} positions are too many: the table has '
                  '{self.t_max}.")',
                  'assert t <= self.t_max, f"{t} positions, at most {self.t_max}"'),
            title="an assertion instead of a ValueError",
            says="An assertion states what cannot be otherwise, and Python leaves assertions out when it is started "
                 "with -O. That a caller brings too long a sequence is an ordinary mistake: raise ValueError."),
    Mistake(EMBEDDING, "silent", instead=("", """
        positions = torch.arange(x.shape[1], device=x.device).clamp(max=self.t_max - 1)
        return x + self.table(positions)
    """), title="too long a sequence goes through in silence",
            says="A sequence longer than t_max goes through without a word: positions share a vector, or are cut off. "
                 "The model will be worse and nobody will know why. Raise a ValueError."),
    # other ways to make every position fit: same numbers up to t_max, same silence beyond
    Alias(EMBEDDING, "wraps-round", of="silent", instead=("", """
        positions = torch.arange(x.shape[1], device=x.device) % self.t_max
        return x + self.table(positions)
    """)),
    Alias(EMBEDDING, "cut-off", of="silent", instead=("", """
        x = x[:, : self.t_max]
        return x + self.table(torch.arange(x.shape[1], device=x.device))
    """)),
    Mistake(EMBEDDING, "from-one", edit=("torch.arange(t, device=x.device)", "torch.arange(1, t + 1, device=x.device)"),
            title="positions counted from 1",
            says="Your first position gets row 1 of the table. Positions count from 0; row 0 is never used like this, "
                 "and the last position has no row."),
    Mistake(EMBEDDING, "backwards",
            edit=("torch.arange(t, device=x.device)", "torch.arange(t, device=x.device).flip(0)"),
            title="positions counted backwards",
            says="Your last position gets row 0. Count from the start: otherwise a word's number changes with what "
                 "comes after it."),
    Mistake(EMBEDDING, "batch",
            edit=("torch.arange(t, device=x.device)\n        return x + self.table(positions)",
                  "torch.arange(x.shape[0], device=x.device)\n        return x + self.table(positions).unsqueeze(1)"),
            title="sentences numbered instead of positions",
            says="All positions of one sequence get the same vector, and every sequence of the batch another: you "
                 "count along axis 0. Positions are axis 1 of (b, t, e)."),
    Mistake(EMBEDDING, "not-added", edit=("x + self.table(positions)", "self.table(positions).expand(x.shape)"),
            title="the positions without the words",
            says="You return the vectors of the positions alone; the words are gone. Add them to x."),
    Mistake(EMBEDDING, "multiplied", edit=("x + self.table", "x * self.table"), title="multiplied instead of added",
            says="You multiply the words with their positions. They have to be added."),
    Mistake(EMBEDDING, "on-the-cpu", edit=("torch.arange(t, device=x.device)", "torch.arange(t)"),
            title="positions made on the CPU",
            says="`torch.arange(t)` counts on the CPU, wherever x is. On a GPU the table and its indices do not meet. "
                 "`device=x.device` puts them where x is."),
    Mistake(EMBEDDING, "in-place",
            edit=("return x + self.table(positions)", "x += self.table(positions)\n        return x"),
            title="the input changed in place",
            says="Your sum is right and is written over the caller's x: whoever keeps the word vectors finds positions "
                 "in them. Return a new tensor."),
    Mistake(EMBEDDING, "nothing-added", edit=("return x + self.table(positions)", "return x.clone()"), idle=True,
            title="the positions missing",
            says="You return x as it came. The vector of its position has to be added to every vector."),
    Mistake(EMBEDDING, "table-cut-off", edit=("self.table(positions)", "self.table(positions).detach()"),
            title="the table cut off from the gradient",
            says="Your sum is right, but no gradient reaches the table: .data or detach() cuts it off, and its vectors "
                 "would never be learned."),
    Mistake(EMBEDDING, "words-cut-off", edit=("return x + ", "return x.detach() + "),
            title="the words cut off from the gradient",
            says="Your sum is right, but no gradient flows back to x: detach() or .data cuts it off, and the word "
                 "vectors would never be learned."),
    Mistake(EMBEDDING, "detached", edit=("return x + self.table(positions)", "return (x + "
                 "self.table(positions)).detach()"),
            title="the result cut off from the gradient",
            says="No gradient flows back through your result: detach(), .data or no_grad() cuts the graph, and the "
                 "table "
                 "would never be learned."),
    Mistake(EMBEDDING, "last-rows", edit=("self.table(positions)", "self.table.weight[-t:]"),
            title="the last rows of the table",
            says="You take the last t rows of the table. Position 0 has row 0, however long the sequence is."),
    Mistake(EMBEDDING, "first-row-for-all", edit=("self.table(positions)", "self.table(0 * positions)"),
            title="row 0 for every position",
            says="Every position gets row 0 of the table. Position p has row p."),
    Mistake(EMBEDDING, "mean-of-the-rows", edit=("self.table(positions)", "self.table(positions).mean(dim=0)"),
            title="the mean of the rows added everywhere",
            says="You add the mean of the rows to every vector. Each position gets a row of its own."),
    Mistake(EMBEDDING, "scaled-words", edit=("return x + ", "return x * x.shape[-1] ** 0.5 + "),
            title="the words multiplied by √e",
            says="You multiply the words by √e before you add. Some models do; here x is added as it is."),
    Mistake(EMBEDDING, "side-by-side", edit=("x + self.table(positions)",
                                             "torch.cat([x, self.table(positions).expand(x.shape)], dim=-1)"),
            title="words and positions side by side",
            says="You lay the vector of the position beside that of the word, (b, t, 2e). They are added: the width "
                 "stays e."),
    Mistake(EMBEDDING, "whole-table", edit=("self.table(positions)", "self.table.weight"),
            title="the whole table added",
            says="You add all t_max rows of the table, and the sequence has t positions. Take rows 0 to t − 1."),
    Mistake(EMBEDDING, "as-many-as-sentences", edit=("t = x.shape[1]", "t = x.shape[0]"),
            title="as many positions as sentences",
            says="You count along axis 0, and that is the sentences of the batch. Positions are axis 1 of (b, t, e)."),
    Mistake(EMBEDDING, "as-many-as-components", edit=("t = x.shape[1]", "t = x.shape[2]"),
            title="as many positions as components",
            says="You count along the last axis, and that is the components. Positions are axis 1 of (b, t, e)."),
    Mistake(EMBEDDING, "full-length-only", edit=("t > self.t_max", "t != self.t_max"),
            title="shorter sequences refused",
            says="You refuse every sequence that is not exactly t_max long. Shorter ones are fine: they use the first "
                 "rows."),
    Mistake(EMBEDDING, "squeezed", edit=("return x + self.table(positions)", "return (x + "
                 "self.table(positions)).squeeze()"),
            title="axes of length 1 squeezed out",
            says="Your numbers are right, but an axis of length 1 gets lost: with a batch of one, or a single "
                 "position, "
                 "the result has too few axes. All three axes stay, whatever their lengths."),
    Accepted(EMBEDDING, "rows", instead=("self.table = nn.Embedding(t_max, e)", """
        b, t, e = x.shape
        t_max = self.table.weight.shape[0]
        if t > t_max:
            raise ValueError("t is " + str(t) + ", t_max is " + str(t_max))
        return x + self.table.weight[:t]
    """)),
    Accepted(EMBEDDING, "whole-batch", instead=("", """
        self.t_max = self.table.num_embeddings
        if x.size(1) > self.t_max:
            raise ValueError("sequence of length %d, but t_max = %d" % (x.size(1), self.t_max))
        positions = torch.ones(x.shape[:2], dtype=torch.long, device=x.device).cumsum(1) - 1
        return torch.add(self.table(positions), x)
    """)),
    Accepted(EMBEDDING, "one-by-one", instead=("self.table = nn.Embedding(num_embeddings=t_max, embedding_dim=e)", """
        if not x.shape[1] <= self.table.num_embeddings:
            raise ValueError(f"{x.shape[1]} > {self.table.num_embeddings}")
        y = torch.zeros_like(x)
        for p in range(x.shape[1]):
            y[:, p] = x[:, p] + self.table(torch.tensor(p, device=x.device))
        return y
    """)),
    Accepted(EMBEDDING, "buffer", instead=("""
        self.table = nn.Embedding(t_max, e)
        self.register_buffer("places", torch.arange(t_max))
    """, """
        if x.shape[1] > len(self.places):
            raise ValueError(f"got {x.shape[1]} positions, have {len(self.places)}")
        return x + self.table(self.places[: x.shape[1]]).unsqueeze(0)
    """)),
    Accepted(EMBEDDING, "one-hot", instead=("self.table = nn.Embedding(t_max, e)", """
        t, t_max = x.shape[1], self.table.num_embeddings
        if t > t_max:
            raise ValueError(f"{t} is more than {t_max}")
        return x + torch.eye(t, t_max, device=x.device) @ self.table.weight
    """)),
    Shortcut(EMBEDDING, "finished-part",
             edit=("return x + self.table(positions)", "return finished.PositionEmbedding.forward(self, x)")),
    # -------------------------------------------------------------------------------- sinusoidal_encoding
    Mistake(SINUSOIDS, "halves",
            edit=("torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)",
                  "torch.cat([angles.sin(), angles.cos()], dim=-1)"), title="all sines first, then all cosines",
            says="Your numbers are the right ones in another order: the sines fill the left half, the cosines the "
                 "right. Sine and cosine of one angle stand side by side here, at 2m and 2m + 1."),
    Mistake(SINUSOIDS, "cosine-first", edit=("[angles.sin(), angles.cos()]", "[angles.cos(), angles.sin()]"),
            title="cosine before sine",
            says="Your even components are cosines and your odd ones sines. It is the other way round."),
    Mistake(SINUSOIDS, "exponent-j", edit=("(pairs / e)", "(pairs / 2 / e)"), title="exponent m/e instead of 2m/e",
            says="Your hands slow down half as fast as they should: the exponent is 2m/e, and the last hand is nearly "
                 "10000 times as slow as the first, yours only 100 times. Mind whether your m counts pairs or "
                 "components."),
    Mistake(SINUSOIDS, "exponent-4m", edit=("(pairs / e)", "(2 * pairs / e)"), title="exponent 4m/e instead of 2m/e",
            says="Your hands slow down twice as fast as they should. Numbers that already go up in steps of 2 must not "
                 "be doubled once more: they are the 2m."),
    # the published form of the doubled exponent: the loop variable goes in steps of 2 and is doubled, and the cosine
    # gets a step of its own
    Mistake(SINUSOIDS, "doubled-and-apart",
            edit=("torch.stack([angles.sin(), angles.cos()], dim=-1)",
                  "torch.stack([(positions / 10000 ** (2 * pairs / e)).sin(), (positions / 10000 ** (2 * (pairs + 1) / "
                  "e)).cos()], dim=-1)"), title="the exponent doubled, and another one for the cosine",
            says="Two things about your exponents. The numbers 0, 2, 4, … are the 2m already and must not be doubled "
                 "again; and sine and cosine of a pair share one angle, or the pair is no clock hand."),
    Mistake(SINUSOIDS, "each-its-own",
            edit=("torch.stack([angles.sin(), angles.cos()], dim=-1)",
                  "torch.stack([angles.sin(), (positions / 10000 ** ((pairs + 1) / e)).cos()], dim=-1)"),
            title="another angle for the cosine",
            says="Your sines are right; your cosines have angles of their own, with an exponent of (2m + 1)/e. Both "
                 "components of a pair take the same angle, with 2m/e."),
    Mistake(SINUSOIDS, "base-1000", edit=("10000 **", "1000 **"), title="base 1000 instead of 10000",
            says="Your first hand is right and the others are too quick: the base is 10000, with four zeros."),
    Mistake(SINUSOIDS, "last-is-slowest", edit=("(pairs / e)", "(pairs / (e - 2))"), title="exponent divided by e − 2",
            says="Your exponents run from 0 to 1 with the last hand included. One well-known program does that; in the "
                 "formula the last exponent is (e − 2)/e, a little less than 1."),
    Mistake(SINUSOIDS, "multiplied", edit=("positions / 10000", "positions * 10000"),
            title="multiplied by the power instead of divided",
            says="Your hands get quicker from pair to pair, up to thousands of radians a step. Divide by the power of "
                 "10000."),
    Mistake(SINUSOIDS, "from-one", edit=("torch.arange(t, device=device)", "torch.arange(1, t + 1, device=device)"),
            title="positions counted from 1",
            says="Your first row is that of position 1. Position 0 comes first: all its sines are 0, all its cosines "
                 "1."),
    Mistake(SINUSOIDS, "only-sines", edit=("[angles.sin(), angles.cos()]", "[angles.sin(), angles.sin()]"),
            title="sines in both places",
            says="Both components of a pair are sines. A clock hand needs both coordinates: at 2m + 1 stands the "
                 "cosine."),
    Mistake(SINUSOIDS, "half-width",
            edit=("torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)", "angles.sin()"),
            title="sines only, half as wide",
            says="Your result is (t, e/2): the cosines are missing."),
    Mistake(SINUSOIDS, "t-in-exponent", edit=("(pairs / e)", "(pairs / t)"), title="the exponent divided by t",
            says="You divide the exponent by the number of positions. Then a position's encoding changes with the "
                 "length of the sequence it is in. It is divided by the width e."),
    Mistake(SINUSOIDS, "on-the-cpu",
            edit=(("torch.arange(t, device=device)", "torch.arange(t)"),
                  ("torch.arange(0, e, 2, device=device)", "torch.arange(0, e, 2)")),
            title="made on the CPU, whatever device was asked for",
            says="Your function takes `device` and does not use it, so the encodings stay on the CPU and do not meet "
                 "words on a GPU. Hand it on to what makes the tensors."),
    Mistake(SINUSOIDS, "halves-from-one",
            edit=(("torch.arange(t, device=device)", "torch.arange(1, t + 1, device=device)"),
                  ("torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)",
                   "torch.cat([angles.sin(), angles.cos()], dim=-1)")),
            title="in two halves, and counted from 1",
            says="Two things. Your first row is that of position 1, and position 0 comes first. And all sines stand "
                 "before all cosines: sine and cosine of one angle belong side by side, at 2m and 2m + 1."),
    Mistake(SINUSOIDS, "halves-cosine-first",
            edit=("torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)",
                  "torch.cat([angles.cos(), angles.sin()], dim=-1)"), title="all cosines first, then all sines",
            says="The cosines fill the left half of your table and the sines the right. Sine and cosine of one angle "
                 "stand side by side here, the sine at 2m and the cosine at 2m + 1."),
    Mistake(SINUSOIDS, "one-speed", edit=("(pairs / e)", "(0 * pairs)"), title="one speed for all hands",
            says="All your hands turn at the same speed. Is there a `//` in the exponent? 2m/e lies between 0 and 1, "
                 "and "
                 "a division of whole numbers makes 0 of it."),
    Mistake(SINUSOIDS, "base-e", edit=("10000 **", "math.e **"), title="base e instead of 10000",
            says="Your speeds are powers of e = 2.718…, and the base is 10000. (exp(−2m/e) lacks a factor in its "
                 "exponent: the logarithm of 10000.)"),
    Mistake(SINUSOIDS, "base-100000", edit=("10000 **", "100000 **"), title="base 100000 instead of 10000",
            says="Your first hand is right and the others are too slow: the base is 10000, with four zeros."),
    Mistake(SINUSOIDS, "degrees", edit=("angles.sin(), angles.cos()", "angles.deg2rad().sin(), angles.deg2rad().cos()"),
            title="angles taken for degrees",
            says="You turn the angles from degrees into radians. They are in radians already."),
    Mistake(SINUSOIDS, "whole-turns",
            edit=("angles.sin(), angles.cos()", "(2 * math.pi * angles).sin(), (2 * math.pi * angles).cos()"),
            title="angles multiplied by 2π",
            says="You multiply the angles by 2π. The formula does not: from one position to the next, the first hand "
                 "turns by 1 radian."),
    Mistake(SINUSOIDS, "not-joined", edit=("dim=-1).flatten(-2)", "dim=-1)"), title="the last two axes not joined",
            says="Your result is (t, e/2, 2). Sine and cosine are side by side already; the last two axes still have "
                 "to "
                 "become one, e wide."),
    Mistake(SINUSOIDS, "transposed", edit=("flatten(-2)", "flatten(-2).T"), title="the table transposed",
            says="Your result is (e, t). Positions are the rows: (t, e)."),
    Mistake(SINUSOIDS, "angles-only", edit=("[angles.sin(), angles.cos()]", "[angles, angles]"),
            title="the angles themselves",
            says="Your table holds the angles. Their sines and cosines are asked for."),
    Mistake(SINUSOIDS, "backwards", edit=("torch.arange(t, device=device)", "torch.arange(t, device=device).flip(0)"),
            title="positions counted backwards", says="Your last row is that of position 0. Row p belongs to position "
                 "p."),
    Mistake(SINUSOIDS, "last-hand-missing", instead="""
        encoding = torch.zeros(t, e, device=device)
        for j in range(e // 2 - 1):
            angles = torch.arange(t, device=device) / 10000 ** (2 * j / e)
            encoding[:, 2 * j], encoding[:, 2 * j + 1] = angles.sin(), angles.cos()
        return encoding
    """, title="the last hand left out",
            says="The last two columns of your table are empty: the loop ends one hand too early. There are e/2 "
                 "hands."),
    Mistake(SINUSOIDS, "squeezed", edit=("flatten(-2)", "flatten(-2).squeeze()"), title="axes of length 1 squeezed out",
            says="Your numbers are right, but for a single position the table loses its first axis. It is (t, e), "
                 "whatever t is."),
    Accepted(SINUSOIDS, "slices", instead="""
        position = torch.arange(0, t, dtype=torch.float, device=device)[:, None]
        speeds = torch.exp(torch.arange(0, e, 2, device=device).float() * (-math.log(10000.0) / e))
        pe = torch.zeros(t, e, device=device)
        pe[:, 0::2] = torch.sin(position * speeds)
        pe[:, 1::2] = torch.cos(position * speeds)
        return pe
    """),
    Accepted(SINUSOIDS, "loops", instead="""
        pe = torch.empty(t, e)
        for p in range(t):
            for j in range(e // 2):
                angle = p / 10000 ** (2 * j / e)
                pe[p, 2 * j] = math.sin(angle)
                pe[p, 2 * j + 1] = math.cos(angle)
        return pe.to(device)
    """),
    Accepted(SINUSOIDS, "shifted-sines", instead="""
        c = torch.arange(e, device=device)
        angles = torch.outer(torch.arange(t, device=device).float(), 10000.0 ** (-(c - c % 2) / e))
        return torch.sin(angles + (c % 2) * math.pi / 2)
    """),
    Accepted(SINUSOIDS, "complex", instead="""
        j = torch.arange(e // 2, device=device)
        angles = torch.einsum("p,j->pj", torch.arange(float(t), device=device), 10000 ** (-2 * j / e))
        return torch.view_as_real(torch.polar(torch.ones_like(angles), angles)).flip(-1).reshape(t, e)
    """),
    Accepted(SINUSOIDS, "list", instead="""
        wave = lambda c: math.cos if c % 2 else math.sin
        rows = [[wave(c)(p / 10000 ** ((c // 2) * 2 / e)) for c in range(e)] for p in range(t)]
        return torch.tensor(rows, device=device)
    """),
    Shortcut(SINUSOIDS, "finished-part", instead="return finished.sinusoidal_encoding(t, e, device)"),
    # --------------------------------------------------------------------------------------- shift_matrix
    Mistake(SHIFT, "no-minus", edit=("= -sin, cos", "= sin, cos"), title="both sines positive",
            says="Both sines of your blocks have the same sign, so a block is no rotation. In the second row, the one "
                 "that makes the new cosine, the sine is negative."),
    Mistake(SHIFT, "other-way",
            edit=(("matrix[0::2, 1::2] = cos, sin", "matrix[0::2, 1::2] = cos, -sin"), ("= -sin, cos", "= sin, cos")),
            title="turned the wrong way",
            says="Your matrix goes back where it should go on: M PE(p) is PE(p − shift). The signs of the two sines "
                 "are exchanged, or the matrix is transposed. Compare with the addition formulas, where the sine comes "
                 "first in a pair."),
    # the transpose of a rotation turns back
    Alias(SHIFT, "transposed", of="other-way", edit=("return matrix", "return matrix.T")),
    Mistake(SHIFT, "one-speed",
            edit=("shift / 10000 ** (torch.arange(0, e, 2, device=device) / e)",
                  "shift * torch.ones(e // 2, device=device)"),
            title="one angle for all hands",
            says="All your blocks turn by the same angle. Each hand has its own speed: block m turns by shift · ω_m."),
    Mistake(SHIFT, "halves",
            edit=("return matrix",
                  "order = torch.arange(e, device=device).reshape(-1, 2).T.flatten()\n    return matrix[order][:, "
                  "order]"), title="for sines and cosines in two halves",
            says="Your matrix fits encodings with all sines first and all cosines behind them. Here they stand side by "
                 "side: the blocks of 2 × 2 lie on the diagonal."),
    Mistake(SHIFT, "cosines-turned", edit=(("= cos, sin\n", "= sin, cos\n"), ("= -sin, cos\n", "= cos, -sin\n")),
            title="sine and cosine exchanged in the blocks",
            says="In your blocks the sines stand where the cosines belong. Try a shift of 0: nothing moves, so the "
                 "matrix must be the identity."),
    Mistake(SHIFT, "exponent-j",
            edit=("torch.arange(0, e, 2, device=device) / e", "torch.arange(0, e, 2, device=device) / 2 / e"),
            title="exponent m/e instead of 2m/e",
            says="Your hands have other speeds than those of the encodings: the exponent is 2m/e. Mind whether your m "
                 "counts pairs or components."),
    Mistake(SHIFT, "base-1000", edit=("10000 **", "1000 **"), title="base 1000 instead of 10000",
            says="Your hands have other speeds than those of the encodings: the base is 10000."),
    Mistake(SHIFT, "rows-moved", edit=("return matrix", "return torch.eye(e, device=device).roll(shift, dims=0)"),
            title="components moved instead of positions",
            says="Your matrix moves the components of a vector along. What has to move is the position that the "
                 "vector stands for; components stay in their pairs and turn."),
    Mistake(SHIFT, "no-off-diagonal",
            edit=("matrix[1::2, 0::2], matrix[1::2, 1::2] = -sin, cos",
                  "matrix[1::2, 1::2] = cos\n    matrix[0::2, 1::2] = 0"), title="only the diagonal",
            says="Your matrix is diagonal: the new sine is made from the old sine alone. By the addition formula it "
                 "needs the old cosine too."),
    Mistake(SHIFT, "sign-lost", edit=("angles = shift /", "angles = abs(shift) /"), title="the sign of the shift lost",
            says="Forwards your matrix is right; for a negative shift it goes forwards, too. Its sign has to reach the "
                 "sines."),
    Mistake(SHIFT, "multiplied", edit=("shift / 10000", "shift * 10000"),
            title="multiplied by the power instead of divided",
            says="Your hands get quicker from block to block. Divide by the power of 10000."),
    Mistake(SHIFT, "overlapping", instead="""
        matrix = torch.zeros(e, e, device=device)
        for j in range(e // 2):
            angle = torch.tensor(shift / 10000 ** (2 * j / e), device=device)
            matrix[j, j], matrix[j, j + 1] = angle.cos(), angle.sin()
            matrix[j + 1, j], matrix[j + 1, j + 1] = -angle.sin(), angle.cos()
        return matrix
    """, title="blocks that overlap",
            says="Your blocks lie at rows m and m + 1, so that each overwrites part of the one before, and the lower "
                 "half of the matrix stays empty. Hand m owns rows and columns 2m and 2m + 1."),
    Mistake(SHIFT, "on-the-cpu",
            edit=(("torch.arange(0, e, 2, device=device)", "torch.arange(0, e, 2)"),
                  ("torch.zeros(e, e, device=device)", "torch.zeros(e, e)")),
            title="made on the CPU, whatever device was asked for",
            says="Your function takes `device` and does not use it. Hand it on to what makes the tensors."),
    Mistake(SHIFT, "last-block-missing", edit=("return matrix", "matrix[-2:] = 0\n    return matrix"),
            title="the last block left out",
            says="The last two rows of your matrix are empty: the last hand has no block. There are e/2 hands."),
    Mistake(SHIFT, "exponent-4m", edit=("torch.arange(0, e, 2, device=device) / e",
                                        "2 * torch.arange(0, e, 2, device=device) / e"),
            title="exponent 4m/e instead of 2m/e",
            says="Your hands have other speeds than those of the encodings: the exponent is 2m/e. Numbers that go up "
                 "in "
                 "steps of 2 are the 2m already."),
    Mistake(SHIFT, "exchanged", edit=(("= cos, sin\n", "= sin, cos\n"), ("= -sin, cos\n", "= -cos, sin\n")),
            title="sine and cosine exchanged",
            says="In your blocks the sines stand on the diagonal and the cosines beside it. Try a shift of 0: nothing "
                 "moves, so "
                 "the matrix must be the identity."),
    Mistake(SHIFT, "both-minus", edit=("matrix[0::2, 1::2] = cos, sin", "matrix[0::2, 1::2] = cos, -sin"),
            title="both sines negative",
            says="Both sines of your blocks are negative, so a block is no rotation. In the first row, the one that "
                 "makes the new sine, the sine is positive."),
    Mistake(SHIFT, "one-more", edit=("angles = shift /", "angles = (shift + 1) /"),
            title="one step more than the shift",
            says="Your matrix goes one position too far. Try a shift of 0: nothing moves, so the matrix must be the "
                 "identity."),
    Mistake(SHIFT, "shift-ignored", edit=("angles = shift /", "angles = 1 /"), title="the shift not used",
            says="Your matrix goes on by one position, whatever the shift is. Each angle is the shift times a speed."),
    Mistake(SHIFT, "identity", edit=("angles = shift /", "angles = 0 * shift /"), idle=True, title="nothing moves",
            says="Your matrix is the identity: nothing moves. Each hand has to turn by the shift times its speed."),
    Mistake(SHIFT, "not-diagonal",
            edit=("torch.diag(angles.cos()), torch.diag(angles.sin())", "angles.cos(), angles.sin()"),
            title="the pieces filled instead of their diagonals",
            says="Your matrix is filled everywhere, so that every hand is mixed with every other. In each of the four "
                 "(e/2, e/2) pieces only the diagonal is filled: a hand turns by itself."),
    Mistake(SHIFT, "e-in-exponent-halved",
            edit=("torch.arange(0, e, 2, device=device) / e", "torch.arange(0, e, 2, device=device) / (e - 2)"),
            title="exponent divided by e − 2",
            says="Your hands have other speeds than those of the encodings: the exponent is 2m/e, and the last one is "
                 "(e − 2)/e, a little less than 1."),
    Mistake(SHIFT, "base-100000", edit=("10000 **", "100000 **"), title="base 100000 instead of 10000",
            says="Your hands have other speeds than those of the encodings: the base is 10000, with four zeros."),
    Accepted(SHIFT, "loop", instead="""
        m = torch.zeros(e, e)
        for j in range(e // 2):
            angle = shift * 10000 ** (-2 * j / e)
            m[2 * j, 2 * j] = m[2 * j + 1, 2 * j + 1] = math.cos(angle)
            m[2 * j, 2 * j + 1] = math.sin(angle)
            m[2 * j + 1, 2 * j] = -math.sin(angle)
        return m.to(device)
    """),
    Accepted(SHIFT, "block-diag", instead="""
        blocks = []
        for j in range(0, e, 2):
            a = torch.tensor(shift / 10000 ** (j / e), device=device)
            blocks.append(torch.stack([torch.stack([a.cos(), a.sin()]), torch.stack([-a.sin(), a.cos()])]))
        return torch.block_diag(*blocks)
    """),
    Accepted(SHIFT, "power-of-one-step", instead="""
        a = 10000.0 ** (-torch.arange(0, e, 2, device=device) / e)
        one = torch.zeros(e, e, device=device)
        j = torch.arange(0, e, 2, device=device)
        one[j, j], one[j + 1, j + 1], one[j, j + 1], one[j + 1, j] = a.cos(), a.cos(), a.sin(), -a.sin()
        m = torch.eye(e, device=device)
        for _ in range(abs(shift)):
            m = (one if shift > 0 else one.T) @ m
        return m
    """),
    Accepted(SHIFT, "exponential", instead="""
        speeds = 10000 ** (-torch.arange(0, e, 2, device=device) / e)
        generator = torch.kron(torch.diag(speeds), torch.tensor([[0.0, 1.0], [-1.0, 0.0]], device=device))
        return torch.linalg.matrix_exp(shift * generator)
    """),
    Accepted(SHIFT, "least-squares", instead="""
        p = torch.arange(0, 4000, dtype=torch.float64).unsqueeze(1)
        speeds = 10000.0 ** (-torch.arange(0, e, 2, dtype=torch.float64) / e)
        def encode(p):
            return torch.stack([(p * speeds).sin(), (p * speeds).cos()], -1).flatten(1)
        return torch.linalg.lstsq(encode(p), encode(p + shift)).solution.T.float().to(device)
    """),
    # -------------------------------------------------------------------------------------- relative_bias
    Mistake(BIAS, "unchanged", instead="""
        places = torch.arange(t, device=table.device)
        grid = places.reshape(1, -1) + places.reshape(-1, 1)
        return table[grid]
    """, title="the code as it came",
            says="Your numbers are those of the code as it came. Look at two pairs of neighbours, (1, 0) and (2, 1): "
                 "their distance is the same, and your matrix gives them different numbers."),
    Mistake(BIAS, "sum-from-the-middle",
            edit=("positions.unsqueeze(1) - positions ", "positions.unsqueeze(1) + positions "),
            title="i + j instead of i − j, from the middle of the table",
            says="You look up i + j, counted from the middle of the table. That is constant along the wrong diagonals, "
                 "and for long sequences it leaves the table. Take the difference, i − j."),
    Mistake(BIAS, "mirrored", edit=("positions.unsqueeze(1) - positions ", "positions - positions.unsqueeze(1) "),
            title="j − i instead of i − j",
            says="Your matrix is the transpose: what lies behind gets the numbers that are meant for what lies ahead. "
                 "Entry [i, j] belongs to i − j, so the rows' positions stand in front of the minus."),
    Alias(BIAS, "table-reversed", of="mirrored", edit=("table[distances", "table.flip(0)[distances")),
    Mistake(BIAS, "middle-of-t", edit=("+ t_max - 1", "+ t - 1"), title="distance 0 at t − 1 instead of t_max − 1",
            says="You take entry t − 1 of the table for distance 0. That is its middle only when t = t_max. A shorter "
                 "sequence uses the *inner* part of the table; otherwise a distance would mean something else in each "
                 "length."),
    Mistake(BIAS, "mirrored-no-offset",
            edit=(("positions.unsqueeze(1) - positions ", "positions - positions.unsqueeze(1) "),
                  ("table[distances + t_max - 1]", "table[distances]")),
            title="j − i, used as an index as it is",
            says="You use j − i as the index. Two things about it: entry [i, j] belongs to i − j; and distance 0 gets "
                 "the first entry of the table, while negative indices are counted from its end, without an error."),
    Mistake(BIAS, "mirrored-middle-of-t",
            edit=(("positions.unsqueeze(1) - positions ", "positions - positions.unsqueeze(1) "),
                  ("+ t_max - 1", "+ t - 1")), title="j − i, with distance 0 at t − 1",
            says="Two things: entry [i, j] belongs to i − j, and you take j − i; and you take entry t − 1 of the table "
                 "for distance 0, which is its middle only when t = t_max."),
    Alias(BIAS, "from-the-smallest", of="middle-of-t", edit=("distances + t_max - 1", "distances - distances.min()")),
    Mistake(BIAS, "no-offset", edit=("table[distances + t_max - 1]", "table[distances]"),
            title="distances used as indices as they are",
            says="You use i − j as the index. Distance 0 then gets the first entry of the table, and negative "
                 "distances are counted from its end, without an error. Distance 0 is in the middle, at t_max − 1."),
    Mistake(BIAS, "off-by-one", edit=("+ t_max - 1", "+ t_max"), title="one place beside the middle",
            says="Your indices are one too large: the middle of 2·t_max − 1 entries is the index t_max − 1, and the "
                 "largest distance must find the last entry."),
    Mistake(BIAS, "off-by-one-below", edit=("+ t_max - 1", "+ t_max - 2"), title="one place before the middle",
            says="Your indices are one too small: the middle of 2·t_max − 1 entries is the index t_max − 1. The "
                 "farthest position ahead would find the last entry, by way of −1."),
    Mistake(BIAS, "only-behind", edit=("distances + t_max", "distances.clamp(min=0) + t_max"),
            title="nothing but distance 0 ahead",
            says="Above the diagonal, where j is ahead of i, all your entries are that of distance 0. The table has "
                 "numbers for negative distances too: its first half."),
    Mistake(BIAS, "absolute", edit=("distances + t_max", "distances.abs() + t_max"),
            title="before and after treated alike",
            says="Your matrix is symmetric: you take the size of the distance. The table has a number of its own for "
                 "each side, so that *before* and *after* can differ."),
    Mistake(BIAS, "row-for-all", edit=("table[distances + t_max - 1]", "table[t_max - 1 - positions].expand(t, t)"),
            title="the same row for every i",
            says="All your rows are alike: you look up the position j, not the distance i − j."),
    Mistake(BIAS, "whole-table", edit=("torch.arange(t, ", "torch.arange(t_max, "),
            title="as large as the table allows, not t",
            says="Your matrix is (t_max, t_max), for the longest sequence. This one has t positions."),
    Mistake(BIAS, "graph-cut",
            edit=("return table[distances + t_max - 1]",
                  "return torch.tensor([[table[d + t_max - 1].item() for d in row] for row in distances.tolist()], "
                  "device=table.device)"), title="numbers read out, gradient lost",
            says="No gradient flows back to the table, and it will never learn: `.item()`, `torch.tensor` of a list, "
                 "detach() or .data cuts it off. Index the table with a tensor, or stack pieces of it."),
    Mistake(BIAS, "off-by-one-clamped",
            edit=("distances + t_max - 1", "(distances + t_max).clamp(max=len(table) - 1)"),
            title="one place beside the middle, held back at the end",
            says="Your indices are one too large, and where they would leave the table they are held back, so that "
                 "nothing raises. The middle of 2·t_max − 1 entries is the index t_max − 1."),
    Mistake(BIAS, "off-by-one-round",
            edit=("distances + t_max - 1", "(distances + t_max) % len(table)"),
            title="one place beside the middle, and round the end",
            says="Your indices are one too large, and where they would leave the table they begin again at its front, "
                 "so "
                 "that nothing raises. The middle of 2·t_max − 1 entries is the index t_max − 1."),
    Mistake(BIAS, "absolute-from-zero", edit=("distances + t_max - 1", "distances.abs()"),
            title="sizes of distances, from the front of the table",
            says="You look up the size of the distance, counted from the front of the table. Its entries begin with "
                 "the "
                 "distance −(t_max − 1); distance 0 is in the middle, and each side has numbers of its own."),
    Mistake(BIAS, "lower-triangle", edit=("return table[distances + t_max - 1]", "return table[distances + t_max - "
                 "1].tril()"),
            title="nothing above the diagonal",
            says="Above the diagonal your matrix is 0. The table has numbers for what lies ahead as well; hiding the "
                 "future is the mask's business."),
    Mistake(BIAS, "distances", edit=("table[distances + t_max - 1]", "distances.to(table)"),
            title="the distances themselves",
            says="You return the distances i − j. Each stands for a place in the table; the number there is asked "
                 "for."),
    Mistake(BIAS, "indices", edit=("table[distances + t_max - 1]", "(distances + t_max - 1).to(table)"),
            title="the indices, not looked up",
            says="You return the places in the table. The numbers that stand there are asked for."),
    Mistake(BIAS, "table-itself", edit=("table[distances + t_max - 1]", "table.clone()"), idle=True,
            title="the table as it came",
            says="You return the table as it came. Its numbers have to be laid out as (t, t), one along each "
                 "diagonal."),
    Mistake(BIAS, "one-list", edit=("table[distances + t_max - 1]", "table[t_max - t:t_max + t - 1]"),
            title="the inner part of the table, not laid out",
            says="You return the right 2t − 1 numbers of the table as a list. They have to be laid out as (t, t), one "
                 "number along each diagonal."),
    Mistake(BIAS, "squeezed", edit=("table[distances + t_max - 1]", "table[distances + t_max - 1].squeeze()"),
            title="axes of length 1 squeezed out",
            says="Your numbers are right, but for t = 1 the matrix loses its axes. It is (t, t), whatever t is."),
    Accepted(BIAS, "loops", instead="""
        t_max = (table.shape[0] + 1) // 2
        rows = []
        for i in range(t):
            rows.append(torch.stack([table[i - j + t_max - 1] for j in range(t)]))
        return torch.stack(rows)
    """),
    Accepted(BIAS, "filled", instead="""
        middle = table.numel() // 2
        bias = torch.zeros(t, t, dtype=table.dtype, device=table.device)
        for i in range(t):
            for j in range(t):
                bias[i, j] = table[middle + i - j]
        return bias
    """),
    Accepted(BIAS, "windows", instead="""
        middle = len(table) // 2
        used = table[middle - t + 1: middle + t]
        return used.flip(0).unfold(0, t, 1).flip(0)
    """),
    Accepted(BIAS, "take", instead="""
        i = torch.arange(t, device=table.device)
        index = i[:, None] - i[None, :] + (table.size(0) - 1) // 2
        return table.index_select(0, index.flatten()).view(t, t)
    """),
    # an index may stay on the CPU, wherever the table is: torch moves it
    Accepted(BIAS, "index-on-the-cpu", instead="""
        i, j = torch.meshgrid(torch.arange(t), torch.arange(t), indexing="ij")
        return table[(i - j) + len(table) // 2]
    """),
    Shortcut(BIAS, "finished-part", instead="return finished.relative_bias(table, t)"),
    # --------------------------------------------------------------------------------------------- rotate
    Mistake(ROTATE, "wrong-way",
            edit=("[first * cos - second * sin, first * sin + second * cos]",
                  "[first * cos + second * sin, second * cos - first * sin]"), title="turned the wrong way",
            says="You turn by the right angles in the other direction. Products of two vectors turned like that still "
                 "depend on i − j alone, but on the wrong side: what is meant for two places back acts two places "
                 "ahead. The minus belongs to the first component."),
    Mistake(ROTATE, "halves",
            edit=(("first, second = x[..., 0::2], x[..., 1::2] ", "first, second = x.chunk(2, dim=-1) "),
                  ("torch.stack(turned, dim=-1).flatten(-2)", "torch.cat(turned, dim=-1)")),
            title="the two halves paired instead of neighbours",
            says="You pair component j with j + d/2. Some published models do, and it works as well; but weights that "
                 "were trained with one pairing are of no use with the other. Here neighbours are paired, 2m and 2m + "
                 "1."),
    Mistake(ROTATE, "not-side-by-side", edit=("torch.stack(turned, dim=-1).flatten(-2)", "torch.cat(turned, dim=-1)"),
            title="put back in two halves",
            says="You turn the right pairs by the right angles, and then put all first components in front and all "
                 "second ones behind. They came side by side and have to go back like that."),
    Mistake(ROTATE, "exponent-j", edit=("(pairs / d)", "(pairs / 2 / d)"), title="exponent m/d instead of 2m/d",
            says="Your slow hands are too quick: the exponent is 2m/d. Mind whether your m counts pairs or "
                 "components."),
    Mistake(ROTATE, "exponent-4m", edit=("(pairs / d)", "(2 * pairs / d)"), title="exponent 4m/d instead of 2m/d",
            says="Your hands slow down twice as fast as they should: numbers that go up in steps of 2 are the 2m "
                 "already."),
    Mistake(ROTATE, "base-1000", edit=("10000 **", "1000 **"), title="base 1000 instead of 10000",
            says="Your first pair is right and the others turn too quickly: the base is 10000."),
    Mistake(ROTATE, "one-speed",
            edit=("positions.unsqueeze(1) / 10000 ** (pairs / d)", "positions.unsqueeze(1) * torch.ones_like(pairs)"),
            title="one angle for all pairs",
            says="You turn every pair by the same angle. Then positions 0 and 44, seven times round, look nearly the "
                 "same. Each pair has a speed of its own, ω_m."),
    Mistake(ROTATE, "counts-itself",
            edit=("positions.unsqueeze(1) /", "torch.arange(x.shape[-2], device=x.device).unsqueeze(1) /"),
            title="the positions not used",
            says="You count 0, 1, 2, … yourself. The positions come as an argument, and they may begin anywhere and "
                 "stand in any order."),
    Mistake(ROTATE, "from-one", edit=("positions.unsqueeze(1) /", "(positions.unsqueeze(1) + 1) /"),
            title="positions counted from 1",
            says="You turn the vector at position 0 as well. All products come out right like that, but the vectors do "
                 "not: take the positions as they are given."),
    Mistake(ROTATE, "added",
            edit=("turned = [first * cos - second * sin, first * sin + second * cos]",
                  "turned = [first + sin, second + cos]"), title="sinusoids added instead of vectors turned",
            says="You add sines and cosines to the vector, as in exercise 2. Rotary encoding *turns* the pair: each "
                 "new component is made from both old ones."),
    Mistake(ROTATE, "times-encoding",
            edit=("[first * cos - second * sin, first * sin + second * cos]", "[first * cos, second * sin]"),
            title="multiplied by cosine and sine, entry by entry",
            says="You multiply each component by a cosine or a sine of its own. In a turn both new components are made "
                 "from both old ones: four products for each pair, and a minus."),
    Mistake(ROTATE, "no-minus", edit=("first * cos - second * sin", "first * cos + second * sin"),
            title="both signs plus",
            says="With two plus signs a pair is not turned but stretched, and its length changes. In a rotation one of "
                 "the two sines has a minus, that of the first component."),
    Mistake(ROTATE, "sine-for-cosine",
            edit=("cos, sin = angles.cos(), angles.sin()", "sin, cos = angles.cos(), angles.sin()"),
            title="sine and cosine exchanged",
            says="Your sines and cosines are exchanged. Try position 0: the angle is 0, and nothing may change."),
    Mistake(ROTATE, "half-overwritten",
            edit=("turned = [first * cos - second * sin, first * sin + second * cos]",
                  "first = first * cos - second * sin\n    turned = [first, first * sin + second * cos]"),
            title="the second component made from the new first one",
            says="Your first components are right. The second ones are made from the first ones as they are *after* "
                 "turning. Both new components need both old ones."),
    Mistake(ROTATE, "in-place",
            edit=("turned = [first * cos - second * sin, first * sin + second * cos]\n    return torch.stack(turned, "
                  "dim=-1).flatten(-2)",
                  "turned = [first * cos - second * sin, first * sin + second * cos]\n    x[..., 0::2], x[..., 1::2] = "
                  "turned\n    return x"), title="the input changed in place",
            says="Your numbers are right, and they are written over the caller's x. Queries and keys are often needed "
                 "again: make a new tensor."),
    Mistake(ROTATE, "on-the-cpu", edit=("torch.arange(0, d, 2, device=x.device)", "torch.arange(0, d, 2)"),
            title="a tensor made on the CPU",
            says="You make a tensor without saying where, so it is on the CPU, wherever x is. `device=x.device` puts "
                 "it where x is."),
    Mistake(ROTATE, "not-turned", idle=True,
            edit=("return torch.stack(turned, dim=-1).flatten(-2)", "return x.clone()"),
            title="nothing turned",
            says="You return x as it came. Every pair of components has to be turned, by an angle that grows with "
                 "position."),
    Mistake(ROTATE, "multiplied", edit=("positions.unsqueeze(1) /", "positions.unsqueeze(1) *"),
            title="multiplied by the power instead of divided",
            says="Your hands get quicker from pair to pair, up to thousands of radians a step. Divide by the power of "
                 "10000."),
    Mistake(ROTATE, "width-of-the-model", edit=("(pairs / d)", "(pairs / (x.shape[1] * d))"),
            title="exponent divided by the width of the model",
            says="You divide the exponent by h·d, the width of all heads. Each head turns by itself: divide by d."),
    Mistake(ROTATE, "number-of-positions", edit=("(pairs / d)", "(pairs / x.shape[2])"),
            title="exponent divided by the number of positions",
            says="You divide the exponent by t, so that a position's angles change with the length of the text. Divide "
                 "by d."),
    Mistake(ROTATE, "second-first",
            edit=("turned = [first * cos - second * sin, first * sin + second * cos]", "turned = [first * sin + second "
                 "* cos, first * cos - second * sin]"),
            title="the two new components exchanged",
            says="Your two new components are right and in each other's places: the first of a pair comes first."),
    Mistake(ROTATE, "mirrored", edit=("first * cos - second * sin", "second * sin - first * cos"),
            title="the first component negative",
            says="Your first components have the wrong sign. Try position 0: the angle is 0, and nothing may change."),
    # what comes of copying a program that pairs halves, and changing one of its two places
    Mistake(ROTATE, "angles-in-halves",
            edit=("turned = [first * cos - second * sin, first * sin + second * cos]\n    return torch.stack(turned, "
                  "dim=-1).flatten(-2)",
                  "other = torch.stack([-second, first], dim=-1).flatten(-2)\n    return x * torch.cat([cos, cos], -1) "
                  "+ "
                  "other * torch.cat([sin, sin], -1)"), title="neighbours paired, angles laid out in halves",
            says="You pair neighbours, and your angles are laid out for halves: the list of speeds comes twice, one "
                 "behind the other. Components 2m and 2m + 1 share one angle, so each has to stand twice in a row."),
    Mistake(ROTATE, "halves-with-neighbours-angles",
            edit=("turned = [first * cos - second * sin, first * sin + second * cos]\n    return torch.stack(turned, "
                  "dim=-1).flatten(-2)",
                  "a, b = x.chunk(2, dim=-1)\n    other = torch.cat([-b, a], dim=-1)\n    return x * "
                  "cos.repeat_interleave(2, -1) + other * sin.repeat_interleave(2, -1)"),
            title="halves paired, angles laid out for neighbours",
            says="Your angles are laid out for neighbours, and you pair component j with j + d/2. Neighbours are "
                 "paired "
                 "here, 2m and 2m + 1."),
    Mistake(ROTATE, "from-the-first",
            edit=("positions.unsqueeze(1) /", "(positions - positions[0]).unsqueeze(1) /"),
            title="positions counted from the first one given",
            says="You take the first position away from all. Products come out right like that, but keys that were "
                 "turned earlier would not fit: take the positions as they are given."),
    Mistake(ROTATE, "sorted", edit=("positions.unsqueeze(1) /", "positions.sort().values.unsqueeze(1) /"),
            title="the positions sorted",
            says="You sort the positions. Each belongs to the vector at its own place: take them in the order in which "
                 "they come."),
    Mistake(ROTATE, "axis-too-many", edit=("positions.unsqueeze(1) /", "positions[:, None, None] /"),
            title="positions meet the heads",
            says="The axes of your angles, or of their sines and cosines, are not where they should be: positions meet "
                 "the heads. Angles of shape (t, d/2) broadcast to (b, h, t, d/2) as they are."),
    Mistake(ROTATE, "base-100000", edit=("10000 **", "100000 **"), title="base 100000 instead of 10000",
            says="Your first pair is right and the others turn too slowly: the base is 10000."),
    Mistake(ROTATE, "exponent-d-minus-two", edit=("(pairs / d)", "(pairs / max(d - 2, 1))"),
            title="exponent divided by d − 2",
            says="Your exponents run from 0 to 1 with the last pair included. In the formula the last exponent is (d − "
                 "2)/d, a little less than 1."),
    Mistake(ROTATE, "detached", edit=("dim=-1).flatten(-2)", "dim=-1).flatten(-2).detach()"),
            title="cut off from the gradient",
            says="No gradient flows back through your result: detach(), .data or a trip through NumPy cuts the graph, "
                 "and queries and keys could not be learned."),
    Mistake(ROTATE, "squeezed", edit=("dim=-1).flatten(-2)", "dim=-1).flatten(-2).squeeze()"),
            title="axes of length 1 squeezed out",
            says="Your numbers are right, but an axis of length 1 gets lost: with a batch of one, a single head or a "
                 "single position the result has too few axes. All four axes stay, whatever their lengths."),
    Accepted(ROTATE, "complex", instead="""
        d = x.shape[-1]
        speeds = 1.0 / (10000 ** (torch.arange(0, d, 2, device=x.device).float() / d))
        angles = torch.outer(positions.float(), speeds)
        turns = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], d // 2, 2).contiguous())
        return torch.view_as_real(pairs * turns).flatten(-2)
    """),
    Accepted(ROTATE, "turned-neighbour", instead="""
        d = x.size(-1)
        exponents = torch.arange(d, device=x.device) // 2 * 2 / d
        angles = positions[:, None] * 10000.0 ** -exponents
        other = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
        return x * torch.cos(angles) + other * torch.sin(angles)
    """),
    Accepted(ROTATE, "loops", instead="""
        y = torch.zeros_like(x)
        for i in range(x.shape[2]):
            for j in range(x.shape[3] // 2):
                angle = torch.as_tensor(positions[i] / 10000 ** (2 * j / x.shape[3]))
                c, s = torch.cos(angle), torch.sin(angle)
                y[:, :, i, 2 * j] = c * x[:, :, i, 2 * j] - s * x[:, :, i, 2 * j + 1]
                y[:, :, i, 2 * j + 1] = s * x[:, :, i, 2 * j] + c * x[:, :, i, 2 * j + 1]
        return y
    """),
    Accepted(ROTATE, "matrices", instead="""
        b, h, t, d = x.shape
        angles = torch.einsum("t,j->tj", positions.float(), 10000 ** (-torch.arange(0, d, 2, device=x.device) / d))
        c, s = angles.cos(), angles.sin()
        turn = torch.stack([torch.stack([c, -s], dim=-1), torch.stack([s, c], dim=-1)], dim=-2)
        return torch.einsum("tjkl,bhtjl->bhtjk", turn, x.view(b, h, t, d // 2, 2)).reshape(b, h, t, d)
    """),
    Accepted(ROTATE, "slices", instead="""
        d = x.shape[-1]
        speeds = torch.exp(-math.log(10000.0) * torch.arange(0, d, 2, device=x.device) / d)
        angles = positions.view(1, 1, -1, 1) * speeds
        y = torch.empty_like(x)
        y[..., ::2] = x[..., ::2] * angles.cos() - x[..., 1::2] * angles.sin()
        y[..., 1::2] = x[..., ::2] * angles.sin() + x[..., 1::2] * angles.cos()
        return y
    """),
    Shortcut(ROTATE, "finished-part", instead="return finished.rotate(x, positions)"),
    # ------------------------------------------------------------- mutants that are right all the same
    EquivalentMutant(SINUSOIDS, "return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)",
          "return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).detach()", "nothing here is learned"),
    EquivalentMutant(SHIFT, "return matrix", "return matrix.detach()", "nothing here is learned"),
    EquivalentMutant(SHIFT, "return matrix", "return matrix.squeeze()", "e is even, so that no axis has length 1"),
    *(EquivalentMutant(exercise, "10000", "10001",
                       "speeds that differ by less than a ten-thousandth: rounding may do as much")
      for exercise in (SINUSOIDS, SHIFT)),
    *(EquivalentMutant(exercise, "torch.arange(0, e, 2, device=device)", "torch.arange(0, e - 1, 2, device=device)",
            "e is even: the last even number below e is also the last below e − 1") for exercise in (SINUSOIDS, SHIFT)),
    EquivalentMutant(ROTATE, "torch.arange(0, d, 2, device=x.device)", "torch.arange(0, d - 1, 2, device=x.device)",
          "d is even: the last even number below d is also the last below d − 1"),
    EquivalentMutant(SINUSOIDS, "torch.arange(t, device=device).unsqueeze(1)",
        "torch.arange(t, device=device).unsqueeze(-1)",
          "a list has one axis: 1 and −1 are the same place"),
    *(EquivalentMutant(exercise, "positions.unsqueeze(1)", "positions.unsqueeze(-1)",
        "a list has one axis: 1 and −1 are the same")
      for exercise in (BIAS, ROTATE)),
    EquivalentMutant(SHIFT, "torch.arange(0, e, 2, device=device)", "torch.arange(0, e, 2)",
          "what is written into a part of a tensor goes to its device; the result is where it belongs"),
    EquivalentMutant(BIAS, "torch.arange(t, device=table.device)", "torch.arange(t)",
          "an index may be on the CPU, wherever the table is: torch moves it"),
    EquivalentMutant(BIAS, "1", "2",
        "(len(table) + 2) // 2: a table has an odd length, so that one more changes nothing"),
]
