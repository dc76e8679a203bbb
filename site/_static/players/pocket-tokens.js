/* Byte-pair encoding as GPT-2 does it (lesson 11): text to ids, and back without loss. */
"use strict";

class PocketTokenizer {
  /* tokens: strings in GPT-2's byte alphabet, in the order of their ids. merges: "left right", the first learned first. */
  constructor(tokens, merges) {
    this.tokens = tokens;
    this.ids = new Map(tokens.map((token, id) => [token, id]));
    this.ranks = new Map(merges.map((pair, rank) => [pair, rank]));
    // A printable character for each byte: visible ones of Latin-1 stand for themselves, the others follow from 256 on.
    this.alphabet = [];
    for (let byte = 0, next = 256; byte < 256; byte++) {
      const visible = (byte > 32 && byte < 127) || (byte > 160 && byte < 256 && byte !== 173);
      this.alphabet.push(String.fromCharCode(visible ? byte : next++));
    }
    this.byteOf = new Map(this.alphabet.map((character, byte) => [character, byte]));
  }

  /* About a word each, with the space before it. (JavaScript's own \s is not Unicode's white space.) */
  pieces(text) {
    return text.match(
      /'(?:[stmd]|re|ve|ll)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu
    ) ?? [];
  }

  /* Half a surrogate pair, which is no character, becomes U+FFFD, as everywhere on the web. */
  encode(text) {
    const ids = [];
    for (const piece of this.pieces(text.toWellFormed?.() ?? text)) {
      let symbols = Array.from(new TextEncoder().encode(piece), (byte) => this.alphabet[byte]);
      for (;;) {
        // the pair that was learned first is merged first, wherever it stands
        let best = Infinity, left, right;
        for (let i = 0; i + 1 < symbols.length; i++) {
          const rank = this.ranks.get(`${symbols[i]} ${symbols[i + 1]}`) ?? Infinity;
          if (rank < best) [best, left, right] = [rank, symbols[i], symbols[i + 1]];
        }
        if (best === Infinity) break;
        const merged = [];
        for (let i = 0; i < symbols.length; i++) {
          const here = symbols[i] === left && symbols[i + 1] === right;
          merged.push(here ? left + right : symbols[i]);
          if (here) i++;
        }
        symbols = merged;
      }
      for (const symbol of symbols) ids.push(this.ids.get(symbol));
    }
    return ids;
  }

  bytes(id) {
    return Array.from(this.tokens[id], (character) => this.byteOf.get(character));
  }

  decode(ids) {
    const bytes = new Uint8Array(ids.flatMap((id) => this.bytes(id)));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }

  /* One token as it reads in a picture: a dot for a space, an arrow for a new line; bytes of a part of a character. */
  shown(id) {
    const text = this.decode([id]);
    if (text.includes("\ufffd")) return this.bytes(id).map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
    return text.replaceAll(" ", "·").replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll("\r", "␍")
      .replace(/[\p{Cc}\p{Cf}\p{Z}]/gu, (odd) => `\\u${odd.charCodeAt(0).toString(16).padStart(4, "0")}`);
  }
}
