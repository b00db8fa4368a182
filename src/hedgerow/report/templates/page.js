"use strict";
(async () => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const coarse = window.matchMedia("(pointer: coarse)");
  const darkColours = {{ dark_colours|tojson }};
  const plots = [...document.querySelectorAll(".plot")];
  const say = (words) => plots.forEach((plot) => {
    plot.className = "empty";
    plot.textContent = words + " " + plot.getAttribute("aria-label");
    plot.removeAttribute("role");
    plot.removeAttribute("aria-label");
  });

  const narrow = window.matchMedia("(max-width: 760px)");
  const contents = document.querySelector("nav details");
  const fold = () => { contents.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();

  // What is wider than its place is scrolled with the arrow keys, once it has the focus.
  const widths = new ResizeObserver((entries) => entries.forEach(({ target }) => {
    if (target.scrollWidth > target.clientWidth) {
      target.tabIndex = 0;
    } else {
      target.removeAttribute("tabindex");
    }
  }));
  document.querySelectorAll(".scroll, pre").forEach((place) => widths.observe(place));

  const folded = [];  // what printing opens, and closes again
  window.addEventListener("beforeprint", () => {
    folded.push(...document.querySelectorAll(".learner:not([open])"));
    folded.forEach((part) => { part.open = true; });
  });
  window.addEventListener("afterprint", () => folded.splice(0).forEach((part) => { part.open = false; }));
  if (!plots.length) return;

  const unpack = async () => {
    const bytes = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.appendChild(script);
  };
  try {
    await unpack();
  } catch (error) {
    say("This browser cannot unpack the charts (" + error.message + "). The tables hold the same results.");
    return;
  }

  let printing = false;  // on paper: light, and as wide as a column of it
  const figure = (name) => {
    let text = document.getElementById(name).textContent;
    if (dark.matches && !printing) {
      for (const [light, other] of Object.entries(darkColours)) text = text.replaceAll(light, other);
    }
    return JSON.parse(text);
  };
  const draw = (plot) => {
    const { data, layout } = figure(plot.dataset.figure);
    const tall = layout.meta && layout.meta.height;
    if (printing) Object.assign(layout, { width: 340, height: 225, autosize: false });
    if (printing && tall) Object.assign(layout, { width: 700, height: tall });
    layout.dragmode = coarse.matches ? false : "zoom";
    if (coarse.matches) { layout.xaxis.fixedrange = true; layout.yaxis.fixedrange = true; }
    if (!plot.dataset.drawn) plot.after(tools(plot));
    plot.dataset.drawn = "yes";
    return Plotly.react(plot, data, layout, { responsive: true, displayModeBar: false });
  };
  // Beside the chart, not in it as plotly has them: nothing in an image can be reached with the keyboard.
  const tools = (plot) => {
    const title = plot.closest("figure").querySelector("h3").textContent;
    const bar = document.createElement("div");
    const add = (words, action) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = words;
      button.setAttribute("aria-label", words + ": " + title);
      button.addEventListener("click", action);
      bar.append(button);
    };
    bar.className = "tools";
    add("Save as SVG", () => Plotly.downloadImage(plot, { format: "svg", filename: plot.dataset.figure }));
    add("Reset axes", () => draw(plot));
    return bar;
  };
  const near = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
  }), { rootMargin: "600px" });
  plots.forEach((plot) => near.observe(plot));
  dark.addEventListener("change", () => plots.filter((plot) => plot.dataset.drawn).forEach(draw));
  window.addEventListener("beforeprint", () => {
    printing = true;
    plots.forEach(draw);
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    plots.forEach(draw);
  });
})();
