// What the theme leaves to do: diagrams from this host, names in one piece, labels and focus for readers without a mouse
// or a screen.
const here = document.currentScript.src;
let named = 0;

// The script is 5 MB: only pages with diagrams load it.
function drawDiagrams() {
  if (!document.querySelector(".diagram")) return;
  const script = document.createElement("script");
  script.src = new URL("mermaid.min.js", here);
  script.onload = () => {
    const dark = document.body.dataset.mdColorScheme === "slate";
    mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "default" });
    mermaid.run({ querySelector: ".diagram" });
  };
  document.head.append(script);
}

// A name that is longer than a line may end one only between its words: site.css.
function markNames() {
  document.querySelectorAll(".md-content :not(pre) > code").forEach((code) => {
    const name = code.textContent;
    if (code.childElementCount || !/^[\w.-]+$/.test(name)) return;
    code.classList.add("name");
    code.innerHTML = name.replace(/[._](?=\w)/g, "$&<wbr>");
  });
}

// The theme makes the buttons of code blocks, and the frames of wide tables, after the page has loaded.
function markRegions() {
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((frame) => (frame.tabIndex = 0));
  // A page has many of them, and readers tell landmarks apart by their names.
  document.querySelectorAll("nav.md-code__nav, nav.md-nav[aria-labelledby]").forEach((nav) => {
    const label = document.getElementById(nav.getAttribute("aria-labelledby"));
    nav.removeAttribute("aria-labelledby");
    if (!nav.dataset.named) nav.ariaLabel = `${label ? label.textContent.trim() : "Code block"} ${++named}`;
    nav.dataset.named = "yes";
  });
}

addEventListener("DOMContentLoaded", () => {
  drawDiagrams();
  markNames();
  markRegions();
  new MutationObserver(markRegions).observe(document.body, { childList: true, subtree: true });
});
