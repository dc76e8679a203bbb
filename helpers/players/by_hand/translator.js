/* Lesson 10: which words of the source the model looks at as it writes each word of the target.

   english: s words. written: t words. mean (t, s) and heads (h, t, s): weights of the last block's cross-attention. */
"use strict";

byHand.player("translator", (figure, { english, written, mean, heads, chosen, row }) => {
  const asked = [...figure.querySelectorAll(".by-hand-asked > button")];
  const looked = figure.querySelectorAll(".by-hand-looked > span");
  const picture = figure.querySelector(".by-hand-words svg");
  const links = picture.querySelectorAll("line");
  const buttons = [...figure.querySelectorAll("input[type=radio]")];
  let at = chosen;

  /* What the chosen head, or the mean of all, looks at as it writes word `at`: (s,). */
  function weights() {
    const head = buttons.find((button) => button.checked).value;
    return (head === "mean" ? mean : heads[head])[at];
  }

  function draw() {
    const shares = weights();
    shares.forEach((share, j) => {
      looked[j].lastElementChild.textContent = byHand.percent(share);
      for (const thing of [looked[j], links[j]]) thing.style.setProperty("--share", share.toFixed(3));
      links[j].setAttribute("y1", row * (at + 0.5));
    });
    asked.forEach((word, i) => {
      word.setAttribute("aria-pressed", i === at);
      word.tabIndex = i === at ? 0 : -1; // one stop of the Tab key; arrow keys lead on
    });
    const most = shares.map((_, j) => j).sort((a, b) => shares[b] - shares[a]);
    const told = most.slice(0, 2).map((j) => `${english[j]} with ${byHand.percent(shares[j])}`);
    const words = `As it writes ${written[at]}, the model looks at ${told.join(" and ")}.`;
    picture.setAttribute("aria-label", words);
    const mean = Number(buttons[0].checked);
    byHand.reached(figure, { mean, largest: Math.max(...shares) });
    byHand.say(figure, words);
  }

  const choose = (place) => {
    at = place;
    draw();
  };

  asked.forEach((word, i) => {
    word.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && choose(i));
    word.addEventListener("focus", () => choose(i));
    word.addEventListener("click", () => choose(i));
    word.addEventListener("keydown", (event) => {
      const last = written.length - 1;
      const goals = { ArrowDown: i + 1, ArrowRight: i + 1, ArrowUp: i - 1, ArrowLeft: i - 1, Home: 0, End: last };
      if (!(event.key in goals)) return;
      event.preventDefault();
      asked[Math.max(0, Math.min(last, goals[event.key]))].focus();
    });
  });
  for (const button of buttons) button.addEventListener("change", draw);
  const start = () => {
    buttons[0].checked = true;
    choose(chosen);
  };
  figure.querySelector(".by-hand-reset").addEventListener("click", start);
  start();
});
