/* Search results show a few words around each hit. Formulas would stand there as raw TeX: leave out those on lines of
   their own, and take the marks off those within a sentence. */
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
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
