/* Lesson 19: one head at one position, patched into the corrupted text, or switched off in the clean one.

   high and low: the logit of the right answer in the clean and in the corrupted text. patch and off: that logit after
   each intervention, one row a head, one column for each of the positions `places`; null where a head of the last layer
   cannot reach the answer, and nothing changes. */
"use strict";

byHand.player("patch", (figure, { high, low, places, ...logits }) => {
  const map = figure.querySelector(".by-hand-map");
  const rows = [...map.querySelectorAll("tbody tr")];
  const slider = figure.querySelector("input[type=range]");
  const bar = figure.querySelector('[data-is="bar"]');
  const known = [...logits.patch, ...logits.off].flat().filter((logit) => logit !== null);
  const most = Math.ceil(Math.max(high, ...known));
  const HEADS = rows.length / 2; // of a layer
  const tell = (name, words) => (figure.querySelector(`[data-is="${name}"]`).textContent = words);
  const chosen = (name) => figure.querySelector(`[name="patch-${name}"]:checked`).value;
  const choose = (name, value) => (figure.querySelector(`[name="patch-${name}"][value="${value}"]`).checked = true);

  /* The difference of the two texts' logits is brought back by a patch, and lost by switching off. */
  const share = (mode, logit) => {
    if (logit === null) return 0;
    return (mode === "patch" ? logit - low : high - logit) / (high - low);
  };

  function drawMap(mode, head, at) {
    rows.forEach((row, k) => {
      row.querySelectorAll("td").forEach((cell, place) => {
        const logit = logits[mode][k][place];
        cell.textContent = byHand.fixed(share(mode, logit));
        cell.style.setProperty("--share", Math.max(0, share(mode, logit)).toFixed(3));
        cell.classList.toggle("is-masked", logit === null);
        cell.classList.toggle("is-chosen", k === head && place === at);
      });
    });
  }

  function draw() {
    const [mode, layer, at] = [chosen("mode"), Number(chosen("layer")), Number(slider.value)];
    const head = HEADS * layer + Number(chosen("head"));
    const logit = logits[mode][head][at] ?? (mode === "patch" ? low : high);
    const part = share(mode, logit);
    const cell = `Layer ${layer}, head ${chosen("head")} at position ${places[at]}`;
    const verb = mode === "patch" ? "comes back" : "is lost";
    drawMap(mode, head, at);
    bar.style.width = `${((100 * logit) / most).toFixed(2)}%`;
    tell("shares", `share that ${verb}`);
    tell("mode", mode === "patch" ? "patched" : "switched off");
    tell("logit", byHand.fixed(logit));
    tell("cell", cell);
    tell("share", byHand.fixed(part));
    tell("verb", verb);
    tell("at", places[at]);
    slider.setAttribute("aria-valuetext", `position ${places[at]}`);
    byHand.reached(figure, { back: share("patch", logits.patch[head][at]), off: Number(mode === "off") });
    byHand.say(figure, `${cell}: logit ${byHand.fixed(logit)}, ${byHand.fixed(part)} of the difference ${verb}.`);
  }

  /* A tap on the map chooses its head and its position; one on the texts above it, the position. */
  map.addEventListener("click", ({ target }) => {
    const cell = target.closest("[data-at]");
    if (!cell) return;
    slider.value = cell.dataset.at;
    const row = rows.indexOf(cell.parentElement);
    if (row >= 0) {
      choose("layer", Math.floor(row / HEADS));
      choose("head", row % HEADS);
    }
    draw();
  });
  const start = () => {
    for (const [name, value] of [["mode", "patch"], ["layer", 0], ["head", 0]]) choose(name, value);
    slider.value = 0;
    draw();
  };
  for (const button of figure.querySelectorAll("input[type=radio]")) button.addEventListener("change", draw);
  slider.addEventListener("input", draw);
  figure.querySelector(".by-hand-reset").addEventListener("click", start);
  start();
});
