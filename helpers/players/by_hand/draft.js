/* Lesson 21: one drafted token, kept or refused, and what comes out at that place.

   p: the model's probabilities of the tokens. The slider `draft` takes the draft's q from p (0) over uniform (1) to the
   last token alone (2). at: where the drawing has the shares 1 (top) and 0 (bottom). each: tokens drawn by a click. */
"use strict";

byHand.player("draft", (figure, { p, start, at, each, seed }) => {
  const svg = figure.querySelector("svg");
  const [draft, drafted] = figure.querySelectorAll("input[type=range]");
  const rows = [...figure.querySelectorAll("tbody tr")];
  const groups = [...svg.querySelectorAll("[data-token]")];
  const tell = (name, words) => (figure.querySelector(`[data-is="${name}"]`).textContent = words);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const digits = (value) => byHand.fixed(value, 3);
  const grouped = (count) => count.toLocaleString("en");
  const last = p.length - 1;
  let draws = 0;

  function draftAt(place) {
    const uniform = 1 / p.length;
    if (place <= 1) return p.map((share) => (1 - place) * share + place * uniform);
    return p.map((_, x) => (2 - place) * uniform + (x === last ? place - 1 : 0));
  }

  function named(place) {
    const mixture = (one, other, part) => `q = ${byHand.fixed(1 - part)} · ${one} + ${byHand.fixed(part)} · ${other}`;
    if (place === 0) return "q = p";
    if (place < 1) return mixture("p", "uniform", place);
    if (place === 1) return "q is uniform";
    return place < 2 ? mixture("uniform", `token ${last}`, place - 1) : `q has token ${last} alone`;
  }

  /* The lesson's `accept`: the chance to keep each token, and what is drawn from after a refusal. */
  function accept(q) {
    const keep = p.map((share, x) => (q[x] > 0 ? Math.min(1, share / q[x]) : 1));
    const more = p.map((share, x) => Math.max(0, share - q[x]));
    const total = sum(more);
    return { keep, rest: total > 0 ? more.map((part) => part / total) : p };
  }

  /* A token by a number from 0 to 1. The 1e-12 is for shares whose sum is rounded to less than 1. */
  const pick = (shares, number) => shares.findIndex((share) => share > 0 && (number -= share) < 1e-12);

  /* How often each token comes out, and how many drafted tokens are kept. */
  function drawn(q, keep, rest) {
    const [random, counts] = [byHand.chance(seed), p.map(() => 0)];
    const next = () => random.next().value;
    let kept = 0;
    for (let n = 0; n < draws; n++) {
      let token = pick(q, next());
      if (next() < keep[token]) kept += 1;
      else token = pick(rest, next());
      counts[token] += 1;
    }
    return { counts, kept };
  }

  /* Two bars of two parts each: the draft's q, kept or refused; what comes out, kept or drawn after a refusal. */
  function bars(group, kept, refused, after, share) {
    const high = (part) => (at.bottom - at.top) * part;
    const y = (part) => (at.bottom - high(part)).toFixed(1);
    const ranges = [[0, kept], [kept, refused], [0, kept], [kept, after]];
    group.querySelectorAll("rect").forEach((rect, part) => {
      const [from, length] = ranges[part];
      rect.setAttribute("y", y(from + length));
      rect.setAttribute("height", high(length).toFixed(1));
    });
    group.querySelector("circle").setAttribute("cy", y(share));
  }

  /* What happens to a token that is drafted by q: the parts of the two bars, and all cases added up. */
  function cases(q) {
    const { keep, rest } = accept(q);
    const kept = q.map((share, x) => share * keep[x]);
    const refused = sum(q.map((share, x) => share * (1 - keep[x])));
    return { keep, rest, kept, refused, out: kept.map((share, x) => share + refused * rest[x]) };
  }

  function show(q, { keep, rest, kept, refused, out }, counts) {
    const shares = counts.map((count) => (draws ? count / draws : 0));
    rows.forEach((row, x) => {
      const values = [p, q, keep, rest, out, shares].map((column) => digits(column[x]));
      if (!draws) values[5] = "–";
      row.querySelectorAll("td").forEach((cell, column) => (cell.textContent = values[column]));
      bars(groups[x], kept[x], q[x] - kept[x], refused * rest[x], shares[x]);
    });
    const visibility = draws ? "visible" : "hidden";
    for (const part of svg.querySelectorAll("[visibility]")) part.setAttribute("visibility", visibility);
  }

  function draw() {
    const [place, k] = [Number(draft.value), Number(drafted.value)];
    const q = draftAt(place);
    const all = cases(q);
    const { refused, out } = all;
    const { counts, kept } = drawn(q, all.keep, all.rest);
    show(q, all, counts);
    // (1 - α^(k+1)) / (1 - α), and k + 1 where α is 1
    const perPass = byHand.fixed(sum(Array.from({ length: k + 1 }, (_, i) => (1 - refused) ** i)));
    const told = draws ? `${grouped(draws)} tokens, ${grouped(draws - kept)} after a refusal` : "none yet";
    tell("place", byHand.fixed(place));
    tell("k", k);
    tell("more", k + 1);
    tell("alpha", digits(1 - refused));
    for (const one of figure.querySelectorAll('[data-is="refused"]')) one.textContent = digits(refused);
    tell("per-pass", perPass);
    tell("draws", told);
    figure.querySelector('[data-is="name"]').innerHTML = named(place).replace(/\b[pq]\b/g, "<i>$&</i>");
    draft.setAttribute("aria-valuetext", named(place));
    const words =
      `${named(place)}: ${digits(1 - refused)} kept, ${digits(refused)} refused; out ${out.map(digits).join(", ")}; ` +
      `with k = ${k}, ${perPass} tokens per pass.`;
    svg.setAttribute("aria-label", `${svg.dataset.words} ${words}`);
    byHand.reached(figure, { refused, drawn: draws });
    byHand.say(figure, draws ? `${words} Drawn: ${told}.` : words);
  }

  const begin = () => {
    [draft.value, drafted.value, draws] = [start.draft, start.k, 0];
    draw();
  };
  draft.addEventListener("input", () => {
    draws = 0; // they were another draft's
    draw();
  });
  drafted.addEventListener("input", draw);
  figure.querySelector(".by-hand-draw").addEventListener("click", () => {
    draws += each;
    draw();
  });
  figure.querySelector(".by-hand-reset").addEventListener("click", begin);
  begin();
});
