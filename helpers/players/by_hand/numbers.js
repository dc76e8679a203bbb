/* Attention by hand: the arithmetic, and how a player starts. A vector is an array of numbers. */
"use strict";

const byHand = {};

byHand.dot = (a, b) => a.reduce((sum, part, k) => sum + part * b[k], 0);

/* The largest score is taken off first, so that nothing overflows. */
byHand.softmax = (scores) => {
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
};

byHand.average = (weights, vectors) =>
  vectors[0].map((_, k) => weights.reduce((sum, weight, j) => sum + weight * vectors[j][k], 0));

/* As many decimals as asked for, a true minus, and none before a zero. */
byHand.fixed = (value, digits = 2) => {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
};

byHand.coordinates = (vector) => `(${vector.map((part) => byHand.fixed(part)).join(", ")})`;

byHand.percent = (share) => `${byHand.fixed(100 * share, 0)}\u00a0%`;

/* Every player of this name on the page: hand its figure and its numbers to `start`, and switch its controls on. */
byHand.player = (name, start) => {
  for (const figure of document.querySelectorAll(`figure.by-hand[data-player="${name}"]`)) {
    start(figure, JSON.parse(figure.querySelector('script[type="application/json"]').textContent));
    figure.querySelector(".by-hand-reset").addEventListener("click", () => byHand.beginAgain(figure));
    for (const control of figure.querySelectorAll("[disabled]")) control.disabled = false;
    figure.classList.add("is-live");
  }
};

/* What a screen reader says once the hand has come to rest. */
byHand.say = (figure, words) => {
  clearTimeout(figure.saying);
  figure.saying = setTimeout(() => (figure.querySelector(".by-hand-said").textContent = words), 400);
};

/* The goal of a player (goals.toml): it is met once each number that it names is within its bounds. `moves` is counted
   here; what the player begins with is none. Where it no longer is met, its words stay, and say so. */
byHand.reached = (figure, numbers) => {
  const goal = figure.querySelector(".by-hand-goal");
  figure.moves = (figure.moves ?? -1) + 1;
  const there = { ...numbers, moves: figure.moves };
  const within = ([name, [least, most]]) => there[name] >= least && there[name] <= most;
  const met = figure.moves > 0 && Object.entries(JSON.parse(goal.dataset.when)).every(within);
  if (met === goal.classList.contains("is-met")) return;
  goal.classList.toggle("is-met", met);
  goal.querySelector("[role=status]").textContent = goal.dataset.met + (met ? "" : " (That was before: as it stands now, the goal is not met.)");
};

/* Back at the start, nothing has been done. */
byHand.beginAgain = (figure) => {
  const goal = figure.querySelector(".by-hand-goal");
  figure.moves = 0;
  goal.classList.remove("is-met");
  goal.querySelector("[role=status]").textContent = "";
};

/* The rows of a table of scores and weights. */
byHand.rows = (figure, names, scores, weights) => {
  names.forEach((name, j) => {
    const row = figure.querySelector(`tr[data-row="${name}"]`);
    row.querySelector('[data-is="score"]').textContent = byHand.fixed(scores[j]);
    row.querySelector('[data-is="weight"]').textContent = byHand.fixed(weights[j]);
    row.querySelector(".by-hand-bar > span").style.width = `${100 * weights[j]}%`;
  });
};
