/* GPT-2's forward pass with a key-value cache (lesson 12), one token at a time.

   e width, h heads, d = e/h width of one head, n size of the vocabulary; positions, blocks and heads count from 0. A
   matrix lies row by row in one Float32Array. */
"use strict";

class PocketModel {
  /* about: what model.json says. data: the ArrayBuffer of weights.bin. */
  constructor(about, data) {
    Object.assign(this, about.sizes);
    this.d = this.e / this.h;
    this.epsilon = about.epsilon;
    this.weights = {};
    const floats = new Float32Array(data, 0, about.floats);
    const integers = new Int8Array(data, 4 * about.floats);
    for (const [name, { shape, at, int8 }] of Object.entries(about.tensors)) {
      const [rows, columns] = shape.length === 2 ? shape : [1, shape[0]];
      if (int8 === undefined) {
        this.weights[name] = floats.subarray(at, at + rows * columns);
        continue;
      }
      const matrix = (this.weights[name] = new Float32Array(rows * columns));
      for (let r = 0, i = 0; r < rows; r++) {
        for (const end = i + columns; i < end; i++) matrix[i] = integers[int8 + i] * floats[at + r]; // its row's scale
      }
    }
  }

  /* x times the matrix, plus the bias: (n_in,) to (n_out,). */
  linear(x, name) {
    const weight = this.weights[`${name}.weight`], out = this.weights[`${name}.bias`].slice();
    for (let i = 0, at = 0; i < x.length; i++) {
      for (let j = 0; j < out.length; j++) out[j] += x[i] * weight[at++];
    }
    return out;
  }

  norm(x, name) {
    const gain = this.weights[`${name}.weight`], bias = this.weights[`${name}.bias`];
    let mean = 0, variance = 0;
    for (const value of x) mean += value / x.length;
    for (const value of x) variance += (value - mean) ** 2 / x.length;
    const scale = 1 / Math.sqrt(variance + this.epsilon);
    return x.map((value, i) => (value - mean) * scale * gain[i] + bias[i]);
  }
}

/* A model that reads a text: what it has kept of each position, and the logits after the last. */
class PocketReader {
  /* off: heads that are switched off, a Set of block · h + head. */
  constructor(model, off = new Set()) {
    this.model = model;
    this.off = off;
    this.ids = [];
    this.losses = []; // in nats, of each token but the first, which nothing predicts
    this.scored = []; // the logits after each position, (n,)
    this.keys = []; // of each block, a row of e numbers for each position
    this.values = [];
    this.attention = []; // of each head, a row of i + 1 weights for each position i
    for (let block = 0; block < model.depth; block++) {
      this.keys.push(new Float32Array(model.t_max * model.e));
      this.values.push(new Float32Array(model.t_max * model.e));
    }
    for (let head = 0; head < model.depth * model.h; head++) this.attention.push([]);
  }

  /* Forget everything from a position on. What is kept of the positions before it still holds. */
  keep(length) {
    if (length >= this.ids.length) return;
    this.ids.length = length;
    this.losses.length = Math.min(this.losses.length, length);
    this.scored.length = length;
    for (const rows of this.attention) rows.length = length;
  }

  /* Those of the next token, (n,); undefined before the first. */
  get logits() {
    return this.scored.at(-1);
  }

  /* One more token, which goes through the blocks alone. */
  read(id) {
    const { model } = this, { e, n, weights } = model, t = this.ids.length;
    if (t >= model.t_max) throw new RangeError(`This model has ${model.t_max} positions, and all are taken.`);
    if (t) this.losses[t] = -Math.log(PocketReader.softmax(this.logits)[id]);
    let x = new Float32Array(e);
    for (let i = 0; i < e; i++) x[i] = weights["tokens.weight"][id * e + i] + weights["positions.weight"][t * e + i];
    for (let block = 0; block < model.depth; block++) {
      const name = `blocks.${block}`;
      const qkv = model.linear(model.norm(x, `${name}.norm1`), `${name}.attention.to_qkv`);
      this.keys[block].set(qkv.subarray(e, 2 * e), t * e);
      this.values[block].set(qkv.subarray(2 * e), t * e);
      const gathered = this.attend(block, qkv.subarray(0, e), t);
      const heard = model.linear(gathered, `${name}.attention.unify`);
      for (let i = 0; i < e; i++) x[i] += heard[i];
      const wide = model.linear(model.norm(x, `${name}.norm2`), `${name}.feed_forward.widen`);
      const added = model.linear(wide.map(PocketReader.gelu), `${name}.feed_forward.narrow`);
      for (let i = 0; i < e; i++) x[i] += added[i];
    }
    x = model.norm(x, "norm");
    const logits = new Float32Array(n), table = weights["tokens.weight"]; // the table of tokens, once more
    for (let token = 0, at = 0; token < n; token++) {
      let sum = 0;
      for (let i = 0; i < e; i++) sum += x[i] * table[at++];
      logits[token] = sum;
    }
    this.scored.push(logits);
    this.ids.push(id);
  }

  /* What the heads of a block gather for position t: q (e,) to (e,). */
  attend(block, q, t) {
    const { e, h, d } = this.model, keys = this.keys[block], values = this.values[block];
    const gathered = new Float32Array(e);
    for (let head = 0; head < h; head++) {
      const scores = new Float32Array(t + 1), from = head * d;
      for (let s = 0; s <= t; s++) {
        let dot = 0;
        for (let i = from; i < from + d; i++) dot += q[i] * keys[s * e + i];
        scores[s] = dot / Math.sqrt(d);
      }
      const looks = PocketReader.softmax(scores);
      this.attention[block * h + head].push(looks);
      if (this.off.has(block * h + head)) continue; // it looks, and what it gathers stays 0
      for (let s = 0; s <= t; s++) {
        for (let i = from; i < from + d; i++) gathered[i] += looks[s] * values[s * e + i];
      }
    }
    return gathered;
  }

  /* The mean loss in nats of the tokens that were predicted, NaN where there is none. */
  loss() {
    return this.losses.slice(1).reduce((sum, loss) => sum + loss, 0) / (this.losses.length - 1 || NaN);
  }

  static softmax(scores) {
    let largest = -Infinity, sum = 0;
    for (const score of scores) largest = Math.max(largest, score);
    const out = scores.map((score) => Math.exp(score - largest));
    for (const value of out) sum += value;
    return out.map((value) => value / sum);
  }

  static gelu(x) {
    return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  }
}

const PocketSampling = {
  /* The chances with which the next token is drawn, (n,): temperature, then top-k, then top-p, as in lesson 9. */
  chances(logits, temperature = 1, topK = Infinity, topP = 1) {
    const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a] || a - b);
    const chances = new Float32Array(logits.length);
    if (temperature === 0) {
      chances[order[0]] = 1;
      return chances;
    }
    const last = logits[order[Math.min(topK, order.length) - 1]]; // what ties with it stays too
    const scaled = logits.map((logit) => (logit < last ? -Infinity : logit / temperature));
    const before = PocketReader.softmax(scaled);
    let sum = 0, kept = 0;
    for (const id of order) {
      if (topP < 1 && sum >= topP) break; // the more probable ones are enough
      chances[id] = before[id];
      sum += before[id];
    }
    for (const chance of chances) kept += chance;
    return chances.map((chance) => chance / kept);
  },

  /* One token by its chances. random: a number in [0, 1). */
  draw(chances, random = Math.random()) {
    let left = random, last = 0;
    for (let id = 0; id < chances.length; id++) {
      if (chances[id] === 0) continue;
      last = id;
      left -= chances[id];
      if (left < 0) break;
    }
    return last;
  },
};
