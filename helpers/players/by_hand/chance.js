/* Attention by hand: random numbers that are the same on every machine. */
"use strict";

/* Numbers from 0 to 1, the same for each seed: mulberry32. */
byHand.chance = function* (state) {
  for (;;) {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    yield ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
};
