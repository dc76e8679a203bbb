/* Attention by hand: a plane whose vectors are moved by mouse, finger or keys.

   svg: as the page has it, with a group for each vector. vectors: name -> [x, y], changed in place, always by whole
   tenths. changed: called after each move. begun: called before the first, with the name of the vector. */
"use strict";

byHand.plane = (svg, vectors, changed, begun = () => {}) => {
  const unit = Number(svg.dataset.unit);
  const reach = Number(svg.dataset.reach);
  const half = svg.viewBox.baseVal.width / 2;
  const beyond = 17; // from the tip to the middle of the letter
  const arrows = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

  const place = ([x, y]) => [half + unit * x, half - unit * y];
  const set = (thing, attributes) => {
    for (const [name, value] of Object.entries(attributes)) thing.setAttribute(name, value);
  };
  const whole = (value) => Math.max(-reach, Math.min(reach, Math.round(10 * value) / 10)) + 0;
  const under = (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [(x - half) / unit, (half - y) / unit];
  };

  function show(name) {
    const group = svg.querySelector(`[data-vector="${name}"]`);
    const vector = vectors[name];
    const [x, y] = place(vector);
    set(group.querySelector("line"), { x2: x, y2: y });
    for (const circle of group.querySelectorAll("circle")) set(circle, { cx: x, cy: y });
    const length = Math.hypot(...vector);
    const [right, up] = length > 1e-9 ? vector.map((part) => part / length) : [0, 1];
    set(group.querySelector("text"), { x: x + beyond * right, y: y - beyond * up });
    if (group.dataset.handle)
      set(group, { "aria-valuenow": vector[0], "aria-valuetext": vector.map((part) => byHand.fixed(part, 1)).join(", ") });
  }

  /* An output and, where it has moved, a trail from where it was. */
  function output(name, vector, was = vector) {
    const group = svg.querySelector(`[data-output="${name}"]`);
    const [x, y] = place(vector);
    const [x1, y1] = place(was);
    const [ghost, square] = group.querySelectorAll("rect");
    set(square, { x: x - 6, y: y - 6 });
    set(ghost, { x: x1 - 6, y: y1 - 6 });
    set(group.querySelector("line"), { x1, y1, x2: x, y2: y });
    set(group.querySelector("text"), { x, y: y + beyond });
  }

  function move(name, vector) {
    vectors[name] = vector.map(whole);
    show(name);
    changed(name);
  }

  for (const group of svg.querySelectorAll("[data-handle]")) {
    const name = group.dataset.handle;
    let grip = null; // between the pointer and the tip, while it is dragged
    set(group, { tabindex: 0, role: "slider", "aria-roledescription": "vector", "aria-label": group.dataset.words });
    set(group, { "aria-valuemin": -reach, "aria-valuemax": reach });
    // Not every browser heeds touch-action inside an SVG: without this a finger on a vector would scroll the page.
    group.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    group.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      event.preventDefault();
      group.focus({ preventScroll: true });
      group.setPointerCapture(event.pointerId);
      const tip = vectors[name];
      grip = under(event).map((part, k) => tip[k] - part);
      begun(name);
    });
    group.addEventListener("pointermove", (event) => {
      if (grip) move(name, under(event).map((part, k) => part + grip[k]));
    });
    for (const end of ["pointerup", "pointercancel"]) group.addEventListener(end, () => (grip = null));
    group.addEventListener("focus", () => begun(name));
    group.addEventListener("keydown", (event) => {
      const arrow = arrows[event.key];
      if (!arrow || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      const step = event.shiftKey ? 0.5 : 0.1;
      move(name, vectors[name].map((part, k) => part + step * arrow[k]));
    });
    show(name);
  }
  set(svg, { role: "group" }); // a picture until now: a screen reader would not look into it
  return { place, show, output, names: [...svg.querySelectorAll("[data-handle]")].map((group) => group.dataset.handle) };
};

/* A button that takes everything back to where it began. */
byHand.reset = (figure, vectors, planes, draw) => {
  const start = JSON.stringify(vectors);
  figure.querySelector(".by-hand-reset").addEventListener("click", () => {
    Object.assign(vectors, JSON.parse(start));
    for (const plane of planes) plane.names.forEach(plane.show);
    draw();
  });
};
