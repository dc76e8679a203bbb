/* Lesson 9: temperature and top-p on what a model expects of the next byte, and bytes drawn from what remains.

   contexts: {text, logits}, one logit for each of the 256 bytes, in hundredths below the largest. */
"use strict";

byHand.player("next-byte", (figure, { contexts, draws }) => {
  const [heat, nucleus] = figure.querySelectorAll("input[type=range]");
  const buttons = [...figure.querySelectorAll("input[type=radio]")];
  const rows = [...figure.querySelectorAll("tbody tr")];
  const tell = (name, words) => (figure.querySelector(`[data-is="${name}"]`).textContent = words);
  const named = (byte) =>
    byte === 32 ? "␣" : byte === 10 ? "¶" : byte > 32 && byte < 127 ? String.fromCharCode(byte) : "·";
  let seed = 1;

  /* The probabilities at a temperature; at 0 the most probable byte has everything. */
  function heated(logits, temperature) {
    if (temperature > 0) return byHand.softmax(logits.map((logit) => logit / temperature));
    const best = logits.indexOf(Math.max(...logits));
    return logits.map((_, byte) => (byte === best ? 1 : 0));
  }

  /* The fewest most probable bytes that have p or more together share everything: shares, and how many they are. */
  function kept(shares, ranked, p) {
    let [count, before] = [0, 0];
    while (count < ranked.length && (count === 0 || before < p - 1e-12) && shares[ranked[count]] > 0)
      before += shares[ranked[count++]];
    const inside = new Set(ranked.slice(0, count));
    return { count, whole: before, shares: shares.map((share, byte) => (inside.has(byte) ? share / before : 0)) };
  }

  function drawn(shares, ranked) {
    const random = byHand.chance(seed);
    return Array.from({ length: draws }, () => {
      let rest = random.next().value;
      return ranked.find((byte) => (rest -= shares[byte]) < 0) ?? ranked[0];
    });
  }

  function draw() {
    const { logits } = contexts[buttons.findIndex((button) => button.checked)];
    const [temperature, p] = [Number(heat.value), Number(nucleus.value)];
    const ranked = logits.map((_, byte) => byte).sort((a, b) => logits[b] - logits[a]);
    const before = heated(logits.map((logit) => logit / 100), temperature);
    const after = kept(before, ranked, p);
    const sum = (shares, bytes) => bytes.reduce((total, byte) => total + shares[byte], 0);
    rows.forEach((row, rank) => {
      const bytes = rank < rows.length - 1 ? [ranked[rank]] : ranked.slice(rank);
      const [was, is] = [sum(before, bytes), sum(after.shares, bytes)];
      if (bytes.length === 1) row.querySelector("th").textContent = named(bytes[0]);
      row.querySelector('[data-is="before"]').textContent = byHand.fixed(was, 3);
      row.querySelector('[data-is="after"]').textContent = byHand.fixed(is, 3);
      row.querySelector(".by-hand-bar > span").style.width = `${(100 * is).toFixed(2)}%`;
      row.classList.toggle("is-cut", after.count <= rank);
    });
    const letters = drawn(after.shares, ranked).map(named).join(" ");
    tell("temperature", byHand.fixed(temperature, 1));
    tell("p", byHand.fixed(p));
    tell("kept", `${after.count} of 256`);
    tell("whole", byHand.fixed(after.whole, 3));
    tell("draws", letters);
    tell("seed", seed);
    byHand.reached(figure, { kept: after.count, temperature });
    byHand.say(figure, `Kept ${after.count} of 256 bytes. Drawn: ${letters}.`);
  }

  const start = () => {
    [seed, heat.value, nucleus.value, buttons[0].checked] = [1, 1, 1, true];
    draw();
  };
  for (const control of [heat, nucleus]) control.addEventListener("input", draw);
  for (const button of buttons) button.addEventListener("change", draw);
  figure.querySelector(".by-hand-draw").addEventListener("click", () => {
    seed += 1;
    draw();
  });
  figure.querySelector(".by-hand-reset").addEventListener("click", start);
  start();
});
