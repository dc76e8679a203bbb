/* Lesson 20: a policy gradient on a table of five answers, with a strict reward and with one that has a hole.

   The policy cannot tell its questions apart, as a model that is not sure of a sum. So a single number is right for
   some of them only, and an answer that names both sums is right for none and has the lenient reward for all. */
"use strict";

byHand.player("policy", (figure, { answers, start, questions, samples, rate, seed, steps }) => {
  const svg = figure.querySelector("svg");
  const choices = [...figure.querySelectorAll("input[type=radio]")];
  const rows = [...figure.querySelectorAll("tbody tr")];
  const { left, right, top, bottom } = Object.fromEntries(
    Object.entries(svg.dataset).map(([name, value]) => [name, Number(value)]),
  );
  const rewards = {
    strict: (answer, sum) => Number(answer === sum),
    lenient: (answer, sum) => Number(answer.includes(sum)),
  };
  const tell = (name, words) => (figure.querySelector(`[data-is="${name}"]`).textContent = words);
  const percent = (share) => `${byHand.fixed(100 * share, 1)}\u00a0%`;
  let logits, random, looks, group;

  /* Numbers from 0 to 1, the same each time: a linear congruential generator. */
  function* chance(state) {
    for (;;) yield (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  }

  /* Where a number from 0 to 1 falls among these shares. */
  function drawn(shares) {
    let rest = random.next().value;
    const at = shares.findIndex((share) => (rest -= share) < 0);
    return at < 0 ? shares.length - 1 : at;
  }

  /* The lesson's advantages, for one group. */
  function advantages(earned) {
    const mean = earned.reduce((sum, reward) => sum + reward, 0) / earned.length;
    const away = earned.map((reward) => reward - mean);
    const deviation = Math.sqrt(byHand.dot(away, away) / earned.length);
    return away.map((part) => (earned.every((reward) => reward === earned[0]) ? 0 : part / deviation));
  }

  /* A reward that is expected of the policy, over all questions and answers. */
  const expected = (shares, reward) =>
    questions.reduce(
      (sum, { sum: right, share }) => sum + share * byHand.dot(shares, answers.map((answer) => reward(answer, right))),
      0,
    );

  const chosen = () => rewards[choices.find((choice) => choice.checked).value];

  function look() {
    const shares = byHand.softmax(logits);
    looks.push({ reward: expected(shares, chosen()), exact: expected(shares, rewards.strict) });
  }

  /* The gradient of log p by the logits is 1 at the answer that was drawn, less all probabilities. */
  function step() {
    const shares = byHand.softmax(logits);
    const { asked, sum } = questions[drawn(questions.map(({ share }) => share))];
    const sampled = Array.from({ length: samples }, () => drawn(shares));
    const earned = sampled.map((at) => chosen()(answers[at], sum));
    const worth = advantages(earned);
    logits = logits.map((logit, k) => {
      const gradients = sampled.map((at) => (at === k ? 1 : 0) - shares[k]);
      return logit + (rate * byHand.dot(worth, gradients)) / samples;
    });
    group = { asked, sampled, earned, worth };
    look();
  }

  function line(name, last) {
    const points = looks.map((values, at) => [
      left + ((right - left) * at) / last,
      bottom - (bottom - top) * values[name],
    ]);
    const words = points.map((point) => point.map((part) => part.toFixed(1)).join(" "));
    svg.querySelector(`[data-line="${name}"]`).setAttribute("d", `M${words.join("L")}`);
    const dot = svg.querySelector(`[data-point="${name}"]`);
    ["cx", "cy"].forEach((place, k) => dot.setAttribute(place, points.at(-1)[k].toFixed(1)));
  }

  function table() {
    const shares = byHand.softmax(logits);
    rows.forEach((row, k) => {
      const first = group ? group.sampled.indexOf(k) : -1;
      const count = group ? group.sampled.filter((at) => at === k).length : "–";
      row.querySelector('[data-is="probability"]').textContent = byHand.fixed(shares[k], 3);
      row.querySelector(".by-hand-bar > span").style.width = `${(100 * shares[k]).toFixed(2)}%`;
      row.querySelector('[data-is="drawn"]').textContent = count;
      row.querySelector('[data-is="advantage"]').textContent = first < 0 ? "–" : byHand.fixed(group.worth[first]);
    });
  }

  function draw() {
    const done = looks.length - 1;
    const { reward, exact } = looks[done];
    let last = steps;
    while (last < done) last *= 2;
    for (const name of ["reward", "exact"]) line(name, last);
    table();
    tell("last", last);
    tell("reward", percent(reward));
    tell("exact", percent(exact));
    const rewarded = group && group.earned.filter(Boolean).length;
    tell("group", `Step ${done}: ${group ? `${group.asked}, ${rewarded} of ${samples} rewarded` : "no group yet"}`);
    const words = `Step ${done}: expected reward ${percent(reward)}, exact answers ${percent(exact)}.`;
    svg.setAttribute("aria-label", `${svg.dataset.words} ${words}`);
    byHand.reached(figure, { reward, exact });
    byHand.say(figure, words);
  }

  function begin() {
    [logits, random, looks, group] = [start.map(Math.log), chance(seed), [], null];
    look();
    draw();
  }

  for (const choice of choices) choice.addEventListener("change", begin);
  for (const button of figure.querySelectorAll("[data-steps]"))
    button.addEventListener("click", () => {
      for (let n = 0; n < Number(button.dataset.steps); n++) step();
      draw();
    });
  figure.querySelector(".by-hand-reset").addEventListener("click", () => {
    choices[0].checked = true;
    begin();
  });
  begin();
});
