/* Lesson 6: rotary positions. Each pair of a query and a key turns by its position; the score sees only i − j.

   q, k: the pairs of both before they turn, [pair][component]. speeds: radians that each pair turns in one step. */
"use strict";

byHand.player("rotary", (figure, { q, k, speeds, i, j, last }) => {
  const svg = figure.querySelector("svg");
  const [first, second] = figure.querySelectorAll("input[type=range]");
  const { left, right, middle, unit } = Object.fromEntries(
    Object.entries(svg.dataset).map(([name, value]) => [name, Number(value)]),
  ); // of the curve, in units of the drawing
  const tell = (name, words) => (figure.querySelector(`[data-is="${name}"]`).textContent = words);
  const turned = ([x, y], angle) => [
    x * Math.cos(angle) - y * Math.sin(angle),
    x * Math.sin(angle) + y * Math.cos(angle),
  ];
  const product = (m, i, j) => byHand.dot(turned(q[m], i * speeds[m]), turned(k[m], j * speeds[m]));
  const score = (i, j) => speeds.reduce((sum, _, m) => sum + product(m, i, j), 0);
  const place = (apart, value) => [
    left + ((right - left) * (apart + last)) / (2 * last),
    middle - unit * value,
  ];

  function arrow(name, [x, y]) {
    const line = svg.querySelector(`[data-arrow="${name}"]`);
    const from = [Number(line.getAttribute("x1")), Number(line.getAttribute("y1"))];
    const long = Number(svg.dataset.radius);
    line.setAttribute("x2", (from[0] + long * x).toFixed(2));
    line.setAttribute("y2", (from[1] - long * y).toFixed(2));
  }

  function draw() {
    [i, j] = [Number(first.value), Number(second.value)];
    speeds.forEach((speed, m) => {
      arrow(`q${m}`, turned(q[m], i * speed));
      arrow(`k${m}`, turned(k[m], j * speed));
      const cells = figure.querySelectorAll(`tr[data-row="${m}"] td`);
      [speed, i * speed, j * speed, product(m, i, j)].forEach((value, c) => (cells[c].textContent = byHand.fixed(value)));
    });
    const [x, y] = place(i - j, score(i, j)).map((part) => part.toFixed(2));
    const point = svg.querySelector(".by-hand-here");
    point.setAttribute("cx", x);
    point.setAttribute("cy", y);
    const [apart, written] = [byHand.fixed(i - j, 0), byHand.fixed(score(i, j))];
    for (const [name, words] of Object.entries({ i, j, apart, score: written })) tell(name, words);
    const words = `Query at ${i}, key at ${j}: distance ${apart}, score ${written}.`;
    svg.setAttribute("aria-label", `${svg.dataset.words} ${words}`);
    byHand.reached(figure, { shift: Math.abs(i - start[0]), other: Math.abs(j - start[1]), apart: i - j });
    byHand.say(figure, words);
  }

  const set = (one, other) => {
    if (Math.min(one, other) < 0 || Math.max(one, other) > last) return;
    [first.value, second.value] = [one, other];
    draw();
  };
  const start = [i, j];
  const points = Array.from({ length: 8 * last + 1 }, (_, step) => step / 4 - last);
  const curve = points.map((apart) => place(apart, score(apart, 0)).map((part) => part.toFixed(1)).join(" "));
  svg.querySelector(".by-hand-curve").setAttribute("d", `M${curve.join("L")}`);
  for (const slider of [first, second]) slider.addEventListener("input", draw);
  for (const button of figure.querySelectorAll("[data-step]"))
    button.addEventListener("click", () => set(i + Number(button.dataset.step), j + Number(button.dataset.step)));
  figure.querySelector(".by-hand-reset").addEventListener("click", () => set(...start));
  set(...start);
});
