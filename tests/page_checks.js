/* What the tests of pages ask a page. The browser of tests/browsing.py loads this file before every page. */
"use strict";

const checks = {
  all: (selector) => [...document.querySelectorAll(selector)],

  one(selector) {
    const found = document.querySelector(selector);
    if (!found) throw new Error(`no ${selector} on ${location}`);
    return found;
  },

  /* Scroll an element into view; the middle of it, in pixels of the window. */
  centre(selector) {
    const element = checks.one(selector);
    element.scrollIntoView({ block: "center", behavior: "instant" });
    const box = element.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  },

  heights: (selector) => checks.all(selector).map((element) => element.getBoundingClientRect().height),

  /* A computed colour as [red, green, blue]. */
  colour: (selector, property = "backgroundColor") =>
    getComputedStyle(checks.one(selector))[property].match(/\d+/g).slice(0, 3).map(Number),

  /* The colour in the upper left corner of a picture, as [red, green, blue]. */
  async ground(selector) {
    const picture = checks.one(selector);
    await picture.decode();
    const paint = document.createElement("canvas").getContext("2d");
    paint.drawImage(picture, 0, 0);
    return [...paint.getImageData(2, 2, 1, 1).data].slice(0, 3);
  },

  unfold: () => checks.all("article details").forEach((fold) => (fold.open = true)),

  /* Columns of the page that are wider than the window. */
  tooWide: () =>
    ["html", ".main", ".content"]
      .map((name) => document.querySelector(name))
      .filter((box) => box && (box.scrollWidth > box.clientWidth + 1 || box.getBoundingClientRect().right > innerWidth + 1))
      .map((box) => `${box.tagName}.${box.className} is ${box.scrollWidth} px wide, and has ${box.clientWidth}`),

  /* Elements of the article that are cut off, with nothing around them that scrolls. */
  cutOff() {
    const isCutOff = (element) => {
      for (let box = element; box.tagName !== "ARTICLE"; box = box.parentElement)
        if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
      return element.scrollWidth > element.clientWidth + 1 || element.getBoundingClientRect().right > innerWidth;
    };
    return checks
      .all("article pre, article table, article div.math, article img")
      .filter(isCutOff)
      .map((element) => element.outerHTML.slice(0, 80));
  },

  scrollingCode: () =>
    checks
      .all("article pre")
      .filter((block) => block.scrollWidth > block.clientWidth + 1)
      .map((block) => block.textContent.slice(0, 60)),

  /* What axe-core finds for readers with a screen reader or a keyboard. Its rule on colour, which takes most of its time,
     is for pages of each kind alone: one style sheet colours them all. */
  async axe() {
    const found = await axe.run(document, { resultTypes: ["violations"], rules: { "color-contrast": { enabled: false } } });
    return found.violations
      .filter((v) => ["serious", "critical"].includes(v.impact) || ["landmark-unique", "empty-table-header"].includes(v.id))
      .map((v) => `${v.id}: ${v.nodes.length} times, first ${v.nodes[0].html.slice(0, 120)}`);
  },

  async contrast() {
    const found = await axe.run(document, { resultTypes: ["violations"], runOnly: ["color-contrast"] });
    return found.violations.flatMap((v) => v.nodes.map((node) => `${node.html.slice(0, 120)}: ${node.any[0].message}`));
  },

  /* The sizes of the letters of the first diagram, in pixels. */
  diagramLetters() {
    const svg = checks.one(".in-page > svg");
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return [...svg.querySelectorAll("text")].map((text) => text.getAttribute("font-size") * scale);
  },

  /* How many letters a line of this paragraph has. */
  lettersInALine(selector) {
    const paragraph = checks.one(selector);
    const sample = paragraph.appendChild(document.createElement("span"));
    sample.textContent = "the quick brown fox jumps over the lazy dog".repeat(2);
    sample.style.whiteSpace = "nowrap";
    const letter = sample.getBoundingClientRect().width / sample.textContent.length;
    sample.remove();
    return paragraph.clientWidth / letter;
  },

  /* How far the layout has moved since this moment of performance.now(), input of the reader aside. */
  layoutShift: (since) =>
    new Promise((done) => {
      let sum = 0;
      const add = (entry) => (sum += !entry.hadRecentInput && entry.startTime > since ? entry.value : 0);
      new PerformanceObserver((list) => list.getEntries().forEach(add)).observe({ type: "layout-shift", buffered: true });
      setTimeout(() => done(sum), 200);
    }),

  /* Load the pocket GPT-2 from the folder of that name into window[folder]; `reader` reads tokens with heads switched off. */
  async loadPocket(folder) {
    const about = await (await fetch(`${folder}/model.json`)).json();
    const weights = await (await fetch(`${folder}/weights.bin`)).arrayBuffer();
    const tokenizer = new PocketTokenizer(about.tokens, about.merges);
    window[folder] = { about, tokenizer, model: new PocketModel(about, weights) };
    window.reader = (pocket, ids, off) => {
      const one = new PocketReader(pocket.model, new Set(off));
      ids.forEach((id) => one.read(id));
      return one;
    };
  },

  /* The box, the texts and the drawn elements of every player "by hand". */
  playersByHand: () =>
    checks.all("figure.by-hand").map((figure) => {
      const box = figure.getBoundingClientRect();
      const drawn = figure.querySelectorAll("svg :is(line, rect, circle, text, path, polygon), .by-hand-bar > span");
      const texts = figure.querySelectorAll("td, th, text, .by-hand-result, .by-hand-looked");
      return {
        box: [box.x, box.y, box.width, box.height],
        texts: [...texts].map((text) => text.textContent),
        drawn: [...drawn].map((thing) => Object.values(thing.getBoundingClientRect().toJSON()).map(Math.round)),
      };
    }),

  /* Boxes of the map that a line passes behind or touches; the ends of a line are in the edges of its own. */
  behindBoxes() {
    const boxes = checks.all("ol.map a").map((box) => [box.textContent.trim(), box.getBoundingClientRect()]);
    const inside = ({ x, y }, { left, right, top, bottom }) => x > left - 2 && x < right + 2 && y > top + 3 && y < bottom - 3;
    return checks.all("ol.map path").flatMap((line) => {
      const points = Array.from({ length: 101 }, (_, k) =>
        line.getPointAtLength((k / 100) * line.getTotalLength()).matrixTransform(line.getScreenCTM()),
      );
      return boxes.filter(([, edges]) => points.some((point) => inside(point, edges))).map(([name]) => name);
    });
  },

  /* Parts of a player "by hand" that stick out of it to the left or to the right. */
  stickingOut: () =>
    checks.all("figure.by-hand").flatMap((figure) => {
      const edge = figure.getBoundingClientRect();
      return [...figure.querySelectorAll("table, svg, button, fieldset, p, label")]
        .filter((part) => !part.matches(".by-hand-said, .by-hand-hidden"))
        .filter((part) => part.getBoundingClientRect().left < edge.left || part.getBoundingClientRect().right > edge.right + 0.5)
        .map((part) => `${figure.id} ${part.outerHTML.slice(0, 60)}`);
    }),
};
