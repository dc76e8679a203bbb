/* Lesson 2: a query among keys, and the average of the values that comes back. */
"use strict";

byHand.player("lookup", (figure, { vectors }) => {
  const [left, right] = figure.querySelectorAll("svg");
  const names = Object.keys(vectors);
  const of = (role) => names.filter((name) => name[0] === role).map((name) => vectors[name]);

  function draw() {
    const scores = of("k").map((key) => byHand.dot(vectors.q, key));
    const weights = byHand.softmax(scores);
    const y = byHand.average(weights, of("v"));
    byHand.rows(figure, names.filter((name) => name[0] === "k"), scores, weights);
    values.output("y", y);
    figure.querySelector('[data-is="output"] span').textContent = byHand.coordinates(y);
    const keys = JSON.stringify(of("k")) === before ? 0 : 1;
    byHand.reached(figure, { k1: weights[1], keys });
    byHand.say(figure, `Weights ${weights.map((weight) => byHand.fixed(weight)).join(", ")}; output ${byHand.coordinates(y)}.`);
  }

  const before = JSON.stringify(of("k"));
  const queries = byHand.plane(left, vectors, draw);
  const values = byHand.plane(right, vectors, draw);
  byHand.reset(figure, vectors, [queries, values], draw);
  draw();
});
