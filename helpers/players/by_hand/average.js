/* Lesson 1: self-attention of four vectors, one output at a time. */
"use strict";

byHand.player("average", (figure, { vectors, i }) => {
  const svg = figure.querySelector("svg");
  const names = Object.keys(vectors);

  /* The corners of the convex hull, in order: Andrew's monotone chain. */
  function hull(points) {
    const ordered = [...points].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
    const chain = (those) => {
      const kept = [];
      for (const [x, y] of those) {
        while (kept.length > 1) {
          const [[a, b], [c, d]] = kept.slice(-2);
          if ((c - a) * (y - b) - (d - b) * (x - a) > 0) break;
          kept.pop();
        }
        kept.push([x, y]);
      }
      return kept.slice(0, -1);
    };
    return [...chain(ordered), ...chain(ordered.reverse())];
  }

  function draw() {
    const x = names.map((name) => vectors[name]);
    const scores = x.map((one) => byHand.dot(x[i], one));
    const weights = byHand.softmax(scores);
    const y = byHand.average(weights, x);
    byHand.rows(figure, names, scores, weights);
    plane.output("y", y);
    figure.querySelector('[data-is="output"] span').textContent = byHand.coordinates(y);
    for (const index of figure.querySelectorAll("[data-is=i]")) index.textContent = i;
    for (const group of svg.querySelectorAll("[data-vector]"))
      group.classList.toggle("is-looking", group.dataset.vector === names[i]);
    const corners = hull(x).map((corner) => plane.place(corner).join(","));
    svg.querySelector("polygon").setAttribute("points", corners.join(" "));
    byHand.reached(figure, {});
    byHand.say(figure, `Weights ${weights.map((weight) => byHand.fixed(weight)).join(", ")}; output ${byHand.coordinates(y)}.`);
  }

  const plane = byHand.plane(svg, vectors, draw);
  const buttons = [...figure.querySelectorAll("input[type=radio]")];
  const choose = (place) => {
    i = place;
    buttons[i].checked = true;
    draw();
  };
  buttons.forEach((button, place) => button.addEventListener("change", () => choose(place)));
  const start = i;
  byHand.reset(figure, vectors, [plane], () => choose(start));
  choose(start);
});
