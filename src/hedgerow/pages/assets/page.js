"use strict";
(async () => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const coarse = window.matchMedia("(pointer: coarse)");
  const darkColours = /* dark colours */ {};
  const plots = [...document.querySelectorAll(".plot")];
  const say = (words) => plots.forEach((plot) => { plot.className = "empty"; plot.textContent = words; });

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
    say("This browser cannot unpack the charts (" + error.message + "); the tables hold the same results.");
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
    if (printing) Object.assign(layout, { width: 340, height: 260, autosize: false });
    layout.dragmode = coarse.matches ? false : "zoom";
    if (coarse.matches) { layout.xaxis.fixedrange = true; layout.yaxis.fixedrange = true; }
    const file = { format: "svg", filename: plot.dataset.figure };
    const config = {
      responsive: true, displaylogo: false, displayModeBar: coarse.matches ? false : "hover",
      modeBarButtons: [["toImage", "resetScale2d"]], toImageButtonOptions: file,
    };
    plot.dataset.drawn = "yes";
    return Plotly.react(plot, data, layout, config);
  };
  const near = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
  }), { rootMargin: "600px" });
  plots.forEach((plot) => near.observe(plot));
  dark.addEventListener("change", () => plots.filter((plot) => plot.dataset.drawn).forEach(draw));
  window.addEventListener("beforeprint", () => document.querySelectorAll(".learner").forEach((part) => { part.open = true; }));
  window.addEventListener("beforeprint", () => { printing = true; plots.forEach(draw); });
  window.addEventListener("afterprint", () => { printing = false; plots.forEach(draw); });
})();
