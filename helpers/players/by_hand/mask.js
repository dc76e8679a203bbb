/* Lesson 5: four inputs, four outputs, and a causal mask before the softmax, after it, or nowhere. */
"use strict";

byHand.player("mask", (figure, { vectors }) => {
  const svg = figure.querySelector("svg");
  const names = Object.keys(vectors);
  let kind = "none";
  let was = null; // the outputs before the hand moved anything

  /* The weights of output i over all inputs. */
  function weightsOf(i, x) {
    const scores = x.map((one) => byHand.dot(x[i], one));
    const seen = scores.map((score, j) => (kind === "before" && j > i ? -Infinity : score));
    return byHand.softmax(seen).map((weight, j) => (kind === "after" && j > i ? 0 : weight));
  }

  function computed() {
    const x = names.map((name) => vectors[name]);
    const weights = x.map((_, i) => weightsOf(i, x));
    return { weights, outputs: weights.map((row) => byHand.average(row, x)) };
  }

  function draw() {
    const { weights, outputs } = computed();
    was ??= outputs;
    const moved = [];
    outputs.forEach((y, i) => {
      const row = figure.querySelector(`tr[data-row="${i}"]`);
      weights[i].forEach((weight, j) => {
        const cell = row.querySelector(`[data-is="${j}"]`);
        cell.textContent = byHand.fixed(weight);
        cell.style.setProperty("--share", weight.toFixed(3));
        cell.classList.toggle("is-masked", kind !== "none" && j > i);
      });
      row.querySelector('[data-is="sum"]').textContent = byHand.fixed(weights[i].reduce((a, b) => a + b, 0));
      plane.output(`y${i}`, y, was[i]);
      if (y.some((part, k) => part !== was[i][k])) moved.push(`y${i}`);
    });
    const words = moved.join(", ") || "none";
    figure.querySelector('[data-is="moved"]').innerHTML = words.replace(/y(\d)/g, "<i>y</i><sub>$1</sub>");
    const last = moved.filter((name) => name === "y3").length;
    byHand.reached(figure, { last, others: moved.length - last });
    byHand.say(figure, `Outputs moved: ${words}.`);
  }

  const fresh = () => {
    was = null;
    draw();
  };
  const plane = byHand.plane(svg, vectors, draw, fresh);
  const buttons = figure.querySelectorAll("input[type=radio]");
  for (const button of buttons)
    button.addEventListener("change", () => {
      kind = button.value;
      fresh();
    });
  byHand.reset(figure, vectors, [plane], () => {
    buttons[0].checked = true;
    kind = buttons[0].value;
    fresh();
  });
  buttons[0].checked = true;
  fresh();
});
