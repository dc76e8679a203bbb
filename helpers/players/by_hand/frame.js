/* A player in the frame of a notebook: as high as its content, in the notebook's light or dark. Once it is live, the
   picture before the frame goes. Without access to the notebook the frame stays without height, and the picture stays. */
"use strict";

{
  const frame = window.frameElement;
  const root = document.documentElement;
  if (frame && document.querySelector(".is-live")) {
    const notebook = frame.ownerDocument.body;
    const follow = () => {
      const dark = notebook.dataset.jpThemeLight === "false" || notebook.classList.contains("vscode-dark");
      root.dataset.theme = dark ? "dark" : "light";
    };
    follow();
    new MutationObserver(follow).observe(notebook, { attributes: true });
    new ResizeObserver(() => (frame.style.height = `${Math.ceil(root.getBoundingClientRect().height)}px`)).observe(root);
    frame.previousElementSibling.hidden = true;
  }
}
