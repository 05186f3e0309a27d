// What a page of the book does: the theme, the contents on a phone, search, terms that unfold, lines that are named.
"use strict";

const root = document.body.dataset.root;
const byId = id => document.getElementById(id);

// An element with its properties and what is in it.
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// ---- the theme: the system's, until the reader chooses another one ----

const night = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen == "dark" : night.matches;
}

function nameTheme() {
  byId("Theme").textContent = isDark() ? "Light" : "Dark";
  byId("Theme").setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
}

byId("Theme").addEventListener("click", () => {
  const chosen = isDark() ? "light" : "dark";
  const isSystems = (chosen == "dark") == night.matches;
  document.documentElement.dataset.theme = isSystems ? "" : chosen;
  isSystems ? localStorage.removeItem("theme") : localStorage.setItem("theme", chosen);
  nameTheme();
});
night.addEventListener("change", nameTheme);
nameTheme();

// ---- the contents ----

function showContents(shown) {
  byId("Contents").classList.toggle("shown", shown);
  byId("Menu").setAttribute("aria-expanded", shown);
}

byId("Menu").addEventListener("click", () => showContents(!byId("Contents").classList.contains("shown")));
byId("Contents").addEventListener("click", event => { if (event.target.closest("a")) showContents(false); });
// Only the contents may scroll: else the browser would no longer go to the section that the address names.
const current = document.querySelector("#Contents [aria-current]");
if (current) byId("Contents").scrollTop = current.offsetTop - byId("Contents").clientHeight / 2;

// ---- search ----

let index;  // a promise of search.json: search_index.py says what is in it

async function loadIndex() {
  const answer = await fetch(root + "search.json");
  const {pages, words} = await answer.json();
  return {pages, words, sorted: Object.keys(words)};
}

// {section: weight} of the sections with a word that begins so. The whole word weighs more than a longer one.
function sectionsWith(start, {words, sorted, pages}) {
  const found = new Map();
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    sorted[middle] < start ? low = middle + 1 : high = middle;
  }
  for (; low < sorted.length && sorted[low].startsWith(start); low++) {
    const places = words[sorted[low]];
    const rarity = Math.log(1 + 2 * pages.length / places.length) * (sorted[low] == start ? 1 : .3);
    for (let i = 0, section = 0; i < places.length; i += 2) {
      section += places[i];
      found.set(section, (found.get(section) ?? 0) + rarity * Math.sqrt(places[i + 1]));
    }
  }
  return found;
}

// The sections that have all words of a question, best first.
function search(question, all) {
  const words = question.toLowerCase().match(/[a-z0-9_]{2,}/g) ?? [];
  if (!words.length) return [];
  const found = words.map(word => sectionsWith(word, all));
  const weight = section => found.reduce((sum, map) => sum + map.get(section), 0);
  return [...found[0].keys()].filter(section => found.every(map => map.has(section)))
    .map(section => [weight(section), all.pages[section]]).sort((a, b) => b[0] - a[0]).map(pair => pair[1]);
}

async function showFound() {
  const question = byId("Search").value.trim(), box = byId("Found");
  box.hidden = question.length < 2;
  if (box.hidden) return;
  try {
    index ??= loadIndex();
    const found = search(question, await index);
    if (question != byId("Search").value.trim()) return;
    const links = found.slice(0, 12).map(([address, page, title]) =>
      element("a", {href: root + address}, title, element("small", {textContent: page == title ? address : page})));
    const left = found.length - links.length;
    const remark = left ? `and ${left} more; another word makes them fewer` : "";
    const nothing = `No page has all of these words: ${question}`;
    box.replaceChildren(...links, element("p", {textContent: found.length ? remark : nothing}));
  } catch (error) {
    index = undefined;
    box.replaceChildren(element("p", {textContent: "The search needs a server; python3 -m http.server is one."}));
  }
}

byId("Search").addEventListener("input", showFound);
byId("Search").addEventListener("focus", showFound);
document.addEventListener("click", event => { if (!event.target.closest("search")) byId("Found").hidden = true; });
document.querySelector("search").addEventListener("keydown", event => {
  const stops = [byId("Search"), ...byId("Found").querySelectorAll("a")];
  const place = stops.indexOf(document.activeElement);
  if (event.key == "Escape") {
    byId("Search").focus();
    byId("Found").hidden = true;
  } else if (event.key == "ArrowDown" || event.key == "ArrowUp") {
    stops[Math.max(0, Math.min(stops.length - 1, place + (event.key == "ArrowDown" ? 1 : -1)))].focus();
    event.preventDefault();
  } else if (event.key == "Enter" && place == 0 && stops[1]) {
    stops[1].click();
  }
});
document.addEventListener("keydown", event => {
  const writes = event.target.closest("input, textarea, select");
  if (event.key == "/" && !writes && !event.ctrlKey && !event.metaKey) {
    byId("Search").focus();
    event.preventDefault();
  }
  if (event.key == "Escape") showContents(false);
});

// ---- terms: a click unfolds the glossary's lines below the paragraph; a second one folds them ----

function unfold(link) {
  const open = link.getAttribute("aria-expanded") == "true";
  link.setAttribute("aria-expanded", !open);
  if (open) {
    link.definition.remove();
    return;
  }
  const meaning = byId("Term-" + link.dataset.term);
  link.definition = element("aside", {className: "definition"});
  link.definition.append(...[...meaning.childNodes].map(node => node.cloneNode(true)));
  link.definition.setAttribute("aria-label", meaning.querySelector("dfn").textContent);
  const item = link.closest("li, dd"), block = link.closest(".wide, p, h2, h3, blockquote");
  item && !(block && item.contains(block)) ? item.append(link.definition) : block.after(link.definition);
}

for (const link of document.querySelectorAll("a.term")) {
  if (!byId("Term-" + link.dataset.term)) continue;
  link.setAttribute("aria-expanded", "false");
  link.addEventListener("click", event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    unfold(link);
  });
}

// ---- what is too wide can be scrolled with the keyboard ----

function markWide() {
  for (const box of document.querySelectorAll("article :is(pre, .wide, p:has(> .picture))")) {
    box.scrollWidth > box.clientWidth ? box.tabIndex = 0 : box.removeAttribute("tabindex");
  }
}
addEventListener("load", markWide);
for (const article of document.querySelectorAll("article")) new ResizeObserver(markWide).observe(article);  // a bench makes it narrower

// ---- #L10-L20 names several lines of a listing; a click on a number names one ----

function chooseLines() {
  for (const line of document.querySelectorAll(".source .chosen")) line.classList.remove("chosen");
  const range = location.hash.match(/^#L(\d+)-L(\d+)$/);
  if (!range) return;
  for (let number = +range[1]; number <= +range[2]; number++) byId("L" + number)?.classList.add("chosen");
  byId("L" + range[1])?.scrollIntoView({block: "center"});
}
addEventListener("hashchange", chooseLines);
chooseLines();
for (const listing of document.querySelectorAll("pre[data-path]")) {
  listing.addEventListener("click", event => {
    const line = event.target.closest("span[id]");
    if (line && event.target == line && event.offsetX < 50) location.replace("#" + line.id);
  });
}
