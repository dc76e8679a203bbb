/* Lesson 7: what a tower of blocks does to the size of a vector and to the gradient on its way back.

   A block is two matrices and a bias: no averaging, no residual connection. The entries of a matrix have the variance
   gain / e, those of the bias 1 / (3e). Both curves are roots of mean squares over all draws of the weights: a matrix
   multiplies a mean square by the gain, so a block multiplies it by gain². */
"use strict";

byHand.player("depth", (figure, { gains, names, e, depth, gain, least, most }) => {
  const svg = figure.querySelector("svg");
  const [blocks, choice] = figure.querySelectorAll("input[type=range]");
  const { left, right, top, bottom } = Object.fromEntries(
    Object.entries(svg.dataset).map(([name, value]) => [name, Number(value)]),
  );
  const tell = (name, words) => (figure.querySelector(`[data-is="${name}"]`).textContent = words);

  /* The sizes of the vectors after 0, 1, ..., n blocks. */
  function sizes(gain, n) {
    const squares = [1];
    for (let m = 0; m < n; m++) squares.push(gain ** 2 * squares[m] + 1 / (3 * e));
    return squares.map(Math.sqrt);
  }

  /* The gradient by the vectors after 0, 1, ..., n blocks, as a share of that after the last. */
  const gradients = (gain, n) => Array.from({ length: n + 1 }, (_, m) => gain ** (n - m));

  /* 0.11, or 3.5 · 10⁻¹² where that would be long. */
  function written(value) {
    if (value >= 0.01 && value < 1000) return byHand.fixed(value);
    const [digits, power] = value.toExponential(1).split("e");
    const raised = [...power.replace("+", "")].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] ?? "⁻").join("");
    return `${digits} · 10${raised}`;
  }

  function line(name, values, n) {
    const points = values.map((value, m) => [
      left + ((right - left) * m) / n,
      bottom - ((bottom - top) * (Math.log10(value) - least)) / (most - least),
    ]);
    const [first, ...rest] = points.map((point) => point.map((part) => part.toFixed(1)).join(" "));
    svg.querySelector(`[data-line="${name}"]`).setAttribute("d", `M${[first, ...rest].join("L")}`);
  }

  function draw() {
    const n = Number(blocks.value);
    const value = gains[choice.value];
    const [forward, backward] = [sizes(value, n), gradients(value, n)];
    line("size", forward, n);
    line("gradient", backward, n);
    tell("depth", n);
    tell("gain", names[choice.value].label);
    tell("name", `Gain ${[names[choice.value].label, names[choice.value].name].filter(Boolean).join(": ")}.`);
    tell("top", `after block ${n - 1}`);
    tell("last", n);
    tell("size-bottom", written(forward[0]));
    tell("size-top", written(forward[n]));
    tell("gradient-bottom", written(backward[0]));
    tell("gradient-top", written(backward[n]));
    choice.setAttribute("aria-valuetext", `gain ${names[choice.value].label}`);
    const words =
      `Depth ${n}, gain ${names[choice.value].label}: at the top the vectors have the size ${written(forward[n])}; ` +
      `of the gradient ${written(backward[0])} reaches the bottom.`;
    svg.setAttribute("aria-label", `${svg.dataset.words} ${words}`);
    byHand.reached(figure, { blocks: n, gradient: backward[0] });
    byHand.say(figure, words);
  }

  const start = () => {
    [blocks.value, choice.value] = [depth, gain];
    draw();
  };
  for (const slider of [blocks, choice]) slider.addEventListener("input", draw);
  figure.querySelector(".by-hand-reset").addEventListener("click", start);
  start();
});
