"""What students get wrong in lesson 11, and what to tell them."""

from helpers.authoring import Alias, Equal, Mistake, Same, Shortcut

ALPHABET, LEARN, ENCODE, DECODE, CONV, GELU, BLOCK, MODEL, RENAME, CACHED, PERPLEXITY = (
    "byte_alphabet",
    "learn_merges",
    "encode",
    "decode",
    "Conv1D",
    "gelu_tanh",
    "GPT2Block",
    "GPT2",
    "rename_weights",
    "generate_cached",
    "perplexity",
)

# Laid out by hand: an entry is a paragraph, and a field a line would make the list twice as long.
# fmt: off
VARIANTS = [
    # -------------------------------------------------------------------------------------- byte_alphabet
    Mistake(ALPHABET, "every-byte-itself", instead="return {byte: chr(byte) for byte in range(256)}",
            title="every byte stands for itself", idle=True,
            says="Each of your bytes is the character of its own number. For 68 of them that is a space, a control "
                 "character or another one that does not print: they need a stand-in, from number 256 on."),
    Mistake(ALPHABET, "shifted-by-256", edit=(("chr(following)", "chr(256 + byte)"), ("following += 1", "pass")),
            title="stand-ins numbered by the byte, not one after the other",
            says="Byte b gets the character 256 + b in your table. The stand-ins are numbered one after the other: the "
                 "first byte that needs one gets 256, the next that needs one 257."),
    Alias(ALPHABET, "counter-never-waits", of="shifted-by-256",
          edit=("            following += 1\n", "        following += 1\n")),
    Mistake(ALPHABET, "space-stays", edit=("range(33, 127)", "range(32, 127)"), title="the space stands for itself",
            says="Byte 32, the space, stands for itself in your table. It is what the pieces of a text are told apart "
                 'by, so it needs a stand-in: "Ġ", number 288.'),
    Mistake(ALPHABET, "delete-stays", edit=("range(33, 127)", "range(33, 128)"), title="byte 127 stands for itself",
            says="Byte 127 is a control character (delete). The last that prints before it is 126, the tilde."),
    Mistake(ALPHABET, "tilde-replaced", edit=("range(33, 127)", "range(33, 126)"), title="byte 126 gets a stand-in",
            says="Byte 126, the tilde, prints and stands for itself. `range` stops before its end."),
    Mistake(ALPHABET, "soft-hyphen", edit=("*range(161, 173), *range(174, 256)", "*range(161, 256)"),
            title="byte 173 stands for itself",
            says="Byte 173 is a soft hyphen: it is invisible, and needs a stand-in."),
    Mistake(ALPHABET, "ascii-only", edit=("{*range(33, 127), *range(161, 173), *range(174, 256)}", "{*range(33, 127)}"),
            title="only ASCII stands for itself",
            says="Only the bytes 33 to 126 stand for themselves in your table. The visible characters of Latin-1 do so "
                 "too: 161 to 172 and 174 to 255."),
    Mistake(ALPHABET, "printing-missing", edit=("            alphabet[byte] = chr(byte)\n", "            pass\n"),
            title="no entry for the bytes that print",
            says="Your table has no entry for the bytes that print. Each of the 256 bytes needs a character, if only "
                 "its own."),
    Mistake(ALPHABET, "begins-at-257", edit=("following = {}, 256", "following = {}, 257"),
            title="stand-ins from 257 on",
            says="Your first stand-in is the character number 257. They begin at 256."),
    Mistake(ALPHABET, "ranges-end-early",
            edit=("range(33, 127), *range(161, 173), *range(174, 256)",
                  "range(33, 126), *range(161, 172), *range(174, 255)"),
            title="the last byte of each range gets a stand-in",
            says="The bytes 126, 172 and 255 print and stand for themselves; in your table each has a stand-in, and "
                 "all stand-ins after it are too high. `range` stops before its end."),
    Mistake(ALPHABET, "last-byte-replaced", edit=("range(174, 256)", "range(174, 255)"),
            title="byte 255 gets a stand-in",
            says="Byte 255, the ÿ, prints and stands for itself. `range` stops before its end."),
    Mistake(ALPHABET, "no-break-space", edit=("*range(161, 173)", "*range(160, 173)"),
            title="byte 160 stands for itself",
            says="Byte 160 stands for itself in your table. It is a space that does not break a line, and is as "
                 "invisible as any other: it needs a stand-in."),
    Mistake(ALPHABET, "exclamation-mark", edit=("range(33, 127)", "range(34, 127)"),
            title="byte 33 gets a stand-in", says="Byte 33, the exclamation mark, prints and stands for itself."),
    Mistake(ALPHABET, "backwards",
            edit=("            alphabet[byte] = chr(following)", "            alphabet[byte] = chr(579 - following)"),
            title="the stand-ins in falling order",
            says="Your stand-ins go the wrong way round: byte 0 gets the first of them, number 256, and byte 173 the "
                 "last."),
    Mistake(ALPHABET, "turned-round",
            edit=("return alphabet", "return {character: byte for byte, character in alphabet.items()}"),
            title="from characters to bytes",
            says="Your dict leads from characters to bytes. It has to lead from bytes, 0 to 255, to characters."),
    Mistake(ALPHABET, "others-missing", edit=(("            alphabet[byte] = chr(following)\n", ""),),
            title="no character for the other bytes",
            says="Your table has no entry for the bytes that do not print. Each of the 256 bytes needs a character."),
    Equal(ALPHABET, "range(174, 256)", "range(174, 256 + 1)", "256 is no byte, and the loop never asks for it"),
    Equal(ALPHABET, "256", "512", "the numbers from 256 on are no bytes, and the loop never asks for them"),
    Equal(ALPHABET, "256", "257", "256 is no byte, and the loop never asks for it"),
    Same(ALPHABET, "isprintable", instead="""
        others = [byte for byte in range(256) if byte in (32, 160) or not chr(byte).isprintable()]
        table = {byte: chr(byte) for byte in range(256)}
        table.update({byte: chr(256 + place) for place, byte in enumerate(others)})
        return table
    """),
    Same(ALPHABET, "two-lists", instead="""
        bs = list(range(ord("!"), ord("~") + 1)) + list(range(0xa1, 0xad)) + list(range(0xae, 0x100))
        cs = bs[:]
        for b in range(256):
            if b not in bs:
                bs.append(b)
                cs.append(256 + len(bs) - 189)
        return dict(zip(bs, map(chr, cs)))
    """),
    Same(ALPHABET, "iterator", instead="""
        stand_ins = iter(range(256, 400))
        shown = lambda b: 33 <= b <= 126 or 161 <= b <= 255 and b != 173
        return {b: chr(b if shown(b) else next(stand_ins)) for b in range(256)}
    """),
    Shortcut(ALPHABET, "finished-part", instead="return finished_alphabet()"),
    # --------------------------------------------------------------------------------------- learn_merges
    Mistake(LEARN, "words-once", edit=("pairs[pair] += occurrences[word]", "pairs[pair] += 1"),
            title="every word counted once",
            says="You count each different word once, however often it occurs. A pair in a word that occurs ten times "
                 "has occurred ten times."),
    Mistake(LEARN, "once-a-word",
            edit=("for pair in zip(symbols, symbols[1:]):", "for pair in set(zip(symbols, symbols[1:])):"),
            title="a pair counted once a word",
            says="A pair that stands twice in a word counts once for you. Every place counts."),
    Mistake(LEARN, "ties-largest",
            edit=("min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)",
                  "max(pairs, key=lambda pair: (pairs[pair], pair), default=None)"),
            title="of equally frequent pairs the largest",
            says="Where several pairs are equally frequent you take the lexicographically largest; the smallest is "
                 "asked for. `max` with (count, pair) does that: the pair itself then counts upwards as well."),
    Mistake(LEARN, "ties-first-met",
            edit=("min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)",
                  "max(pairs, key=pairs.get, default=None)"), title="of equally frequent pairs the one met first",
            says="Where several pairs are equally frequent you take the one that you met first, so the result depends "
                 "on the order of the words. The lexicographically smallest is asked for."),
    Mistake(LEARN, "ties-by-joined-text",
            edit=("(-pairs[pair], pair), default", "(-pairs[pair], ''.join(pair)), default"),
            title="of equally frequent pairs the one whose text is smallest",
            says="Where several pairs are equally frequent you compare their joined texts. Compare the pairs as they "
                 "are: ('a', 'd') comes before ('ab', 'c'), since 'a' comes before 'ab'."),
    Mistake(LEARN, "ties-by-length",
            edit=("(-pairs[pair], pair), default", "(-pairs[pair], len(''.join(pair)), pair), default"),
            title="of equally frequent pairs the shortest",
            says="Where several pairs are equally frequent you take the shortest first. Their order as tuples decides, "
                 "and a long symbol may come before a short one."),
    Mistake(LEARN, "ties-right-first",
            edit=("(-pairs[pair], pair), default", "(-pairs[pair], pair[::-1]), default"),
            title="of equally frequent pairs the one with the smallest right half",
            says="Where several pairs are equally frequent you compare their right halves first. Tuples are compared "
                 "from the left."),
    Mistake(LEARN, "least-frequent", edit=("(-pairs[pair], pair)", "(pairs[pair], pair)"),
            title="the rarest pair first",
            says="You take the least frequent pair. With `min`, the count has to enter with a minus."),
    Mistake(LEARN, "alphabetical", edit=("(-pairs[pair], pair), default", "pair, default"),
            title="the first pair of the alphabet, however often it occurs",
            says="You take the smallest pair, whatever its count is. The count decides first, and the order of the "
                 "letters only among equals."),
    Mistake(LEARN, "counted-once",
            edit=(("        pairs = Counter()\n        for word, symbols in split.items():",
                   "        if not merges:\n            pairs = Counter()\n        for word, symbols in split.items() "
                   "if not merges else ():"),
                  ("merges.append(best)", "merges.append(best)\n        del pairs[best]")),
            title="pairs not counted again",
            says="You count the pairs once, at the beginning, and take the most frequent of them. Every join makes new "
                 "pairs and takes old ones apart: count again in each round."),
    Mistake(LEARN, "nothing-joined",
            edit=("        split = {word: merge_pair(symbols, best) for word, symbols in split.items()}\n", ""),
            title="the pair is noted and not joined",
            says="You note the best pair and leave the words as they are, so the next round finds the same one. Join "
                 "it in every word."),
    Mistake(LEARN, "joined-in-text",
            edit=("{word: merge_pair(symbols, best) for word, symbols in split.items()}",
                  "{word: ' '.join(symbols).replace(' '.join(best), ''.join(best)).split(' ') for word, symbols in "
                  "split.items()}"), title="ends of symbols joined as well",
            says="You join by replacing text, and so also where a longer symbol only *ends* or *begins* like the pair: "
                 "\"ab c\" holds \"b c\". Only whole symbols are joined; `merge_pair` does that."),
    Mistake(LEARN, "counts-pile-up",
            edit=("        pairs = Counter()\n", "        pairs = Counter() if not merges else pairs\n"),
            title="counts carried on from round to round",
            says="Your counter is not emptied between rounds: pairs that were joined long ago are still in it, with "
                 "the counts of all rounds together."),
    Mistake(LEARN, "across-words",
            edit=("        for word, symbols in split.items():\n            for pair in zip(symbols, symbols[1:]):\n   "
                  "             pairs[pair] += occurrences[word]",
                  "        text = [symbol for word in words for symbol in split[word]]\n        for pair in zip(text, "
                  "text[1:]):\n            pairs[pair] += 1"), title="pairs across the borders of words",
            says="You join all words to one text, and count pairs of the last symbol of one word with the first of the "
                 "next. No pair reaches across a border."),
    Mistake(LEARN, "one-more",
            edit=("        merges.append(best)\n",
                  "        merges.append(best)\n        if len(merges) == count - 1:\n            break\n"),
            title="one pair too few",
            says="You return one pair less than was asked for."),
    Mistake(LEARN, "joined-text", edit=("return merges", "return [''.join(pair) for pair in merges]"),
            title="texts instead of pairs",
            says='Your list holds joined texts. Pairs are asked for, (left, right): "the" alone does not say whether '
                 'it was "t" + "he" or "th" + "e".'),
    Mistake(LEARN, "goes-on-to-the-end", edit=("if pairs[best] < 2:", "if best is None:"),
            title="pairs that occur once are joined too",
            says="You go on when no pair occurs twice any more. A pair that occurs once saves nothing anywhere else: "
                 "stop there."),
    Mistake(LEARN, "stops-at-two", edit=("if pairs[best] < 2:", "if pairs[best] <= 2:"),
            title="pairs that occur twice are left out",
            says="You stop when the best pair occurs twice. It still counts; a pair that occurs once does not."),
    Mistake(LEARN, "smallest-of-nothing", edit=(", default=None", ""), title="an error when no pair is left",
            says="When every word is a single symbol there is no pair at all, and the smallest of nothing is an error. "
                 "Your function has to return the pairs that it has by then."),
    Mistake(LEARN, "never-stops", edit=("        if pairs[best] < 2:\n            break\n", ""),
            title="no end when nothing is left",
            says="Asked for more pairs than there are, your code fails, or joins pairs that occur once. Look at what "
                 "happens when no pair occurs twice any more."),
    Mistake(LEARN, "reversed-pair", edit=("merges.append(best)", "merges.append(best[::-1])"),
            title="left and right exchanged",
            says="Your pairs are noted the wrong way round: (left, right) is asked for."),
    Same(LEARN, "most-common", instead="""
        pairs = Counter()
        for word, times in occurrences.items():
            symbols = split[word]
            for i in range(len(symbols) - 1):
                pairs[symbols[i], symbols[i + 1]] += times
        frequent = [(pair, times) for pair, times in pairs.items() if times >= 2]
        if not frequent:
            break
        best = sorted(frequent, key=lambda entry: (-entry[1], entry[0]))[0][0]
        merges.append(best)
        for word in split:
            split[word] = merge_pair(split[word], best)
    """),
    Same(LEARN, "largest-count-first", instead="""
        pairs = {}
        for word in words:
            for left, right in zip(split[word][:-1], split[word][1:]):
                pairs[left, right] = pairs.get((left, right), 0) + 1
        most = max(pairs.values(), default=0)
        if most <= 1:
            return merges
        best = min(pair for pair, times in pairs.items() if times == most)
        merges += [best]
        split.update({word: merge_pair(symbols, best) for word, symbols in split.items()})
    """),
    Same(LEARN, "joined-by-hand", instead="""
        pairs = Counter()
        for word, symbols in split.items():
            pairs.update({pair: 0 for pair in zip(symbols, symbols[1:])})
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += occurrences[word]
        if not pairs or max(pairs.values()) < 2:
            break
        left, right = min(pairs, key=lambda pair: (-pairs[pair],) + pair)
        merges.append([left, right])
        for symbols in split.values():
            i = 0
            while i < len(symbols) - 1:
                if symbols[i] == left and symbols[i + 1] == right:
                    symbols[i : i + 2] = [left + right]
                i += 1
    """),
    Shortcut(LEARN, "tokenizer", instead="return Tokenizer.learn(' '.join(words), 257 + count).merges"),
    # --------------------------------------------------------------------------------------------- encode
    Mistake(ENCODE, "reading-order",
            edit=("            best = min(neighbours, key=lambda pair: ranks.get(pair, math.inf))\n            if best "
                  "not in ranks:\n                break\n            symbols = merge_pair(symbols, best)",
                  "            i = next((i for i, pair in enumerate(neighbours) if pair in ranks), None)\n            "
                  "if i is None:\n                break\n            symbols[i : i + 2] = [symbols[i] + symbols[i + "
                  "1]]"), title="merges applied in reading order",
            says="You join the first pair from the left that has a rank. Of all pairs in the piece, the one that was "
                 "*learned* first comes first, wherever it stands."),
    Mistake(ENCODE, "leftmost-pair",
            edit=("min(neighbours, key=lambda pair: ranks.get(pair, math.inf))",
                  "min(neighbours, key=lambda pair: pair not in ranks)"),
            title="the leftmost pair that is known",
            says="You join the first pair from the left that has a rank, wherever it stands. Of all pairs in the "
                 "piece, the one that was *learned* first comes first."),
    Mistake(ENCODE, "highest-rank",
            edit=("min(neighbours, key=lambda pair: ranks.get(pair, math.inf))",
                  "max(neighbours, key=lambda pair: ranks.get(pair, -1))"),
            title="the pair that was learned last first",
            says="You join the pair with the highest rank first. The lowest rank is that of the pair that was learned "
                 "first."),
    Mistake(ENCODE, "unknown-first",
            edit=("ranks.get(pair, math.inf)", "ranks.get(pair, -1)"), title="an unknown pair counts as the best",
            says="A pair without a rank gets the lowest of all in yours, so as soon as there is one, nothing more is "
                 "joined. It has to come after all pairs that have a rank."),
    Mistake(ENCODE, "unknown-as-first",
            edit=("ranks.get(pair, math.inf)", "ranks.get(pair, 0)"),
            title="an unknown pair counts as the one learned first",
            says="A pair without a rank gets rank 0 in yours, that of the pair that was learned first, so joining "
                 "stops where there is still something to join. It has to come after all pairs that have a rank."),
    Mistake(ENCODE, "longest-match", instead="""
        while symbols:
            size = next(k for k in range(len(symbols), 0, -1) if "".join(symbols[:k]) in vocabulary)
            ids.append(vocabulary["".join(symbols[:size])])
            symbols = symbols[size:]
    """, title="the longest token from the left",
            says="You take the longest token that the vocabulary has, from the left. That is how WordPiece works, in "
                 "lesson 13; here the merges decide, in the order in which they were learned."),
    Mistake(ENCODE, "one-merge",
            edit=("        while len(symbols) > 1:", "        for _ in range(min(1, len(symbols) - 1)):"),
            title="one merge a piece",
            says="You join one pair of each piece and stop. Go on until no pair of neighbours has a rank."),
    Mistake(ENCODE, "two-symbols-left", edit=("while len(symbols) > 1:", "while len(symbols) > 2:"),
            title="two symbols are never joined",
            says="You stop when two symbols are left. They are a pair as well, and may have a rank."),
    Mistake(ENCODE, "merges-once-in-order", edit=(
            "            neighbours = zip(symbols, symbols[1:])\n            best = min(neighbours, key=lambda pair: "
            "ranks.get(pair, math.inf))\n            if best not in ranks:\n                break\n            "
            "symbols = merge_pair(symbols, best)",
            "            known = sorted({p for p in zip(symbols, symbols[1:]) if p in ranks}, key=ranks.get)\n"
            "            for best in known:\n                symbols = merge_pair(symbols, best)\n            break"),
            title="only the pairs of the beginning are joined",
            says="You look for known pairs once, before anything is joined. Every join makes new neighbours, and their "
                 "pairs may have ranks: look again after each."),
    Mistake(ENCODE, "most-frequent-in-piece",
            edit=("min(neighbours, key=lambda pair: ranks.get(pair, math.inf))",
                  "min(neighbours, key=lambda pair: (pair not in ranks, -len(pair[0] + pair[1])))"),
            title="the longest pair first",
            says="You join the pair first that makes the longest symbol. The ranks decide, and nothing else."),
    Mistake(ENCODE, "no-merges",
            edit=("        while len(symbols) > 1:", "        while len(symbols) > 1 and not merges:"),
            title="nothing is joined",
            says="Your ids are those of single bytes: no pair is ever joined."),
    Mistake(ENCODE, "whole-text",
            edit=("    for piece in split_pieces(text):", "    for piece in [text] if text else []:"),
            title="the text is not cut into pieces",
            says="You join across the borders of words. The text has to be cut by `split_pieces` first, and each piece "
                 "is joined for itself."),
    Mistake(ENCODE, "spaces-lost", edit=("    for piece in split_pieces(text):", "    for piece in text.split():"),
            title="the spaces are lost",
            says="`text.split()` throws the spaces away. `split_pieces` leaves each with the word after it, so that "
                 "nothing is lost."),
    Mistake(ENCODE, "characters",
            edit=("[alphabet[byte] for byte in piece.encode()]",
                  "[alphabet[ord(character) % 256] for character in piece]"), title="characters taken for bytes",
            says="You go by characters. A character outside ASCII is two, three or four bytes in UTF-8, and each byte "
                 "is a symbol of its own."),
    Mistake(ENCODE, "symbols", edit=("ids.extend(vocabulary[symbol] for symbol in symbols)", "ids.extend(symbols)"),
            title="symbols instead of ids",
            says="You return the symbols. Each has an id in the vocabulary, and the ids are asked for."),
    Mistake(ENCODE, "bytes-as-ids", edit=("ids.extend(vocabulary[symbol] for symbol in symbols)",
                                          "ids.extend(piece.encode())"), title="bytes instead of ids",
            says="Your ids are the numbers of the bytes. What is asked for is the vocabulary's id of each symbol that "
                 "is left after joining."),
    Mistake(ENCODE, "last-piece-only",
            edit=("ids.extend(vocabulary[symbol] for symbol in symbols)",
                  "ids = [vocabulary[symbol] for symbol in symbols]"), title="only the last piece is left",
            says="You make the list of ids anew for each piece, so only those of the last piece are returned."),
    Mistake(ENCODE, "lists-in-a-list",
            edit=("ids.extend(vocabulary[symbol] for symbol in symbols)",
                  "ids.append([vocabulary[symbol] for symbol in symbols])"), title="a list of lists",
            says="You append the ids of a piece as one list. One flat list is asked for: extend, or +=."),
    Same(ENCODE, "rank-by-rank", instead="""
        for pair in merges:
            symbols = merge_pair(symbols, pair)
        ids += [vocabulary[symbol] for symbol in symbols]
    """),
    Same(ENCODE, "lowest-rank-by-hand", instead="""
        while True:
            known = [(ranks[pair], pair) for pair in zip(symbols[:-1], symbols[1:]) if pair in ranks]
            if not known:
                break
            symbols = merge_pair(symbols, sorted(known)[0][1])
        for symbol in symbols:
            ids.append(vocabulary[symbol])
    """),
    Same(ENCODE, "one-place-at-a-time", instead="""
        while len(symbols) > 1:
            order = [ranks.get((symbols[i], symbols[i + 1]), len(merges)) for i in range(len(symbols) - 1)]
            i = order.index(min(order))
            if order[i] == len(merges):
                break
            symbols = symbols[:i] + [symbols[i] + symbols[i + 1]] + symbols[i + 2:]
        ids.extend(map(vocabulary.get, symbols))
    """),
    Shortcut(ENCODE, "tokenizer", instead="return Tokenizer(vocabulary, merges).encode(text)"),
    # --------------------------------------------------------------------------------------------- decode
    Mistake(DECODE, "token-by-token", instead="""
        symbol_of = {place: symbol for symbol, place in vocabulary.items()}
        byte_of = {character: byte for byte, character in finished_alphabet().items()}
        texts = [bytes(byte_of[c] for c in symbol_of[place]).decode("utf-8", errors="replace") for place in ids]
        return "".join(texts)
    """, title="each token read as text for itself",
            says="You turn each token into text by itself. A token may end inside a character: join the bytes of all "
                 "tokens first, then read them as UTF-8, once."),
    Mistake(DECODE, "byte-by-byte",
            edit=('raw.decode("utf-8", errors="replace")', '"".join(chr(byte) for byte in raw)'),
            title="each byte read as a character",
            says="You turn every byte into a character of its own. A character of UTF-8 may take up to four bytes: put "
                 "the bytes together and `decode` them."),
    Alias(DECODE, "latin-1", of="byte-by-byte", edit=('.decode("utf-8", errors="replace")', '.decode("latin-1")')),
    Mistake(DECODE, "strict", edit=(', errors="replace"', ""), title="an error at bytes that are no character",
            says="`decode` raises UnicodeDecodeError at bytes that make no character, and a model may write such bytes "
                 "at any time. Its argument `errors` says what to do instead."),
    Mistake(DECODE, "ignored", edit=('errors="replace"', 'errors="ignore"'),
            title="bytes that are no character left out",
            says="You leave bytes out that make no character, so nobody sees that there was something. U+FFFD shall "
                 "stand there."),
    Mistake(DECODE, "backslashes", edit=('errors="replace"', 'errors="backslashreplace"'),
            title="bytes that are no character written as escapes",
            says="Bytes that make no character come out as escapes such as \\xe2. U+FFFD shall stand there."),
    Mistake(DECODE, "alphabet-left-in", edit=('return raw.decode("utf-8", errors="replace")', "return spelled"),
            title="still in the byte alphabet",
            says='You join the symbols and stop: a space is still "Ġ". Each character stands for a byte, and the bytes '
                 "make the text."),
    Mistake(DECODE, "space-only",
            edit=('return raw.decode("utf-8", errors="replace")',
                  'return spelled.replace("Ġ", " ").replace("Ċ", "\\n")'),
            title="only white space turned back",
            says="You turn back the stand-ins of white space and leave the rest as it is. All 256 characters stand for "
                 "bytes."),
    Alias(DECODE, "spaces-alone", of="space-only",
          edit=('return raw.decode("utf-8", errors="replace")', 'return spelled.replace("Ġ", " ")')),
    Mistake(DECODE, "spaces-between",
            edit=('bytes(byte_of[character] for character in spelled)',
                  'b" ".join(bytes(byte_of[c] for c in symbol_of[place]) for place in ids)'),
            title="a space between all tokens",
            says="You put a space between tokens. The spaces are in the tokens already."),
    Mistake(DECODE, "spaces-between-symbols", edit=('"".join(symbol_of', '" ".join(symbol_of'),
            title="a space between the symbols",
            says="You put a space between the symbols. It is none of the 256 characters, so no byte belongs to it; the "
                 "spaces of the text are in the tokens already."),
    Mistake(DECODE, "ascii", edit=('.decode("utf-8", errors="replace")', '.decode("ascii", errors="replace")'),
            title="read as ASCII",
            says="You read the bytes as ASCII, which has no character for bytes above 127. The text is UTF-8."),
    Mistake(DECODE, "end-cut-off", edit=("for place in ids)", "for place in ids[:-1])"), title="the last token is lost",
            says="The text of your last token is missing."),
    Mistake(DECODE, "reversed", edit=("for place in ids)", "for place in ids[::-1])"),
            title="from the last to the first",
            says="You go through the ids from the last to the first."),
    Mistake(DECODE, "stripped", edit=('errors="replace")', 'errors="replace").strip()'), title="white space stripped",
            says="You strip white space off the ends. It belongs to the text: what went in has to come out."),
    Alias(DECODE, "encoded-anew", of="alphabet-left-in",
          edit=("bytes(byte_of[character] for character in spelled)", "spelled.encode()")),
    Same(DECODE, "bytearray", instead="""
        tokens = dict(zip(vocabulary.values(), vocabulary.keys()))
        back = {c: b for b, c in finished_alphabet().items()}
        raw = bytearray()
        for i in ids:
            raw.extend(back[c] for c in tokens[i])
        return raw.decode(errors="replace")
    """),
    Same(DECODE, "str-of-bytes", instead="""
        inverse = {v: k for k, v in vocabulary.items()}
        table = {v: bytes([k]) for k, v in finished_alphabet().items()}
        return str(b"".join(table[c] for i in ids for c in inverse[i]), "utf8", "replace")
    """),
    Same(DECODE, "sorted-vocabulary", instead="""
        symbols = sorted(vocabulary, key=vocabulary.get)
        spelled = "".join([symbols[int(i)] for i in ids])
        values = {ord(c): b for b, c in finished_alphabet().items()}
        return spelled.translate(values).encode("latin-1").decode("utf-8", "replace")
    """),
    Shortcut(DECODE, "tokenizer", instead="return Tokenizer(vocabulary, []).decode(ids)"),
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
    Same(CONV, "addmm", instead=("""
        self.weight = nn.Parameter(torch.empty(n_in, n_out).normal_(std=0.02))
        self.bias = nn.Parameter(torch.zeros(n_out))
    """, """
        flat = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)
        return flat.reshape(*x.shape[:-1], -1)
    """)),
    Same(CONV, "functional", instead=("", "return F.linear(x, self.weight.T, self.bias)")),
    Same(CONV, "einsum", instead=("""
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.weight = nn.Parameter(torch.zeros(n_in, n_out))
        nn.init.normal_(self.weight, std=0.02)
    """,
                                  "return self.bias + torch.einsum('...i,io->...o', x, self.weight)")),
    Shortcut(CONV, "finished-part", instead=("", "return finished_gpt2.Conv1D.forward(self, x)")),
    # ------------------------------------------------------------------------------------------ gelu_tanh
    Mistake(GELU, "exact", instead="return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))", title="the exact GELU",
            says="This is GELU itself, with the error function. GPT-2's weights were trained with its approximation by "
                 "tanh; the two differ by up to 0.0005, and through twelve blocks that adds up."),
    Mistake(GELU, "by-sigmoid", instead="return x * torch.sigmoid(1.702 * x)", title="the approximation by a sigmoid",
            says="That is the other approximation of the same paper, x·σ(1.702 x). It is cruder, and GPT-2 takes the "
                 "one with tanh."),
    Mistake(GELU, "square", edit=("x ** 3", "x ** 2"), title="a square instead of a cube",
            says="In the bracket stands x³. With a square, the function loses its symmetry."),
    Mistake(GELU, "no-half", edit=("0.5 * x", "x"), title="the half is missing",
            says="Your values are twice as large as they have to be: there is a ½ in front."),
    Mistake(GELU, "minus", edit=("1 + torch.tanh", "1 - torch.tanh"), title="1 − tanh",
            says="In the bracket stands 1 plus the tanh. With a minus, the function is 0 where it has to be x."),
    Mistake(GELU, "one-outside", edit=("(1 + torch.tanh(inner))", "1 + torch.tanh(inner)"),
            title="the outer bracket is missing",
            says="½ x multiplies the whole bracket, the 1 *and* the tanh. In yours the tanh stands outside."),
    Mistake(GELU, "zeros-too-many", edit=("0.044715", "0.0044715"), title="a zero too many",
            says="The constant is 0.044715; yours is a tenth of it."),
    Mistake(GELU, "no-constant", edit=("0.044715 * x", "x"), title="the constant is missing",
            says="The cube in the bracket has a factor, 0.044715."),
    Mistake(GELU, "no-cube", edit=(" + 0.044715 * x ** 3", ""), title="the cube is missing",
            says="In the bracket x stands alone. The term with x³ belongs there too."),
    Mistake(GELU, "cube-of-all", edit=("(x + 0.044715 * x ** 3)", "(x + 0.044715 * x) ** 3"),
            title="the cube of the whole bracket",
            says="You take the third power of the whole bracket. Only the second x is cubed."),
    Mistake(GELU, "constant-cubed", edit=("0.044715 * x ** 3", "(0.044715 * x) ** 3"), title="the constant cubed too",
            says="The cube is of x alone; in yours the constant is cubed with it."),
    Mistake(GELU, "sigmoid-for-tanh", edit=("torch.tanh(inner)", "torch.sigmoid(inner)"),
            title="a sigmoid instead of tanh", says="Your bracket has a sigmoid in it, where tanh belongs."),
    Mistake(GELU, "silu", instead="return x * torch.sigmoid(x)", title="SiLU",
            says="x·σ(x) is SiLU, a relative. GPT-2 has GELU, approximated by tanh."),
    Mistake(GELU, "two-pi", edit=("math.sqrt(2 / math.pi)", "math.sqrt(2 * math.pi)"), title="√(2π) instead of √(2/π)",
            says="Under the root 2 is divided by π, not multiplied."),
    Mistake(GELU, "no-root-at-all", edit=("math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)", "x + 0.044715 * x ** 3"),
            title="the factor √(2/π) is missing", says="The bracket has a factor in front, √(2/π). It is missing."),
    Mistake(GELU, "math-tanh", edit=("torch.tanh(inner)", "math.tanh(inner)"), title="a tanh for single numbers",
            says="`math.tanh` takes one number. torch's takes a whole tensor."),
    Mistake(GELU, "in-place", edit=("return 0.5 * x * (1", "x *= 0.5\n    return x * (1"),
            title="the input changed in place",
            says="Your code writes into the tensor that it is given, so a second call with it finds other numbers. "
                 "Make new tensors: no *=, +=, nor a method whose name ends in _."),
    Mistake(GELU, "no-x", edit=("0.5 * x * (1", "0.5 * (1"), title="the x in front is missing",
            says="You return the factor alone, which lies between 0 and 1. GELU is x times this factor."),
    Mistake(GELU, "decimal", edit=("0.044715", "0.44715"), title="a zero too few",
            says="The constant is 0.044715; yours is ten times as large."),
    Mistake(GELU, "root-upside-down", edit=("math.sqrt(2 / math.pi)", "math.sqrt(math.pi / 2)"),
            title="√(π/2) instead of √(2/π)",
            says="The root is that of 2/π, about 0.798. Yours is its reciprocal."),
    Mistake(GELU, "no-root", edit=("math.sqrt(2 / math.pi)", "(2 / math.pi)"), title="no root",
            says="You multiply by 2/π. Its root belongs there, √(2/π)."),
    Mistake(GELU, "root-of-two-only", edit=("math.sqrt(2 / math.pi)", "math.sqrt(2) / math.pi"),
            title="the root over the 2 alone",
            says="The root goes over the whole fraction, 2/π; in yours it ends after the 2."),
    Mistake(GELU, "cube-outside", edit=("(x + 0.044715 * x ** 3)", "x + 0.044715 * x ** 3"),
            title="the cube outside the bracket",
            says="The root multiplies the whole bracket, the cube included. Look where your bracket closes."),
    Mistake(GELU, "numpy", edit=("torch.tanh(inner)", "np.tanh(inner)"), title="a name that was never imported",
            says="You use a name that nothing has imported, as published code does now and then. torch has all that "
                 "you need."),
    Mistake(GELU, "relu", instead="return torch.relu(x)", title="ReLU",
            says="That is ReLU. GELU is smooth, and slightly negative left of zero."),
    Same(GELU, "power",
         instead="return x / 2 + x / 2 * torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * torch.pow(x, 3)))"),
    Same(GELU, "sigmoid", instead="""
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        return x * torch.sigmoid(2 * inner)
    """),
    Same(GELU, "factored",
         instead="return 0.5 * x * (1 + (x * math.sqrt(2 / math.pi) * (1 + 0.044715 * x.square())).tanh())"),
    Shortcut(GELU, "pytorchs", instead="return F.gelu(x, approximate='tanh')"),
    Shortcut(GELU, "finished-part", instead="return finished_gpt2.gelu_tanh(x)"),
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
    Equal(BLOCK, "scores.masked_fill(future, -torch.inf)", "scores.masked_fill_(future, -torch.inf)",
          "the scores are the function's own, and nobody reads them afterwards"),
    Equal(BLOCK, "-2", "2", "k has four axes, so axis 2 is axis -2"),
    Same(BLOCK, "pytorchs-attention", instead=("""
        b, t, e = x.shape
        q, k, v = [split_heads(part, self.h) for part in self.attention["to_qkv"](x).split(e, dim=2)]
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.attention["unify"](merge_heads(out))
    """, """
        x = x + self.attend(self.norm1(x))
        return x + self.feed_forward.narrow(F.gelu(self.feed_forward.widen(self.norm2(x)), approximate="tanh"))
    """)),
    Same(BLOCK, "large-negative", instead=("""
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
    Same(BLOCK, "head-by-head", instead=("""
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
    Same(MODEL, "tied-linear", instead=("""
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
    Same(MODEL, "einsum", instead=("", """
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for i in range(self.config.depth):
            x = self.blocks[i](x)
        return torch.einsum("bte,ne->btn", self.norm(x), self.tokens.weight)
    """)),
    Same(MODEL, "positions-for-each", instead=("""
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
    Same(RENAME, "by-parts", instead="""
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
    Same(RENAME, "no-prefix-first", instead="""
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
    Same(RENAME, "with-detach", instead="""
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
    Equal(CACHED, "return torch.cat(chosen, dim=1)", "return torch.cat(chosen, dim=1).detach()",
          "ids have no gradient"),
    Equal(CACHED, "torch.cat(chosen, dim=1)", "torch.cat(chosen, dim=-1)", "each is (b, 1), so axis 1 is the last"),
    Equal(CACHED, "logits.argmax(dim=-1, keepdim=True)", "logits.argmax(dim=1, keepdim=True)",
          "the logits are (b, n), so axis 1 is the last"),
    Same(CACHED, "the-model-itself", instead="""
        tokens = ids
        for _ in range(count):
            logits = model(tokens[:, cache.length:], cache)[:, -1]
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], dim=1)
        return tokens[:, ids.shape[1]:]
    """),
    Same(CACHED, "positions-by-hand", instead="""
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
    Same(CACHED, "prompt-first", instead="""
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
    Equal(PERPLEXITY, "return F.cross_entropy(logits, targets).exp()",
          "return F.cross_entropy(logits, targets).exp().mT", "a single number is its own transpose"),
    Equal(PERPLEXITY, "return F.cross_entropy(logits, targets).exp()",
          "return F.cross_entropy(logits, targets).exp().squeeze()", "a single number has no axes"),
    Equal(PERPLEXITY, "return F.cross_entropy(logits, targets).exp()",
          "return F.cross_entropy(logits, targets).exp().detach()", "there is no gradient under no_grad"),
    Equal(PERPLEXITY, "F.cross_entropy(logits, targets).exp()", "F.cross_entropy(logits, targets).exp_()",
          "the loss is the function's own"),
    Equal(PERPLEXITY, "model(inputs.unsqueeze(0))[0]", "model(inputs.unsqueeze(0))[-1]",
          "in a batch of one the first is the last"),
    Equal(PERPLEXITY, "inputs.unsqueeze(0)", "inputs.unsqueeze(-2)", "inputs have one axis, and -2 comes before it"),
    Same(PERPLEXITY, "log-probabilities", instead="""
        chances = model(ids.unsqueeze(0))[0, :-1].log_softmax(dim=-1)
        nats = -chances.gather(1, ids[1:].unsqueeze(1)).squeeze(1)
        return math.e ** nats.mean()
    """),
    Same(PERPLEXITY, "batch-kept", instead="""
        ids = ids[None]
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="sum") / (ids.shape[1] - 1)
        return torch.exp(loss)
    """),
    Same(PERPLEXITY, "token-by-token", instead="""
        logits = model(ids[:-1].reshape(1, -1))[0]
        total = 0.0
        for row, target in zip(logits, ids[1:]):
            total = total + torch.logsumexp(row, 0) - row[target]
        return torch.exp(total / (len(ids) - 1))
    """),
    Same(PERPLEXITY, "bits-and-two", instead="""
        loss = nn.CrossEntropyLoss()(model(ids[:-1][None, :]).squeeze(0), ids[1:])
        return 2 ** (loss / math.log(2))
    """),
    Shortcut(PERPLEXITY, "finished-part", instead="return finished_gpt2.perplexity(model, ids)"),
]
