// What the theme leaves out for people who use a keyboard or a screen reader.
function complete() {
  // Code and tables that are wider than the screen scroll; the keyboard has to reach them.
  for (const wide of document.querySelectorAll("pre > code, .md-typeset__scrollwrap, .cell-output")) {
    if (wide.scrollWidth > wide.clientWidth) {
      wide.tabIndex = 0;
    }
  }
  const search = document.querySelector("[role=dialog].md-search");
  if (search && !search.hasAttribute("aria-label")) {
    search.setAttribute("aria-label", "Search");
  }
}
addEventListener("load", complete);
addEventListener("resize", complete);
