/* Lesson 1: the dot product of a viewer and a film. */
"use strict";

byHand.player("dot-product", (figure, { vectors }) => {
  const svg = figure.querySelector("svg");
  const cell = (row, name) => figure.querySelector(`tr[data-row="${row}"] [data-is="${name}"]`);
  const path = (points) => `M${points.map((point) => plane.place(point).join(" ")).join("L")}`;
  const far = 6; // beyond the frame, which clips

  /* The side on which products with u are positive, and its border; with u = 0 there is none. */
  function halves([a, b]) {
    const length = Math.hypot(a, b);
    svg.classList.toggle("is-flat", length === 0);
    if (length === 0) return;
    const along = [-b / length, a / length];
    const out = [a / length, b / length];
    const ends = [1, -1].map((sign) => along.map((part) => sign * far * part));
    const others = [...ends].reverse().map((end) => end.map((part, k) => part + far * out[k]));
    svg.querySelector(".by-hand-for").setAttribute("d", `${path([...ends, ...others])}z`);
    svg.querySelector(".by-hand-border").setAttribute("d", path(ends));
  }

  function draw() {
    const { u, f } = vectors;
    ["romance", "action"].forEach((feature, k) => {
      cell(feature, "u").textContent = byHand.fixed(u[k], 1);
      cell(feature, "f").textContent = byHand.fixed(f[k], 1);
      cell(feature, "product").textContent = byHand.fixed(u[k] * f[k]);
    });
    const match = byHand.fixed(byHand.dot(u, f));
    figure.querySelector('[data-is="match"]').textContent = match;
    halves(u);
    const products = u.map((part, k) => part * f[k]);
    byHand.reached(figure, { score: byHand.dot(u, f), least: Math.min(...products) });
    byHand.say(figure, `The score is ${match}.`);
  }

  const plane = byHand.plane(svg, vectors, draw);
  byHand.reset(figure, vectors, [plane], draw);
  draw();
});
