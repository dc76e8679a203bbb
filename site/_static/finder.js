/* Search: first what the course knows about itself (_static/subjects.js, made by the build), then Sphinx's own results.

   A lesson comes first when the words are its subject: they stand in its title, its sections, or the terms that it
   explains. A mistake leads to its exercise. Sphinx counts words, and knows no phrase. */

(() => {
  const SMALL = new Set("a an and are as at by for from how in is it its of on or over that the this to what with".split(" "));

  const plain = (text) => text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, "");
  const stem = (word) => (word.length > 3 ? word.replace(/(?<=[^s])s$/, "") : word);
  const words = (text) => plain(text).split(/[^\p{L}\p{N}√]+/u).filter(Boolean).map(stem);

  /* How well an entry answers: 0 where a word of weight is missing from it; a whole phrase and a whole title count most. */
  function score(entry, asked, phrase) {
    const wanted = asked.filter((word) => !SMALL.has(word));
    if (!wanted.length) return 0;
    const inTitle = new Set(words(entry.title));
    const inAll = new Set([...inTitle, ...words(entry.also ?? "")]);
    const has = (set, word) => set.has(word) || [...set].some((other) => word.length > 3 && other.startsWith(word));
    if (!wanted.every((word) => has(inAll, word))) return 0;
    const share = wanted.filter((word) => has(inTitle, word)).length / Math.max(wanted.length, inTitle.size);
    const whole = ` ${words(`${entry.title} . ${entry.also ?? ""}`).join(" ")} `.includes(` ${phrase} `) ? 0.5 : 0;
    return entry.weight * (0.4 + share + whole);
  }

  /* The best entries for a question, one for each address. */
  window.findSubjects = (question, entries = window.SUBJECTS ?? [], most = 8) => {
    const asked = words(question);
    const phrase = asked.join(" ");
    const best = new Map();
    for (const entry of entries) {
      const points = score(entry, asked, phrase);
      if (points > (best.get(entry.at)?.points ?? 0)) best.set(entry.at, { ...entry, points });
    }
    return [...best.values()].sort((a, b) => b.points - a.points || a.order - b.order).slice(0, most);
  };

  function show(question) {
    document.getElementById("found-first")?.remove();
    const found = window.findSubjects(question);
    const place = document.querySelector("#search-results");
    if (!found.length || !place) return;
    const box = document.createElement("section");
    box.id = "found-first";
    box.setAttribute("aria-label", "Best matches");
    const list = box.appendChild(document.createElement("ol"));
    for (const entry of found) {
      const item = list.appendChild(document.createElement("li"));
      const link = item.appendChild(document.createElement("a"));
      link.href = entry.at;
      link.textContent = entry.title;
      item.appendChild(document.createElement("p")).textContent = entry.says;
    }
    place.before(box);
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (typeof Search === "undefined") return;
    const question = new URLSearchParams(location.search).get("q");
    if (question) show(question);

    /* Results show a few words around each hit. Formulas would stand there as raw TeX: leave out those on lines of
       their own, and take the marks off those within a sentence. */
    const wholeText = Search.htmlToText;
    Search.htmlToText = (html, anchor) => {
      const page = new DOMParser().parseFromString(html, "text/html");
      page.querySelectorAll("div.math").forEach((formula) => (formula.textContent = " "));
      page.querySelectorAll("span.math").forEach((formula) => {
        formula.textContent = formula.textContent.replace(/\\[()]/g, "").replace(/\\[ ,;:!]/g, " ").replace(/[{}\\]/g, "");
      });
      return wholeText(page.documentElement.outerHTML, anchor);
    };
  });
})();
