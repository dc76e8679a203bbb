/* What a page does beside being read: copy its code, unfold for print, let the keyboard reach what scrolls. Search is in
   finder.js. Without scripts all of it is missing and nothing else is. */

const whenReady = (work) =>
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", work) : work();

/* --- copy --- */

/* Where a page is opened from a disk there may be no clipboard to write to: then the browser's own command. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.setAttribute("readonly", "");
    field.style.cssText = "position:fixed;top:0;opacity:0";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

function addCopyButtons() {
  document.querySelectorAll("article div[class*='highlight-']:not(.output) > .highlight").forEach((block) => {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", async () => {
      const done = await copyText(block.querySelector("pre").textContent.replace(/\n+$/, "\n"));
      button.textContent = done ? "Copied" : "Select and copy";
      setTimeout(() => (button.textContent = "Copy"), 1600);
    });
    block.append(button);
  });
}

/* --- print --- */

let openedForPrint = [];

function unfoldForPrint() {
  openedForPrint = [...document.querySelectorAll("article details:not([open])")];
  openedForPrint.forEach((fold) => (fold.open = true));
}

function foldAgain() {
  openedForPrint.forEach((fold) => (fold.open = false));
  openedForPrint = [];
}

/* --- keyboard --- */

const MAY_SCROLL = ".table-wrapper, div.math, mjx-container, pre, .cell_output > div, .output.text_html, .toc-scroll";

/* A browser need not let the keyboard into a box that scrolls and holds no link; a tab stop does. */
function reachWhatScrolls() {
  document.querySelectorAll(MAY_SCROLL).forEach((box) => {
    const scrolls =
      (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1) &&
      ["auto", "scroll"].some((kind) => [getComputedStyle(box).overflowX, getComputedStyle(box).overflowY].includes(kind));
    if (scrolls) box.tabIndex = 0;
    else if (box.getAttribute("tabindex") === "0" && box.tagName !== "MJX-CONTAINER") box.removeAttribute("tabindex");
  });
}

/* --- the page of mistakes --- */

/* Show only what has all of the words, and unfold it. */
function filterMistakes() {
  const field = document.getElementById("filter-mistakes");
  if (!field) return;
  field.closest("[hidden]").hidden = false;
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    document.querySelectorAll("details.of-exercise").forEach((exercise) => {
      const name = exercise.querySelector("summary").textContent;
      let any = false;
      exercise.querySelectorAll("dt").forEach((title) => {
        const text = `${name} ${title.textContent} ${title.nextElementSibling.textContent}`.toLowerCase();
        const has = words.every((word) => text.includes(word));
        title.hidden = title.nextElementSibling.hidden = !has;
        any ||= has;
      });
      exercise.hidden = !any;
      exercise.open = any && words.length > 0;
    });
  });
}

/* --- the page "Find the bug" --- */

/* Count the questions whose first choice was right. */
function countRight() {
  const tally = document.querySelector("p.tally");
  if (!tally) return;
  const questions = document.querySelectorAll(".choices");
  const first = new Map();
  questions.forEach((question) => {
    question.addEventListener("click", ({ target }) => {
      const choice = target.closest("summary")?.parentElement;
      if (!choice?.matches("details.choice") || first.has(question)) return;
      first.set(question, choice.hasAttribute("data-right"));
      const right = [...first.values()].filter(Boolean).length;
      tally.textContent = `${right} of ${first.size} right at the first choice. There are ${questions.length} questions.`;
      tally.hidden = false;
    });
  });
}

whenReady(() => {
  filterMistakes();
  countRight();
  addCopyButtons();
  addEventListener("beforeprint", unfoldForPrint);
  addEventListener("afterprint", foldAgain);
  reachWhatScrolls();
  addEventListener("resize", reachWhatScrolls);
  addEventListener("load", () => (window.MathJax?.startup?.promise ?? Promise.resolve()).then(reachWhatScrolls));
  document.addEventListener("toggle", reachWhatScrolls, true);
});
