"""What students get wrong in lesson 8, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

VOCABULARY, ENCODE, POOL, CLASSIFIER, EPOCH = (
    "build_vocabulary",
    "encode_batch",
    "mean_pool",
    "Classifier",
    "train_epoch",
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
    Accepted(VOCABULARY, "by-hand", instead="""
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
    Accepted(VOCABULARY, "most-common-of-sorted", instead="""
        words = sorted(word for text in texts for word in split_words(text))
        kept = [word for word, _ in Counter(words).most_common(size - 2)]
        return dict(zip(["<pad>", "<unk>"] + kept, range(size)))
    """),
    Accepted(VOCABULARY, "update", instead="""
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
    Accepted(ENCODE, "fill", instead="""
        lists = [split_words(text)[:length] for text in texts]
        ids = torch.full((len(texts), max(map(len, lists))), vocabulary["<pad>"])
        mask = torch.zeros(ids.shape, dtype=torch.bool)
        for i, words in enumerate(lists):
            for j, word in enumerate(words):
                ids[i, j] = vocabulary[word] if word in vocabulary else vocabulary["<unk>"]
                mask[i, j] = True
        return ids, mask
    """),
    Accepted(ENCODE, "pad-sequence", instead="""
        id_of = lambda word: vocabulary.get(word, vocabulary["<unk>"])
        rows = [torch.tensor([id_of(w) for w in split_words(text)[:length]], dtype=torch.long) for text in texts]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=vocabulary["<pad>"])
        return ids, ids != vocabulary["<pad>"]
    """),
    Accepted(ENCODE, "words-padded-first", instead="""
        cut = [split_words(text)[:length] for text in texts]
        t = max(len(words) for words in cut)
        padded = [words + ["<pad>"] * (t - len(words)) for words in cut]
        ids = torch.tensor([[vocabulary.get(word, 1) for word in words] for words in padded])
        return [ids, torch.tensor([[word != "<pad>" for word in words] for words in padded])]
    """),
    EquivalentMutant(ENCODE, "lengths.unsqueeze(1)", "lengths.unsqueeze(-1)",
        why="lengths has one axis: both are the new last"),
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
    Accepted(POOL, "masked-fill", instead="""
        total = x.masked_fill(~mask.unsqueeze(-1), 0.0).sum(dim=1)
        return total / mask.sum(dim=1, keepdim=True).clamp(min=1)
    """),
    Accepted(POOL, "einsum", instead="""
        share = mask.float() / mask.float().sum(dim=1, keepdim=True).clamp(min=1e-6)
        return torch.einsum("bt,bte->be", share, x)
    """),
    Accepted(POOL, "loop", instead="""
        pooled = []
        for vectors, real in zip(x, mask):
            pooled.append(vectors[real].mean(dim=0) if real.any() else torch.zeros_like(vectors[0]))
        return torch.stack(pooled)
    """),
    Accepted(POOL, "where", instead="""
        b, t, e = x.shape
        kept = torch.where(mask[:, :, None], x, torch.zeros_like(x))
        words = torch.maximum(mask.sum(1), torch.ones_like(mask.sum(1)))
        return (kept.transpose(1, 2) @ torch.ones(t, device=x.device)) / words[:, None]
    """),
    Accepted(POOL, "small-number-below", instead="""
        m = mask[..., None].float()
        return (m * x).sum(-2) / (m.sum(-2) + 1e-9)
    """),
    Accepted(POOL, "zero-instead-of-nan", instead="""
        words = mask.sum(dim=1, keepdim=True)
        total = x.masked_fill(~mask[..., None], 0).sum(dim=1)
        return torch.where(words > 0, total / words, torch.zeros_like(total))
    """),
    EquivalentMutant(POOL, "weights.sum(dim=1).clamp(min=1)", "weights.sum(dim=1).clamp_(min=1)",
          why="changes a sum that the answer has just made"),
    EquivalentMutant(POOL, "weights.sum(dim=1)", "weights.sum(dim=-2)",
        why="of three axes, both are the one in the middle"),
    EquivalentMutant(POOL, "(x * weights).sum(dim=1)", "(x * weights).sum(dim=-2)",
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
    Accepted(CLASSIFIER, "classes-first", instead=("", """
        mask = mask.bool()
        x = self.transformer(self.positions(self.tokens(ids)), mask[:, None, :])
        return finished_pool(self.to_classes(x), mask)
    """)),
    Accepted(CLASSIFIER, "own-positions", instead=("""
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
    Accepted(CLASSIFIER, "square-mask", instead=("", """
        t = ids.size(1)
        x = self.positions(self.tokens(ids))
        for block in self.transformer.blocks:
            x = block(x, mask.unsqueeze(1).expand(-1, t, -1))
        x = self.transformer.norm(x)
        return finished_pool(x, mask) @ self.to_classes.weight.T + self.to_classes.bias
    """)),
    Accepted(CLASSIFIER, "mask-for-both", instead=("", """
        square = mask[:, :, None] & mask[:, None, :]
        x = self.transformer(self.positions(self.tokens(ids)), square)
        return self.to_classes(finished_pool(x, mask))
    """)),
    EquivalentMutant(CLASSIFIER, "mask.unsqueeze(1)", "mask.unsqueeze(-2)",
        why="mask has two axes: both are (b, 1, t)"),
    Shortcut(CLASSIFIER, "pytorchs-encoder",
             edit=("self.to_classes = nn.Linear(e, c)",
                   "self.to_classes = nn.Linear(e, c)\n        self.spare = lambda: nn.TransformerEncoder")),
    # ---------------------------------------------------------------------------------------- train_epoch
    Mistake(EPOCH, "unchanged",
            edit=(('            nats += F.cross_entropy(logits, labels, reduction="sum").item()\n',
                   ""),
                  ("right, total, nats = 0, 0, 0.0", "right, total = 0, 0"),
                  ("nats / total", "loss.item()")),
            title="the loss of the last training batch",
            says="Your second number says nothing of the test data: it is the loss of the last batch that was trained "
                 "on. "
                 "The loop over the test batches has to compute a loss of its own."),
    Mistake(EPOCH, "last-test-batch",
            edit=(('            nats += F.cross_entropy(logits, labels, reduction="sum").item()\n',
                   "            loss = F.cross_entropy(logits, labels)\n"),
                  ("right, total, nats = 0, 0, 0.0", "right, total = 0, 0"), ("nats / total", "loss.item()")),
            title="the loss of the last test batch",
            says="Your second number is the loss of the last test batch alone. All of them have to enter it."),
    Mistake(EPOCH, "mean-of-means",
            edit=((', reduction="sum").item()', ').item()'), ("nats / total", "nats / len(test)")),
            title="the mean of the batches' means",
            says="You average the batches' averages. Where the last batch is shorter, each of its texts weighs more "
                 "than "
                 "those of the others: a mean over the texts is a sum over all of them, divided once."),
    Mistake(EPOCH, "means-by-texts", edit=(', reduction="sum").item()', ').item()'),
            title="means of batches, divided by the texts",
            says="Each batch's loss is a mean already, and you divide by the number of texts once more."),
    Mistake(EPOCH, "total", edit=("nats / total", "nats"), title="the sum over the texts",
            says="You add the losses up and do not divide: the number grows with the test data. A mean is asked for."),
    Mistake(EPOCH, "by-batches", edit=("nats / total", "nats / len(test)"),
            title="a sum divided by the number of batches",
            says="You add up the losses of all texts and divide by the number of *batches*."),
    Mistake(EPOCH, "training-mean",
            edit=(('            nats += F.cross_entropy(logits, labels, reduction="sum").item()\n',
                   ""),
                  ("right, total, nats = 0, 0, 0.0", "right, total = 0, 0"),
                  ("    for ids, mask, labels in learn:\n", "    losses = []\n    for ids, mask, labels in learn:\n"),
                  ("        optimiser.step()\n", "        optimiser.step()\n        losses.append(loss.item())\n"),
                  ("nats / total", "sum(losses) / len(losses)")),
            title="the mean loss of the training batches",
            says="Your second number is the mean over the batches that were *trained on*. It is asked for the test "
                 "batches."),
    Mistake(EPOCH, "in-training-mode", edit=("    model.eval()\n", ""), title="measured in training mode",
            says="The model is asked in training mode: dropout would be on, and two calls would differ. Both numbers "
                 "are "
                 "to be measured in evaluation mode."),
    Mistake(EPOCH, "trained-on-the-test",
            edit=(('            nats += F.cross_entropy(logits, labels, reduction="sum").item()\n',
                   "            loss = F.cross_entropy(logits, labels)\n            nats += loss.item() * "
                   "len(labels)\n            optimiser.zero_grad()\n            loss.backward()\n            "
                   "optimiser.step()\n"), ("with torch.no_grad():", "with torch.enable_grad():")),
            title="trained on the test batches as well",
            says="Your loop over the test batches takes steps too: the model learns from the texts by which it is "
                 "judged. "
                 "Measure there, and change nothing."),
    Mistake(EPOCH, "probability",
            edit=('F.cross_entropy(logits, labels, reduction="sum").item()',
                  "-logits.softmax(dim=-1).gather(1, labels.unsqueeze(1)).sum().item()"),
            title="no logarithm",
            says="You average minus the probabilities of the right classes. The loss is minus their *logarithms*."),
    Mistake(EPOCH, "swapped", edit=("return right / total, nats / total", "return nats / total, right / total"),
            title="the two numbers the other way round",
            says="The share comes first and the loss second; yours are the other way round."),
    Accepted(EPOCH, "all-logits-first", instead="""
        model.train()
        for ids, mask, labels in learn:
            optimiser.zero_grad()
            F.cross_entropy(model(ids, mask), labels).backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            logits = torch.cat([model(ids, mask) for ids, mask, _ in test])
        labels = torch.cat([labels for _, _, labels in test])
        return (logits.argmax(-1) == labels).float().mean().item(), F.cross_entropy(logits, labels).item()
    """),
    Accepted(EPOCH, "mean-times-length",
         edit=((', reduction="sum").item()', ').item() * len(labels)'),)),
    EquivalentMutant(EPOCH, "logits.argmax(dim=-1)", "logits.argmax(dim=1)", "logits have two axes"),
]
