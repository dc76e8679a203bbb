/* The pocket GPT-2 on the first page: it types a line, writes on, and shows what its heads look at. The model is that of
   pocket-model.js and pocket-tokens.js. Both, and its weights, are fetched once the picture is in sight, or on a press where
   a reader wants no motion or saves data. Until then the picture that comes with the page is there. */
"use strict";

(() => {
  const HERE = document.currentScript.src;
  const LAYERS = ["blue", "orange", "green", "purple"]; // as in cover.svg
  const STEP = 720 / 44; // between two tokens; a picture 720 wide holds 44
  const WEAK = 0.14; // weights below it are not drawn
  const TYPING = 110, WRITING = 80; // ms between two tokens
  const MORE = 24; // tokens that a press writes
  const NEXT = 4; // tokens that it says it expects

  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const asked = (query) => matchMedia(`(${query}: reduce)`).matches;

  class Hero {
    constructor(box) {
      this.box = box;
      this.stage = box.querySelector(".stage");
      this.text = box.querySelector("textarea");
      this.button = box.querySelector(".play > button");
      this.heads = box.querySelector(".heads");
      this.told = box.querySelector(".told");
      this.chosen = -1; // the head that is shown alone; -1: all, the strongest of each layer
      this.round = 0; // which writing is the newest: an older one gives up
      this.still = asked("prefers-reduced-motion");
      this.button.addEventListener("click", () => (this.writing ? this.stop() : this.write()));
      this.text.addEventListener("input", () => this.typed());
      const waits = this.still || asked("prefers-reduced-data") || navigator.connection?.saveData;
      if (waits || location.protocol === "file:") return;
      const seen = new IntersectionObserver(([entry]) => {
        if (!entry.isIntersecting) return;
        seen.disconnect();
        if (document.activeElement !== this.text) this.write();
      }, { threshold: 0.4 });
      seen.observe(this.stage);
    }

    /* The model, once. False, and words that say so, where it does not come. */
    async load() {
      this.loading ??= (async () => {
        this.told.textContent = "Loading the model, 2.3 MB";
        for (const name of ["pocket-model.js", "pocket-tokens.js"]) {
          await new Promise((onload, onerror) => document.head.append(Object.assign(document.createElement("script"), { src: new URL(name, HERE), onload, onerror })));
        }
        const file = (name) => fetch(new URL(`pocket/${name}`, HERE)).then((answer) => (answer.ok ? answer : Promise.reject(answer)));
        const about = await (await file("model.json")).json();
        this.model = new PocketModel(about, await (await file("weights.bin")).arrayBuffer());
        this.tokenizer = new PocketTokenizer(about.tokens, about.merges);
        this.reader = new PocketReader(this.model);
        this.makeHeads();
      })();
      try {
        await this.loading;
      } catch {
        this.loading = undefined;
        this.told.textContent = "The model could not be loaded. Look whether you are connected, then press again.";
      }
      return Boolean(this.reader);
    }

    makeHeads() {
      const { depth, h } = this.model;
      this.squares = [];
      for (let block = 0; block < depth; block++) {
        const row = this.heads.appendChild(document.createElement("span"));
        row.style.setProperty("--layer", `var(--drawn-${LAYERS[block]}-line)`);
        for (let head = 0; head < h; head++) {
          const at = block * h + head, square = row.appendChild(document.createElement("button"));
          const name = `Show block ${block}, head ${head} alone`;
          Object.assign(square, { type: "button", title: name, ariaLabel: name, ariaPressed: "false", tabIndex: at ? -1 : 0 });
          square.addEventListener("click", () => this.choose(this.chosen === at ? -1 : at));
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

    choose(head) {
      this.chosen = head;
      this.squares.forEach((square, at) => (square.ariaPressed = String(at === head)));
      this.draw();
    }

    /* --- reading and writing --- */

    /* Write on from the text in the box; the first time, type it before. */
    async write() {
      const round = ++this.round, first = !this.reader, prompt = this.text.value;
      this.writing = true;
      this.button.textContent = "Stop";
      if (!(await this.load()) || round !== this.round) return this.stop(round);
      const ids = this.tokenizer.encode(this.text.value), typing = first && this.text.value === prompt && !this.still;
      const { t_max } = this.model, end = Math.min(t_max, first ? Math.max(44, ids.length) : ids.length + MORE);
      if (typing) {
        for (let count = 1; count <= ids.length; count++) {
          this.read(ids.slice(0, count));
          this.show(ids.slice(0, count));
          await wait(TYPING);
          if (round !== this.round) return;
        }
      }
      this.read(ids);
      while (ids.length && ids.length < end) {
        const { logits } = this.reader;
        ids.push(first ? logits.indexOf(Math.max(...logits)) : PocketSampling.draw(PocketSampling.chances(logits, 0.7, 20)));
        this.read(ids);
        if (this.still) continue;
        this.show(ids);
        await wait(WRITING);
        if (round !== this.round) return;
      }
      this.show(ids);
      this.stop(round);
    }

    /* round: the writing that ends; another one may have begun since. */
    stop(round = this.round) {
      if (round !== this.round) return;
      this.round++;
      this.writing = false;
      this.button.textContent = "Write on";
    }

    async typed() {
      this.stop();
      const { round } = this;
      if (!(await this.load()) || round !== this.round) return;
      this.read(this.tokenizer.encode(this.text.value));
      this.draw();
      this.tell();
    }

    /* Bring the reader up to a text. What it has read of it before is kept. */
    read(ids) {
      const { reader } = this;
      let same = 0;
      while (same < Math.min(reader.ids.length, ids.length) && reader.ids[same] === ids[same]) same++;
      reader.keep(same);
      for (const id of ids.slice(same, this.model.t_max)) reader.read(id);
    }

    /* --- the picture --- */

    show(ids) {
      this.text.value = this.tokenizer.decode(ids);
      this.text.scrollTop = this.text.scrollHeight;
      this.draw();
      this.tell();
    }

    /* What layer `block` takes from position s at position t: the most that one of its heads does, or the shown head. */
    weight(block, t, s, shown) {
      const { h } = this.model, { attention } = this.reader;
      if (shown >= 0) return Math.floor(shown / h) === block ? attention[shown][t][s] : 0;
      let most = 0;
      for (let head = 0; head < h; head++) most = Math.max(most, attention[block * h + head][t][s]);
      return most;
    }

    /* Heads that find nothing look at the first token: it is left out. */
    draw(shown = this.chosen) {
      if (!this.reader) return;
      const { ids, attention } = this.reader, small = this.stage.clientWidth < 520, last = ids.length - 1;
      const [width, height, ground, font] = small ? [360, 213, 130, 11] : [720, 426, 330, 14];
      const from = Math.max(0, ids.length - Math.floor(width / STEP)), x = (at) => ((at - from + 0.5) * STEP).toFixed(1);
      const layers = LAYERS.slice(0, this.model.depth).map((colour, block) => {
        let arcs = "";
        for (let t = from + 1; t <= last; t++) {
          for (let s = Math.max(1, from); s < t; s++) {
            const weight = this.weight(block, t, s, shown), r = (t - s) * STEP / 2;
            if (weight < WEAK) continue;
            const wide = (0.6 + 2.6 * weight) * (t === last ? 1.5 : 1);
            arcs += `<path d="M${x(s)} ${ground}A${r.toFixed(1)} ${Math.min(r, ground - 8).toFixed(1)} 0 0 1 ${x(t)} ${ground}" stroke-width="${wide.toFixed(2)}" stroke-opacity="${(0.15 + 0.85 * weight).toFixed(2)}"/>`;
          }
        }
        return `<g fill="none" stroke-linecap="round" style="stroke:var(--drawn-${colour}-line)">${arcs}</g>`;
      });
      const words = ids.slice(from).map((id, at) => {
        const said = this.tokenizer.shown(id).replace(/^·(?=.)|(?<=↵)·+$/g, "").replaceAll("&", "&amp;").replaceAll("<", "&lt;");
        const bold = from + at === last ? ' font-weight="700"' : "";
        return `<text transform="translate(${((at + 0.5) * STEP - font / 3).toFixed(1)} ${ground + 10}) rotate(90)"${bold}>${said}</text>`;
      });
      this.stage.innerHTML =
        `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Arcs between the tokens of the text, in a colour for each layer, from each token to those that the heads look at.">` +
        `${layers.join("")}<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="${font}" style="fill:var(--drawn-ink)">${words.join("")}</g></svg>`;
      this.squares.forEach((square, at) => {
        const looks = last > 0 ? Math.max(0, ...attention[at][last].slice(1, last)) : 0;
        square.style.setProperty("--looks", looks.toFixed(2));
      });
    }

    tell() {
      const { logits } = this.reader;
      if (!logits) return (this.told.textContent = "Type something: the model goes on.");
      const chances = PocketReader.softmax(logits), best = [...chances.keys()].sort((a, b) => chances[b] - chances[a]);
      const full = this.reader.ids.length >= this.model.t_max ? "The model's window is full. " : "";
      this.told.textContent = `${full}Next: ${best.slice(0, NEXT).map((id) => `${this.tokenizer.shown(id)} ${(100 * chances[id]).toFixed(0)} %`).join(", ")}`;
    }
  }

  for (const box of document.querySelectorAll('[data-player="hero"]')) new Hero(box);
})();
