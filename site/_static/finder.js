/* Search: first what the course knows about itself (_static/subjects.js, made by the build), then Sphinx's own results.

   A lesson comes first when the words are its subject: they stand in its title, its sections, or the terms that it
   explains. A mistake leads to its exercise. Sphinx counts words, and knows no phrase. */

(() => {
  const SMALL = new Set(
    "a an and are as at between by difference do does explain explained for from how i in is it its me of on only or over that the this to use versus vs what when which why with work works".split(" "),
  );
  const RARE = 0.1; // of all entries: a word that more of them hold says too little by itself

  const plain = (text) => text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, "").replace(/\blesson(?=\d)/, "lesson ");
  const stem = (word) => (word.length > 4 ? word.replace(/(izations?|izers?|ings?|ions?|ed|ers?|es|e|s)$/, "") : word.replace(/([^s])s$/, "$1"));
  const allWords = (text) => plain(text).split(/[^\p{L}\p{N}√]+/u).filter(Boolean);
  const words = (text) => allWords(text).map(stem);
  const asking = (cut, text) => {
    const every = cut(text), some = every.filter((word) => !SMALL.has(word));
    return (some.length ? some : every).join(" ");
  };

  const otherNames = (entry) => (entry.also ?? "").split(" . ").filter(Boolean);
  const names = (entry, cut) => [entry.title, ...otherNames(entry)].map((name) => asking(cut, name));

  /* How much of a word some text holds: 1 for the word as it is written, less for another form of it, and least for a
     longer word that begins with it. */
  const reader = (text) => {
    const [asWritten, stems] = [new Set(allWords(text)), new Set(words(text))];
    const begins = (word) => word.length > 3 && [...stems].some((other) => other.startsWith(word));
    return { size: stems.size, held: (word) => (asWritten.has(word) ? 1 : stems.has(stem(word)) ? 0.9 : begins(stem(word)) ? 0.5 : 0) };
  };

  const readers = new WeakMap(); // of entries: search reads each once
  const read = (entry) => {
    if (!readers.has(entry)) {
      readers.set(entry, {
        title: reader(entry.title),
        all: reader(`${entry.title} . ${entry.also ?? ""}`),
        code: reader(entry.code ?? ""),
        stems: names(entry, words),
        written: names(entry, allWords),
      });
    }
    return readers.get(entry);
  };

  /* How much of a word an entry holds; the names in its code count half. */
  const held = (entry, word) => Math.max(read(entry).all.held(word), read(entry).code.held(word) / 2);

  /* How many letters are wrong, missing, too many or changed places with the next between two words; `most` + 1 stands
     for more. Optimal string alignment, row by row. */
  function typos(one, other, most) {
    if (Math.abs(one.length - other.length) > most) return most + 1;
    let [before, last] = [[], [...Array(other.length + 1).keys()]];
    for (let i = 1; i <= one.length; i++) {
      const row = [i];
      for (let j = 1; j <= other.length; j++) {
        const same = one[i - 1] === other[j - 1];
        row[j] = Math.min(row[j - 1] + 1, last[j] + 1, last[j - 1] + Number(!same));
        if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1);
      }
      [before, last] = [last, row];
    }
    return Math.min(last[other.length], most + 1);
  }

  /* A question whose unknown words are replaced by the titles' and names' nearest: two typos in a word of seven letters
     or more, one in a shorter one, none in words of up to four. Of two as near the one of the earlier entry. */
  function corrected(question, entries) {
    const known = [...new Set(entries.filter((entry) => !entry.last).flatMap((entry) => allWords(`${entry.title} . ${entry.also ?? ""}`)))];
    const nearest = (word) => {
      const most = word.length > 6 ? 2 : 1;
      const [best] = known.map((other) => [typos(word, other, most), other]).sort(([a], [b]) => a - b);
      return best && best[0] <= most ? best[1] : word;
    };
    const unknown = (word) => word.length > 4 && !SMALL.has(word) && !entries.some((entry) => held(entry, word));
    return allWords(question).map((word) => (unknown(word) ? nearest(word) : word)).join(" ");
  }

  /* A question as it is written and by its stems, without small words. */
  const ask = (question) => {
    const written = asking(allWords, question);
    return { written, phrase: asking(words, question), wanted: written.split(" ").filter((word) => word && !SMALL.has(word)) };
  };

  /* Is a name of an entry what was asked for, word for word? The own names of a term's page count more than others. */
  function exact(entry, written) {
    const at = read(entry).written.indexOf(written);
    return at < 0 ? 0 : at < (entry.term ?? 0) ? 3 : 2;
  }

  /* Is this part of so many words an answer? More than half of them is, and of a single word half; a mistake needs all, and
     so does a paper. */
  const enough = (entry, part, count) => (entry.last || entry.cited ? part >= 0.9 : count > 1 ? part > 0.5 : part >= 0.5);

  /* A paper is asked for by half of its title, or of what stands before the colon, or by an author: a few words that
     its title has as well are not it. */
  const named = (entry, phrase) => {
    const asked = new Set(phrase.split(" "));
    return !entry.cited || read(entry).stems.some((name) => name.split(" ").filter((word) => asked.has(word)).length * 2 >= name.split(" ").length);
  };

  /* How well an entry answers, 0 where it holds too few of the words. A whole phrase and a whole title count most, and
     more as they are written than by their stems; each word that is missing lowers the rest by far. */
  function score(entry, { written, phrase, wanted }) {
    if (!wanted.length || !named(entry, phrase)) return 0;
    const { title, stems } = read(entry);
    const part = wanted.reduce((total, word) => total + held(entry, word), 0) / wanted.length;
    if (!enough(entry, part, wanted.length)) return 0;
    const share = wanted.reduce((total, word) => total + title.held(word), 0) / Math.max(wanted.length, title.size);
    const whole = stems[0] === phrase ? 2 : stems.includes(phrase) ? 1 : ` ${stems.join(" . ")} `.includes(` ${phrase} `) ? 0.5 : 0;
    return entry.weight * part ** 4 * (0.4 + share + whole + exact(entry, written));
  }

  /* Is an entry's title the question but for one word, and no more than as long again? Of a whole message, one word that
     stands somewhere else as well says nothing. */
  const nearly = (entry, { wanted }) => {
    const { title, stems } = read(entry);
    const shared = wanted.filter((word) => title.held(word) >= 0.9).length;
    return shared > 0 && shared >= wanted.length - 1 && shared * 2 >= stems[0].split(" ").length;
  };

  /* Where no entry answers: how much it holds of the rare words, the rarest first. */
  function nearness(entries, asked) {
    const { wanted } = asked;
    const rarity = new Map();
    for (const word of wanted) {
      const holders = entries.filter((entry) => held(entry, word) >= 0.5).length;
      if (holders && holders <= RARE * entries.length) rarity.set(word, Math.log(entries.length / holders));
    }
    return (entry) => {
      if (entry.last || entry.cited || !nearly(entry, asked)) return 0;
      const sum = (ofWord) => [...rarity].reduce((total, [word, rare]) => total + rare * ofWord(word), 0);
      const { title } = read(entry);
      const points = sum((word) => held(entry, word)) + sum(title.held) / title.size;
      return points * entry.weight * (entry.term ? 1.01 : 1);
    };
  }

  /* The best entries by these points, one for each address: mistakes and papers after all others, but for a mistake that
     is asked for by its whole title, small words and all, and a paper by one of its names. */
  function ranked(entries, points, question) {
    const best = new Map();
    const whole = words(question).join(" ");
    const written = asking(allWords, question);
    const isLast = (entry) => (entry.cited ? !exact(entry, written) : entry.last && words(entry.title).join(" ") !== whole);
    const better = (a, b) => a.last - b.last || b.points - a.points || a.order - b.order;
    for (const entry of entries) {
      const found = { ...entry, points: points(entry), last: Number(Boolean(isLast(entry))) };
      const other = best.get(entry.at);
      if (found.points && (!other || better(found, other) < 0)) best.set(entry.at, found);
    }
    return [...best.values()].sort(better);
  }

  /* The best entries for a question, its spelling corrected; where none has more than half of the words, those that are
     `nearest`, if any is near. */
  window.findSubjects = (written, entries = window.SUBJECTS ?? [], most = 8) => {
    const question = corrected(written, entries);
    const asked = ask(question);
    const found = ranked(entries, (entry) => score(entry, asked), question);
    if (found.length) return found.slice(0, most);
    const near = ranked(entries, nearness(entries, asked), question);
    return near.slice(0, most).map((entry) => ({ ...entry, nearest: true }));
  };

  /* The other name for which an entry is found, "" where its title or its line shows the words already. */
  window.foundAs = (entry, question) => {
    const { wanted } = ask(question);
    const holds = (text) => wanted.some(reader(text).held);
    return holds(`${entry.title} ${entry.says}`) ? "" : (otherNames(entry).find(holds) ?? "");
  };

  /* What cites a paper, each a link, with a dot between two. */
  const withLinks = (places) =>
    places.flatMap(([label, at], i) => {
      const link = Object.assign(document.createElement("a"), { href: at, textContent: label });
      return i ? [" · ", link] : [link];
    });

  function show(written) {
    document.getElementById("found-first")?.remove();
    const question = corrected(written, window.SUBJECTS ?? []);
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
    if (question !== allWords(written).join(" ")) box.appendChild(document.createElement("p")).textContent = `Spelt as “${question}”:`;
    if (found[0].nearest) box.appendChild(document.createElement("p")).textContent = "Nothing has all of these words. Nearest:";
    const list = box.appendChild(document.createElement("ol"));
    for (const entry of found) {
      const item = list.appendChild(document.createElement("li"));
      const link = item.appendChild(document.createElement("a"));
      link.href = entry.at;
      link.textContent = entry.title;
      const name = window.foundAs(entry, question);
      const said = item.appendChild(document.createElement("p"));
      said.textContent = name ? `${entry.says} (${name})` : entry.says;
      if (entry.cited) said.append(". Cited in ", ...withLinks(entry.cited));
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

    /* Sphinx looks for a word inside longer ones as well: RAG would find each page with an average. */
    const byWords = Search.performTermsSearch;
    Search.performTermsSearch = (wanted, ...others) => {
      const { terms, titleterms } = Search._index;
      const unknown = (word) => word.length < 5 && !Object.hasOwn(terms, word) && !Object.hasOwn(titleterms, word);
      return [...wanted].some(unknown) ? [] : byWords.call(Search, wanted, ...others);
    };

    /* What is around a hit, and not around a longer word that has it inside: RoPE, not property. */
    const summary = Search.makeSearchSummary;
    Search.makeSearchSummary = (html, keywords, anchor) => {
      const whole = Search.htmlToText(html, anchor), text = whole.toLowerCase();
      const start = (word) => new RegExp(`(?<![\\p{L}\\p{N}])${word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}`, "u");
      const placeIn = (some) => [...keywords].map((word) => some.search(start(word.toLowerCase()))).find((place) => place >= 0);
      const at = placeIn(text);
      if (at === undefined && placeIn(wholeText(html, anchor).toLowerCase()) === undefined) return summary(html, keywords, anchor);
      const around = document.createElement("p");
      around.className = "context";
      if (at === undefined) {
        around.textContent = "In the code of this page.";
        return around;
      }
      const from = Math.max(at - 120, 0);
      around.textContent = `${from ? "…" : ""}${whole.slice(from, from + 240).trim()}${from + 240 < whole.length ? "…" : ""}`;
      return around;
    };

    /* Results show a few words around each hit. Formulas would stand there as raw TeX: leave out those on lines of
       their own, and take the marks off those within a sentence. Code out of its block says nothing: leave that out. */
    const wholeText = Search.htmlToText;
    Search.htmlToText = (html, anchor) => {
      const page = new DOMParser().parseFromString(html, "text/html");
      page.querySelectorAll("noscript").forEach((twin) => twin.remove()); // the same formulas, as MathML
      page.querySelectorAll("[role=main] .highlight").forEach((block) => block.replaceWith(" "));
      page.querySelectorAll("div.math").forEach((formula) => (formula.textContent = " "));
      page.querySelectorAll("span.math").forEach((formula) => {
        formula.textContent = formula.textContent.replace(/\\[()]/g, "").replace(/\\[ ,;:!]/g, " ").replace(/\\operatorname|[{}\\]/g, "");
      });
      return wholeText(page.documentElement.outerHTML, anchor);
    };
  });
})();
