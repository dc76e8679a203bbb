/* The player of the pocket GPT-2: what is on the page, and what happens when it is touched. The model itself is in
   pocket-model.js, its tokens are in pocket-tokens.js. Nothing is fetched before a click, but where the page asks for it
   (data-opens): there a model opens by itself, unless the reader saves data. */
"use strict";

(() => {
  const HERE = document.currentScript.src;
  const EXAMPLES = { // by the folder of the model
    pocket: [
      ["A class", "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self."],
      ["Said twice", "paint width left line\npaint width left"],
      ["Imports", "import os\nimport re\nimport "],
      ["A loop", "for name in names:\n    if not "],
    ],
    "pocket-english": [
      ["A novel begins", "It is a truth universally acknowledged"],
      ["A new name", "Mr. Tensor was rich. Emma had never seen Mr. T"],
      ["Talk", "\"My dear Miss Woodhouse,"],
      ["Said twice", "the red ship sank at dawn. the red ship"],
    ],
  };
  const LEARNED = { pocket: "the source of Python's standard library", "pocket-english": "six novels by Jane Austen" };
  const TOP_K = [1, 2, 3, 5, 10, 20, 50, 100, Infinity];
  const BARS = 10;
  const INDUCING = 0.4; // the score from which a head counts as an induction head
  const SLICE = 12; // ms of computing before the page gets its turn
  const PAUSE = 40; // ms between two tokens that are written, so that they can be seen

  /* An element with attributes, listeners (onclick: f) and children. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  const percent = (share) => (share >= 0.9995 ? "100 %" : share >= 0.0995 ? `${(100 * share).toFixed(0)} %` : `${(100 * share).toFixed(1)} %`);
  const nats = (loss) => (Number.isFinite(loss) ? loss.toFixed(2) : "–");

  /* --- loading --- */

  const savesData = () =>
    location.protocol === "file:" || Boolean(navigator.connection?.saveData) || matchMedia("(prefers-reduced-data: reduce)").matches;

  class NotLoaded extends Error {}

  function why(problem, name) {
    if (location.protocol === "file:") {
      return new NotLoaded(
        "This page was opened as a file, and browsers let such a page read no other file. Serve the site's folder: " +
        "python -m http.server 8000, then open http://localhost:8000 in the browser."
      );
    }
    return new NotLoaded(`${name} could not be loaded from this site (${problem}). Look whether you are connected, then try again.`);
  }

  async function response(folder, name, signal) {
    let answer;
    try {
      answer = await fetch(new URL(`${folder}/${name}`, HERE), { signal });
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      throw why("no answer", name);
    }
    if (!answer.ok) throw why(`the answer was ${answer.status}`, name);
    return answer;
  }

  /* The tokenizer and the model of a folder. tell: called with the share that is there. */
  async function load(folder, tell, signal) {
    let about;
    try {
      about = await (await response(folder, "model.json", signal)).json();
    } catch (problem) {
      if (problem instanceof NotLoaded || problem.name === "AbortError") throw problem;
      throw why("it is no JSON", "model.json");
    }
    const answer = await response(folder, "weights.bin", signal), data = new Uint8Array(about.bytes);
    let at = 0;
    try {
      for (const reader = answer.body.getReader(); ; ) {
        const { done, value } = await reader.read();
        if (done) break;
        if (at + value.length > data.length) throw new RangeError();
        data.set(value, at);
        tell((at += value.length) / data.length);
      }
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      throw why("it broke off, or is of another size", "weights.bin");
    }
    if (at !== about.bytes) throw why(`${at} of ${about.bytes} bytes came`, "weights.bin");
    return { about, tokenizer: new PocketTokenizer(about.tokens, about.merges), model: new PocketModel(about, data.buffer) };
  }

  /* --- one player --- */

  class Player {
    constructor(box) {
      this.box = box;
      this.still = box.querySelector(".still");
      this.opener = box.querySelector(".opener");
      this.openers = [...this.opener.querySelectorAll("button")];
      for (const one of this.openers) one.addEventListener("click", () => { this.open(one.dataset.model); this.live.focus({ preventScroll: true }); });
      this.round = 0; // which reading is the newest: an older one gives up
      const asked = box.closest("[data-opens]")?.dataset.opens;
      if (asked && !savesData()) this.open(asked);
    }

    begin() {
      this.ids = []; // the text, as the model is to read it
      this.off = new Set();
      this.head = 0;
      this.row = -1; // the token whose attention is shown; -1: the last
      this.column = -1; // and the token it looks at, in the matrix
      this.settings = { temperature: 1, topK: Infinity, topP: 1 };
      this.last = { kept: 0, computed: 0 };
      this.writing = false;
    }

    /* Everything that comes later has its place from here on: nothing on the page moves again. The other model's button
       stays. */
    open(folder) {
      this.leave();
      this.round += 1;
      this.live?.remove();
      this.begin();
      this.folder = folder;
      this.still.hidden = true;
      for (const one of this.openers) one.hidden = one.dataset.model === folder;
      this.build();
      this.box.append(this.live);
      this.fetch();
    }

    async fetch() {
      const here = this.live;
      this.abort = new AbortController();
      this.again.hidden = true;
      this.say("Loading the model");
      try {
        const loaded = await load(this.folder, (share) => here === this.live && this.say(`Loading the model: ${percent(share)}`, share), this.abort.signal);
        if (here !== this.live) return; // the other model was opened meanwhile
        Object.assign(this, loaded);
      } catch (problem) {
        const stopped = problem.name === "AbortError";
        if (!stopped && !(problem instanceof NotLoaded)) throw problem;
        if (here !== this.live) return;
        this.say(stopped ? "The loading was stopped." : problem.message, undefined, true);
        this.again.hidden = false;
        return;
      }
      this.ready();
    }

    ready() {
      this.strongest = {};
      for (const [kind, scores] of Object.entries(this.about.heads)) {
        const flat = scores.flat(), best = flat.indexOf(Math.max(...flat));
        this.strongest[kind] = { head: best, score: flat[best], all: flat };
      }
      this.inducing = [...this.strongest.induction.all.keys()].filter((head) => this.strongest.induction.all[head] >= INDUCING);
      this.makeHeads();
      this.readers = [new PocketReader(this.model), new PocketReader(this.model, this.off)];
      this.live.querySelectorAll("fieldset").forEach((part) => (part.disabled = false));
      this.head = this.strongest.induction.head;
      const { depth, h, n } = this.model, size = (this.about.bytes / 1e6).toFixed(1);
      this.say(`A small GPT-2 that has read ${LEARNED[this.folder]}, and nothing else. ${depth} blocks of ${h} heads, a vocabulary of ${n} tokens; ${size} MB, loaded.`);
      this.setText(EXAMPLES[this.folder][1][1]);
    }

    say(words, share, wrong = false) {
      this.status.textContent = words;
      this.status.classList.toggle("error", wrong);
      this.progress.hidden = share === undefined;
      if (share !== undefined) this.progress.value = share;
    }

    /* --- what is on the page --- */

    build() {
      const button = (words, does, attributes = {}) => make("button", { type: "button", onclick: does, ...attributes }, words);
      this.status = make("span", { role: "status" });
      this.progress = make("progress", { max: 1, value: 0, "aria-label": "loaded", hidden: true });
      this.again = button("Try again", () => this.fetch(), { hidden: true });
      this.text = make("textarea", {
        rows: 4, maxlength: 20000, spellcheck: "false", autocapitalize: "off", autocomplete: "off",
        "aria-label": "The text", oninput: () => this.typed(),
      });
      this.step = button("Step", () => this.once(), { class: "primary" });
      this.generate = button("Generate", () => (this.writing ? this.stop() : this.write()));
      this.back = button("Take back", () => this.change(this.ids.slice(0, -1)));
      this.clear = button("Clear", () => { this.change([]); this.text.focus(); });
      this.told = make("p", { class: "told number", "aria-live": "polite" });
      this.bars = make("ol", { class: "bars" });
      this.presets = make("div", { class: "row presets" });
      this.grid = make("div", { class: "heads", role: "radiogroup", "aria-label": "Head", onkeydown: (event) => this.moveHead(event) });
      this.switch = button("Switch this head off", () => this.toggle([this.head]));
      this.switchAll = button("Switch off the induction heads", () => this.toggle(this.inducing));
      this.allOn = button("All on", () => this.setOff([]));
      this.links = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      this.links.setAttribute("aria-hidden", "true");
      this.chips = make("div", { class: "chips", role: "group", "aria-label": "The tokens: arrow keys move among them", onkeydown: (event) => this.moveToken(event) });
      this.readout = make("p", { class: "readout number", "aria-live": "polite" });
      this.matrix = make("canvas", {
        width: 512, height: 512, tabindex: 0, role: "img",
        "aria-label": "The attention weights of the chosen head: a row for each token, a column for each that it may look at. Arrow keys move.",
        onkeydown: (event) => this.moveCell(event), onpointermove: (event) => this.pointAt(event), onpointerdown: (event) => this.pointAt(event, true),
        onpointerleave: (event) => event.pointerType === "mouse" && this.pointAway(),
      });
      this.cacheBar = make("div", { class: "cache", role: "img", "aria-label": "The cache is empty." }, make("span", { class: "kept" }), make("span", { class: "new" }));
      this.cacheWords = make("p", { class: "quiet number" });

      const part = (kind, title, ...children) =>
        make("fieldset", { class: kind, disabled: true }, make("legend", { class: "name" }, title), ...children);
      this.live = make("div", { class: "live scripted", tabindex: -1, role: "group", "aria-label": "The pocket GPT-2" },
        make("p", { class: "state row" }, this.status, this.progress, this.again),
        part("text", "Text",
          make("p", { class: "row" }, ...EXAMPLES[this.folder].map(([name, text]) => button(name, () => this.setText(text)))),
          this.text,
          make("p", { class: "row" }, this.step, this.generate, this.back, this.clear),
          this.told),
        part("tokens", "Tokens, and what they look at", make("div", { class: "page" }, this.links, this.chips), this.readout),
        part("next", "The next token", this.bars,
          make("p", { class: "quiet" }, "Filled: the chance with which it is drawn. Framed: before temperature, top-k and top-p. Orange: with all heads on. Press one to take it.")),
        part("settings", "How it is drawn", ...this.makeSettings(),
          make("p", { class: "quiet" }, "In this order: temperature divides the logits, top-k keeps the k most probable, top-p the fewest that add up to p.")),
        part("choose", "Head", this.presets, this.grid, make("p", { class: "row" }, this.switch, this.switchAll, this.allOn),
          make("p", { class: "quiet scores" })),
        part("map", "Its weights", this.matrix),
        part("memory", "Key-value cache", this.cacheBar, this.cacheWords));
      this.makeBars();
      this.chips.addEventListener("pointermove", (event) => this.overToken(event)); // a chip that comes under a resting pointer is not meant
      this.chips.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.pointAway());
      this.chips.addEventListener("click", (event) => this.chooseToken(event.target.closest("button")));
      this.chips.addEventListener("focusin", (event) => this.chooseToken(event.target.closest("button")));
      this.hover = -1;
      new ResizeObserver(() => this.readers && this.showAttention()).observe(this.chips);
      new MutationObserver(() => this.readers && this.showMatrix()).observe(document.body, { attributeFilter: ["data-theme"] });
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.readers && this.showMatrix());
    }

    makeSettings() {
      const slider = (name, from, to, step, at, read) => {
        const out = make("output", { class: "number" });
        const input = make("input", { type: "range", min: from, max: to, step, value: at, "aria-label": name });
        const tell = () => {
          const [setting, value, words] = read(Number(input.value));
          this.settings[setting] = value;
          out.textContent = words;
          input.setAttribute("aria-valuetext", words);
        };
        input.addEventListener("input", () => { tell(); this.showBars(); });
        tell();
        return make("label", {}, make("span", {}, name), out, input);
      };
      return [
        slider("Temperature", 0, 2, 0.05, 1, (value) => ["temperature", value, value ? value.toFixed(2) : "0: the most probable"]),
        slider("Top-k", 0, TOP_K.length - 1, 1, TOP_K.length - 1, (value) => ["topK", TOP_K[value], TOP_K[value] === Infinity ? "all" : `${TOP_K[value]}`]),
        slider("Top-p", 0.05, 1, 0.05, 1, (value) => ["topP", value, value === 1 ? "all" : value.toFixed(2)]),
      ];
    }

    makeBars() {
      this.barRows = Array.from({ length: BARS }, () => {
        const parts = { token: make("code"), drawn: make("span", { class: "drawn-share" }), own: make("span", { class: "own-share" }), all: make("span", { class: "all-share", hidden: true }), number: make("span", { class: "number" }) };
        parts.button = make("button", { type: "button", disabled: true }, parts.token, make("span", { class: "track" }, parts.drawn, parts.own, parts.all), parts.number);
        parts.button.addEventListener("click", () => parts.id !== undefined && this.take(parts.id));
        this.bars.append(make("li", {}, parts.button));
        return parts;
      });
    }

    makeHeads() {
      const { depth, h } = this.model;
      this.grid.style.setProperty("--heads", h);
      this.headButtons = [];
      this.grid.replaceChildren();
      for (let head = 0; head < depth * h; head++) {
        const one = make("button", { type: "button", role: "radio", tabindex: -1, onclick: () => this.chooseHead(head) }, `${Math.floor(head / h)}·${head % h}`);
        this.headButtons.push(one);
        this.grid.append(one);
      }
      for (const [kind, { head, score }] of Object.entries(this.strongest)) {
        const one = make("button", { type: "button", "data-kind": kind, onclick: () => this.chooseHead(head) }, `${kind[0].toUpperCase()}${kind.slice(1)} head`);
        one.title = `${this.nameOf(head)}: ${score.toFixed(2)}`;
        this.presets.append(one);
      }
    }

    nameOf(head) {
      return `layer ${Math.floor(head / this.model.h)}, head ${head % this.model.h}`;
    }

    /* --- the text --- */

    typed() {
      this.stop();
      this.fit();
      this.change(this.tokenizer.encode(this.text.value), true);
    }

    setText(text) {
      this.stop();
      this.text.value = text;
      this.fit();
      this.change(this.tokenizer.encode(text), true);
    }

    /* A new text. fromBox: it stands in the box already. What was read of it before is kept. */
    change(ids, fromBox = false) {
      if (!fromBox) {
        this.stop();
        this.text.value = this.tokenizer.decode(ids);
        this.fit();
      }
      this.tooLong = Math.max(0, ids.length - this.model.t_max);
      this.ids = ids.slice(0, this.model.t_max);
      this.row = this.column = -1;
      this.finished = "";
      return this.read();
    }

    /* The box is as high as its text, between the heights that the style sheet gives. */
    fit() {
      this.text.style.height = "auto";
      this.text.style.height = `${this.text.scrollHeight + this.text.offsetHeight - this.text.clientHeight}px`;
    }

    /* Bring the readers up to the text, a slice of time after the other. Resolves to false where a newer text came. */
    async read() {
      const round = ++this.round, active = this.off.size ? this.readers : this.readers.slice(0, 1);
      this.live.dataset.state = "reading";
      for (const reader of active) {
        let same = 0;
        while (same < Math.min(reader.ids.length, this.ids.length) && reader.ids[same] === this.ids[same]) same++;
        reader.keep(same);
        if (reader === this.reader()) this.last = { kept: same, computed: this.ids.length - same };
        for (let began = performance.now(); reader.ids.length < this.ids.length; ) {
          reader.read(this.ids[reader.ids.length]);
          if (performance.now() - began < SLICE) continue;
          if (reader === this.reader()) this.showCache();
          await new Promise((resolve) => setTimeout(resolve));
          if (round !== this.round) return false;
          began = performance.now();
        }
      }
      this.show();
      this.live.dataset.state = "ready";
      return true;
    }

    /* The model as it is set: without the heads that are off. */
    reader() {
      return this.readers[this.off.size ? 1 : 0];
    }

    chances() {
      const { temperature, topK, topP } = this.settings;
      return PocketSampling.chances(this.reader().logits, temperature, topK, topP);
    }

    /* --- writing --- */

    async take(id) {
      if (this.tokenizer.tokens[id] === "<|endoftext|>") {
        this.stop();
        this.finished = "The model ended the text.";
        this.showText();
        return false;
      }
      this.text.value = this.tokenizer.decode([...this.ids, id]);
      this.fit();
      this.text.scrollTop = this.text.scrollHeight;
      return this.change([...this.ids, id], true);
    }

    once() {
      this.stop();
      return this.reader().logits && this.take(PocketSampling.draw(this.chances()));
    }

    async write() {
      const turn = (this.writing = {});
      this.generate.textContent = "Stop";
      this.told.ariaLive = this.readout.ariaLive = "off"; // no voice keeps up with it
      while (this.writing === turn && this.ids.length && this.ids.length < this.model.t_max) {
        if (!(await this.take(PocketSampling.draw(this.chances())))) break;
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      }
      if (this.writing === turn) this.stop();
    }

    stop() {
      this.writing = false;
      this.generate.textContent = "Generate";
      this.told.ariaLive = this.readout.ariaLive = "polite";
    }

    /* --- heads --- */

    chooseHead(head, focus = false) {
      this.head = head;
      this.showHeads();
      this.showAttention();
      if (focus) this.headButtons[head].focus();
    }

    moveHead(event) {
      const { h, depth } = this.model;
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -h, ArrowDown: h }[event.key];
      if (!by) return;
      event.preventDefault();
      this.chooseHead((this.head + by + depth * h) % (depth * h), true);
    }

    toggle(heads) {
      const next = new Set(this.off), allOff = heads.every((head) => next.has(head));
      for (const head of heads) allOff ? next.delete(head) : next.add(head);
      this.setOff(next);
    }

    setOff(heads) {
      this.stop();
      this.off = new Set(heads);
      this.readers[1] = new PocketReader(this.model, this.off);
      this.showHeads();
      this.read();
    }

    /* --- tokens and the matrix --- */

    overToken(event) {
      if (event.pointerType !== "mouse") return;
      const chip = event.target.closest("button");
      if (!chip || this.hover === Number(chip.dataset.at)) return;
      this.hover = Number(chip.dataset.at);
      this.showAttention();
    }

    chooseToken(chip) {
      if (!chip || this.row === Number(chip.dataset.at)) return;
      this.row = Number(chip.dataset.at);
      this.hover = this.column = -1;
      this.showAttention();
    }

    moveToken(event) {
      const last = this.ids.length - 1, at = this.shownRow();
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
      if (to === undefined || to < 0 || to > last) return;
      event.preventDefault();
      this.chips.querySelector(`[data-at="${to}"]`).focus();
    }

    moveCell(event) {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!by || !this.ids.length) return;
      event.preventDefault();
      const row = this.shownRow(), column = this.column < 0 ? row : this.column;
      this.row = Math.min(Math.max(row + by[0], 0), this.ids.length - 1);
      this.column = Math.min(Math.max(column + by[1], 0), this.row);
      this.hover = -1;
      this.showAttention();
    }

    pointAt(event, choose = false) {
      const box = this.matrix.getBoundingClientRect(), t = this.ids.length;
      if (!t || !this.readers || (event.pointerType !== "mouse" && !choose)) return;
      const row = Math.min(t - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * t)));
      const column = Math.floor(((event.clientX - box.left) / box.width) * t);
      this.column = Math.min(Math.max(column, 0), row);
      if (choose) this.row = row;
      this.hover = row;
      this.showAttention();
    }

    pointAway() {
      this.hover = this.column = -1;
      if (this.readers) this.showAttention();
    }

    shownRow() {
      const last = this.ids.length - 1;
      const row = this.hover >= 0 ? this.hover : this.row;
      return row < 0 || row > last ? last : row;
    }

    /* --- showing --- */

    show() {
      this.showText();
      this.showBars();
      this.showChips();
      this.showHeads();
      this.showAttention();
      this.showCache();
    }

    showText() {
      const { t_max } = this.model, count = this.ids.length, loss = this.reader().loss();
      const words = [];
      if (!count) words.push("Type something, or take an example.");
      else words.push(`${count} token${count === 1 ? "" : "s"}`);
      if (count > 1) words.push(`loss ${nats(loss)} nats a token`);
      if (count > 1 && this.off.size) words.push(`with all heads ${nats(this.readers[0].loss())}`);
      if (this.tooLong) words.push(`the text is ${this.tooLong} tokens longer than the model's ${t_max} positions: these are left out`);
      else if (count === t_max) words.push(`all ${t_max} positions are taken`);
      if (this.finished) words.push(this.finished);
      this.told.textContent = words.join(" · ");
      this.told.dataset.loss = loss;
      const full = !count || count === t_max;
      this.step.disabled = this.generate.disabled = full;
      this.back.disabled = this.clear.disabled = !count;
    }

    showBars() {
      if (!this.readers) return;
      const logits = this.reader().logits;
      const own = logits && PocketReader.softmax(logits), chances = logits && this.chances();
      const all = logits && this.off.size ? PocketReader.softmax(this.readers[0].logits) : null;
      const order = logits ? Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a]).slice(0, BARS) : [];
      const full = this.ids.length >= this.model.t_max;
      this.barRows.forEach((bar, k) => {
        const id = (bar.id = order[k]), none = id === undefined;
        bar.button.disabled = none || full;
        bar.token.textContent = none ? "" : this.tokenizer.shown(id);
        bar.number.textContent = none ? "" : percent(chances[id]);
        bar.drawn.style.width = none ? 0 : `${100 * chances[id]}%`;
        bar.own.style.width = none ? 0 : `${100 * own[id]}%`;
        bar.all.style.left = `${all && !none ? 100 * all[id] : 0}%`;
        bar.all.hidden = !all || none;
        const beside = all && !none ? `, with all heads ${percent(all[id])}` : "";
        bar.button.setAttribute("aria-label", none ? "no token" : `${this.tokenizer.shown(id)} ${percent(chances[id])}${beside}. Take it`);
      });
    }

    showChips() {
      const chips = [];
      this.ids.forEach((id, at) => {
        const chip = make("button", { type: "button", class: "token", "data-at": at, tabindex: -1 }, this.tokenizer.shown(id));
        const loss = this.reader().losses[at];
        if (loss !== undefined) chip.style.setProperty("--surprise", Math.min(1, loss / 8).toFixed(3));
        chips.push(chip);
        if (this.tokenizer.decode([id]).endsWith("\n")) chips.push(make("br"));
      });
      this.chips.replaceChildren(...chips);
      const page = this.chips.parentElement;
      page.scrollTop = page.scrollHeight;
    }

    showHeads() {
      const { head, off } = this, one = this.headButtons[head];
      this.headButtons.forEach((button, k) => {
        const scores = Object.entries(this.strongest).map(([kind, { all }]) => `${kind} ${all[k].toFixed(2)}`).join(", ");
        button.setAttribute("aria-checked", k === head);
        button.setAttribute("aria-label", `${this.nameOf(k)}: ${scores}${off.has(k) ? "; switched off" : ""}`);
        button.title = `${this.nameOf(k)}: ${scores}`;
        button.tabIndex = k === head ? 0 : -1;
        button.classList.toggle("off", off.has(k));
        button.style.setProperty("--score", Math.max(...Object.values(this.strongest).map(({ all }) => all[k])));
      });
      for (const button of this.presets.children) button.setAttribute("aria-pressed", this.strongest[button.dataset.kind].head === head);
      this.switch.setAttribute("aria-pressed", off.has(head));
      this.switchAll.setAttribute("aria-pressed", this.inducing.every((each) => off.has(each)));
      this.allOn.disabled = !off.size;
      this.live.querySelector(".scores").textContent =
        `${one.title}. Mean weights on random tokens said twice: on the token before, and on what followed the same ` +
        `token before. ${this.inducing.length} heads have ${INDUCING} or more of the second.`;
    }

    showAttention() {
      if (!this.readers) return;
      const row = this.shownRow(), { ids, tokenizer } = this, reader = this.reader();
      const weights = reader.attention[this.head][row];
      const chips = [...this.chips.querySelectorAll("button")];
      chips.forEach((chip, at) => {
        chip.style.setProperty("--looked", weights && at < weights.length ? weights[at].toFixed(3) : 0);
        chip.setAttribute("aria-pressed", at === row);
        chip.tabIndex = at === row ? 0 : -1;
      });
      this.showLinks(chips, row, weights);
      this.showMatrix();
      if (!weights) {
        this.readout.textContent = "";
        return;
      }
      const best = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 3).filter((at) => weights[at] >= 0.01);
      const name = (at) => `${tokenizer.shown(ids[at])} (${at})`;
      const looks = this.column >= 0 && this.column < weights.length
        ? `${name(row)} takes ${weights[this.column].toFixed(2)} from ${name(this.column)}.`
        : `${name(row)} looks at ${best.map((at) => `${name(at)} ${weights[at].toFixed(2)}`).join(", ")}.`;
      const loss = reader.losses[row];
      this.readout.textContent = loss === undefined ? looks : `${looks} Its own chance was ${percent(Math.exp(-loss))}, ${nats(loss)} nats.`;
    }

    /* An arc from a token to each that it looks at, as wide as the weight. */
    showLinks(chips, row, weights) {
      const { links } = this, page = links.parentElement;
      links.setAttribute("width", this.chips.offsetWidth);
      links.setAttribute("height", this.chips.offsetHeight);
      if (!weights || !chips[row] || !page.clientWidth) return links.replaceChildren();
      const place = (chip) => [chip.offsetLeft + chip.offsetWidth / 2, chip.offsetTop];
      const [x, y] = place(chips[row]), arcs = [];
      weights.forEach((weight, at) => {
        if (weight < 0.02 || at === row) return;
        const [tx, ty] = place(chips[at]);
        const high = Math.min(y, ty) - Math.min(20, 6 + Math.abs(x - tx) / 8);
        const arc = document.createElementNS("http://www.w3.org/2000/svg", "path");
        arc.setAttribute("d", `M${x} ${y}C${x} ${high} ${tx} ${high} ${tx} ${ty}`);
        arc.setAttribute("stroke-width", (1 + 4 * weight).toFixed(2));
        arc.setAttribute("opacity", (0.25 + 0.75 * weight).toFixed(2));
        arcs.push(arc);
      });
      links.replaceChildren(...arcs);
    }

    showMatrix() {
      const { matrix, ids } = this, t = ids.length, draw = matrix.getContext("2d"), rows = this.reader().attention[this.head];
      const style = getComputedStyle(matrix), size = matrix.width / Math.max(t, 1);
      draw.clearRect(0, 0, matrix.width, matrix.height);
      draw.fillStyle = style.color;
      rows.slice(0, t).forEach((weights, i) => {
        weights.forEach((weight, j) => {
          if (weight < 0.004) return;
          draw.globalAlpha = weight;
          draw.fillRect(j * size, i * size, size, size);
        });
      });
      draw.globalAlpha = 1;
      draw.strokeStyle = style.getPropertyValue("border-top-color");
      draw.lineWidth = 1;
      draw.beginPath();
      for (let i = 0; i < t; i++) { // what may not be looked at lies above these steps
        draw.moveTo(i * size, i * size);
        draw.lineTo((i + 1) * size, i * size);
        draw.lineTo((i + 1) * size, (i + 1) * size);
      }
      draw.stroke();
      if (!t) return;
      const row = this.shownRow();
      draw.strokeStyle = style.outlineColor;
      draw.lineWidth = 3;
      draw.strokeRect(1, row * size, (row + 1) * size - 1, size);
      if (this.column >= 0 && this.column <= row) draw.strokeRect(this.column * size, row * size, size, size);
    }

    showCache() {
      const { t_max, e, depth } = this.model, length = this.reader().ids.length, { kept } = this.last;
      const computed = length - kept, [old, fresh] = this.cacheBar.children;
      old.style.width = `${(100 * kept) / t_max}%`;
      fresh.style.width = `${(100 * computed) / t_max}%`;
      const kilobytes = (2 * length * e * depth * 4) / 1000;
      const words = `Keys and values of ${length} of ${t_max} positions, 2 · ${length} · ${e} · ${depth} numbers: ${kilobytes.toFixed(0)} kB. The last change computed ${computed}, and took ${kept} from the cache.`;
      this.cacheWords.textContent = words;
      this.cacheBar.setAttribute("aria-label", words);
    }

    /* The page is left: a browser may keep it, and bring it back as it was. */
    leave() {
      if (!this.live) return;
      this.abort?.abort();
      this.stop();
    }
  }

  const players = [...document.querySelectorAll('.player[data-player="pocket"]')].map((box) => new Player(box));
  addEventListener("pagehide", () => players.forEach((player) => player.leave()));
})();
