"""Three questions before each lesson from 3 on, about earlier ones: a shape, a cause and a bug. No points hang on them.

Each has three answers, and for each answer what is so. `make build` writes the cells that ask them (see
`authoring.recall`), and tests/test_recall.py computes the shapes and numbers.
"""

from __future__ import annotations

from helpers.exercises.exercise import Recall


def question(kind: str, truth: str, asks: str, /, **answers: tuple[str, str]) -> Recall:
    """kind: "shape", "cause" or "bug". truth: the right letter. answers: by letter, the answer and what is so."""
    offers, says = ({letter: pair[part] for letter, pair in answers.items()} for part in (0, 1))
    return Recall(f"recall_{kind}", truth, says, asks, offers)


QUESTIONS = {
    "03_scaling": (
        question(
            "shape",
            "B",
            "q is (2, 3, 5) and k is (2, 4, 5). What is the shape of the scores, `q @ k.transpose(1, 2)`? (lesson 2)",
            A=(
                "(2, 5, 5)",
                "The width is summed over in the dot product, so no axis of the scores has length 5.",
            ),
            B=(
                "(2, 3, 4)",
                "One row for each of the 3 queries, one column for each of the 4 keys. The width 5 is summed over.",
            ),
            C=(
                "(2, 4, 3)",
                "That is `k @ q.transpose(1, 2)`, with one row for each key. Each query needs a row of its own, "
                "because its weights have to sum to 1.",
            ),
        ),
        question(
            "cause",
            "A",
            "Vectors of equal length attend to one another as in lesson 1, without projections. Why does each give "
            "the most weight to itself?",
            A=(
                "No other vector of that length has a larger product with it.",
                "By the Cauchy-Schwarz inequality, x_i·x_j is at most the product of the two lengths, and x_i·x_i "
                "reaches it. Lesson 2's separate queries and keys removed this limit.",
            ),
            B=(
                "The softmax favours the diagonal, where row and column are the same vector.",
                "The softmax treats all entries of a row alike. The scores on the diagonal were the largest before it.",
            ),
            C=(
                "Each position attends to its own place first.",
                "Bare attention does not know places: shuffle the words, and each keeps its output vector.",
            ),
        ),
        question(
            "bug",
            "C",
            "The softmax of the scores, (b, t, s), runs over `dim=1`. What sums to 1? (lesson 1)",
            A=(
                "Every row: the weights of one query",
                "That needs `dim=-1`, the axis of the keys. Only then is each output an average.",
            ),
            B=(
                "All weights of one sentence together",
                "That would be a softmax over both axes at once. `dim=1` is a single axis.",
            ),
            C=(
                "Every column: the weights on one key",
                "Axis 1 counts the queries. The rows then no longer sum to 1, so an output is not an average: it can "
                "lie outside the convex hull of the values.",
            ),
        ),
    ),
    "04_multi_head": (
        question(
            "shape",
            "A",
            "x is (2, 5, 12). What does `SingleHeadAttention(12, 4)` return for it? (lesson 2)",
            A=(
                "(2, 5, 4)",
                "One vector for each of the 5 queries, each an average of values. `to_values` makes values of width 4.",
            ),
            B=(
                "(2, 5, 12)",
                "An average of values is as wide as a value, and `to_values` makes values of width 4.",
            ),
            C=(
                "(2, 5, 5)",
                "That is the shape of the weights. The product with the values, (2, 5, 4), sums over the keys.",
            ),
        ),
        question(
            "cause",
            "C",
            "Why are the scores divided by √d? (lesson 3)",
            A=(
                "Then the weights of each query are positive and sum to 1, as an average needs.",
                "The softmax sees to that, whatever the scores are.",
            ),
            B=(
                "Then every score lies between −1 and 1.",
                "A cosine does, but it divides by both lengths. Divided by √d, a typical score has size 1; some are "
                "larger.",
            ),
            C=(
                "Their variance grows with d, and large scores saturate the softmax.",
                "If the components are independent and have mean 0 and variance 1, a score has variance d. Where one "
                "weight is nearly 1, almost no gradient comes back through the softmax.",
            ),
        ),
        question(
            "bug",
            "B",
            "With d = 16, the scores are divided by d instead of √d. What happens to the weights at the start? "
            "(lesson 3)",
            A=(
                "One key gets nearly all of the weight.",
                "That happens with no division at all, when scores are too large. Here they are too small.",
            ),
            B=(
                "They are too even: the scores are 4 times too small.",
                "√16 is 4, and 16 is 4 times as much. All shapes are right and no error is raised; every query starts "
                "close to a plain average.",
            ),
            C=(
                "They stay the same, because the softmax normalises its input.",
                "The softmax ignores a number that is added to all scores of a row, but not a factor: a factor raises "
                "the ratio of any two weights to a power (lesson 2).",
            ),
        ),
    ),
    "05_masking": (
        question(
            "shape",
            "C",
            "x is (2, 5, 12), and a layer has h = 3 heads. What is the shape of the scores of all heads? (lesson 4)",
            A=(
                "(2, 5, 5)",
                "That is a single head. Each of the 3 heads has scores of its own.",
            ),
            B=(
                "(2, 3, 4, 4)",
                "This compares components with components: axes t and d were exchanged. Positions have to be "
                "compared, and the width d = 4 is summed over.",
            ),
            C=(
                "(2, 3, 5, 5)",
                "For each sentence and each head, one row for every position that looks and one column for every "
                "position that is looked at.",
            ),
        ),
        question(
            "cause",
            "B",
            "*mary gave roses to susan*: one head gives *mary* twice the weight of *susan*. Why is it hard to read "
            "from the sum who gives and who receives? (lesson 4)",
            A=(
                "The softmax keeps which of the two scores was larger, and not by how much.",
                "It keeps that as well: a lead of 2 is a ratio of e² between the two weights (lesson 3).",
            ),
            B=(
                "A weight changes how long a value is, and not its direction.",
                "So the two events differ only in amounts along the same directions. Several heads can put *mary* in "
                "several directions, one for each question.",
            ),
            C=(
                "Both names have the same value vector.",
                "Each word has its own value, computed from its own vector. Only the amounts are hard to tell.",
            ),
        ),
        question(
            "bug",
            "A",
            "x, (b, t, e), is split into heads with `x.reshape(b, h, t, d)` alone. What does head 0 contain? (lesson "
            "4)",
            A=(
                "The first t·d numbers of the sentence: pieces of its first positions",
                "A reshape moves nothing; it reads the numbers in the order of memory. Head 0 then compares pieces of "
                "one word with other pieces of the same word.",
            ),
            B=(
                "The first d components of every position, as `x[:, :, :d]` has them",
                "That is what a head should contain. It takes `reshape(b, t, h, d)` and then an exchange of axes 1 "
                "and 2.",
            ),
            C=(
                "Nothing: the reshape raises an error.",
                "h·t·d is t·e, so the shape fits and no error is raised. That makes the bug hard to notice.",
            ),
        ),
    ),
    "06_positions": (
        question(
            "shape",
            "B",
            "The scores of 2 sentences and 3 heads are (2, 3, 5, 5). Which shape does a mask need that hides each "
            "sentence's own padding? (lesson 5)",
            A=(
                "(2, 1, 5)",
                "Broadcasting aligns axes from the right, so the 2 sentences meet the 3 heads, and an error is "
                "raised. With as many sentences as heads it would run and be wrong.",
            ),
            B=(
                "(2, 1, 1, 5)",
                "One row of 5 for each sentence. The two axes of length 1 repeat it for all heads and for all "
                "positions that look.",
            ),
            C=(
                "(2, 5, 1, 1)",
                "The 5 positions meet the axis of 3 heads, which fails. And the mask has to vary along the last axis, "
                "the positions that are looked at.",
            ),
        ),
        question(
            "cause",
            "C",
            "Why is a position hidden before the softmax, by a score of −∞, and not after it, by a weight of 0? "
            "(lesson 5)",
            A=(
                "Weights that were set to 0 would stop the gradient of the whole row of scores.",
                "The other weights of the row still pass their gradients back. The trouble is that they are wrong.",
            ),
            B=(
                "Fewer exponentials have to be computed.",
                "Both ways compute as many. The difference is in the numbers.",
            ),
            C=(
                "After it, the hidden score has already taken its share of the sum.",
                "The other weights then sum to less than 1, and still depend on the hidden score. At −∞ its "
                "exponential is 0, so it drops out of the sum as well.",
            ),
        ),
        question(
            "bug",
            "A",
            "A language model is trained without a causal mask. What is the symptom? (lesson 5)",
            A=(
                "A training loss that is far too low",
                "Position i sees input i + 1, which is its target, and copies it. When the model has to write, that "
                "neighbour does not exist yet.",
            ),
            B=(
                "A training loss that stays where it began, at log n",
                "That is the loss of a model that knows nothing. This one sees nearly all of its answers.",
            ),
            C=(
                "An error about shapes",
                "With or without a mask, all shapes are the same. The loss is the only symptom.",
            ),
        ),
    ),
    "07_transformer_block": (
        question(
            "shape",
            "A",
            "A relative bias is made for t_max = 4. How many numbers are in its table, and what is added to the "
            "scores of a sentence of 3 words? (lesson 6)",
            A=(
                "7 numbers; a (3, 3) matrix",
                "The distances run from −3 to 3, and each has a number. Three words have 3 · 3 pairs, and distances "
                "up to 2 either way.",
            ),
            B=(
                "4 numbers; a (3, 3) matrix",
                "Four numbers are enough for 0 to 3 places behind. The places ahead need numbers of their own, so "
                "that before and after differ.",
            ),
            C=(
                "7 numbers; a (4, 4) matrix",
                "The table is as long as the longest sequence needs. What is added has the shape of this sentence's "
                "scores, (3, 3).",
            ),
        ),
        question(
            "cause",
            "B",
            "Attention layers without positions, then the mean over the words: why do *dog bites man* and *man bites "
            "dog* get the same vector? (lesson 6)",
            A=(
                "The weights of the layers were random.",
                "No training can change it: it holds for all weights.",
            ),
            B=(
                "Permuted inputs give permuted outputs, and a sum has no order.",
                "Each layer is permutation equivariant, and so is a stack of them. The mean adds up the same vectors "
                "in another order.",
            ),
            C=(
                "In every layer the first and the last word get the same attention weight.",
                "The weights may be anything. Each word takes its row of weights along when it moves.",
            ),
        ),
        question(
            "bug",
            "C",
            "A row of 4 scores may see nothing, and all 4 are filled with the lowest finite number. What are its "
            "weights? (lesson 5)",
            A=(
                "All NaN",
                "That happens with −∞ in all 4 places, where the softmax computes 0/0. Finite numbers avoid that.",
            ),
            B=(
                "All 0",
                "That is what we want, but it takes one more step: `masked_softmax` sets hidden weights to 0 after "
                "the softmax.",
            ),
            C=(
                "All 1/4",
                "Four equal scores get equal weights, so the position attends to everything that should be hidden. "
                "There is no NaN, and no mask either.",
            ),
        ),
    ),
    "08_classifier": (
        question(
            "shape",
            "C",
            "x is (2, 5, 8). What is the shape inside a feed-forward network, between its two layers? (lesson 7)",
            A=(
                "(2, 5, 8)",
                "That is its output. In between, each vector is 4 times as wide, by convention.",
            ),
            B=(
                "(2, 20, 8)",
                "The network treats each position by itself, so there are 5 positions throughout. Only the width "
                "changes.",
            ),
            C=(
                "(2, 5, 32)",
                "Each of the 5 vectors is widened by itself from 8 to 4 · 8 = 32 numbers, and then narrowed again.",
            ),
        ),
        question(
            "cause",
            "A",
            "Why does the gradient not fade in a deep stack with shortcuts? (lesson 7)",
            A=(
                "The derivative of x + f(x) contains the identity.",
                "Whatever f does, one path leads back through sums alone. In the bare tower each layer multiplied the "
                "gradient by about a third.",
            ),
            B=(
                "Shortcuts make the initial weights of every layer larger.",
                "They leave the weights as they are. (Larger weights also stopped the fading in lesson 7, but the "
                "positions still became equal.)",
            ),
            C=(
                "Shortcuts bring every vector back to size 1.",
                "A norm does that. With shortcuts alone the sum grows from block to block.",
            ),
        ),
        question(
            "bug",
            "B",
            "`blocks = [TransformerBlock(e, h)] * 6`: what is wrong? (lesson 7)",
            A=(
                "The six blocks start with equal weights and take long to diverge.",
                "There are not six blocks: the list holds one block, six times, so its weights can never differ.",
            ),
            B=(
                "It is one block, used six times.",
                "Python copies the reference and not the block. The model runs, with a sixth of the parameters that "
                "six blocks would have.",
            ),
            C=(
                "It raises an error, since a module cannot be copied.",
                "Nothing is copied, and no error is raised. The output even has the right shape.",
            ),
        ),
    ),
    "09_character_generator": (
        question(
            "shape",
            "B",
            "A classifier for c = 2 classes reads 16 texts of 20 words. What is the shape of its logits? (lesson 8)",
            A=(
                "(16, 20, 2)",
                "That would be a verdict for each word. The mean over the words leaves one vector for each text.",
            ),
            B=(
                "(16, 2)",
                "The blocks return (16, 20, e), the mean over the real words (16, e), and the last layer one logit "
                "for each class.",
            ),
            C=(
                "(2, 16)",
                "The batch comes first: one row of logits for each text, as cross-entropy expects.",
            ),
        ),
        question(
            "cause",
            "A",
            "Why should a new model overfit one batch before the real training? (lesson 8)",
            A=(
                "If its loss does not go to 0, something is broken.",
                "A model with far more parameters than the batch has labels can learn them by heart. A bug such as a "
                "second softmax shows within seconds.",
            ),
            B=(
                "Then the real training starts from better weights.",
                "The purpose is to find bugs. All that it learns is those few texts, by heart.",
            ),
            C=(
                "It shows how accurate the model will be on new texts.",
                "Texts that are known by heart say nothing about others. That is what the validation set is for.",
            ),
        ),
        question(
            "bug",
            "C",
            "A batch of padded texts is pooled with `x.mean(dim=1)`. What goes wrong? (lesson 8)",
            A=(
                "It raises an error if the texts differ in length.",
                "After padding the batch is a rectangle, so nothing fails. That is the danger.",
            ),
            B=(
                "Nothing, as long as no word attends to padding.",
                "The padding's own output vectors are still averaged in, and the sum is divided by too large a number.",
            ),
            C=(
                "A text's verdict depends on the longest text in its batch.",
                "The longer that text, the more padding is averaged in. `mean_pool` sums over the real words and "
                "divides by their number.",
            ),
        ),
    ),
    "10_encoder_decoder": (
        question(
            "shape",
            "A",
            "A byte model with n = 256 reads ids of shape (4, 8). What is the shape of its logits? (lesson 9)",
            A=(
                "(4, 8, 256)",
                "At each of the 8 positions, one logit for each byte that could follow. So one pass answers 8 "
                "questions in each row.",
            ),
            B=(
                "(4, 256)",
                "That is the last position alone, which is all that writing needs. In training every position is a "
                "question.",
            ),
            C=(
                "(4, 8, 8)",
                "That is the shape of one head's weights. The logits say something about 256 bytes.",
            ),
        ),
        question(
            "cause",
            "C",
            "Why can one pass of a causal model be trained on all t positions at once? (lesson 5)",
            A=(
                "The losses of the positions cancel each other's errors.",
                "Nothing cancels. Each position has a loss of its own, and the mean is taken at the end.",
            ),
            B=(
                "All positions of one sequence have the same target, the token after its end.",
                "Each has its own target: the token that follows it.",
            ),
            C=(
                "Position i sees what a model that has read i + 1 tokens would see.",
                "So each prediction is made as if the text ended there. Without the mask the answers would be among "
                "the inputs.",
            ),
        ),
        question(
            "bug",
            "B",
            "PyTorch's cross-entropy is 1.386 per byte, and this is reported as 1.386 bits. How many bits is it? "
            "(lesson 9)",
            A=(
                "0.96",
                "That multiplies by ln 2. A bit is the smaller unit, so there must be more bits than nats.",
            ),
            B=(
                "2.00",
                "PyTorch's loss is in nats, with the natural logarithm: 1.386 / ln 2 = 2.00.",
            ),
            C=(
                "1.386; nats and bits are the same",
                "They are different units: a nat is 1 / ln 2 = 1.44 bits.",
            ),
        ),
    ),
    "11_tokens": (
        question(
            "shape",
            "C",
            "`encode_batch` gets texts of 3, 5 and 2 words and a maximum length of 4. What is the shape of the ids? "
            "(lesson 8)",
            A=(
                "(3, 5)",
                "The text of 5 words is cut after 4, so no row needs 5 places.",
            ),
            B=(
                "(3, 2)",
                "Texts are cut at the maximum length of 4 and not at the shortest text. Shorter ones are filled up "
                "with `<pad>`.",
            ),
            C=(
                "(3, 4)",
                "Cut after 4 words, the texts have 3, 4 and 2. All are padded to the longest of these.",
            ),
        ),
        question(
            "cause",
            "B",
            "Why does text that is written greedily repeat itself? (lesson 9)",
            A=(
                "At temperature 0 all bytes become equally likely.",
                "The opposite is true: all of the probability goes to the largest logit.",
            ),
            B=(
                "After a repetition, the most probable continuation repeats it again.",
                "Greedy decoding always takes that continuation, so it never leaves the loop. Large models do the "
                "same.",
            ),
            C=(
                "The window is too short for the model to see that it has written this before.",
                "Models with far longer windows repeat themselves too. The repeated phrase is what they see.",
            ),
        ),
        question(
            "bug",
            "A",
            "A vocabulary numbers the words in the order of a Python set. What goes wrong? (lesson 8)",
            A=(
                "In another run, a saved model's rows belong to other words.",
                "The order of a set of strings changes from run to run, and with it every id. A fixed rule, such as "
                "by frequency and then by alphabet, keeps the ids.",
            ),
            B=(
                "Rare words get small ids, and the model takes them for frequent ones.",
                "An id only picks a row of a table, so any numbering will do. It only has to be the same tomorrow.",
            ),
            C=(
                "Words that are equally frequent get the same id.",
                "Each word of a set gets a number of its own. But tomorrow it may be another one.",
            ),
        ),
    ),
    "12_gpt2": (
        question(
            "shape",
            "B",
            "In which shape does `nn.Linear(8, 32)` store its weight? (lesson 4)",
            A=(
                "(8, 32)",
                "That is the matrix of our formula x W. `nn.Linear` stores the transpose.",
            ),
            B=(
                "(32, 8)",
                "It stores (outputs, inputs), so each row belongs to one output, and multiplies by the transpose.",
            ),
            C=(
                "(32,)",
                "That is its bias: one number for each output.",
            ),
        ),
        question(
            "cause",
            "C",
            "Why is no text unknown to byte-pair encoding? (lesson 11)",
            A=(
                "Its vocabulary of 50,257 tokens contains every word of the language.",
                "New words and names come up every day. They are cut into several tokens.",
            ),
            B=(
                "Unknown words are replaced by their nearest token.",
                "Nothing is replaced: decoding the ids gives back the text exactly.",
            ),
            C=(
                "It starts from the 256 bytes, and these can spell any text.",
                "Merges only join what often stands together. What was never seen falls to pieces, down to single "
                "bytes if need be.",
            ),
        ),
        question(
            "bug",
            "A",
            "Two models use different tokenizers. One has a loss of 2.9 nats per token, the other of 3.4. Which one "
            "predicts text better? (lesson 11)",
            A=(
                "That cannot be said.",
                "Longer tokens are fewer, and each is harder to guess. Bits per byte compare the two: all of the "
                "surprise, shared out over the bytes.",
            ),
            B=(
                "The one with 2.9, because each token surprises it less.",
                "That holds only if both cut the text alike. With shorter tokens there are more of them, and the text "
                "as a whole may cost more.",
            ),
            C=(
                "The one with 3.4, because its tokens have to be longer.",
                "They may be, but the number alone does not say so. It depends on the cut and on the model.",
            ),
        ),
    ),
    "13_before_transformers": (
        question(
            "shape",
            "A",
            "A decoder with 4 heads has 7 German positions and looks at 5 English words. What is the shape of the "
            "weights of its cross-attention, for one sentence? (lesson 10)",
            A=(
                "(1, 4, 7, 5)",
                "Queries come from the target and keys from the source: in each head a row for each German position "
                "and a column for each English word.",
            ),
            B=(
                "(1, 4, 5, 7)",
                "This has a row for each key. Each row of weights belongs to a query, and the queries are German.",
            ),
            C=(
                "(1, 4, 7, 7)",
                "That is the decoder's self-attention, in which the target looks at itself.",
            ),
        ),
        question(
            "cause",
            "B",
            "A translator gets most words right in training, each after the right beginning. Why does it translate "
            "far fewer whole numbers without a mistake? (lesson 10)",
            A=(
                "It has no causal mask when it writes, so each position sees too much.",
                "It has one. The last position may see all that is written, and nothing comes after it.",
            ),
            B=(
                "It reads its own words, and a wrong one misleads the next.",
                "One wrong word is enough to make the number wrong, and it also becomes a part of the next input. "
                "Teacher forcing hides both.",
            ),
            C=(
                "It can no longer see the source sentence.",
                "It can: the source is encoded once, and every block of the decoder looks at the memory.",
            ),
        ),
        question(
            "bug",
            "C",
            "Above the diagonal, the leak map of a language model has an entry of 0.02. What does that show? (lesson "
            "5)",
            A=(
                "Nothing: entries as small as that are rounding.",
                "With a correct mask these entries are exactly 0, since everything hidden is multiplied by a weight "
                "of 0.",
            ),
            B=(
                "Some output looks back farther than it may.",
                "The past is below the diagonal: row i, column j with j < i. This entry is above it.",
            ),
            C=(
                "Some output depends on a later input.",
                "Above the diagonal j > i: output i changes when a later input j does. A causal model has exact zeros "
                "there.",
            ),
        ),
    ),
    "14_bert": (
        question(
            "shape",
            "C",
            "GPT-2's final vectors are (2, 10, 64), its table of tokens is (1000, 64). What is the shape of its "
            "logits? (lesson 12)",
            A=(
                "(2, 10, 64)",
                "Each vector is compared with all 1,000 rows of the table, so the width 64 is summed over.",
            ),
            B=(
                "(2, 1000)",
                "That is a single prediction for each text. The model predicts at every position.",
            ),
            C=(
                "(2, 10, 1000)",
                "At each position, one dot product with each row of the table. The table is used twice: to read "
                "tokens and to predict them.",
            ),
        ),
        question(
            "cause",
            "A",
            "Why can a model that writes keep the keys and values of earlier tokens? (lesson 12)",
            A=(
                "With a causal mask, no later token changes them.",
                "Position i depends on positions up to i, in every block. A new token adds a key and a value, and the "
                "others stay.",
            ),
            B=(
                "The weights do not change while it writes.",
                "True, but not enough: without the mask, each new token would change the vectors at all earlier "
                "positions, and with them the keys of the next block.",
            ),
            C=(
                "A token has the same key wherever it occurs.",
                "In the first block a key depends on token and position, and above that on all tokens before it.",
            ),
        ),
        question(
            "bug",
            "B",
            "Weights of shape (n_in, n_out) are loaded into `nn.Linear` without a transpose. Which layer of a block "
            "raises no error? (lesson 12)",
            A=(
                "None: PyTorch compares all shapes.",
                "It does, but a square matrix has the same shape as its transpose.",
            ),
            B=(
                "`unify`, from e to e",
                "Its matrix is square, so it loads either way up. The model then writes nonsense, and only a "
                "comparison of numbers finds it.",
            ),
            C=(
                "`widen`, from e to 4e",
                "Its weight is (4e, e) in `nn.Linear` and (e, 4e) in the file. The shapes differ, so loading fails.",
            ),
        ),
    ),
    "15_transformer_xl": (
        question(
            "shape",
            "B",
            "GPT-2 has 12 tokens in its cache and reads one more. What is the shape of the scores in a block with 2 "
            "heads, for one text? (lesson 12)",
            A=(
                "(1, 2, 13, 13)",
                "That is a pass without a cache, in which all 13 tokens ask again.",
            ),
            B=(
                "(1, 2, 1, 13)",
                "One query, that of the new token. It looks at the 12 keys that were kept and at its own.",
            ),
            C=(
                "(1, 2, 1, 12)",
                "A position may see itself, so the new token's own key counts too.",
            ),
        ),
        question(
            "cause",
            "A",
            "Trained on 16 positions, the model with a learned table of positions failed from position 16 on. Why? "
            "(lesson 6)",
            A=(
                "Its later rows were never trained.",
                "No sequence of the training reached them, so they still held their random initial values.",
            ),
            B=(
                "Dot products are smaller at large distances.",
                "The task was to look two places back, and that distance is the same everywhere. The table knows "
                "places and not distances.",
            ),
            C=(
                "The scores of 64 positions saturate the softmax.",
                "The other models had 64 scores in a row too, and failed in other ways or hardly at all.",
            ),
        ),
        question(
            "bug",
            "C",
            "In a causal model, a norm takes its mean and variance over the positions instead of over the components. "
            "What is wrong? (lesson 7)",
            A=(
                "Nothing: the vectors are brought to the same size either way.",
                "The sizes are not the point. Each vector now depends on the mean of all positions.",
            ),
            B=(
                "It works for one length of text only.",
                "A mean can be taken over any number of positions, so nothing fails. That is the danger.",
            ),
            C=(
                "Every output depends on later positions.",
                "The mean over the positions includes the future: a leak. A norm has to treat each vector by itself; "
                "only attention may mix positions.",
            ),
        ),
    ),
    "16_sparse_attention": (
        question(
            "shape",
            "A",
            "A segment of t = 4 positions has a memory of m = 6. What is the shape of the scores with 2 heads, for "
            "one text? (lesson 15)",
            A=(
                "(1, 2, 4, 10)",
                "Only the 4 positions of the segment have queries. Keys come from the memory and from the segment, 6 "
                "+ 4.",
            ),
            B=(
                "(1, 2, 10, 10)",
                "The memory asks nothing: its outputs were computed when it was a segment itself.",
            ),
            C=(
                "(1, 2, 4, 6)",
                "The segment looks at its own positions too, up to the present one, so it has 10 keys.",
            ),
        ),
        question(
            "cause",
            "C",
            "Why does a softmax first subtract the largest score of the row? (lesson 1)",
            A=(
                "Otherwise the weights would not sum to 1.",
                "The division by the sum sees to that. On paper the weights are the same with and without the "
                "subtraction.",
            ),
            B=(
                "It makes the weights of a row more even.",
                "It changes no weight: the same factor cancels in the numerator and in the sum.",
            ),
            C=(
                "Otherwise the exponential of a large score overflows.",
                "In float32, e to the power 89 is infinite already. After the subtraction the largest exponent is 0.",
            ),
        ),
        question(
            "bug",
            "B",
            "Transformer-XL keeps the states of the last segment and forgets `detach`. What would the backward pass "
            "have to do? (lesson 15)",
            A=(
                "Update the memory like a parameter",
                "The memory is no parameter, and no optimiser knows it. A gradient would pass through it, on to what "
                "it was computed from.",
            ),
            B=(
                "Go back through all earlier segments",
                "The states were computed from the memory before them, and so on. With `detach` the backward pass "
                "ends at the border, while the states can still be read.",
            ),
            C=(
                "The same as before, since the memory has no weights",
                "The states were computed with the model's weights, so a gradient would flow back to them, and "
                "further into the past.",
            ),
        ),
    ),
    "17_going_big": (
        question(
            "shape",
            "C",
            "12 positions are cut into chunks for a window of w = 4. What is the shape of the scores with 2 heads, "
            "for one text? (lesson 16)",
            A=(
                "(1, 2, 12, 12)",
                "That is the full matrix. The chunks are there to avoid it.",
            ),
            B=(
                "(1, 2, 3, 4, 4)",
                "The first query of a chunk needs the 3 positions before it, which are in the chunk before. So each "
                "chunk has 2w keys.",
            ),
            C=(
                "(1, 2, 3, 4, 8)",
                "3 chunks of 4 queries, each with the 8 keys of its own chunk and the one before: 96 numbers for a "
                "head, instead of 144.",
            ),
        ),
        question(
            "cause",
            "B",
            "A layer of attention of width e gets 8 heads instead of 4. Why does it have as many parameters as "
            "before? (lesson 4)",
            A=(
                "All heads share the same three matrices of width d.",
                "Each head has its own part of each matrix. Heads that share keys and values are another kind, with "
                "fewer parameters.",
            ),
            B=(
                "Each head is half as wide, and h · d stays e.",
                "The three projections and `unify` have e² weights each, however many heads they are cut into.",
            ),
            C=(
                "Heads have no parameters; `unify` has them all.",
                "Three quarters of the weights are in the projections to queries, keys and values.",
            ),
        ),
        question(
            "bug",
            "A",
            "A training loop forgets `optimiser.zero_grad()`. What happens? (lesson 8)",
            A=(
                "Each step uses the sum of all gradients so far.",
                "`backward` adds to what is already in `.grad`, and no error is raised.",
            ),
            B=(
                "Each step uses the gradient of the first batch.",
                "`backward` does not keep the first gradient; it adds each new one to it.",
            ),
            C=(
                "The second step raises an error.",
                "Adding up is what `backward` is meant to do. Of the parts of a step, only a missing forward pass "
                "raises one.",
            ),
        ),
    ),
    "18_since_gpt2": (
        question(
            "shape",
            "B",
            "Rotary encoding turns queries of shape (1, 4, 10, 16). What is the shape of the table of angles that it "
            "needs? (lesson 6)",
            A=(
                "(10, 16)",
                "Components are turned in pairs, and both components of a pair by the same angle.",
            ),
            B=(
                "(10, 8)",
                "One angle for each of the 10 positions and each of the 8 pairs of components. All heads use the same "
                "ones.",
            ),
            C=(
                "(4, 10, 8)",
                "The angle depends on the position and the pair. The head makes no difference.",
            ),
        ),
        question(
            "cause",
            "C",
            "Why does a score with rotary encoding depend on the distance i − j and not on i and j themselves? "
            "(lesson 6)",
            A=(
                "A learned number for each distance is added to it.",
                "That is the relative bias. Rotary encoding has no parameters and adds nothing to the scores.",
            ),
            B=(
                "The query and the key are turned by the same angle.",
                "Then the turns would cancel, and the score would know no positions. Each is turned by its own.",
            ),
            C=(
                "Turning back by i and on by j is one turn by j − i.",
                "In the product of R_i q and R_j k, the transpose of R_i turns back, and R_{j−i} is all that remains.",
            ),
        ),
        question(
            "bug",
            "A",
            "A generator with a cache passes every new token through `model.embed(new, 0)`. What happens? (lesson 12)",
            A=(
                "No error; each new token gets the vector of position 0.",
                "The cache knows keys and values, but the position vectors are added before the blocks. So the start "
                "has to be passed, and without it the text goes wrong.",
            ),
            B=(
                "Nothing: the position is already in the cache.",
                "The kept keys contain their own positions. The new token's is added before the blocks, which is "
                "where 0 is wrong.",
            ),
            C=(
                "An error: a cache cannot be extended at position 0.",
                "Row 0 of the table exists, and the cache appends whatever it is given. The blocks cannot know the "
                "position.",
            ),
        ),
    ),
    "19_looking_inside": (
        question(
            "shape",
            "A",
            "A layer of width 64 has 4 heads. What is the shape of the part of the weight of `unify` that is "
            "multiplied by the output of head 0? (lesson 4)",
            A=(
                "(64, 16)",
                "`nn.Linear` stores (out, in), and the output of head 0 is the first 16 numbers that come in: the "
                "first 16 columns.",
            ),
            B=(
                "(16, 64)",
                "These rows compute 16 of the 64 outputs, from all heads. One head meets columns.",
            ),
            C=(
                "(16, 16)",
                "A head adds to all 64 components of the output, not only to 16 of its own.",
            ),
        ),
        question(
            "cause",
            "B",
            "Why is the last hidden state of a stack of blocks, each with its norm first, a sum with one term from "
            "each layer? (lesson 7)",
            A=(
                "The last norm adds up what the blocks return.",
                "A norm sees one vector at each position. The sum is there before it.",
            ),
            B=(
                "Each layer adds its output to x and replaces nothing.",
                "That is the residual connection: x, plus the attention's output, plus the network's, block by block.",
            ),
            C=(
                "Each layer is linear, so their outputs can be added.",
                "Softmax, norm and GELU are not linear. The additions are the residual connections.",
            ),
        ),
        question(
            "bug",
            "C",
            "Logits (b, t, n) and targets (b, t) go to `F.cross_entropy` as they are. What happens? (lesson 9)",
            A=(
                "It works: the last axis is taken for the classes.",
                "PyTorch expects the classes on axis 1, so the logits have to be transposed or flattened.",
            ),
            B=(
                "No error, but the softmax always runs over the positions.",
                "It would run over axis 1, but the shapes of logits and targets do not fit together.",
            ),
            C=(
                "An error, unless t = n.",
                "Axis 1 is taken for the classes, so targets of shape (b, n) are expected. Where t = n, the mistake "
                "passes unseen.",
            ),
        ),
    ),
}
