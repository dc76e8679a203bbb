"""What students get wrong in lesson 8, and what to tell them."""

from helpers.authoring import Alias, Equal, Mistake, Same, Shortcut

VOCABULARY, ENCODE, POOL, CLASSIFIER, STEP, ACCURACY = (
    "build_vocabulary",
    "encode_batch",
    "mean_pool",
    "Classifier",
    "train_step",
    "accuracy",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # ----------------------------------------------------------------------------------- build_vocabulary
    Mistake(VOCABULARY, "alphabetical",
            edit=("sorted(counts, key=lambda word: (-counts[word], word))", "sorted(counts)"),
            title="in alphabetical order only",
            says="Your words are in alphabetical order, and where there is no room for all, it is the end of the "
                 "alphabet that is lost. The most frequent word comes first; the alphabet decides among equals."),
    Mistake(VOCABULARY, "as-they-come", edit=("sorted(counts, key=lambda word: (-counts[word], word))", "list(counts)"),
            title="in the order of their first appearance",
            says="Your words are numbered as they come in the texts. The most frequent one comes first: what is left "
                 "out for want of room should be rare."),
    Mistake(VOCABULARY, "rarest-first", edit=("(-counts[word], word)", "(counts[word], word)"),
            title="rarest words first",
            says="Your order runs from rare to frequent, and a small vocabulary keeps the words that hardly ever "
                 "occur. It is the other way round."),
    Mistake(VOCABULARY, "ties-as-they-come",
            edit=("sorted(counts, key=lambda word: (-counts[word], word))",
                  "[word for word, _ in counts.most_common()]"),
            title="equally frequent words in the order of their appearance",
            says="Words that are equally frequent stand in the order in which the texts bring them, so the same "
                 "reviews in another order give other ids. Among equals, take the alphabet."),
    Mistake(VOCABULARY, "ties-backwards",
            edit=("sorted(counts, key=lambda word: (-counts[word], word))",
                  "sorted(counts, key=lambda word: (counts[word], word), reverse=True)"),
            title="equally frequent words in reverse alphabetical order",
            says="`reverse=True` turns everything round, the alphabet too. Counts fall, words rise: turn round the "
                 "sign of one of them only."),
    Mistake(VOCABULARY, "cut-before-the-alphabet",
            edit=("sorted(counts, key=lambda word: (-counts[word], word))",
                  "sorted(dict(counts.most_common(size - 2)), key=lambda word: (-counts[word], word))"),
            title="cut before equally frequent words are in order",
            says="You keep the most frequent words first and put them in order afterwards. Where the last place falls "
                 "among equally frequent words, it is then the order of the texts that decides who stays. Order first, "
                 "cut afterwards."),
    Mistake(VOCABULARY, "words-from-zero",
            edit=("return {word: place for place, word in enumerate(kept)}",
                  'return {"<pad>": 0, "<unk>": 1} | {word: place for place, word in enumerate(kept[2:])}'),
            title="the words counted from 0 as well",
            says="Your words begin at 0, where <pad> is already, and the next one has the id of <unk>. The first word "
                 "is 2."),
    Mistake(VOCABULARY, "words-from-one",
            edit=("return {word: place for place, word in enumerate(kept)}",
                  'return {"<pad>": 0, "<unk>": 1} | {word: place for place, word in enumerate(kept[2:], start=1)}'),
            title="the first word shares the id of <unk>",
            says="Your words begin at 1, which is the id of <unk>. The first word is 2."),
    Mistake(VOCABULARY, "words-from-three",
            edit=("return {word: place for place, word in enumerate(kept)}",
                  'return {"<pad>": 0, "<unk>": 1} | {word: place for place, word in enumerate(kept[2:], start=3)}'),
            title="an id that nobody has",
            says="Your words begin at 3, and nothing has the id 2."),
    Mistake(VOCABULARY, "size-minus-one", edit=("ranked[: size - 2]", "ranked[: max(0, size - 3)]"),
            title="one entry too few",
            says="Your vocabulary has room for one word more: `size` entries in all, two of them special."),
    Mistake(VOCABULARY, "rare-left-out",
            edit=("sorted(counts, key=", "sorted((word for word in counts if counts[word] > 1), key="),
            title="words that occur once left out",
            says="You leave out words that occur only once. They may stay where there is room: `size` alone decides."),
    Mistake(VOCABULARY, "by-length", edit=("(-counts[word], word)", "(-len(word), word)"), title="longest words first",
            says="Your order goes by how long the words are. It is how often they occur that counts."),
    Mistake(VOCABULARY, "size-plus-two", edit=("ranked[: size - 2]", "ranked[:size]"),
            title="size without the two special entries",
            says="Your vocabulary has two entries too many: `size` counts <pad> and <unk> as well. Whoever makes an "
                 "embedding with `size` rows has no row for your last two words."),
    Mistake(VOCABULARY, "size-plus-one", edit=("ranked[: size - 2]", "ranked[: size - 1]"), title="one entry too many",
            says="Your vocabulary has size + 1 entries. There are two special ones to make room for."),
    Mistake(VOCABULARY, "size-ignored", edit=("ranked[: size - 2]", "ranked"), title="all words, whatever the size",
            says="You keep every word that there is. `size` says how many entries there may be, the two special ones "
                 "included."),
    Mistake(VOCABULARY, "special-last",
            edit=('["<pad>", "<unk>", *ranked[: size - 2]]', '[*ranked[: size - 2], "<pad>", "<unk>"]'),
            title="special entries at the end",
            says="<pad> and <unk> have to be 0 and 1. At the end, their ids depend on how many words there are, and "
                 "nobody can rely on them."),
    Mistake(VOCABULARY, "special-swapped", edit=('"<pad>", "<unk>"', '"<unk>", "<pad>"'),
            title="<pad> and <unk> exchanged",
            says="<pad> is 0 and <unk> is 1; yours are the other way round."),
    Mistake(VOCABULARY, "no-unknown", edit=('"<pad>", "<unk>", *ranked[: size - 2]', '"<pad>", *ranked[: size - 1]'),
            title="no entry for unknown words",
            says="There is no <unk>. A new review will hold a word that you have never seen, and it needs an id too."),
    Mistake(VOCABULARY, "nothing-special", edit=('["<pad>", "<unk>", *ranked[: size - 2]]', "ranked[:size]"),
            title="no special entries",
            says="Your ids start with words. <pad> and <unk> come first, with the ids 0 and 1, and count as entries."),
    Mistake(VOCABULARY, "texts-with-it", edit=("for word in split_words(text)", "for word in set(split_words(text))"),
            title="counted once a text",
            says="You count in how many texts a word occurs. Count every occurrence: a word that stands three times in "
                 "a text counts three times."),
    Mistake(VOCABULARY, "spaces", edit=("split_words(text)", "text.lower().split()"), title="texts cut at spaces only",
            says='Cut at spaces, "dull," with its comma is another word than "dull", and both get a row in the table. '
                 "`split_words` takes punctuation off."),
    Mistake(VOCABULARY, "capitals", edit=("split_words(text)", "text.split()"),
            title="texts cut at spaces, capitals kept",
            says='"The" and "the" are two words to you, and so are "dull" and "dull,". `split_words` gives words in '
                 "lower case, with punctuation apart."),
    Mistake(VOCABULARY, "letters", edit=("split_words(text)", "text.lower()"), title="letters instead of words",
            says="A loop over a text goes letter by letter. You want its words: `split_words(text)`."),
    Mistake(VOCABULARY, "last-text",
            edit=("for text in texts for word in split_words(text)", "for word in split_words(texts[-1])"),
            title="only one text counted",
            says="You count the words of a single text. Is the counter made anew in every round of a loop?"),
    Mistake(VOCABULARY, "from-one", edit=("enumerate(kept)", "enumerate(kept, start=1)"), title="ids from 1 on",
            says="Your ids start at 1. An embedding's rows are numbered from 0, and <pad> is 0."),
    Mistake(VOCABULARY, "id-to-word", edit=("{word: place for place, word", "{place: word for place, word"),
            title="from ids to words",
            says="Your dict leads from ids to words. A text is to become ids, so it has to lead from words to ids."),
    Mistake(VOCABULARY, "counts", edit=("{word: place for place, word", "{word: counts[word] for place, word"),
            title="counts instead of ids",
            says="A word's entry is how often it occurs, so two words may share a number. Its id is its place in the "
                 "order."),
    Mistake(VOCABULARY, "list", edit=("{word: place for place, word in enumerate(kept)}", "kept"),
            title="a list of words",
            says="You return a list. What is needed is a dict from each word to its place in the order."),
    Same(VOCABULARY, "by-hand", instead="""
        counts = {}
        for text in texts:
            for word in split_words(text):
                counts[word] = counts.get(word, 0) + 1
        vocabulary = {"<pad>": 0, "<unk>": 1}
        for word in sorted(sorted(counts), key=counts.get, reverse=True):
            if len(vocabulary) < size:
                vocabulary[word] = len(vocabulary)
        return vocabulary
    """),
    Same(VOCABULARY, "most-common-of-sorted", instead="""
        words = sorted(word for text in texts for word in split_words(text))
        kept = [word for word, _ in Counter(words).most_common(size - 2)]
        return dict(zip(["<pad>", "<unk>"] + kept, range(size)))
    """),
    Same(VOCABULARY, "update", instead="""
        counter = Counter()
        for text in texts:
            counter.update(split_words(text))
        pairs = sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))[: size - 2]
        return {"<pad>": 0, "<unk>": 1} | {word: 2 + i for i, (word, _) in enumerate(pairs)}
    """),
    # --------------------------------------------------------------------------------------- encode_batch
    Mistake(ENCODE, "padded-in-front", instead="""
        unknown = vocabulary["<unk>"]
        rows = [[vocabulary.get(word, unknown) for word in split_words(text)[:length]] for text in texts]
        t = max(len(row) for row in rows)
        ids = torch.tensor([[vocabulary["<pad>"]] * (t - len(row)) + row for row in rows])
        lengths = torch.tensor([len(row) for row in rows])
        return ids, torch.arange(t) >= t - lengths.unsqueeze(1)
    """, title="padding in front of the words",
            says="Your padding comes before the words, so the first word of a text stands at another position in each "
                 "batch. Words first, padding after them."),
    Mistake(ENCODE, "mask-inverted",
            edit=("torch.arange(t) < lengths.unsqueeze(1)", "torch.arange(t) >= lengths.unsqueeze(1)"),
            title="True where there is padding",
            says="Your mask is True at the padding. In this course True means that something may be looked at: the "
                 "words."),
    Mistake(ENCODE, "mask-as-numbers",
            edit=("torch.arange(t) < lengths.unsqueeze(1)", "(torch.arange(t) < lengths.unsqueeze(1)).long()"),
            title="zeros and ones that are not booleans",
            says="The pattern of your mask is right, but these are numbers. A mask is a tensor of booleans."),
    Mistake(ENCODE, "mask-everything",
            edit=("torch.arange(t) < lengths.unsqueeze(1)", "torch.ones_like(ids, dtype=torch.bool)"),
            title="a mask that is True everywhere",
            says="Your mask lets padding through. It has to be False at the end of every text that is shorter than the "
                 "longest."),
    Mistake(ENCODE, "mask-without-unknown", edit=("torch.arange(t) < lengths.unsqueeze(1)", "ids > 1"),
            title="unknown words masked as well",
            says="Your mask is False at unknown words too. They are words: something stands there, even if we do not "
                 "know what. Only padding is hidden."),
    Mistake(ENCODE, "mask-one-longer",
            edit=("torch.arange(t) < lengths.unsqueeze(1)", "torch.arange(t) <= lengths.unsqueeze(1)"),
            title="a mask that is one position too long",
            says="In each text your mask is True for one position of padding. Positions count from 0: a text of three "
                 "words has the positions 0, 1 and 2."),
    Mistake(ENCODE, "always-full-length", edit=("t = max(len(row) for row in rows)", "t = length"),
            title="padded to the full length",
            says="You pad every batch to `length`. That is right and slow: the longest text of the batch is enough, "
                 "and time goes with the number of positions, or with its square."),
    Mistake(ENCODE, "cut-to-shortest",
            edit=("t = max(len(row) for row in rows)",
                  "t = min(len(row) for row in rows)\n    rows = [row[:t] for row in rows]"),
            title="cut to the shortest text",
            says="You cut all texts to the shortest one of the batch, and most words are gone. Fill the short ones up "
                 "instead."),
    Mistake(ENCODE, "not-cut", edit=("[:length]", ""), title="long texts not cut",
            says="A text may have at most `length` words; the rest is left out. Yours are as long as they like, and "
                 "the model has no position for the end of them."),
    Mistake(ENCODE, "last-words", edit=("split_words(text)[:length]", "split_words(text)[-length:]"),
            title="the last words kept instead of the first",
            says="You keep the end of a long text; its beginning is asked for. (Neither is wrong in itself: in a "
                 "review the verdict often comes last. But it has to be agreed.)"),
    Mistake(ENCODE, "letters-cut", edit=("split_words(text)[:length]", "split_words(text[:length])"),
            title="cut after so many letters",
            says="You cut the text itself, after `length` letters. It is the list of words that may have `length` "
                 "entries."),
    Mistake(ENCODE, "unknown-dropped",
            edit=("for word in split_words(text)[:length]",
                  "for word in split_words(text)[:length] if word in vocabulary"), title="unknown words dropped",
            says="You leave unknown words out, so that their neighbours move together. An unknown word keeps its place "
                 "and gets the id of <unk>."),
    Mistake(ENCODE, "unknown-as-padding", edit=('unknown = vocabulary["<unk>"]', 'unknown = vocabulary["<pad>"]'),
            title="unknown words as padding",
            says="An unknown word gets the id of <pad> in yours. It has an entry of its own, <unk>."),
    Mistake(ENCODE, "unknown-hidden",
            edit=(('unknown = vocabulary["<unk>"]', 'unknown = vocabulary["<pad>"]'),
                  ("torch.arange(t) < lengths.unsqueeze(1)", 'ids != vocabulary["<pad>"]')),
            title="unknown words as padding, and hidden with it",
            says="An unknown word gets the id of <pad> in yours, and your mask, which is made from the ids, hides it "
                 "like padding. It is a word: its id is that of <unk>, and its mask is True."),
    Mistake(ENCODE, "new-entries",
            edit=("vocabulary.get(word, unknown)", "vocabulary.setdefault(word, len(vocabulary))"),
            title="new entries for unknown words",
            says="An unknown word gets a new id, one that no row of the model's table belongs to, and the caller's "
                 "vocabulary grows. All unknown words share the id of <unk>."),
    Mistake(ENCODE, "one-id-beyond", edit=("vocabulary.get(word, unknown)", "vocabulary.get(word, len(vocabulary))"),
            title="unknown words one beyond the end",
            says="Unknown words get an id one beyond the last one, which no row of a table belongs to. There is an "
                 "entry for them, <unk>."),
    Mistake(ENCODE, "length-before-cutting",
            edit=("t = max(len(row) for row in rows)", "t = max(len(split_words(text)) for text in texts)"),
            title="the longest text measured before it is cut",
            says="Your t is the length of the longest text *before* it is cut, so that columns of nothing but padding "
                 "are left. Measure what is left after cutting."),
    Mistake(ENCODE, "padded-with-unknown", edit=('[vocabulary["<pad>"]] * (t', "[unknown] * (t"),
            title="filled up with <unk>",
            says="You fill short texts up with the id of <unk>. There is an entry for filling, <pad>."),
    Mistake(ENCODE, "cut-one-early", edit=("[:length]", "[:length - 1]"), title="cut one word too early",
            says="A text may have `length` words; you cut it after one fewer."),
    Mistake(ENCODE, "lengths", edit=("torch.arange(t) < lengths.unsqueeze(1)", "lengths"),
            title="lengths instead of a mask",
            says="You return how many words each text has. A mask says it position by position: (b, t), True where "
                 "there is a word."),
    Mistake(ENCODE, "unknown-raises", edit=("vocabulary.get(word, unknown)", "vocabulary[word]"),
            title="no answer to unknown words",
            says="`vocabulary[word]` raises for a word that is not in it. `vocabulary.get(word, something)` returns "
                 "something else instead."),
    Mistake(ENCODE, "spaces", edit=("split_words(text)", "text.split()"), title="texts cut at spaces, capitals kept",
            says="Cut at spaces, words keep their capitals and their full stops, and the vocabulary knows neither. The "
                 "vocabulary was made with `split_words`; so must the ids be."),
    Mistake(ENCODE, "letters", edit=("split_words(text)[:length]", "text.lower()[:length]"),
            title="letters instead of words",
            says="A loop over a text goes letter by letter. You want its words: `split_words(text)`."),
    Mistake(ENCODE, "sorted",
            edit=("rows = [", "texts = sorted(texts, key=lambda text: len(split_words(text)))\n    rows = ["),
            title="texts put into another order",
            says="You sort the texts by length. Their labels stay where they were, and row i no longer belongs to "
                 "label i."),
    Mistake(ENCODE, "floats", edit=("return ids,", "return ids.float(),"), title="ids as floating-point numbers",
            says="Your ids are floats. They number the rows of a table, so they have to be integers: int64, what "
                 "torch.tensor makes of a list of ints."),
    Mistake(ENCODE, "transposed",
            edit=("return ids, torch.arange(t) < lengths.unsqueeze(1)",
                  "return ids.T, (torch.arange(t) < lengths.unsqueeze(1)).T"), title="positions first",
            says="Yours are (t, b). The batch is the first axis everywhere in this course; torch.stack and "
                 "pad_sequence have a say in that (`dim`, `batch_first`)."),
    Mistake(ENCODE, "exchanged",
            edit=("return ids, torch.arange(t) < lengths.unsqueeze(1)",
                  "return torch.arange(t) < lengths.unsqueeze(1), ids"), title="mask and ids exchanged",
            says="You return the mask first. It is `ids, mask`, in this order."),
    Same(ENCODE, "fill", instead="""
        lists = [split_words(text)[:length] for text in texts]
        ids = torch.full((len(texts), max(map(len, lists))), vocabulary["<pad>"])
        mask = torch.zeros(ids.shape, dtype=torch.bool)
        for i, words in enumerate(lists):
            for j, word in enumerate(words):
                ids[i, j] = vocabulary[word] if word in vocabulary else vocabulary["<unk>"]
                mask[i, j] = True
        return ids, mask
    """),
    Same(ENCODE, "pad-sequence", instead="""
        id_of = lambda word: vocabulary.get(word, vocabulary["<unk>"])
        rows = [torch.tensor([id_of(w) for w in split_words(text)[:length]], dtype=torch.long) for text in texts]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=vocabulary["<pad>"])
        return ids, ids != vocabulary["<pad>"]
    """),
    Same(ENCODE, "words-padded-first", instead="""
        cut = [split_words(text)[:length] for text in texts]
        t = max(len(words) for words in cut)
        padded = [words + ["<pad>"] * (t - len(words)) for words in cut]
        ids = torch.tensor([[vocabulary.get(word, 1) for word in words] for words in padded])
        return [ids, torch.tensor([[word != "<pad>" for word in words] for words in padded])]
    """),
    Equal(ENCODE, "lengths.unsqueeze(1)", "lengths.unsqueeze(-1)", why="lengths has one axis: both are the new last"),
    # ------------------------------------------------------------------------------------------ mean_pool
    Mistake(POOL, "padding-too", instead="return x.mean(dim=1)", title="the mean over padding too",
            says="You average over all t positions, padding included: what stands in the padding gets into the result, "
                 "and the same review reads differently beside a longer one. Only positions where the mask is True "
                 "count."),
    Mistake(POOL, "divided-by-t", edit=("weights.sum(dim=1).clamp(min=1)", "x.shape[1]"),
            title="divided by t instead of the number of words",
            says="You leave the padding out of the sum, and then divide by all t positions. Divide by how many words "
                 "the text has, or short texts come out small."),
    Mistake(POOL, "sum", edit=(" / weights.sum(dim=1).clamp(min=1)", ""), title="a sum instead of a mean",
            says="You add the vectors up and do not divide. A text of forty words would shout twenty times as loud as "
                 "one of two."),
    Mistake(POOL, "divided-by-all", edit=("weights.sum(dim=1).clamp(min=1)", "weights.sum()"),
            title="divided by the number of words of the whole batch",
            says="You divide each sum by the number of words in all texts together. Each text has its own number: sum "
                 "the mask over the positions only."),
    Mistake(POOL, "divided-by-the-longest", edit=("weights.sum(dim=1).clamp(min=1)", "weights.sum(dim=1).amax()"),
            title="divided by the words of the longest text",
            says="You divide every sum by the number of words of the longest text. Each text has its own number."),
    Mistake(POOL, "square-root", edit=("weights.sum(dim=1).clamp(min=1)", "weights.sum(dim=1).clamp(min=1).sqrt()"),
            title="divided by a root",
            says="You divide by the root of the number of words. A mean divides by the number itself."),
    Mistake(POOL, "divisor-without-axis",
            edit=("weights.sum(dim=1).clamp(min=1)", "mask.sum(dim=1).clamp(min=1)"),
            title="a divisor without the axis e",
            says="Your sums are (b, e) and your numbers of words are (b,): in the division, e would meet b. Keep an "
                 "axis of length 1: (b, 1)."),
    Mistake(POOL, "mask-without-axis", edit=("(x * weights)", "(x * mask)"), title="a mask without the axis e",
            says="x is (b, t, e) and the mask is (b, t): in the product, e would meet t. The mask needs one more axis "
                 "at its end."),
    Mistake(POOL, "summed-over-everything",
            edit=("(x * weights).sum(dim=1)", "(x * weights).sum(dim=(1, 2)).unsqueeze(-1).expand(-1, x.shape[2])"),
            title="the components added up as well",
            says="You add up the components of the vectors too. Each component has a mean of its own: only the "
                 "positions are added up."),
    Mistake(POOL, "plus-one", edit=("weights.sum(dim=1).clamp(min=1)", "(weights.sum(dim=1) + 1)"),
            title="divided by one too many",
            says="Adding 1 to every count keeps you from dividing by 0, and makes every other mean too small. Only a "
                 "count of 0 needs help."),
    Mistake(POOL, "inverted", edit=("mask.unsqueeze(-1)", "(~mask).unsqueeze(-1)"), title="the mean over the padding",
            says="You average over exactly the positions that do not count. True in the mask is where a word is."),
    Mistake(POOL, "not-a-number", edit=(".clamp(min=1)", ""), title="0/0 for a text without a word",
            says="A text without a word has a count of 0, and 0/0 is NaN; from there it spreads over the loss of the "
                 "whole batch. It should come out as zeros: do not let the divisor be less than 1."),
    Alias(POOL, "mean-row-by-row", of="not-a-number",
          instead="return torch.stack([vectors[real].mean(dim=0) for vectors, real in zip(x, mask)])"),
    Mistake(POOL, "largest", instead="return x.masked_fill(~mask.unsqueeze(-1), -1e9).amax(dim=1).clamp(min=-1e8)",
            title="the largest instead of the mean",
            says="You take the largest of each component. That is another way of pooling; the mean is asked for."),
    Mistake(POOL, "first", instead="return x[:, 0] * mask[:, :1]", title="the first position only",
            says="You take the vector of the first position. (BERT does, with a special token standing there; lesson "
                 "13.) Here it is the mean of all words."),
    Mistake(POOL, "last", instead="""
        last = (mask.sum(dim=1) - 1).clamp(min=0)
        return x[torch.arange(len(x), device=x.device), last] * mask[:, :1]
    """, title="the last word only",
            says="You take the vector of the last word. Here it is the mean of all words."),
    Mistake(POOL, "over-the-batch",
            edit=(("(x * weights).sum(dim=1)", "(x * weights).sum(dim=0)"),
                  ("weights.sum(dim=1)", "weights.sum(dim=0)")), title="the mean over the batch",
            says="You average over the texts and keep the positions. It is the other way round: axis 1 goes, axis 0 "
                 "stays."),
    Mistake(POOL, "over-the-width", instead="return x.mean(dim=-1) * mask", title="the mean over the width",
            says="You average the components of each vector. The positions are to be averaged, component by component: "
                 "(b, t, e) becomes (b, e)."),
    Mistake(POOL, "one-for-all", instead="return x[mask].mean(dim=0).expand(x.shape[0], -1)",
            title="one mean for the whole batch",
            says="`x[mask]` forgets which text a vector came from: it is (words, e), from all texts together. So every "
                 "text gets the same mean."),
    Mistake(POOL, "no-batch", instead="return x[mask].mean(dim=0)", title="one vector for the whole batch",
            says="`x[mask]` forgets which text a vector came from: it is (words, e), from all texts together, and its "
                 "mean is a single vector. Each text needs its own."),
    Mistake(POOL, "in-place", instead="""
        x[~mask] = 0.0
        return x.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)
    """, title="the padding overwritten in the caller's tensor",
            says="`x[~mask] = 0` writes into the caller's x. Multiply by the mask, or use masked_fill: both make a new "
                 "tensor."),
    Mistake(POOL, "on-the-cpu",
            edit=("mask.unsqueeze(-1).to(x.dtype)", "mask.unsqueeze(-1) * torch.ones(x.shape[1], 1)"),
            title="a tensor made on the CPU",
            says="You make a tensor without saying where, and it lands on the CPU, wherever x is. Nothing new is "
                 "needed here; if you want it, pass `device=x.device`."),
    Same(POOL, "masked-fill", instead="""
        total = x.masked_fill(~mask.unsqueeze(-1), 0.0).sum(dim=1)
        return total / mask.sum(dim=1, keepdim=True).clamp(min=1)
    """),
    Same(POOL, "einsum", instead="""
        share = mask.float() / mask.float().sum(dim=1, keepdim=True).clamp(min=1e-6)
        return torch.einsum("bt,bte->be", share, x)
    """),
    Same(POOL, "loop", instead="""
        pooled = []
        for vectors, real in zip(x, mask):
            pooled.append(vectors[real].mean(dim=0) if real.any() else torch.zeros_like(vectors[0]))
        return torch.stack(pooled)
    """),
    Same(POOL, "where", instead="""
        b, t, e = x.shape
        kept = torch.where(mask[:, :, None], x, torch.zeros_like(x))
        words = torch.maximum(mask.sum(1), torch.ones_like(mask.sum(1)))
        return (kept.transpose(1, 2) @ torch.ones(t, device=x.device)) / words[:, None]
    """),
    Same(POOL, "small-number-below", instead="""
        m = mask[..., None].float()
        return (m * x).sum(-2) / (m.sum(-2) + 1e-9)
    """),
    Same(POOL, "zero-instead-of-nan", instead="""
        words = mask.sum(dim=1, keepdim=True)
        total = x.masked_fill(~mask[..., None], 0).sum(dim=1)
        return torch.where(words > 0, total / words, torch.zeros_like(total))
    """),
    Equal(POOL, "weights.sum(dim=1).clamp(min=1)", "weights.sum(dim=1).clamp_(min=1)",
          why="changes a sum that the answer has just made"),
    Equal(POOL, "weights.sum(dim=1)", "weights.sum(dim=-2)", why="of three axes, both are the one in the middle"),
    Equal(POOL, "(x * weights).sum(dim=1)", "(x * weights).sum(dim=-2)",
          why="of three axes, both are the one in the middle"),
    Shortcut(POOL, "finished-part", instead="return finished_pool(x, mask)"),
    Shortcut(POOL, "imported", instead="""
        from helpers.parts.classifier import mean_pool as theirs
        return theirs(x, mask)
    """),
    # ----------------------------------------------------------------------------------------- Classifier
    # as a public repository has it, for its positions
    Mistake(CLASSIFIER, "embedding-swapped", edit=("nn.Embedding(n, e)", "nn.Embedding(e, n)"),
            title="the embedding's arguments exchanged",
            says="`nn.Embedding(rows, width)`: you have made a table of e rows that are n wide, and a word whose id is "
                 "e or more has no row. It may even run, for as long as the ids are small and the sizes happen to "
                 "fit."),
    Mistake(CLASSIFIER, "positions-swapped", edit=("PositionEmbedding(t_max, e)", "PositionEmbedding(e, t_max)"),
            title="the arguments of the positions exchanged",
            says="Your position table has e rows that are t_max wide. One row for each position, as wide as the "
                 "model."),
    Mistake(CLASSIFIER, "no-positions", edit=("self.positions(self.tokens(ids))", "self.tokens(ids)"),
            title="positions not used",
            says="The blocks never hear where a word stands, and without that the mean at the end makes your model a "
                 "bag of words, however deep it is (lesson 6)."),
    Mistake(CLASSIFIER, "tokens-twice",
            edit=("x = self.positions(self.tokens(ids))", "x = self.tokens(ids)\n        x = x + self.positions(x)"),
            title="the word vectors added twice",
            says="`PositionEmbedding` returns x *plus* the positions, and you add that to x: every word vector is in "
                 "the sum twice."),
    Mistake(CLASSIFIER, "positions-only",
            edit=("x = self.positions(self.tokens(ids))",
                  "x = self.tokens(ids)\n        x = self.positions(x) - x"), title="positions without words",
            says="What goes into your blocks is the positions alone, and no word."),
    Mistake(CLASSIFIER, "positions-afterwards", instead=("", """
        x = self.transformer(self.tokens(ids), mask.unsqueeze(1))
        return self.to_classes(finished_pool(self.positions(x), mask))
    """), title="positions added after the blocks",
            says="You add the positions to what the blocks give. The blocks have to hear of them: they come first."),
    Mistake(CLASSIFIER, "sum-of-the-words",
            edit=("finished_pool(x, mask)", "(x * mask.unsqueeze(-1)).sum(dim=1)"), title="a sum instead of the mean",
            says="You add the vectors of the words up. The mean is asked for, so that a long text does not shout."),
    Mistake(CLASSIFIER, "largest-of-the-words",
            edit=("finished_pool(x, mask)", "x.masked_fill(~mask.unsqueeze(-1), -1e9).amax(dim=1)"),
            title="the largest instead of the mean",
            says="You take the largest of each component over the words. The mean is asked for."),
    Mistake(CLASSIFIER, "last-word",
            edit=("finished_pool(x, mask)",
                  "x.gather(1, (mask.sum(1) - 1)[:, None, None].expand(-1, 1, x.shape[2]))[:, 0]"),
            title="the last word instead of the mean",
            says="You decide by the vector of the last word. The mean of all words is asked for."),
    Mistake(CLASSIFIER, "mean-of-the-padding", edit=("finished_pool(x, mask)", "finished_pool(x, ~mask)"),
            title="the mean over the padding",
            says="Your mean is over the padding. True in the mask is where a word is."),
    Mistake(CLASSIFIER, "bend-before-the-scores",
            edit=("self.to_classes(finished_pool(x, mask))", "self.to_classes(torch.relu(finished_pool(x, mask)))"),
            title="a ReLU before the last layer",
            says="You put a ReLU between the mean and the last layer. The linear map takes the mean as it is."),
    Mistake(CLASSIFIER, "sigmoid",
            edit=("self.to_classes(finished_pool(x, mask))", "torch.sigmoid(self.to_classes(finished_pool(x, mask)))"),
            title="a sigmoid at the end",
            says="You return the sigmoid of the scores. The scores themselves are asked for, of any size and sign."),
    Mistake(CLASSIFIER, "blocks-without-the-norm",
            edit=("x = self.transformer(x, mask.unsqueeze(1))",
                  "for block in self.transformer.blocks:\n            x = block(x, mask.unsqueeze(1))"),
            title="the norm at the end of the stack left out",
            says="You go through the blocks yourself and leave out the norm at the end of the stack. Call the "
                 "`transformer`, which does both."),
    # published: the positions of a classifier made with torch.arange(t) alone, which only ever runs on the CPU
    Mistake(CLASSIFIER, "positions-on-the-cpu",
            edit=("self.positions(self.tokens(ids))",
                  "self.tokens(ids) + self.positions.table(torch.arange(ids.shape[1]))"),
            title="positions made on the CPU",
            says="torch.arange makes its numbers on the CPU unless it is told otherwise, wherever ids and model are. "
                 "Pass `device=ids.device`."),
    Mistake(CLASSIFIER, "padding-looked-at", edit=("self.transformer(x, mask.unsqueeze(1))", "self.transformer(x)"),
            title="the blocks look at padding",
            says="You leave padding out of the mean, but in every block each word still looks at it. A review then "
                 "reads differently beside a longer one. The blocks take a mask."),
    Mistake(CLASSIFIER, "mask-ignored",
            edit=(("self.transformer(x, mask.unsqueeze(1))", "self.transformer(x)"),
                  ("finished_pool(x, mask)", "x.mean(dim=1)")), title="the mask not used",
            says="You do not use the mask: words look at padding, and padding is in the mean. A review then reads "
                 "differently beside a longer one."),
    Mistake(CLASSIFIER, "padding-zeroed",
            edit=(("self.positions(self.tokens(ids))", "self.positions(self.tokens(ids)) * mask.unsqueeze(-1)"),
                  ("self.transformer(x, mask.unsqueeze(1))", "self.transformer(x)")),
            title="padding set to zero and looked at",
            says="You set the vectors of the padding to 0 and let everybody look at them. A key of zeros still takes "
                 "its share of the softmax: the blocks need the mask."),
    Mistake(CLASSIFIER, "mask-without-axis", edit=("mask.unsqueeze(1)", "mask"),
            title="a mask of shape (b, t) for the blocks",
            says="The blocks take (b, 1, t), or (t, t) for the whole batch. With (b, t) the sizes do not fit, except "
                 "when a batch has as many texts as positions: then text i's mask is taken for row i of all texts, and "
                 "nothing raises."),
    Mistake(CLASSIFIER, "mask-for-rows", edit=("mask.unsqueeze(1)", "mask.unsqueeze(2).expand(-1, -1, mask.shape[1])"),
            title="the mask on who looks instead of who is looked at",
            says="Your mask says who may look; words still look at padding. It has to say who may be looked at: the "
                 "*last* axis is theirs, (b, 1, t)."),
    Mistake(CLASSIFIER, "mask-inverted", edit=("mask.unsqueeze(1)", "~mask.unsqueeze(1)"),
            title="the mask turned round",
            says="In your blocks everybody looks at padding and nobody at words. True means *may be looked at*."),
    Mistake(CLASSIFIER, "causal",
            edit=("mask.unsqueeze(1)",
                  "mask.unsqueeze(1) & torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, "
                  "device=ids.device).tril()"), title="a causal mask",
            says="Your words do not look ahead. That is for models that have to predict the next word; a reader who "
                 "has the whole review before them may look at all of it."),
    Mistake(CLASSIFIER, "mean-over-padding", edit=("finished_pool(x, mask)", "x.mean(dim=1)"),
            title="the mean over padding too",
            says="You average over all t positions, padding included: what comes out depends on how long the longest "
                 "text of the batch is. The mean is over the real positions."),
    Mistake(CLASSIFIER, "first-position", edit=("finished_pool(x, mask)", "x[:, 0]"),
            title="the first position instead of the mean",
            says="You decide by the vector of the first word. The mean of all words is asked for."),
    Mistake(CLASSIFIER, "last-position", edit=("finished_pool(x, mask)", "x[:, -1]"),
            title="the last position instead of the mean",
            says="You decide by the vector of the last position, which in most texts is padding. The mean of all words "
                 "is asked for."),
    Mistake(CLASSIFIER, "softmax",
            edit=("return self.to_classes(finished_pool(x, mask))",
                  "return self.to_classes(finished_pool(x, mask)).softmax(dim=-1)"), title="a softmax at the end",
            says="You return probabilities. Scores are asked for: cross-entropy applies the softmax itself, and a "
                 "second one on top flattens what the model can say, so that the loss gets stuck far above 0."),
    Mistake(CLASSIFIER, "softmax-over-the-batch",
            edit=("return self.to_classes(finished_pool(x, mask))",
                  "return self.to_classes(finished_pool(x, mask)).softmax(dim=0)"), title="a softmax over the batch",
            says="You return a softmax over the texts of the batch. The scores themselves are asked for."),
    Mistake(CLASSIFIER, "another-norm",
            edit=("self.to_classes(finished_pool(x, mask))",
                  "self.to_classes(F.layer_norm(finished_pool(x, mask), (x.shape[-1],)))"),
            title="another norm before the last layer",
            says="You normalise the mean before the last layer. The stack ends in a norm already; the linear map takes "
                 "the mean as it is."),
    Mistake(CLASSIFIER, "log-softmax",
            edit=("return self.to_classes(finished_pool(x, mask))",
                  "return self.to_classes(finished_pool(x, mask)).log_softmax(dim=-1)"),
            title="the logarithm of a softmax at the end",
            says="You return log-probabilities. Scores are asked for, as the linear map gives them."),
    Mistake(CLASSIFIER, "norm-last", edit=(", pre_norm=True", ""), title="blocks with the norm last",
            says="Your blocks normalise last. Norm first is asked for, `pre_norm=True`, and brings one more norm at "
                 "the end of the stack."),
    Mistake(CLASSIFIER, "heads-and-depth", edit=("Transformer(e, h, depth,", "Transformer(e, depth, h,"),
            title="heads and depth exchanged",
            says="`Transformer(e, h, depth)`: yours gets the depth as its number of heads."),
    Mistake(CLASSIFIER, "one-block", edit=("Transformer(e, h, depth,", "Transformer(e, h, 1,"), title="a single block",
            says="Your stack has one block, whatever `depth` says."),
    Mistake(CLASSIFIER, "classes-swapped", edit=("nn.Linear(e, c)", "nn.Linear(c, e)"),
            title="the last layer the wrong way round",
            says="`nn.Linear(from, to)`: the last layer goes from the width e to c classes."),
    Mistake(CLASSIFIER, "no-bias", edit=("nn.Linear(e, c)", "nn.Linear(e, c, bias=False)"),
            title="the last layer without bias",
            says="Your last layer has no bias. It has one, so that one class can be more likely than another before "
                 "anything is read."),
    Mistake(CLASSIFIER, "scaled",
            edit=("self.positions(self.tokens(ids))",
                  "self.positions(self.tokens(ids) * self.tokens.embedding_dim ** 0.5)"),
            title="embeddings multiplied by √e",
            says="You multiply the word vectors by √e, as the first transformer did (Vaswani et al., 2017, section "
                 "3.4). Not here: words and positions are added as they are."),
    Mistake(CLASSIFIER, "pooled-first", instead=("", """
        x = self.positions(self.tokens(ids))
        x = finished_pool(x, mask).unsqueeze(1)
        return self.to_classes(self.transformer(x)[:, 0])
    """), title="the mean before the blocks",
            says="You average the words first, and the blocks get one vector with nobody to look at. First the blocks, "
                 "so that words can speak with each other; then the mean."),
    Mistake(CLASSIFIER, "no-blocks", instead=("", """
        return self.to_classes(finished_pool(self.positions(self.tokens(ids)), mask))
    """), title="the blocks are made and not used",
            says="Words and positions go straight to the mean. The blocks come in between."),
    Same(CLASSIFIER, "classes-first", instead=("", """
        mask = mask.bool()
        x = self.transformer(self.positions(self.tokens(ids)), mask[:, None, :])
        return finished_pool(self.to_classes(x), mask)
    """)),
    Same(CLASSIFIER, "own-positions", instead=("""
        self.tokens = nn.Embedding(num_embeddings=n, embedding_dim=e, padding_idx=0)
        self.positions = nn.Module()
        self.positions.table = nn.Embedding(t_max, e)
        self.to_classes = nn.Linear(e, c)
        self.transformer = Transformer(e, h, depth, pre_norm=True)
    """, """
        b, t = ids.shape
        places = torch.arange(t, device=ids.device).expand(b, t)
        x = self.tokens(ids) + self.positions.table(places)
        x = self.transformer(x, mask.view(b, 1, t))
        weights = mask.unsqueeze(2).float()
        return self.to_classes((x * weights).sum(1) / weights.sum(1))
    """)),
    Same(CLASSIFIER, "square-mask", instead=("", """
        t = ids.size(1)
        x = self.positions(self.tokens(ids))
        for block in self.transformer.blocks:
            x = block(x, mask.unsqueeze(1).expand(-1, t, -1))
        x = self.transformer.norm(x)
        return finished_pool(x, mask) @ self.to_classes.weight.T + self.to_classes.bias
    """)),
    Same(CLASSIFIER, "mask-for-both", instead=("", """
        square = mask[:, :, None] & mask[:, None, :]
        x = self.transformer(self.positions(self.tokens(ids)), square)
        return self.to_classes(finished_pool(x, mask))
    """)),
    Equal(CLASSIFIER, "mask.unsqueeze(1)", "mask.unsqueeze(-2)", why="mask has two axes: both are (b, 1, t)"),
    Shortcut(CLASSIFIER, "pytorchs-encoder",
             edit=("self.to_classes = nn.Linear(e, c)",
                   "self.to_classes = nn.Linear(e, c)\n        self.spare = lambda: nn.TransformerEncoder")),
    # ----------------------------------------------------------------------------------------- train_step
    Mistake(STEP, "never-cleared", edit=("    optimiser.zero_grad()\n", ""), title="zero_grad forgotten",
            says="`backward()` *adds* to the gradients that are there, and nothing clears yours: every step also takes "
                 "all steps before it again. The first one looks right, the later ones do not."),
    Mistake(STEP, "cleared-too-late",
            edit=(("    optimiser.zero_grad()\n", ""),
                  ("optimiser.step()", "optimiser.step()\n    optimiser.zero_grad()")),
            title="gradients cleared only after the step",
            says="You clear up behind you, which works as long as everybody else does. A model that comes with "
                 "gradients from somewhere else, such as a look at its gradients, takes them into your step. Clear "
                 "them first."),
    Mistake(STEP, "never-moves", edit=("    optimiser.step()\n", ""), title="the weights never move",
            says="After your step the weights are what they were. Three things have to happen in this order: clear the "
                 "gradients, compute them, step. Is one missing, or do you clear between computing and stepping?",
            idle=True),
    Alias(STEP, "no-backward", of="never-moves", edit=("    loss.backward()\n", "")),
    Alias(STEP, "cleared-in-between", of="never-moves",
          edit=(("    optimiser.zero_grad()\n", ""),
                ("loss.backward()", "loss.backward()\n    optimiser.zero_grad()"))),
    Mistake(STEP, "one-behind",
            edit=(("    optimiser.zero_grad()\n", ""),
                  ("    loss.backward()\n    optimiser.step()\n",
                   "    optimiser.step()\n    optimiser.zero_grad()\n    loss.backward()\n")),
            title="stepped before backward",
            says="You step before you compute the gradients, so each step uses those of the batch before."),
    Mistake(STEP, "softmax-first",
            edit=("F.cross_entropy(model(ids, mask), labels)",
                  "F.cross_entropy(model(ids, mask).softmax(dim=-1), labels)"), title="a softmax before cross_entropy",
            says="`cross_entropy` takes scores and applies the softmax itself. After yours, the largest difference "
                 "that it ever sees is 1, so the loss cannot come near 0 and the gradient is faint."),
    Mistake(STEP, "no-logarithm",
            edit=("F.cross_entropy(model(ids, mask), labels)", "F.nll_loss(model(ids, mask), labels)"),
            title="nll_loss of bare scores",
            says="`nll_loss` expects logarithms of probabilities. Given scores, it is minus the right score, and falls "
                 "without end when the model lets all scores grow."),
    Mistake(STEP, "sum",
            edit=("F.cross_entropy(model(ids, mask), labels)",
                  'F.cross_entropy(model(ids, mask), labels, reduction="sum")'),
            title="the sum over the batch instead of the mean",
            says="You sum the loss over the batch, so that a larger batch means a larger step. The mean is asked for."),
    Mistake(STEP, "mean-over-classes",
            edit=("F.cross_entropy(model(ids, mask), labels)",
                  "-(F.one_hot(labels, model.to_classes.out_features) * model(ids, mask).log_softmax(-1)).mean()"),
            title="the mean over the classes as well",
            says="You average over texts *and* classes, so that the loss is too small by the number of classes. Add "
                 "up over the classes, or pick the right one, and average over the texts."),
    Mistake(STEP, "softmax-over-the-batch",
            edit=("F.cross_entropy(model(ids, mask), labels)",
                  "F.nll_loss(model(ids, mask).log_softmax(dim=0), labels)"), title="the softmax over the batch",
            says="Your softmax runs over the texts of the batch. Each text has its own, over its classes."),
    Mistake(STEP, "probability",
            edit=("F.cross_entropy(model(ids, mask), labels)",
                  "F.nll_loss(model(ids, mask).softmax(dim=-1), labels)"),
            title="minus the probability, without a logarithm",
            says="You take minus the probability of the right class. The logarithm is missing."),
    Mistake(STEP, "smoothed",
            edit=("F.cross_entropy(model(ids, mask), labels)",
                  "F.cross_entropy(model(ids, mask), labels, label_smoothing=0.1)"), title="smoothed labels",
            says="Your labels are smoothed by a tenth. The cross-entropy of the labels as they are is asked for."),
    Mistake(STEP, "each-class-by-itself",
            edit=("F.cross_entropy(model(ids, mask), labels)",
                  "F.binary_cross_entropy_with_logits(model(ids, mask), "
                  "F.one_hot(labels, model.to_classes.out_features).float())"),
            title="a yes or no for each class",
            says="You ask of each class by itself whether it is the right one. Exactly one of them is: the softmax "
                 "over the classes, and the logarithm of the right one's share."),
    Mistake(STEP, "clipped",
            edit=("loss.backward()", "loss.backward()\n    nn.utils.clip_grad_norm_(model.parameters(), 1.0)"),
            title="gradients clipped",
            says="You shorten gradients that are long. That is a habit of long trainings; here the step is taken with "
                 "the gradients as they are."),
    Mistake(STEP, "stepped-twice", edit=("optimiser.step()", "optimiser.step()\n    optimiser.step()"),
            title="two steps",
            says="You step twice with the same gradients. Once for each batch."),
    Mistake(STEP, "backward-twice",
            edit=("loss.backward()", "loss.backward(retain_graph=True)\n    loss.backward()"),
            title="backward twice",
            says="You call `backward()` twice, and it adds: your gradients are twice as large as they should be."),
    Mistake(STEP, "share-returned", instead="""
        model.train()
        optimiser.zero_grad()
        scores = model(ids, mask)
        F.cross_entropy(scores, labels).backward()
        optimiser.step()
        return (scores.argmax(dim=-1) == labels).float().mean().item()
    """, title="the share of right answers returned",
            says="You return the share of right answers. The loss of the batch is asked for."),
    Mistake(STEP, "called-without-a-mask", edit=("entropy(model(ids, mask)", "entropy(model(ids)"),
            title="the model called without a mask",
            says="The model is called as `model(ids, mask)`; yours gets the ids alone."),
    Mistake(STEP, "squared-error",
            edit=("F.cross_entropy(model(ids, mask), labels)",
                  "F.mse_loss(model(ids, mask).softmax(dim=-1), F.one_hot(labels, 3).float())"),
            title="squared error instead of cross-entropy",
            says="You compare probabilities by their squared difference. Cross-entropy is minus the logarithm of the "
                 "right class's probability, and pulls hard where the model is sure and wrong."),
    Mistake(STEP, "mode-left", edit=("    model.train()\n", ""), title="a model left in evaluation mode",
            says="You take the model in whatever mode it comes. After an evaluation that is evaluation mode, and "
                 "dropout would be off for the rest of the training. A training step says `model.train()`."),
    Mistake(STEP, "evaluation-mode", edit=("model.train()", "model.eval()"), title="trained in evaluation mode",
            says="You train in evaluation mode, with dropout off. `eval()` is for measuring."),
    Mistake(STEP, "mask-ignored",
            edit=("F.cross_entropy(model(ids, mask)", "F.cross_entropy(model(ids, torch.ones_like(mask))"),
            title="the mask is not handed on",
            says="Your model reads padding as if it were words: the batch's mask has to reach it."),
    Mistake(STEP, "loss-afterwards",
            edit=("return loss.item()", "return F.cross_entropy(model(ids, mask), labels).item()"),
            title="the loss after the step",
            says="You compute the loss once more after the step and return that. It costs a second pass and flatters: "
                 "the model has just been fitted to this batch. Return the loss from before."),
    Mistake(STEP, "own-guesses",
            edit=("F.cross_entropy(model(ids, mask), labels)",
                  "F.cross_entropy(model(ids, mask), model(ids, mask).argmax(dim=-1))"),
            title="the model's own guesses as labels",
            says="You hold the scores against what the model itself guesses. The labels are in the batch."),
    Mistake(STEP, "uphill", edit=("loss.backward()", "(-loss).backward()"), title="a step uphill",
            says="Your weights move the wrong way: the loss grows. Gradient descent wants the loss itself; the "
                 "optimiser sees to the minus."),
    Mistake(STEP, "graph-kept", edit=("return loss.item()", "return loss"), title="the loss returned with its graph",
            says="You return the tensor, and with it the whole graph of the batch. A list of such losses, for a curve, "
                 "keeps them all in memory. `.item()` makes a number of it."),
    Same(STEP, "through-logarithms", instead="""
        model.train(True)
        model.zero_grad()
        logs = torch.log_softmax(model(ids, mask), dim=1)
        loss = -logs.gather(1, labels.unsqueeze(1)).mean()
        loss.backward()
        optimiser.step()
        return float(loss)
    """),
    Same(STEP, "module", instead="""
        scores = model.train()(ids, mask)
        loss = nn.CrossEntropyLoss()(scores, F.one_hot(labels, scores.shape[-1]).float())
        optimiser.zero_grad(set_to_none=False)
        loss.backward()
        optimiser.step()
        return loss.detach().item()
    """),
    Same(STEP, "mode-restored", instead="""
        mode = model.training
        model.train()
        optimiser.zero_grad()
        loss = F.cross_entropy(model(ids, mask), labels)
        loss.backward()
        optimiser.step()
        model.train(mode)
        return loss.item()
    """),
    Same(STEP, "log-softmax-twice",
         edit=("F.cross_entropy(model(ids, mask)", "F.cross_entropy(F.log_softmax(model(ids, mask), dim=-1)")),
    Same(STEP, "autograd", instead="""
        model.train()
        weights = list(model.parameters())
        loss = F.nll_loss(F.log_softmax(model(ids, mask), -1), labels)
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights)):
            weight.grad = gradient
        optimiser.step()
        return loss.item()
    """),
    # ------------------------------------------------------------------------------------------- accuracy
    Mistake(ACCURACY, "mean-of-means", instead="""
        training = model.training
        model.eval()
        shares = []
        with torch.no_grad():
            for ids, mask, labels in batches:
                shares.append((model(ids, mask).argmax(dim=-1) == labels).float().mean().item())
        model.train(training)
        return sum(shares) / len(shares)
    """, title="the average of the batches' averages",
            says="You average over batches. The last batch is shorter, and its texts count for more than the others'. "
                 "Count right answers and texts over all batches, and divide once."),
    Mistake(ACCURACY, "mode-as-it-comes", edit=(("    model.eval()\n", ""), ("    model.train(training)\n", "")),
            title="evaluated in training mode",
            says="You ask the model in whatever mode it is. In training mode dropout is on, and the number is too low "
                 "and another one each time. Say `model.eval()` first."),
    Mistake(ACCURACY, "in-training", edit=("model.eval()", "model.train()"), title="always evaluated in training mode",
            says="You switch the model to training before you ask it: dropout is on, and the number is too low and "
                 "another one each time. `eval()` is for measuring."),
    Mistake(ACCURACY, "left-in-evaluation", edit=("    model.train(training)\n", ""),
            title="the model left in evaluation mode",
            says="After you the model is in evaluation mode, although it came in training. Whoever goes on training it "
                 "has lost dropout without a word. Note the mode before, and put it back."),
    Mistake(ACCURACY, "back-to-training", edit=("model.train(training)", "model.train()"),
            title="the model always put into training mode",
            says="Afterwards your model is in training mode, whatever it was before. Note the mode first, "
                 "`model.training`, and put that back."),
    Mistake(ACCURACY, "with-gradients", edit=("with torch.no_grad():", "if True:"),
            title="gradients computed while measuring",
            says="Every batch builds a graph that nobody will use, which costs memory and time: measure under "
                 "`torch.no_grad()`."),
    # published: what is reported for the test data is what a loop over the training data has left behind
    Mistake(ACCURACY, "what-is-left", instead="""
        training = model.training
        model.eval()
        with torch.no_grad():
            for ids, mask, labels in batches:
                guesses = model(ids, mask).argmax(dim=-1)
        model.train(training)
        return (guesses == labels).float().mean().item()
    """, title="only what the loop has left behind",
            says="Your number is computed after the loop, from the variables that it has left behind, and those belong "
                 "to the last batch alone. Count inside the loop."),
    Mistake(ACCURACY, "twice-through",
            edit=(("right = total = 0", "right, total = 0, sum(len(labels) for _, _, labels in batches)"),
                  ("            total += len(labels)\n", "")), title="the batches gone through twice",
            says="You go through `batches` twice. When they come one by one, as from a generator, nothing is left the "
                 "second time. Count texts and right answers in the same loop."),
    Mistake(ACCURACY, "gradients-left-off",
            edit=("    with torch.no_grad():\n", "    torch.set_grad_enabled(False)\n    if True:\n"),
            title="gradients switched off for good",
            says="You switch gradients off and never on again, so nothing can be trained after you. "
                 "`with torch.no_grad():` switches them off for its own lines only."),
    Mistake(ACCURACY, "first-batch-only",
            edit=("            total += len(labels)\n", "            total += len(labels)\n            break\n"),
            title="only the first batch",
            says="You stop after the first batch. Does a `return` or a `break` stand inside the loop?"),
    Mistake(ACCURACY, "divided-by-words", edit=("total += len(labels)", "total += mask.sum().item()"),
            title="divided by the number of words",
            says="You divide by the number of words in all texts. A text is right or wrong as a whole: divide by the "
                 "number of texts."),
    Mistake(ACCURACY, "divided-by-ids", edit=("total += len(labels)", "total += ids.numel()"),
            title="divided by the number of ids",
            says="You divide by the number of all ids, padding included. Divide by the number of texts."),
    Mistake(ACCURACY, "loss", edit=("right += (guesses == labels).sum().item()",
                                    "right += F.cross_entropy(model(ids, mask), labels).item() * len(labels)"),
            title="a loss instead of the share",
            says="You return a cross-entropy. The share of right answers is asked for."),
    Mistake(ACCURACY, "called-without-a-mask", edit=("model(ids, mask).argmax", "model(ids).argmax"),
            title="the model called without a mask",
            says="The model is called as `model(ids, mask)`; yours gets the ids alone."),
    Mistake(ACCURACY, "wrong-ones", edit=("guesses == labels", "guesses != labels"), title="the share of wrong answers",
            says="You count the answers that are wrong."),
    Mistake(ACCURACY, "count", edit=("return right / total", "return right"), title="a count instead of a share",
            says="You return how many answers are right. Divide by how many there are."),
    Mistake(ACCURACY, "percent", edit=("return right / total", "return 100 * right / total"),
            title="per cent instead of a share",
            says="You return per cent. A share is asked for, between 0 and 1."),
    Mistake(ACCURACY, "batches-counted", edit=("total += len(labels)", "total += 1"),
            title="divided by the number of batches",
            says="You divide the right answers by the number of batches. Divide by the number of texts."),
    Mistake(ACCURACY, "equal-batches", instead="""
        training = model.training
        model.eval()
        right = count = 0
        with torch.no_grad():
            for place, (ids, mask, labels) in enumerate(batches):
                size = len(labels) if place == 0 else size
                right += (model(ids, mask).argmax(dim=-1) == labels).sum().item()
                count += 1
        model.train(training)
        return right / (count * size)
    """, title="every batch counted as full",
            says="You divide by batches times the size of the first. The last batch is shorter."),
    Mistake(ACCURACY, "lowest", edit=("argmax", "argmin"), title="the class with the lowest score",
            says="You take the class with the lowest score. The highest is the model's guess."),
    Mistake(ACCURACY, "over-the-batch", edit=("argmax(dim=-1)", "argmax(dim=0)[: 1]"),
            title="the highest score over the batch",
            says="Your argmax runs over the texts. Each text has its own guess: the class with the highest score, "
                 "along the last axis."),
    Equal(ACCURACY, "model(ids, mask).argmax(dim=-1)", "model(ids, mask).argmax(dim=1)",
          why="the scores are (b, c): both are the last axis"),
    Same(ACCURACY, "decorated", instead="""
        @torch.inference_mode()
        def counted():
            pairs = [(int((model(i, m).argmax(1) == y).sum()), y.numel()) for i, m, y in batches]
            return [sum(column) for column in zip(*pairs)]
        was = model.training
        try:
            right, texts = counted() if not model.eval().training else (0, 1)
        finally:
            model.train(was)
        return torch.tensor(right / texts)
    """),
    Same(ACCURACY, "collected", instead="""
        was = model.training
        model.eval()
        answers = []
        with torch.inference_mode():
            for ids, mask, labels in batches:
                scores = model(ids, mask).softmax(-1)
                answers += (scores.argmax(1) == labels).tolist()
        model.train(was)
        return sum(answers) / len(answers)
    """),
    Same(ACCURACY, "weighted", instead="""
        was = model.training
        model.train(False)
        share = texts = 0.0
        for ids, mask, labels in batches:
            with torch.no_grad():
                hits = (model(ids, mask).max(dim=-1).indices == labels).double().mean().item()
            share += hits * len(labels)
            texts += len(labels)
        if was:
            model.train()
        return share / texts
    """),
    Same(ACCURACY, "concatenated", instead="""
        mode = model.training
        model.eval()
        with torch.no_grad():
            pairs = [(model(ids, mask).argmax(-1), labels) for ids, mask, labels in batches]
        model.train(mode)
        guesses, truth = (torch.cat(part) for part in zip(*pairs))
        return (guesses == truth).double().mean()
    """),
]
