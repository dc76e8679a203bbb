/* Search: first what the course knows about itself (_static/subjects.js, made by the build), then Sphinx's own results.

   A lesson comes first when the words are its subject: they stand in its title, its sections, or the terms that it
   explains. A mistake leads to its exercise. Sphinx counts words, and knows no phrase. */

(() => {
  const SMALL = new Set(
    "a an and are as at by do does explain explained for from how i in is it its me of on or over that the this to use what when which why with work works".split(" "),
  );

  const plain = (text) => text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, "");
  const stem = (word) => (word.length > 4 ? word.replace(/(izations?|izers?|ings?|ions?|ed|ers?|es|e|s)$/, "") : word.replace(/([^s])s$/, "$1"));
  const wholeWords = (text) => plain(text).split(/[^\p{L}\p{N}√]+/u).filter(Boolean);
  const words = (text) => wholeWords(text).map(stem);

  const names = (entry, cut) => [entry.title, ...(entry.also ?? "").split(" . ")].map((name) => cut(name).join(" "));

  /* How much of a word some text holds: 1 for the word as it is written, less for another form of it, and least for a
     longer word that begins with it. */
  const reader = (text) => {
    const [asWritten, stems] = [new Set(wholeWords(text)), new Set(words(text))];
    const begins = (word) => word.length > 3 && [...stems].some((other) => other.startsWith(word));
    return { size: stems.size, held: (word) => (asWritten.has(word) ? 1 : stems.has(stem(word)) ? 0.9 : begins(stem(word)) ? 0.5 : 0) };
  };

  /* How well an entry answers, 0 where it holds less than half of the words. A whole phrase and a whole title count
     most, and more as they are written than by their stems; each word that is missing lowers the rest by far, and the
     names in an entry's code count half. A mistake needs all of the words. */
  function score(entry, phrase, written) {
    const wanted = wholeWords(written).filter((word) => !SMALL.has(word));
    if (!wanted.length) return 0;
    const title = reader(entry.title);
    const all = reader(`${entry.title} . ${entry.also ?? ""}`);
    const code = reader(entry.code ?? "");
    const sum = (held) => wanted.reduce((total, word) => total + held(word), 0);
    const part = sum((word) => Math.max(all.held(word), code.held(word) / 2)) / wanted.length;
    if (part < (entry.last ? 0.9 : 0.5)) return 0;
    const share = sum(title.held) / Math.max(wanted.length, title.size);
    const stems = names(entry, words);
    const whole = stems[0] === phrase ? 2 : stems.includes(phrase) ? 1 : ` ${stems.join(" . ")} `.includes(` ${phrase} `) ? 0.5 : 0;
    const exact = names(entry, wholeWords).includes(written) ? 2 : 0;
    return entry.weight * part ** 4 * (0.4 + share + whole + exact);
  }

  /* The best entries for a question, one for each address: mistakes after all others, but for one that is asked for
     by its whole title. */
  window.findSubjects = (question, entries = window.SUBJECTS ?? [], most = 8) => {
    const phrase = words(question).join(" ");
    const written = wholeWords(question).join(" ");
    const best = new Map();
    const better = (a, b) => a.last - b.last || b.points - a.points || a.order - b.order;
    for (const entry of entries) {
      const points = score(entry, phrase, written);
      if (!points) continue;
      const found = { ...entry, points, last: Number(Boolean(entry.last) && words(entry.title).join(" ") !== phrase) };
      const other = best.get(entry.at);
      if (!other || better(found, other) < 0) best.set(entry.at, found);
    }
    return [...best.values()].sort(better).slice(0, most);
  };

  function show(question) {
    document.getElementById("found-first")?.remove();
    const found = window.findSubjects(question);
    const place = document.querySelector("#search-results");
    if (!place) return;
    if (!found.length) {
      const none = document.createElement("p");
      none.id = "found-first";
      none.textContent =
        "No lesson, term, exercise or mistake has these words. Below are the pages that mention them, if there are any. " +
        "The glossary lists the course's terms with their other names.";
      place.before(none);
      return;
    }
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

  /* The summary of a result is cut from its page, which is fetched when the result is a screen away or nearer, once for all
     results that it holds. */
  function summarise(question) {
    const [, terms, , highlighted] = Search._parseQuery(question);
    const pages = new Map();
    const page = (address) => pages.get(address) ?? pages.set(address, fetch(address).then((answer) => answer.text())).get(address);
    const inView = new IntersectionObserver((results) => {
      for (const { target, isIntersecting } of results) {
        if (!isIntersecting) continue;
        inView.unobserve(target);
        const { pathname, hash } = target.querySelector("a");
        page(pathname).then((html) => {
          target.append(Search.makeSearchSummary(html, terms, hash) ?? "");
          highlighted.forEach((word) => _highlightText(target, word, "highlighted"));
        });
      }
    }, { rootMargin: "0px 0px 100% 0px" });
    const added = ({ addedNodes }) => [...addedNodes].filter((one) => one.matches?.("ul.search > li"));
    const results = new MutationObserver((changes) => changes.flatMap(added).forEach((one) => inView.observe(one)));
    results.observe(document.getElementById("search-results"), { childList: true, subtree: true });
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (typeof Search === "undefined") return;
    const question = new URLSearchParams(location.search).get("q");
    if (question) {
      show(question);
      summarise(question);
    }

    /* Sphinx has one sentence for no result, and it speaks of categories. */
    const said = Documentation.gettext;
    Documentation.gettext = (text) => (text.startsWith("Your search did not match") ? "No page has these words." : said.call(Documentation, text));

    /* What is around a hit, and not around a longer word that has it inside: RoPE, not property. */
    const summary = Search.makeSearchSummary;
    Search.makeSearchSummary = (html, keywords, anchor) => {
      const whole = Search.htmlToText(html, anchor), text = whole.toLowerCase();
      const start = (word) => new RegExp(`(?<![\\p{L}\\p{N}])${word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}`, "u");
      const places = [...keywords].map((word) => text.search(start(word.toLowerCase())));
      const at = places.find((place) => place >= 0);
      if (at === undefined) return summary(html, keywords, anchor);
      const around = document.createElement("p");
      around.className = "context";
      const from = Math.max(at - 120, 0);
      around.textContent = `${from ? "…" : ""}${whole.slice(from, from + 240).trim()}${from + 240 < whole.length ? "…" : ""}`;
      return around;
    };

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
