/* "Which head copies?", on the first page. What it shows of its first text comes with the page (helpers/site/hero.py):
   arcs of a word, a head alone, and what is left when the heads that copy are off. Only a press on "Write on", another
   text, another model or a link with a text loads a model: pocket-model.js, pocket-tokens.js and the weights. */
"use strict";

(() => {
  const HERE = document.currentScript.src;
  const BOX = document.querySelector('[data-player="hero"]');
  const PRECOMPUTED = JSON.parse(BOX.dataset.precomputed); // of the first text, with no model
  const { COPIES, BEFORE, SHOWN, LAYERS, WEAK, FAINT, WIDTH, HEIGHT, GROUND, LETTER } = PRECOMPUTED.drawing; // as in hero.py
  const LONGEST = { true: 46, false: 84 }; // letters of text in the picture, on a narrow screen and on a wide one
  const FOLDERS = { english: "pocket-english", python: "pocket" };
  const BEGINNINGS = { python: "for name in names:\n    if not " };
  const WRITING = 80; // ms between two tokens
  const MORE = 24; // tokens that a press writes

  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

  class Hero {
    constructor(box) {
      this.box = box;
      for (const [name, selector] of Object.entries({ stage: ".stage", next: ".next", toggle: ".off", play: ".play", text: "textarea", choice: "select", button: ".write", link: ".link", heads: ".heads", reply: ".reply", line: ".status", first: ".of-first" })) {
        this[name] = box.querySelector(selector);
      }
      this.head = -1; // the head that is shown alone; -1: all, the strongest of each layer
      this.word = -1; // the token whose arcs are shown; -1: all
      this.off = new Set();
      this.found = new Set(); // heads that copy and were pressed
      this.round = 0; // which reading is the newest: an older one gives up
      this.toggle.addEventListener("click", () => this.switchOff(this.off.size ? [] : this.copying()));
      this.button.addEventListener("click", () => (this.writing ? this.stop() : this.write()));
      this.text.addEventListener("input", () => this.typed());
      this.choice.addEventListener("change", () => this.choose(this.choice.value));
      this.link.addEventListener("click", () => this.copyLink());
      for (const kind of ["pointerover", "click"]) {
        this.stage.addEventListener(kind, (event) => {
          const word = event.target.closest("text");
          this.show(word ? Number(word.dataset.at) : -1);
        });
      }
      this.stage.addEventListener("pointerleave", () => this.show(-1));
      Object.assign(this.stage, { tabIndex: 0, role: "group", ariaLabel: "The text: arrow keys move from word to word" });
      this.stage.addEventListener("keydown", (event) => this.move(event));
      this.stage.addEventListener("blur", () => this.show(-1));
      this.makeHeads(LAYERS.length, PRECOMPUTED.h);
      this.draw();
      this.fromAddress();
      addEventListener("hashchange", () => this.fromAddress());
    }

    /* What the page's address asks for: #text=...&off=1 or off=1.3,2.1&head=2.1&model=python. */
    fromAddress() {
      const asked = new URLSearchParams(location.hash.slice(1));
      const off = asked.get("off"), alone = () => asked.has("head") && this.showAlone(this.named(asked.get("head"))[0] ?? -1);
      if (!asked.has("text") && !asked.has("model")) {
        if (off) this.switchOff(this.named(off));
        return alone();
      }
      this.play.open = true;
      if (FOLDERS[asked.get("model")]) this.choice.value = asked.get("model");
      this.text.value = asked.get("text") ?? BEGINNINGS[this.choice.value] ?? PRECOMPUTED.text;
      this.typed().then(() => {
        if (off) this.switchOff(this.named(off));
        alone();
      });
    }

    named(off) {
      const { h } = PRECOMPUTED;
      return off === "1" ? this.copying() : off.split(",").map((name) => name.split(".").map(Number)).filter(([, head]) => head >= 0).map(([block, head]) => block * h + head);
    }

    async copyLink() {
      const { h } = PRECOMPUTED, state = new URLSearchParams({ text: this.text.value }), name = (at) => `${Math.floor(at / h)}.${at % h}`;
      if (this.off.size) state.set("off", [...this.off].map(name).join(","));
      if (this.head >= 0) state.set("head", name(this.head));
      if (this.choice.value !== "english") state.set("model", this.choice.value);
      const address = `${location.href.split("#")[0]}#${state}`;
      this.link.textContent = (await copyText(address)) ? "Copied" : "Copy it from the address bar";
      history.replaceState(null, "", address);
      await wait(1600);
      this.link.textContent = "Copy a link to this";
    }

    /* --- the model --- */

    /* The chosen model, once. False, and words that say so, where it does not come. */
    async load() {
      const name = this.choice.value;
      this.loading ??= {};
      this.loading[name] ??= (async () => {
        this.line.textContent = "Loading the model, 2.3 MB";
        for (const script of ["pocket-model.js", "pocket-tokens.js"]) {
          if (document.querySelector(`script[src$="${script}"]`)) continue;
          await new Promise((onload, onerror) => document.head.append(Object.assign(document.createElement("script"), { src: new URL(script, HERE), onload, onerror })));
        }
        const file = (part) => fetch(new URL(`${FOLDERS[name]}/${part}`, HERE)).then((answer) => (answer.ok ? answer : Promise.reject(answer)));
        const about = await (await file("model.json")).json();
        const model = new PocketModel(about, await (await file("weights.bin")).arrayBuffer());
        const copying = about.heads.induction.flat().flatMap((score, at) => (score >= COPIES ? [at] : []));
        const before = about.heads["previous token"].flat().flatMap((score, at) => (score >= BEFORE ? [at] : []));
        return { model, copying, before, tokenizer: new PocketTokenizer(about.tokens, about.merges), reader: new PocketReader(model, this.off) };
      })();
      try {
        const loaded = await this.loading[name];
        if (name === this.choice.value) this.loaded = loaded;
      } catch {
        this.loading[name] = undefined;
        this.line.textContent = location.protocol === "file:" ? "A page that was opened as a file may load no model: serve the site's folder." : "The model could not be loaded. Look whether you are connected, then try again.";
        return false;
      }
      return true;
    }

    copying() {
      return this.loaded?.copying ?? PRECOMPUTED.copying;
    }

    async choose(name) {
      this.stop();
      if (name in BEGINNINGS && this.text.value === PRECOMPUTED.text) this.text.value = BEGINNINGS[name];
      this.off.clear();
      await this.typed();
    }

    switchOff(heads) {
      this.off.clear();
      heads.forEach((at) => this.off.add(at));
      if (this.loaded) this.read(this.loaded.reader.ids.slice(), true);
      this.draw();
    }

    /* --- reading and writing --- */

    async typed() {
      this.stop();
      const { round } = this;
      if (!(await this.load()) || round !== this.round) return;
      this.read(this.loaded.tokenizer.encode(this.text.value));
      this.draw();
    }

    async write() {
      const round = ++this.round;
      this.writing = true;
      this.button.textContent = "Stop";
      if (!(await this.load()) || round !== this.round) return this.stop(round);
      const { tokenizer, reader, model } = this.loaded;
      const ids = tokenizer.encode(this.text.value), end = Math.min(model.t_max, ids.length + MORE);
      this.read(ids);
      while (ids.length && ids.length < end) {
        ids.push(PocketSampling.draw(PocketSampling.chances(reader.logits, 0.8, 20)));
        this.read(ids);
        this.text.value = tokenizer.decode(ids);
        this.text.scrollTop = this.text.scrollHeight;
        this.draw();
        await wait(WRITING);
        if (round !== this.round) return;
      }
      this.stop(round);
    }

    /* round: the writing that ends; another one may have begun since. */
    stop(round = this.round) {
      if (round !== this.round) return;
      this.round++;
      this.writing = false;
      this.button.textContent = "Write on";
    }

    /* Bring the reader up to a text. What it has read of it before is kept, unless heads were switched. */
    read(ids, anew = false) {
      const { reader, model } = this.loaded;
      let same = 0;
      if (!anew) this.likeliest = undefined; // it is that of all heads, for the text before
      while (!anew && same < Math.min(reader.ids.length, ids.length) && reader.ids[same] === ids[same]) same++;
      reader.keep(same);
      for (const id of ids.slice(same, model.t_max)) reader.read(id);
      this.line.textContent = reader.ids.length >= model.t_max ? "The model's window is full." : "";
    }

    /* --- the picture --- */

    /* What is to be drawn: tokens, the weight of a head on s at t, the likeliest next tokens. */
    state() {
      if (!this.loaded) {
        const { tokens, on, off } = PRECOMPUTED;
        const { looks, chances } = this.off.size ? off : on;
        return { tokens, weight: (at, t, s) => looks[at][t - 1][s] / 100, chances };
      }
      const { reader, tokenizer } = this.loaded;
      return { tokens: reader.ids.map((id) => tokenizer.decode([id])), weight: (at, t, s) => reader.attention[at][t][s], chances: this.chances() };
    }

    /* The likeliest next tokens; while heads are off, that of all heads stays the first. */
    chances() {
      const { reader, tokenizer } = this.loaded;
      if (!reader.logits) return [];
      const chances = PocketReader.softmax(reader.logits), order = [...chances.keys()].sort((a, b) => chances[b] - chances[a]);
      if (!this.off.size) this.likeliest = order[0];
      const first = this.off.size && this.likeliest !== undefined ? [this.likeliest] : [];
      return [...first, ...order.filter((id) => !first.includes(id))].slice(0, SHOWN).map((id) => [tokenizer.decode([id]), chances[id]]);
    }

    show(word) {
      if (word === this.word) return;
      this.word = word;
      this.draw();
    }

    /* From one word to the next, or, from none, to the last but one: the last word's arcs are drawn already. */
    move(event) {
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key], last = this.state().tokens.length - 1;
      if (!way) return;
      event.preventDefault();
      this.show(Math.min(Math.max((this.word < 0 ? last : this.word) + way, this.from), last));
    }

    draw(shown = this.head) {
      const { tokens, weight, chances } = this.state(), h = PRECOMPUTED.h, last = tokens.length - 1;
      const longest = LONGEST[this.stage.clientWidth < 520];
      const parts = tokens.map((token) => token.replaceAll("\n", "↵").replaceAll("\t", "→"));
      let from = last, letters = 0;
      while (from >= 0 && letters + parts[from].length <= longest) letters += parts[from--].length;
      this.from = ++from;
      this.first.hidden = this.text.value !== PRECOMPUTED.text || this.choice.value !== "english";
      const size = WIDTH / (LETTER * Math.max(letters, 46) + 1), ends = [];
      parts.slice(from).reduce((sum, part) => (ends.push(sum + part.length), sum + part.length), 0);
      const x = (at) => (ends[at - from] - parts[at].trimStart().length / 2 + 0.5) * LETTER * size;
      const heads = (block) => [...Array(h).keys()].map((head) => block * h + head).filter((at) => !this.off.has(at) && (shown < 0 || at === shown));
      const drawn = [];
      const layers = LAYERS.map((colour, block) => {
        let arcs = "";
        const some = heads(block);
        for (let t = from + 1; t <= last && some.length; t++) {
          for (let s = Math.max(1, from); s < t; s++) { // heads that find nothing look at the first token: it is left out
            const of = some.map((at) => weight(at, t, s)), looks = Math.max(...of);
            if (looks < WEAK || (this.word >= 0 && t !== this.word && s !== this.word)) continue;
            const r = (x(t) - x(s)) / 2, faint = t === (this.word < 0 ? last : this.word) ? 1 : FAINT;
            if (faint === 1) drawn.push({ middle: (x(s) + x(t)) / 2, r, seen: looks * faint, head: some[of.indexOf(looks)], colour });
            arcs += `<path d="M${x(s).toFixed(1)} ${GROUND}A${r.toFixed(1)} ${Math.min(r, GROUND - 8).toFixed(1)} 0 0 1 ${x(t).toFixed(1)} ${GROUND}" stroke-width="${(0.6 + 2.6 * looks).toFixed(2)}" stroke-opacity="${((0.15 + 0.85 * looks) * faint).toFixed(2)}"/>`;
          }
        }
        return `<g fill="none" stroke-linecap="round" style="stroke:var(--drawn-${colour}-line)">${arcs}</g>`;
      });
      const words = parts.slice(from).map((part, k) => {
        const at = from + k, bold = at === last || at === this.word ? ' font-weight="700"' : "";
        return `<text x="${((ends[k] - part.length + 0.5) * LETTER * size).toFixed(1)}" y="${GROUND + 26}" data-at="${at}" xml:space="preserve"${bold}>${escaped(part)}</text>`;
      });
      words.push(this.names(drawn, 0.8 * size));
      const label = this.stage.querySelector("svg").getAttribute("aria-label");
      this.stage.innerHTML =
        `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="${escaped(label).replaceAll('"', "&quot;")}">${layers.join("")}` +
        `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="${size.toFixed(1)}" style="fill:var(--drawn-ink)">${words.join("")}</g></svg>`;
      this.squares.forEach((square, at) => {
        const looks = last > 1 ? Math.max(...[...Array(last - 1).keys()].map((k) => weight(at, last, k + 1))) : 0;
        square.style.setProperty("--looks", this.off.has(at) ? 0 : looks.toFixed(2));
        square.classList.toggle("is-off", this.off.has(at));
      });
      this.bars(chances);
      const count = this.copying().length;
      this.toggle.ariaPressed = String(this.off.size > 0);
      this.toggle.textContent = this.off.size ? "Switch all heads on" : `Switch off the ${count} heads that copy`;
      this.toggle.disabled = !count;
    }

    /* The heads of the thickest long arc, as in hero.py. */
    names(arcs, letters) {
      if (!arcs.length) return "";
      const h = PRECOMPUTED.h, long = ({ r }) => r > 2 * letters;
      const { middle, r } = arcs.reduce((best, one) => (long(one) - long(best) || one.seen - best.seen) > 0 ? one : best);
      const y = Math.max(GROUND - r - 0.35 * letters, 0.85 * letters);
      const heads = arcs.filter((one) => one.middle === middle && one.r === r).map(({ head, colour }) => `<tspan style="fill:var(--drawn-${colour}-line)">${Math.floor(head / h)}·${head % h}</tspan>`);
      const half = (LETTER / 2) * letters * (4 * heads.length - 1), x = Math.min(Math.max(middle, half), WIDTH - half);
      const ground = `<rect x="${(x - half).toFixed(1)}" y="${(y - 0.85 * letters).toFixed(1)}" width="${(2 * half).toFixed(1)}" height="${(1.1 * letters).toFixed(1)}"/>`;
      return `${ground}<text class="head" x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="${letters.toFixed(1)}">${heads.join(" ")}</text>`;
    }

    /* A bar keeps its place and its element, so that it moves. */
    bars(chances) {
      while (this.next.children.length > chances.length) this.next.lastChild.remove();
      chances.forEach(([token, chance], k) => {
        const row = this.next.children[k] ?? this.next.appendChild(document.createElement("li"));
        if (!row.children.length) row.innerHTML = '<code></code><span class="bar"></span><span></span>';
        row.style.setProperty("--chance", chance);
        row.children[0].textContent = token.replaceAll(" ", "·").replaceAll("\n", "↵");
        row.children[2].textContent = `${(100 * chance).toFixed(chance >= 0.0095 ? 0 : 1)} %`;
      });
    }

    /* --- the heads, one by one --- */

    makeHeads(depth, h) {
      this.squares = [];
      for (let block = 0; block < depth; block++) {
        const row = this.heads.appendChild(document.createElement("span"));
        row.style.setProperty("--layer", `var(--drawn-${LAYERS[block]}-line)`);
        for (let head = 0; head < h; head++) {
          const at = block * h + head, square = row.appendChild(document.createElement("button"));
          const name = `Show layer ${block}, head ${head} alone`;
          Object.assign(square, { type: "button", title: name, ariaLabel: name, ariaPressed: "false", tabIndex: at ? -1 : 0 });
          square.addEventListener("click", () => this.showAlone(this.head === at ? -1 : at));
          square.addEventListener("pointerenter", () => this.draw(at));
          square.addEventListener("pointerleave", () => this.draw());
          this.squares.push(square);
        }
      }
      this.heads.addEventListener("keydown", (event) => {
        const way = { ArrowRight: 1, ArrowDown: h, ArrowLeft: -1, ArrowUp: -h }[event.key];
        const next = this.squares[this.squares.indexOf(event.target) + way];
        if (!next) return;
        event.preventDefault();
        event.target.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      });
    }

    showAlone(head) {
      this.head = head;
      this.squares.forEach((square, at) => (square.ariaPressed = String(at === head)));
      this.draw();
      if (head >= 0) this.reply.textContent = this.said(head);
    }

    /* Whether a head copies, what the next token loses without it alone, and how many have been found. */
    said(head) {
      const { h, withoutOne, on } = PRECOMPUTED, copying = this.copying(), copies = copying.includes(head);
      const before = (this.loaded ?? PRECOMPUTED).before.includes(head);
      const words = copies ? "copies: it looks for what followed the same token before." : `does not copy${before ? ": it looks at the token before" : ""}.`;
      const [token, chance] = on.chances[0], percent = (x) => `${(100 * x).toFixed(0)} %`;
      const alone = this.first.hidden ? "" : ` Without it alone, ${token} has ${percent(withoutOne[head])}, not ${percent(chance)}.`;
      if (copies) this.found.add(head);
      const found = [...this.found].filter((at) => copying.includes(at)).length;
      return `${Math.floor(head / h)}·${head % h} ${words}${alone} Found: ${found} of ${copying.length}.`;
    }
  }

  new Hero(BOX);
})();
