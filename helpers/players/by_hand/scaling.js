/* Lesson 3: what the width does to the softmax, and what the division by its root does about it.

   draws: [draw][width][key], scores of vectors that PyTorch drew when the page was made. */
"use strict";

byHand.player("scaling", (figure, { widths, draws, at, full }) => {
  const slider = figure.querySelector("input[type=range]");
  const divide = figure.querySelector("input[type=checkbox]");
  const tell = (name, words) => (figure.querySelector(`[data-is="${name}"]`).textContent = words);
  let drawn = 0;

  function draw() {
    const d = widths[slider.value];
    const scores = draws[drawn][slider.value];
    const inputs = scores.map((score) => (divide.checked ? score / Math.sqrt(d) : score));
    const weights = byHand.softmax(inputs);
    figure.querySelectorAll("tr[data-row]").forEach((row, j) => {
      const [signed, share] = row.querySelectorAll(".by-hand-bar > span");
      const long = Math.min(50, (50 * Math.abs(scores[j])) / full);
      row.querySelector('[data-is="score"]').textContent = byHand.fixed(scores[j], 1);
      row.querySelector('[data-is="input"]').textContent = byHand.fixed(inputs[j]);
      row.querySelector('[data-is="weight"]').textContent = byHand.fixed(weights[j]);
      signed.style.left = `${scores[j] < 0 ? 50 - long : 50}%`;
      signed.style.width = `${long}%`;
      share.style.width = `${100 * weights[j]}%`;
    });
    tell("d", d);
    tell("root", byHand.fixed(Math.sqrt(d), 1));
    tell("size", byHand.fixed(Math.sqrt(byHand.dot(scores, scores) / scores.length), 1));
    tell("largest", byHand.fixed(Math.max(...weights)));
    tell("draw", drawn + 1);
    slider.setAttribute("aria-valuetext", `d = ${d}`);
    byHand.reached(figure, { undivided: Math.max(...byHand.softmax(scores)), divided: Number(divide.checked) });
    byHand.say(figure, `Largest weight ${byHand.fixed(Math.max(...weights))}.`);
  }

  const start = () => {
    [slider.value, divide.checked, drawn] = [at, false, 0];
    draw();
  };
  slider.addEventListener("input", draw);
  divide.addEventListener("change", draw);
  figure.querySelector(".by-hand-draw").addEventListener("click", () => {
    drawn = (drawn + 1) % draws.length;
    draw();
  });
  figure.querySelector(".by-hand-reset").addEventListener("click", start);
  start();
});
