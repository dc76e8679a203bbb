"""What students get wrong in lesson 11, and what to tell them."""

from helpers.authoring import Accepted, Alias, EquivalentMutant, Mistake, Shortcut

ALPHABET, LEARN, ENCODE, DECODE, BITS = (
    "byte_alphabet",
    "learn_merges",
    "encode",
    "decode",
    "bits_per_byte_of",
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
    EquivalentMutant(ALPHABET, "range(174, 256)", "range(174, 256 + 1)",
        "256 is no byte, and the loop never asks for it"),
    EquivalentMutant(ALPHABET, "256", "512", "the numbers from 256 on are no bytes, and the loop never asks for them"),
    EquivalentMutant(ALPHABET, "256", "257", "256 is no byte, and the loop never asks for it"),
    Accepted(ALPHABET, "isprintable", instead="""
        others = [byte for byte in range(256) if byte in (32, 160) or not chr(byte).isprintable()]
        table = {byte: chr(byte) for byte in range(256)}
        table.update({byte: chr(256 + place) for place, byte in enumerate(others)})
        return table
    """),
    Accepted(ALPHABET, "two-lists", instead="""
        bs = list(range(ord("!"), ord("~") + 1)) + list(range(0xa1, 0xad)) + list(range(0xae, 0x100))
        cs = bs[:]
        for b in range(256):
            if b not in bs:
                bs.append(b)
                cs.append(256 + len(bs) - 189)
        return dict(zip(bs, map(chr, cs)))
    """),
    Accepted(ALPHABET, "iterator", instead="""
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
    Accepted(LEARN, "most-common", instead="""
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
    Accepted(LEARN, "largest-count-first", instead="""
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
    Accepted(LEARN, "joined-by-hand", instead="""
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
    Mistake(ENCODE, "unchanged", instead="""
        while True:
            known = [pair for pair in zip(symbols, symbols[1:]) if pair in ranks]
            if not known:
                break
            symbols = merge_pair(symbols, known[0])
        ids.extend(vocabulary[symbol] for symbol in symbols)
    """, title="the pair that stands leftmost",
            says="Some words come out in other tokens than they should. Of several pairs that could be joined, yours "
                 "takes one by where it stands. When the merges were learned, what decided?"),
    Mistake(ENCODE, "rightmost-pair",
            edit=("min(neighbours, key=lambda pair: ranks.get(pair, math.inf))",
                  "max(enumerate(neighbours), key=lambda one: (one[1] in ranks, one[0]))[1]"),
            title="the pair that stands rightmost",
            says="You join the last pair that is known. Where a pair stands says nothing; when was each of them "
                 "learned?"),
    Alias(ENCODE, "leftmost-pair", of="unchanged",
          edit=("min(neighbours, key=lambda pair: ranks.get(pair, math.inf))",
                "min(neighbours, key=lambda pair: pair not in ranks)")),
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
                 "lesson 14; here the merges decide, in the order in which they were learned."),
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
    Accepted(ENCODE, "rank-by-rank", instead="""
        for pair in merges:
            symbols = merge_pair(symbols, pair)
        ids += [vocabulary[symbol] for symbol in symbols]
    """),
    Accepted(ENCODE, "lowest-rank-by-hand", instead="""
        while True:
            known = [(ranks[pair], pair) for pair in zip(symbols[:-1], symbols[1:]) if pair in ranks]
            if not known:
                break
            symbols = merge_pair(symbols, sorted(known)[0][1])
        for symbol in symbols:
            ids.append(vocabulary[symbol])
    """),
    Accepted(ENCODE, "one-place-at-a-time", instead="""
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
    Accepted(DECODE, "bytearray", instead="""
        tokens = dict(zip(vocabulary.values(), vocabulary.keys()))
        back = {c: b for b, c in finished_alphabet().items()}
        raw = bytearray()
        for i in ids:
            raw.extend(back[c] for c in tokens[i])
        return raw.decode(errors="replace")
    """),
    Accepted(DECODE, "str-of-bytes", instead="""
        inverse = {v: k for k, v in vocabulary.items()}
        table = {v: bytes([k]) for k, v in finished_alphabet().items()}
        return str(b"".join(table[c] for i in ids for c in inverse[i]), "utf8", "replace")
    """),
    Accepted(DECODE, "sorted-vocabulary", instead="""
        symbols = sorted(vocabulary, key=vocabulary.get)
        spelled = "".join([symbols[int(i)] for i in ids])
        values = {ord(c): b for b, c in finished_alphabet().items()}
        return spelled.translate(values).encode("latin-1").decode("utf-8", "replace")
    """),
    Shortcut(DECODE, "tokenizer", instead="return Tokenizer(vocabulary, []).decode(ids)"),
    # ----------------------------------------------------------------------------------- bits_per_byte_of
    Mistake(BITS, "nats", edit=(" / math.log(2)", ""), title="nats instead of bits",
            says="Your numbers are nats per byte. One bit is ln 2 nats, so divide by it."),
    Mistake(BITS, "nats-times", edit=("/ math.log(2)", "* math.log(2)"), title="multiplied by ln 2",
            says="From nats to bits one *divides* by ln 2; you multiply."),
    Mistake(BITS, "base-ten", edit=("math.log(2)", "math.log(10)"), title="decimal digits instead of bits",
            says="You divide by ln 10, which gives decimal digits. One bit is ln 2 nats."),
    Mistake(BITS, "characters", edit=("len(text.encode())", "len(text)"), title="characters counted for bytes",
            says="You divide by the number of characters. Outside ASCII a character is two, three or four bytes of "
                 "UTF-8."),
    Mistake(BITS, "words", edit=("len(text.encode())", "len(text.split())"), title="words counted for bytes",
            says="You divide by the number of words. The bytes of the text are asked for."),
    Mistake(BITS, "stripped", edit=("text.encode()", "text.strip().encode()"), title="white space not counted",
            says="You leave out the white space at the ends. The model had to predict it too, so its bytes count."),
    Mistake(BITS, "utf-16", edit=("text.encode()", 'text.encode("utf-16-le")'), title="another encoding",
            says="You count bytes of another encoding. The tokenizer starts from UTF-8, and so do the landmarks of "
                 "lesson 9."),
    Mistake(BITS, "per-token", edit=("loss * tokens / math.log(2) / len(text.encode())", "loss / math.log(2)"),
            title="bits per token",
            says="You return bits per token. A model with long tokens has few of them: multiply by their number and "
                 "divide by the bytes."),
    Mistake(BITS, "tokens-forgotten", edit=("loss * tokens", "loss"), title="the surprise of one token only",
            says="The loss is the mean over the tokens, and you spread that of a single token over the whole text. "
                 "All of them together is loss × tokens."),
    Mistake(BITS, "total", edit=(" / len(text.encode())", ""), title="the bits of the whole text",
            says="You return the bits of the whole text. Per byte is asked for."),
    Mistake(BITS, "divided-by-tokens", edit=("loss * tokens", "loss / tokens"), title="divided by the tokens",
            says="You divide by the number of tokens. The loss is a mean over them already: the sum is loss × tokens."),
    Mistake(BITS, "upside-down",
            edit=("loss * tokens / math.log(2) / len(text.encode())",
                  "loss / math.log(2) * len(text.encode()) / tokens"), title="bytes and tokens exchanged",
            says="You multiply by the bytes and divide by the tokens. It is the other way round: a token that stands "
                 "for many bytes spreads its bits over them."),
    Mistake(BITS, "one-token-less", edit=("loss * tokens", "loss * (tokens - 1)"), title="one token too few",
            says="You multiply by one token less. `tokens` is the number of predictions that the mean was taken over."),
    Mistake(BITS, "one-byte-less", edit=("len(text.encode())", "(len(text.encode()) - 1 or 1)"),
            title="one byte too few", says="You divide by one byte less than the text has."),
    Mistake(BITS, "perplexity", edit=("loss * tokens / math.log(2)", "math.exp(loss) * tokens"),
            title="the perplexity instead of bits",
            says="You take the exponential of the loss. Surprises are added up as logarithms: nats, divided by ln 2."),
    Mistake(BITS, "rounded", edit=("loss * tokens / math.log(2) / len(text.encode())",
                                   "loss * tokens / math.log(2) // len(text.encode())"),
            title="rounded to a whole number", says="`//` cuts off what stands behind the point. Divide with `/`."),
    Mistake(BITS, "bits-per-character-of-ascii",
            edit=("len(text.encode())", 'len(text.encode("ascii", errors="ignore") or b"-")'),
            title="only ASCII counted",
            says="You leave out all characters that are not ASCII. Their bytes count too."),
    Accepted(BITS, "log2-of-e", instead="""
        raw = text.encode("utf-8")
        return loss * math.log2(math.e) * (tokens / len(raw))
    """),
    Accepted(BITS, "bytes-per-token", instead="""
        bits_per_token = loss / 0.6931471805599453
        bytes_per_token = len(bytes(text, "utf-8")) / tokens
        return bits_per_token / bytes_per_token
    """),
    Accepted(BITS, "as-a-tensor", instead="""
        total = torch.tensor(loss * tokens, dtype=torch.float64)
        return total / torch.log(torch.tensor(2.0, dtype=torch.float64)) / sum(1 for byte in text.encode())
    """),
]
