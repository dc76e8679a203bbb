/* An answer whose parts are switched: each combination has a panel that the check made when the site was built
   (helpers/site/switches.py). The panels are fetched when a part is first pressed. */
"use strict";

(() => {
  const HERE = document.currentScript.src;

  class Switches {
    constructor(box) {
      this.box = box;
      const { parts, start } = JSON.parse(box.dataset.switches);
      this.parts = parts;
      this.choice = [...start];
      this.tried = new Set([String(start)]);
      this.panel = box.querySelector(".panel");
      this.goal = box.querySelector(".goal");
      this.buttons = parts.map((part) => box.querySelector(`[data-part="${part.name}"]`));
      this.buttons.forEach((button, k) => button.addEventListener("click", () => this.next(k)));
      this.label();
    }

    get count() {
      return this.parts.reduce((product, part) => product * part.choices.length, 1);
    }

    label() {
      const codes = this.parts.map((part, k) => part.choices[this.choice[k]]);
      this.parts.forEach((part, k) => {
        const code = this.parts.reduce((text, other, at) => text.replaceAll(`{${other.name}}`, codes[at]), codes[k]);
        this.buttons[k].textContent = code;
        this.buttons[k].ariaLabel = `${part.what}: ${code}. Press for the next of ${part.choices.length}.`;
      });
    }

    async next(k) {
      this.choice[k] = (this.choice[k] + 1) % this.parts[k].choices.length;
      this.label();
      this.panel.dataset.waits = "true";
      const came = await this.load();
      delete this.panel.dataset.waits;
      if (!came) return;
      const { places, panels, right } = window.SWITCHED[this.box.dataset.exercise], chosen = String(this.choice);
      this.panel.innerHTML = panels[places[chosen]];
      this.tried.add(chosen);
      const found = right.includes(chosen) ? "Found: this one earns all points. " : "";
      this.goal.textContent = `${found}You have tried ${this.tried.size} of the ${this.count} answers.`;
    }

    /* False, and words that say so, where the panels do not come. */
    async load() {
      const name = this.box.dataset.exercise;
      this.loading ??= new Promise((onload, onerror) => {
        document.head.append(Object.assign(document.createElement("script"), { src: new URL(`switches/${name}.js`, HERE), onload, onerror }));
      });
      try {
        await this.loading;
      } catch {
        this.loading = undefined;
        this.goal.textContent = "The panels could not be loaded. Look whether you are connected, then press again.";
      }
      return Boolean(window.SWITCHED?.[name]);
    }
  }

  for (const box of document.querySelectorAll('[data-player="switches"]')) new Switches(box);
})();
