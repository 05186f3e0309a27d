// The bench beside a lesson: runs the stage's kernel, or one of its mistakes, in a worker, and shows at the source's lines
// what the emulator found and counted. The address holds what was run: #run&kernel=5b&o=--seqlen=256; all runs of a
// mistake: #run&mistake=5; or a kernel of the reader's: #run&kernel=own&of=5b&edits=..., the lines that differ from 5b's.
"use strict";

const bench = byId("Bench"), options = byId("Options");
const stage = bench.dataset.stage;
let data;          // bench.json
let worker;
let running;       // of the runs that go on: an AbortController
let shown = null;  // the run whose result is shown: {words, options, kernel, result, shows}
const listings = {};  // by path: a promise of the lines, {html, text}
const kernels = {};   // by name: a promise of the text of its PTX

const STEPS = "--step-limit=20000000";  // of a mistake, as make break-NN-K has it: it may go on for ever
const WIDE = matchMedia("(min-width: 82rem)");  // as in book.css: there the bench stands beside the lesson
const LONGEST = 6000;  // characters of edits in an address: some programs cut a longer link

const REFUSED = {code: 2, report: "", hazards: [], lines: [], counters: {}, ms: 0};  // by nvcc: nothing runs
const COUNTERS = [["warp instructions", /^smsp__inst_executed\.sum$/], ["barriers and waits", /^inst_synchronisation$/],
  ["special functions", /^inst_mufu$/], ["wavefronts of shared memory", /wavefronts_mem_shared/],
  ["bank conflicts", /bank_conflicts/], ["sectors of global memory", /sectors.*(global|lg)/],
  ["bytes of shared memory by wgmma and TMA", /shared_(read|write)_bytes|wgmma.*bytes/], ["FLOP of tensor cores", /tensor_flops/]];
const OUTCOMES = {
  "right": "the result is right, and nothing is reported",
  "right-hazard": "the result is right, and a hazard is reported",
  "wrong": "the result is wrong, and nothing is reported",
  "wrong-hazard": "the result is wrong, and a hazard is reported",
  "stops": "it does not come to a result",
};

const mistakeOf = key => data.mistakes.find(one => one.key == key);
const partsOf = number => data.mistakes.filter(one => parseInt(one.key) == number);
const say = words => { byId("Status").textContent = words; };

// ---- what is asked for ----

function makeFields() {
  const kernel = byId("Kernel");
  kernel.append(element("option", {value: "", textContent: "as the lesson has it"}));
  for (const {key, title} of data.mistakes) kernel.append(element("option", {value: key, textContent: `mistake ${key}: ${title}`}));
  const own = element("option", {value: "own", textContent: "the PTX below, edited", hidden: true});
  kernel.append(own);
  for (const [name, value] of data.fields) {
    let field;
    if (Array.isArray(value)) {
      field = element("select", {name}, ...value.map(each => element("option", {textContent: each})));
    } else if (typeof value == "boolean") {
      field = element("input", {name, type: "checkbox", checked: value});
    } else {
      field = element("input", {name, type: "number", min: 0, value});
    }
    options.elements.more.parentElement.before(element("label", {}, name.replace("-", " ") + " ", field));
  }
  for (const path of data.files) byId("File").append(element("option", {textContent: path}));
}

// The options of the form that are not what they are anyway.
function chosenOptions() {
  const words = [];
  for (const [name, value] of data.fields) {
    const field = options.elements[name];
    if (typeof value == "boolean" ? field.checked : field.value != String(Array.isArray(value) ? value[0] : value)) {
      words.push(typeof value == "boolean" ? `--${name}` : `--${name}=${field.value}`);
    }
  }
  return [...words, ...options.elements.more.value.split(/\s+/).filter(word => word)];
}

// Sets the form to the options of a run.
function setOptions(words) {
  const left = [];
  for (const [name, value] of data.fields) {
    const field = options.elements[name];
    typeof value == "boolean" ? field.checked = value : field.value = Array.isArray(value) ? value[0] : value;
  }
  for (const word of words) {
    const [name, value] = word.replace(/^--/, "").split("=");
    const field = data.fields.some(([known]) => known == name) && options.elements[name];
    if (!field) left.push(word);
    else field.type == "checkbox" ? field.checked = true : field.value = value;
  }
  options.elements.more.value = left.join(" ");
}

// What is chosen. Edits that are too long for an address are left out, and the reader is told.
function keepInAddress() {
  const state = new URLSearchParams({kernel: byId("Kernel").value});
  let isWhole = true;
  if (state.get("kernel") == "own") {
    const edits = JSON.stringify(own.edits());
    state.set("of", own.of);
    state.set("lines", own.base.split("\n").length);
    isWhole = edits.length <= LONGEST;
    if (isWhole) state.set("edits", edits);
  }
  for (const word of chosenOptions()) state.append("o", word);
  history.replaceState(null, "", isWhole ? "#run&" + state : location.pathname);
  return isWhole;
}

// ---- runs ----

function textOf(name) {
  kernels[name] ??= fetch(`${root}ptx/${name}.ptx.gz`).then(answer => {
    if (!answer.ok) throw new Error(`the kernel ${name} cannot be loaded: ${answer.status}`);
    return new Response(answer.body.pipeThrough(new DecompressionStream("gzip"))).text();
  });
  kernels[name].catch(() => delete kernels[name]);
  return kernels[name];
}

// The PTX that a reader edits: `base` is the text of the kernel `of`, as it was before.
const own = {
  of: "", base: "", field: byId("Own").querySelector("textarea"),

  // Takes another kernel's text, unless the reader has changed this one's.
  async load(of) {
    if (this.field.value != this.base || mistakeOf(of)?.needs || (this.base && of == this.of)) return;
    const base = await textOf(stage + (of && `-${of}`));
    Object.assign(this, {of, base});
    this.field.value = base;
    byId("Whose").textContent = `${of ? `Mistake ${of}` : "The lesson's kernel"}, ${base.split("\n").length} lines`;
  },

  // Its line, marked. The lines are counted from 1.
  async show(line) {
    const {field} = this;
    byId("Own").open = true;
    if (shown.kernel != "own") await this.load(shown.kernel);
    const lines = field.value.split("\n"), start = lines.slice(0, line - 1).join("\n").length + (line > 1);
    field.focus();
    field.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    field.scrollTop = (line - 1) / lines.length * field.scrollHeight - field.clientHeight / 2;
    bench.scrollTop = bench.scrollHeight;
  },

  undo() {
    this.field.value = this.base;
    if (byId("Kernel").value != "own") this.load(byId("Kernel").value);
  },

  // [[line, how many lines go, [the lines that come]], ...], from the top, counted from 0. Where the texts differ, they
  // are the same again from three equal lines on.
  edits() {
    const before = this.base.split("\n"), after = this.field.value.split("\n"), found = [];
    const meets = (b, a) => b <= before.length && a <= after.length && [0, 1, 2].every(i => before[b + i] == after[a + i]);
    for (let b = 0, a = 0; b < before.length || a < after.length;) {
      if (before[b] == after[a]) {
        b++;
        a++;
        continue;
      }
      let gone = before.length - b, come = after.length - a;
      search: for (let lines = 1; lines < 300; lines++) {
        for (let some = 0; some <= lines; some++) {
          if (!meets(b + some, a + lines - some)) continue;
          [gone, come] = [some, lines - some];
          break search;
        }
      }
      found.push([b, gone, after.slice(a, a + come)]);
      b += gone;
      a += come;
    }
    return found;
  },

  // The edits of a link; `lines`: how many lines the kernel had when it was made.
  async edit(of, lines, edits) {
    this.field.value = this.base;
    await this.load(of);
    const text = this.base.split("\n");
    if (text.length != lines) throw new Error("this link was made for another version of the kernel");
    for (const [line, gone, come] of JSON.parse(edits).reverse()) text.splice(line, gone, ...come.map(String));
    this.field.value = text.join("\n");
    byId("Own").open = true;
  },
};

// What the promise brings; an error as soon as the runs that it belongs to are stopped.
function unlessStopped(promise, {signal}) {
  return Promise.race([promise, new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  })]);
}

function work(request, runs) {
  worker ??= new Worker(root + "web/worker.js");
  const began = performance.now();
  const patience = setInterval(() => say(`running for ${Math.round((performance.now() - began) / 1000)} s: ` +
    "a long run may take minutes; Stop ends it"), 10000);
  return unlessStopped(new Promise((resolve, reject) => {
    worker.onmessage = event => event.data.progress ? say(`${event.data.progress} ...`) : resolve(event.data);
    worker.onerror = event => reject(new Error(event.message));
    worker.postMessage(request);
  }), runs).finally(() => clearInterval(patience));
}

// Ends the runs that go on, whether they load or compute.
function stop() {
  if (!running) return;
  worker?.terminate();
  worker = undefined;
  running.abort(new Error("stopped"));
  running = undefined;
}

// The sources, whose lines --counters prints.
async function sources() {
  const texts = data.files.map(async path => [path, (await linesOf(path)).map(({text}) => text).join("\n")]);
  return Object.fromEntries(await Promise.all(texts));
}

// What the worker is asked for.
async function requestFor(kernel, words, runs) {
  const isOwn = kernel == "own", isPrinted = !kernel && words.includes("--counters");
  const ptx = isOwn ? own.field.value : await unlessStopped(textOf(stage + (kernel && `-${kernel}`)), runs);
  return {stage, ptx, variant: mistakeOf(isOwn ? own.of : kernel)?.variant, edited: isOwn,
    sources: isPrinted ? await unlessStopped(sources(), runs) : undefined, options: kernel ? [STEPS, ...words] : words};
}

// Takes away what the page says of a run. What it will say stands at the top.
function forget() {
  bench.scrollTop = 0;
  for (const name of ["Guessed", "Runs", "Happened"]) byId(name).replaceChildren();
  shown = null;
}

// One run after the other; each is {kernel, options, shows}. Their buttons appear as they end. New runs stop those before.
async function runAll(requests) {
  stop();
  const mine = running = new AbortController();
  byId("Run").hidden = true;
  byId("Stop").hidden = false;
  forget();
  const done = [];
  try {
    for (const {kernel, options: words, shows, refused} of requests) {
      say("loading ...");
      const result = refused ? {...REFUSED, terminal: refused, errors: refused} :
        await work(await requestFor(kernel, words, mine), mine);
      done.push({kernel, options: words, result, shows: shows ?? []});
      showRuns(done);
    }
  } catch (error) {
    if (!running || running == mine) say(error.message);  // else newer runs have the word
  }
  if (running && running != mine) return [];
  running = undefined;
  byId("Stop").hidden = true;
  byId("Run").hidden = false;
  return done;
}

function outcomeOf({report, errors, hazards, code}) {
  const line = report.match(/^result +(\w+)/m)?.[1];
  if (!line && report && !errors) return code ? "wrong" : "right";  // it has explained something, as --explain asks
  if (!line || hazards.some(hazard => hazard.stopped)) return "stops";
  const isReported = hazards.some(hazard => hazard.grade != "note");
  return (line == "right" ? "right" : "wrong") + (isReported ? "-hazard" : "");
}

// ---- what happened ----

const nameOf = ({kernel, options: words}) =>
  [kernel == "own" ? "your PTX" : kernel ? `mistake ${kernel}` : "the kernel", ...words].join(" ");

// The first run is shown, and a button leads to each of several.
function showRuns(done) {
  const buttons = done.map(one => {
    const button = element("button", {type: "button", textContent: nameOf(one)});
    button.addEventListener("click", () => {
      byId("Kernel").value = one.kernel;
      setOptions(one.options);
      show(one);
      markShown(done);
    });
    return button;
  });
  if (done.length > 1) byId("Runs").replaceChildren(...buttons);
  if (!shown) show(done[0]);
  markShown(done);
}

function markShown(done) {
  [...byId("Runs").children].forEach((button, place) => button.setAttribute("aria-pressed", done[place] == shown));
  say(shown.result.ms ? `${Math.round(shown.result.ms)} ms in this browser` : "");
}

const where = place => place?.file ? `${place.file.split("/").pop()}:${place.line}` : place ? `PTX line ${place.ptx}` : "";

// Hazards of one kind at the same lines are one: [[hazard, how many], ...].
function together(hazards) {
  const groups = new Map();
  for (const hazard of hazards) {
    const key = [hazard.kind, hazard.grade, where(hazard.here), where(hazard.other)].join();
    groups.has(key) ? groups.get(key)[1]++ : groups.set(key, [hazard, 1]);
  }
  return [...groups.values()];
}

// A hazard: its first line, the buttons that show its lines, and the rest, which only the first one has unfolded.
function hazardCard([hazard, times], place) {
  const [title, ...rest] = hazard.text.trim().replace(/^ {4}/gm, "").split("\n");
  const words = element("details", {open: !place}, element("summary", {textContent: title}), rest.join("\n"));
  const card = element("section", {className: `hazard ${hazard.grade}`}, words);
  const spots = [hazard.here, hazard.other].filter(spot => spot);
  const button = (words, act) => {
    const made = element("button", {type: "button", textContent: words});
    made.addEventListener("click", act);
    card.append(made);
  };
  for (const spot of spots) if (spot.file) button(where(spot), () => { goTo(spot); showPane(); });
  for (const {ptx} of spots) button(`PTX ${ptx}`, () => own.show(ptx));
  if (times > 1) card.append(element("span", {textContent: `and ${times - 1} more at the same lines`}));
  return card;
}

const squeezed = text => text.split(/\s+/).join(" ");

function show(one) {
  shown = one;
  performance.mark("result");  // for tests
  const {result} = one, outcome = outcomeOf(result);
  const line = result.report.match(/^result +(.*)$/m)?.[1] ?? result.error ?? (result.errors.trim().split("\n")[0] ||
    "The report below has the answer.");
  const box = byId("Happened");
  box.replaceChildren(element("p", {className: `verdict ${outcome.startsWith("right") ? "right" : "wrong"}`, textContent: line}));
  const isSeen = words => squeezed(result.terminal).includes(squeezed(words));
  for (const [name, found] of [["as", one.shows.filter(isSeen)], ["not as", one.shows.filter(words => !isSeen(words))]]) {
    const textContent = `${name} the lesson says: ${found.join(" · ")}`;
    if (found.length) box.append(element("p", {className: "shows", textContent}));
  }
  box.append(...together(result.hazards).map(hazardCard));
  byId("Report").querySelector("pre").textContent = result.terminal;
  showCounters(result.lines);
  const spot = result.hazards.find(hazard => hazard.here?.file)?.here;
  spot ? goTo(spot) : showSource(firstEdit() ?? hottestLine(result.lines));
  if (one.options.some(word => /^--(counters|explain|help)/.test(word))) {  // the report alone has what was asked for
    byId("Report").open = true;
    bench.scrollTop += byId("Report").getBoundingClientRect().top - bench.getBoundingClientRect().top - 60;
  }
}

function showCounters(lines) {
  const names = [...new Set(lines.flatMap(line => Object.keys(line.counters)))].sort(), before = byId("Counter").value;
  const some = COUNTERS.filter(([, pattern]) => names.some(name => pattern.test(name)));
  byId("Counter").parentElement.hidden = !names.length;
  byId("Counter").replaceChildren(...some.map(([name]) => element("option", {textContent: name})),
    element("optgroup", {label: "all"}, ...names.map(name => element("option", {textContent: name}))));
  if ([...some.map(([name]) => name), ...names].includes(before)) byId("Counter").value = before;
}

// The line of the file that is shown with most instructions.
function hottestLine(lines) {
  const here = lines.filter(line => line.file == byId("File").value);
  const instructions = line => line.counters["smsp__inst_executed.sum"] ?? 0;
  return here.sort((a, b) => instructions(b) - instructions(a))[0]?.line;
}

// ---- the source ----

function linesOf(path) {
  listings[path] ??= fetch(`${root}${path}.html`).then(answer => answer.text()).then(text => {
    const page = new DOMParser().parseFromString(text, "text/html");
    return [...page.querySelectorAll("pre[data-path] code > span")].map(line =>
      ({html: line.innerHTML.replace(/\n$/, ""), text: line.textContent.replace(/\n$/, "")}));
  });
  return listings[path];
}

function chosenMistake() {
  const kernel = shown ? shown.kernel : byId("Kernel").value;
  return mistakeOf(kernel == "own" ? own.of : kernel);
}

// The number of the first line that a mistake changes, in the file that is shown.
function firstEdit() {
  const changed = chosenMistake()?.edits;
  if (!changed) return undefined;
  const path = data.files.find(file => changed[file]?.length);
  if (path) byId("File").value = path;
  return path && changed[path][0][0] + 1;
}

// The lines of a file as the chosen kernel has them: {html, number, kind}; lines that a mistake removes have no number.
function withEdits(lines, edits) {
  const rows = [];
  let place = 0;
  const keep = end => { for (; place < end; place++) rows.push({html: lines[place]}); };
  for (const [line, gone, come] of edits) {
    keep(line);
    for (; place < line + gone; place++) rows.push({html: lines[place], kind: "gone"});
    for (const html of come) rows.push({html, kind: "new"});
  }
  keep(lines.length);
  let number = 0;
  for (const row of rows) if (row.kind != "gone") row.number = ++number;
  return rows;
}

// The file that is chosen, with the line in sight; isNamed: it is marked, because somebody asked for it.
async function showSource(line, isNamed = false) {
  const path = byId("File").value, pane = byId("Pane"), code = pane.querySelector("code");
  const rows = withEdits((await linesOf(path)).map(({html}) => html), chosenMistake()?.edits[path] ?? []);
  if (byId("File").value != path) return;
  const name = byId("Counter").value, pattern = COUNTERS.find(([words]) => words == name)?.[1];
  const counts = new Map(), grades = new Map(), result = shown?.result;
  for (const one of result?.lines ?? []) {
    if (one.file != path) continue;
    let sum = 0;
    for (const [counter, value] of Object.entries(one.counters)) if (pattern ? pattern.test(counter) : counter == name) sum += value;
    if (sum) counts.set(one.line, (counts.get(one.line) ?? 0) + sum);
  }
  for (const hazard of result?.hazards ?? []) {
    for (const place of [hazard.other, hazard.here]) if (place?.file == path) grades.set(place.line, hazard.grade);
  }
  const most = Math.max(1, ...counts.values());
  pane.classList.toggle("counted", counts.size > 0);
  code.replaceChildren(...rows.map(({html, number, kind}) => {
    const count = counts.get(number), grade = grades.get(number);
    const row = element("span", {className: [kind, grade && `at-${grade}`].filter(word => word).join(" ")});
    const cell = element("i", {textContent: count ? count.toLocaleString("en") : ""});
    if (count) cell.style.setProperty("--heat", `${Math.round(10 + 50 * Math.sqrt(count / most))}%`);
    row.innerHTML = html || " ";
    row.prepend(cell, element("b", {textContent: number ?? "−"}));
    row.append("\n");
    row.dataset.line = number ?? "";
    return row;
  }));
  pane.setAttribute("aria-label", path);
  const row = line && code.querySelector(`[data-line="${line}"]`);
  row?.classList.toggle("chosen", isNamed);
  if (row) pane.scrollTop = row.offsetTop - pane.clientHeight / 2;  // scrollIntoView would move the lesson as well
}

function goTo({file, line}, isNamed) {
  if (![...byId("File").options].some(option => option.value == file)) byId("File").append(element("option", {textContent: file}));
  byId("File").value = file;
  showSource(line, isNamed);
}

// The reports may have pushed the source out of sight.
function showPane() {
  const box = bench.getBoundingClientRect(), pane = byId("Pane").getBoundingClientRect();
  if (pane.top < box.top || pane.bottom > box.bottom) bench.scrollTop += pane.top - box.top - 60;
}

// A name in the lesson leads to its line; while the bench stands beside the lesson, on the bench.
function showNames() {
  for (const link of document.querySelectorAll("article a.code")) {
    const [, file, line] = link.getAttribute("href").match(/^(?:\.\.\/)*(.*)\.html(?:#L(\d+))?$/) ?? [];
    if (!data.files.includes(file)) continue;
    link.addEventListener("click", event => {
      const isBeside = isBenched() && WIDE.matches;
      if (!isBeside || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      goTo({file, line}, true);
    });
  }
}

// ---- a mistake: first a guess, then its runs ----

function chooseMistake(number) {
  openBench();
  stop();
  forget();
  const parts = partsOf(number), here = parts.filter(part => !part.needs);
  byId("Kernel").value = (here[0] ?? parts[0]).key;
  byId("Guess").hidden = !here.length;
  byId("Guess").reset();
  byId("Guess").dataset.number = number;
  say("");
  setOptions(((here[0] ?? parts[0]).runs[0]?.[0] ?? "").split(/\s+/).filter(word => word));
  showSource(firstEdit());
  if (here.length) byId("Guess").querySelector("input").focus({preventScroll: true});
  else byId("Happened").replaceChildren(...parts.map(typedCard));
}

// What to type for a mistake that cannot run here, and what it shows then.
function typedCard({key, needs, prints}) {
  const command = element("code", {textContent: `make break-${stage}-${parseInt(key)}`});
  return element("section", {className: "typed"}, element("p", {}, `Mistake ${key} ${needs} At home type `, command, "."),
    element("details", {}, element("summary", {textContent: "What it prints"}), element("pre", {textContent: prints.join("\n")})));
}

// All runs of a mistake, one after the other.
async function runMistake(number, guess) {
  byId("Guess").hidden = true;
  const parts = partsOf(number), words = text => text.split(/\s+/).filter(word => word);
  const done = await runAll(parts.filter(part => !part.needs).flatMap(({key: kernel, refused, runs}) =>
    refused ? [{kernel, options: [], shows: [], refused}] : runs.map(([text, shows]) => ({kernel, options: words(text), shows}))));
  if (!done.length) return;
  const met = Map.groupBy(done, ({result}) => OUTCOMES[outcomeOf(result)]);
  const happened = met.size == 1 ? [...met.keys()][0] :
    [...met].map(([outcome, runs]) => `with ${runs.map(nameOf).join(" and ")} ${outcome}`).join("; ");
  byId("Guessed").append(...guess ? [element("p", {className: "guessed",
    textContent: `Your guess: ${OUTCOMES[guess]}. What happened: ${happened}.`})] : [],
    ...parts.filter(part => part.needs).map(typedCard));
}

byId("Guess").addEventListener("submit", event => {
  event.preventDefault();
  const guess = new FormData(event.target).get("guess"), number = event.target.dataset.number;
  history.replaceState(null, "", `#run&mistake=${number}`);
  runMistake(number, guess);
});

// ---- the form, and the address ----

async function runChosen() {
  const kernel = byId("Kernel").value, one = mistakeOf(kernel);
  byId("Guess").hidden = true;
  if (one?.needs) {
    stop();
    forget();
    return byId("Happened").replaceChildren(typedCard(one));
  }
  const isWhole = keepInAddress();
  await runAll([{kernel, options: chosenOptions(), refused: one?.refused}]);
  if (!isWhole) say(`${byId("Status").textContent}; the edits are too long for a link`);
}

options.addEventListener("submit", event => { event.preventDefault(); runChosen(); });
byId("Stop").addEventListener("click", stop);
byId("File").addEventListener("change", () => showSource());
byId("Counter").addEventListener("change", () => showSource());
byId("Kernel").addEventListener("change", () => {
  shown = null;
  byId("Guess").hidden = true;
  showSource(firstEdit());
  if (byId("Own").open && byId("Kernel").value != "own") own.load(byId("Kernel").value);
});
byId("Sight").addEventListener("submit", event => event.preventDefault());
byId("Own").addEventListener("toggle", () => {
  const kernel = byId("Kernel").value;
  if (byId("Own").open && kernel != "own") own.load(kernel);
});
byId("RunOwn").addEventListener("click", () => {
  byId("Kernel").value = "own";
  runChosen();
});
byId("Undo").addEventListener("click", () => own.undo());

// Where there is no room for both, the bench covers the lesson, and the button leads back to it.
function toggleBench(isOpen) {
  document.body.classList.toggle("benched", isOpen);
  byId("Lab").setAttribute("aria-expanded", isOpen);
  byId("Lab").textContent = isOpen && !WIDE.matches ? "Lesson" : "Bench";
}
const isBenched = () => document.body.classList.contains("benched");
const openBench = () => toggleBench(true);
WIDE.addEventListener("change", () => toggleBench(isBenched()));

async function start() {
  data = await (await fetch("bench.json")).json();
  makeFields();
  byId("Lab").hidden = false;
  byId("Lab").addEventListener("click", () => toggleBench(!isBenched()));
  for (const link of document.querySelectorAll('a.code[href*="/break-"]')) {
    link.setAttribute("role", "button");
    link.classList.add("breaks");
    link.addEventListener("click", event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      chooseMistake(parseInt(link.getAttribute("href").match(/break-(\d+)/)[1]));
    });
  }
  for (const link of document.querySelectorAll("a.runs")) {
    link.setAttribute("role", "button");
    link.addEventListener("click", () => { if (link.href == location.href) runFromAddress(); });  // else the address changes
  }
  const skip = element("a", {className: "skip", href: "#Options", textContent: "To the bench"});
  skip.addEventListener("click", event => {
    event.preventDefault();
    openBench();
    byId("Kernel").focus();
  });
  document.querySelector(".skip").after(skip);
  showNames();
  await showSource();
  runFromAddress();
  addEventListener("hashchange", runFromAddress);
}

// #run&guess=5 asks for a guess at mistake 5; #run&mistake=5 is all of its runs, #run&kernel=5b&o=--causal is one run.
async function runFromAddress() {
  if (!location.hash.startsWith("#run&")) return;
  const state = new URLSearchParams(location.hash.slice(4)), kernel = state.get("kernel") ?? "";
  openBench();
  if (state.get("guess")) return chooseMistake(state.get("guess"));
  if (state.get("mistake")) {
    chooseMistake(state.get("mistake"));
    return runMistake(state.get("mistake"));
  }
  byId("Kernel").value = kernel;
  setOptions(state.getAll("o"));
  try {
    if (kernel == "own") await own.edit(state.get("of"), state.get("lines"), state.get("edits"));
  } catch (error) {
    return say(error.message);
  }
  runChosen();
}

// At once, for a text that becomes narrower later would no longer show the section that the address names.
if (WIDE.matches) openBench();
start();
