// Explorables in a lesson: each runs a kernel in the emulator, in a worker, and shows the record of its steps; or asks
// the emulator where things lie. One engine for all: choices, a scene, a player with a slider, and a sentence for each
// moment. The address holds the state: #watch&name=ring&slots=2&at=17.
//
// Nothing here knows results. A kind of explorable (KINDS) reads them from the steps, from the PTX's instructions and
// from the words of the source lines that the steps name.
"use strict";

{
// A step is so many numbers: EmulatorStep in common/emulator/emulator.h.
const FIELDS = 12;
const [KIND, BLOCK, WARP, LANES, PTX, FILE, LINE, WHAT, MBARRIER, PHASE, PENDING, BYTES] = Array(FIELDS).keys();
const [, INSTRUCTION, BEGINS, ENDS, MBARRIER_BEGINS, MBARRIER_CHANGES, PHASE_ENDS, PASSES, FAILS, VALUE] = Array(10)
  .keys();
const SVG = element("div", {innerHTML: "<svg></svg>"}).firstChild.namespaceURI;
const many = number => number.toLocaleString("en");
const plural = (count, word) => `${many(count)} ${word}${count == 1 ? "" : "s"}`;

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// ---- the worker ----

let worker, queue = Promise.resolve();
const answers = {};  // by request: layouts are asked for again and again

function send(request) {
  worker ??= new Worker(root + "web/worker.js");
  return new Promise((resolve, reject) => {
    worker.onmessage = event => { if (!event.data.progress) resolve(event.data); };
    worker.onerror = event => reject(new Error(event.message));
    worker.postMessage(request);
  });
}

// One request after the other.
function ask(request) {
  const answer = queue.then(() => send(request));
  queue = answer.catch(() => {});
  return answer;
}

async function layout(...words) {
  const key = words.join(" ");
  answers[key] ??= ask({layout: words.map(String)});
  const {code, report, errors} = await answers[key];
  if (code) throw new Error(errors || `the emulator has no answer to ${key}`);
  return JSON.parse(report);
}

const texts = {};  // by address: promises

function load(address, read) {
  texts[address] ??= fetch(root + address).then(answer => {
    if (!answer.ok) throw new Error(`${address} cannot be loaded: ${answer.status}`);
    return read(answer);
  });
  texts[address].catch(() => delete texts[address]);
  return texts[address];
}

const ptxOf = name => load(`ptx/${name}.ptx.gz`, answer =>
  new Response(answer.body.pipeThrough(new DecompressionStream("gzip"))).text());

// The lines of a source file: {html, text}.
const linesOf = path => load(`${path}.html`, async answer => {
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return [...page.querySelectorAll("pre[data-path] code > span")].map(line =>
    ({html: line.innerHTML.replace(/\n$/, ""), text: line.textContent}));
});

// ---- a run: the steps of its first block ----

class Run {
  constructor(result, ptx, files) {
    const all = result.steps, kept = [];
    for (let i = 0; i < all.length; i += FIELDS) {
      if (all[i + BLOCK] == 0 && all[i + KIND] != 0) kept.push(all.subarray(i, i + FIELDS));
    }
    this.steps = kept;
    this.result = result;
    this.ptx = ptx.split("\n");
    this.files = files;  // [{path, lines}, ...]
    this.warps = [...new Set(kept.filter(step => step[KIND] == INSTRUCTION).map(step => step[WARP]))].sort((a, b) =>
      a - b);
    this.names = this.nameMbarriers();
  }

  opcode(step) { return this.ptx[step[PTX] - 1]?.trim().replace(/^@!?%p\d+\s+/, "").split(/\s/)[0] ?? ""; }
  // The words of its source line.
  source(step) { return this.files[step[FILE]]?.lines[step[LINE] - 1]?.text ?? ""; }
  spot(step) { return {file: this.files[step[FILE]], line: step[LINE]}; }

  // {name, index, text} of each mbarrier, by address: as the line that initialises it names it.
  nameMbarriers() {
    const names = new Map(), counts = {};
    for (const step of this.steps) {
      if (step[KIND] != MBARRIER_BEGINS) continue;
      const name = this.source(step).match(/shared_address\(&?(?:\w+\.)?(\w+)/)?.[1] ?? "mbarrier";
      const index = counts[name] = (counts[name] ?? -1) + 1;
      names.set(step[MBARRIER], {name, index, text: `${name}[${index}]`, arrivals: step[PENDING]});
    }
    for (const one of names.values()) if (counts[one.name] == 0) one.text = one.name;
    return names;
  }

  // The address of an mbarrier.
  mbarrier(name, index) {
    return [...this.names].find(([, one]) => one.name == name && one.index == index)?.[0];
  }
}

async function record(stage, kernel, options) {
  const ptx = await ptxOf(kernel);
  const result = await ask({stage, ptx, options, steps: true});
  if (!result.steps?.length) throw new Error(result.errors || "the run has left no steps");
  const files = await Promise.all(result.step_files.map(async path => ({path, lines: await linesOf(path)})));
  return new Run(result, ptx, files);
}

// ---- timelines ----

const LABEL = 84, BAND = 17, GAP = 5;

// Rows of bands over moments: {label, segments: [{from, to, kind, text}]} or, with `heights` between 0 and 1, one for
// each moment, an area. from, to: moments, from <= to. Returns the picture and what moves its mark.
function timeline(width, length, rows, name, choose) {
  const inner = width - LABEL - 2, x = at => LABEL + inner * at / length;
  const height = rows.length * (BAND + GAP) + GAP;
  const picture = drawn("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name});
  rows.forEach((row, place) => {
    const y = GAP + place * (BAND + GAP);
    picture.append(drawn("text", {x: 0, y: y + 13, class: "label"}, row.label));
    picture.append(drawn("rect", {x: LABEL, y, width: inner, height: BAND, class: "ground"}));
    if (row.heights) {
      const points = row.heights.map((h, at) => `${x(at)},${y + BAND * (1 - h)} ${x(at + 1)},${y + BAND * (1 - h)}`);
      picture.append(drawn("polygon",
        {points: `${LABEL},${y + BAND} ${points.join(" ")} ${LABEL + inner},${y + BAND}`, class: "area"}));
    }
    for (const {from, to, kind, text} of row.segments ?? []) {
      const wide = Math.max(1.5, x(to) - x(from) - .6);
      picture.append(drawn("rect", {x: x(from), y, width: wide, height: BAND, class: `band ${kind}`}));
      const fitting = [text, text?.match(/^(?:tile|softmax|QK|PV) (\d+)$/)?.[1]].find(words => words
        && words.length * 6.4 + 4 < wide);
      if (fitting) picture.append(drawn("text", {x: x(from) + wide / 2, y: y + 12.5, class: `on ${kind}`}, fitting));
    }
  });
  const mark = drawn("rect", {y: 0, height, width: 2, class: "here"});
  picture.append(mark);
  picture.addEventListener("click", event => {
    const at = Math.floor((event.clientX - picture.getBoundingClientRect().left - LABEL) / inner * length);
    if (at >= 0) choose(Math.min(length - 1, at));
  });
  return {picture, move(at) { mark.setAttribute("x", x(at + .5) - 1); }};
}

// A legend: [[kind, words], ...].
function legend(kinds) {
  return element("p", {className: "legend"}, ...kinds.map(([kind, words]) =>
    element("span", {}, element("i", {className: `key ${kind}`}), words)));
}

function table(heads, rows, caption) {
  return element("div", {className: "wide"}, element("table", {}, element("caption", {textContent: caption}),
    element("thead", {}, element("tr", {}, ...heads.map(head => element("th", {scope: "col", textContent: head})))),
    element("tbody", {}, ...rows.map(([head, ...cells]) => element("tr", {}, element("th", {scope: "row",
      textContent: head}),
      ...cells.map(cell => element("td", {textContent: cell})))))));
}

// Where a step is among moments, which are places in the steps, in order: the last moment that is not after it.
function momentOf(moments, place) {
  let low = 0, high = moments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    moments[middle] <= place ? low = middle + 1 : high = middle;
  }
  return Math.max(0, low - 1);
}

// Of segments between steps, those between moments.
function between(moments, segments) {
  return segments.map(one => ({...one, from: momentOf(moments, one.from), to: Math.max(momentOf(moments,
    one.from) + .5, momentOf(moments, one.to))}));
}

// Each warp in a lane: where it executes, and where it stands at an instruction for more than some rounds of all warps.
function warpRows(run, moments) {
  const patience = 3 * run.warps.length;
  return run.warps.map(warp => {
    const segments = [];
    let began = null, last = null, lastStep = null;
    const close = (to, kind, from, step) => segments.push({from, to, kind, text: kind == "waits"
      ? waitName(run.opcode(step)) : ""});
    run.steps.forEach((step, place) => {
      if (step[KIND] != INSTRUCTION || step[WARP] != warp) return;
      if (last != null && place - last > patience * 2) {
        close(last, "works", began);
        close(place, "waits", last, lastStep);
        began = place;
      }
      began ??= place;
      last = place;
      lastStep = step;
    });
    if (last != null) close(last, "works", began);
    return {label: `warp ${warp}`, segments: between(moments, segments)};
  });
}

function waitName(opcode) {
  if (/^mbarrier|^bra/.test(opcode)) return "mbarrier";
  return /^bar/.test(opcode) ? "barrier" : /^wgmma/.test(opcode) ? "wgmma" : "";
}

// What each warp last executed at a moment, for those who want to know.
function warpTable(run, place) {
  const last = new Map();
  for (let i = 0; i <= place; i++) if (run.steps[i][KIND] == INSTRUCTION) last.set(run.steps[i][WARP], run.steps[i]);
  return table(["warp", "line", "instruction"], run.warps.filter(warp => last.has(warp)).map(warp => {
    const {file, line} = run.spot(last.get(warp));
    return [`${warp}`, file ? `${file.path.split("/").pop()}:${line}` : "", run.opcode(last.get(warp))];
  }), "What each warp has executed last");
}

// ---- the phases of mbarriers: (lesson 06) ----

// Those of a slot, and that of the queries.
function phasesOf(run, slot) {
  const chosen = [...run.names].filter(([, one]) => one.index == slot || one.name == "q_full");
  const addresses = chosen.map(([address]) => address);
  const moments = [], words = [], states = [];
  const state = new Map(chosen.map(([address, one]) => [address,
    {...one, phase: 0, pending: one.arrivals, bytes: 0, waiting: new Map()}]));
  run.steps.forEach((step, place) => {
    if (step[KIND] < MBARRIER_BEGINS || step[KIND] > FAILS || !addresses.includes(step[MBARRIER])) return;
    const one = state.get(step[MBARRIER]), before = {...one};
    const again = moments.length && sameEvent(run.steps[moments.at(-1)], step);
    if (step[KIND] == FAILS) one.waiting.set(step[WARP], step[PHASE]);
    if (step[KIND] == PASSES) one.waiting.delete(step[WARP]);
    if (step[KIND] == PHASE_ENDS) Object.assign(one, {phase: step[PHASE] + 1, pending: step[PENDING], bytes: 0});
    if (step[KIND] == MBARRIER_CHANGES || step[KIND] == MBARRIER_BEGINS) Object.assign(one,
      {pending: step[PENDING], bytes: step[BYTES]});
    const now = [...state.values()].map(each => ({...each, waiting: new Map(each.waiting)}));
    if (again) {
      words.at(-1).warps.push(step[WARP]);
      states[states.length - 1] = now;
      return;
    }
    moments.push(place);
    words.push({step, before, warps: [step[WARP]]});
    states.push(now);
  });
  return {moments, words, states};
}

// Several warps that ask one after the other are one moment.
function sameEvent(before, step) {
  return before[KIND] == step[KIND] && before[MBARRIER] == step[MBARRIER] && before[PHASE] == step[PHASE] &&
    (step[KIND] == PASSES || step[KIND] == FAILS);
}

const warpsOf = warps => `${warps.length == 1 ? "Warp" : "Warps"} ${ranges(warps)}`;

// "0 to 3, 5"
function ranges(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b), parts = [];
  for (let i = 0; i < sorted.length; i++) {
    let j = i;
    while (sorted[j + 1] == sorted[j] + 1) j++;
    parts.push(j == i ? `${sorted[i]}` : `${sorted[i]} to ${sorted[j]}`);
    i = j;
  }
  return parts.join(", ");
}

const parity = phase => (phase & 1);

function sayPhase({step, before, warps}, one) {
  const name = one.text, several = warps.length > 1;
  const left = [[step[PENDING], "arrival"], [step[BYTES], "byte"]].filter(([count]) => count);
  const missing = `phase ${step[PHASE]} waits for ${left.map(one => plural(...one)).join(" and ") || "nothing more"}`;
  const asked = `phase ${step[PHASE]}, parity ${parity(step[PHASE])}`;
  const asks = `${warpsOf(warps)} ${several ? "ask" : "asks"} ${name} for ${asked}.`;
  switch (step[KIND]) {
    case MBARRIER_BEGINS: return `Warp ${step[WARP]} initialises ${name} for ${plural(step[PENDING], "arrival")} a phase.`;
    case PHASE_ENDS: return `Nothing is missing: phase ${step[PHASE]} of ${name} is over, and phase ${step[PHASE] + 1} begins with parity ${parity(step[PHASE] + 1)}.`;
    case PASSES: return `${asks} That phase is over, so ${several ? "they go" : "the warp goes"} on.`;
    case FAILS: return `${asks} That phase is not over, so ${several ? "they wait" : "the warp waits"}.`;
  }
  if (step[WHAT]) return `A copy has brought ${plural(before.bytes - step[BYTES], "byte")} for ${name}: ${missing}.`;
  if (step[BYTES] > before.bytes) return `Warp ${step[WARP]} announces ${plural(step[BYTES] - before.bytes, "byte")} at ${name}: ${missing}.`;
  return `Warp ${step[WARP]} arrives at ${name}: ${missing}.`;
}

const PHASES = {
  choices: [{name: "slot", label: "Slot", values: ["0", "1", "2", "3"]},
    {name: "causal", label: "Mask", values: [["", "none"], ["causal", "causal"]]}],
  async load({slot, causal}, stage) {
    const run = await record(stage, stage, ["--heads=1", causal ? "--seqlen=640" : "--seqlen=512", ...(causal
      ? ["--causal"] : [])]);
    const {moments, words, states} = phasesOf(run, Number(slot));
    const barriers = states[0];
    return {
      run, moments, states, start: Math.max(0, words.findIndex(({step}) => step[KIND] == FAILS)),
      draw(width, choose) {
        const rows = [];
        barriers.forEach((one, b) => {
          const segments = [];
          states.forEach((now, at) => {
            const {phase} = now[b], last = segments.at(-1);
            if (last?.phase == phase) last.to = at + 1;
            else segments.push({phase, from: at, to: at + 1, kind: `parity${parity(phase)}`,
              text: `phase ${phase}, parity ${parity(phase)}`});
          });
          const most = Math.max(1, ...states.map(now => now[b].bytes));
          rows.push({label: one.text, segments});
          rows.push({label: "  arrivals", heights: states.map(now => now[b].pending / one.arrivals)});
          if (most > 1) rows.push({label: "  bytes", heights: states.map(now => now[b].bytes / most)});
          rows.push({label: "  waiting", heights: states.map(now => now[b].waiting.size / run.warps.length)});
        });
        return timeline(width, moments.length,
          rows, `The phases of the mbarriers of slot ${slot}, what they wait for, and the warps that wait`, choose);
      },
      keys: [["parity0", "a phase of parity 0"], ["parity1", "a phase of parity 1"],
        ["area", "what is missing, and how many warps wait"]],
      below: at => table(["mbarrier", "phase", "parity", "arrivals missing", "bytes missing", "warps that wait"],
        states[at].map(one => [one.text, one.phase, parity(one.phase), `${one.pending} of ${one.arrivals}`,
          many(one.bytes),
          one.waiting.size ? ranges(one.waiting.keys()) : "none"]), "The mbarriers now"),
      say: at => sayPhase(words[at], run.names.get(words[at].step[MBARRIER])),
      spot: at => words[at].step[KIND] == PHASE_ENDS ? null : run.spot(words[at].step),
    };
  },
};

// ---- the ring: (lesson 07) ----

function ringOf(run, letter) {
  const slots = [...run.names].filter(([, one]) => one.name == `${letter}_full`).map(([address, {index}]) =>
    ({full: address, empty: run.mbarrier(`${letter}_empty`, index) ?? run.mbarrier("empty", index), index}));
  const byFull = new Map(slots.map(slot => [slot.full, slot])), byEmpty =
    new Map(slots.map(slot => [slot.empty, slot]));
  const moments = [], words = [], states = [], copies = new Map();
  const now = slots.map(() => ({state: "empty", tile: null, users: new Set(), left: 0}));
  const groups = new Map();  // of consumer warps: what each does
  let producer = {text: "loads", waits: false}, filled = 0, waits = 0, most = 0, waiting = null;
  const say = (place, text) => {
    moments.push(place);
    words.push({text, step: run.steps[place]});
    states.push({slots: now.map(one => ({...one, users: new Set(one.users)})), producer: {...producer},
      groups: new Map([...groups].map(([group, one]) => [group, {...one}]))});
  };
  const groupOf = warp => warp >> 2;
  run.steps.forEach((step, place) => {
    const slot = byFull.get(step[MBARRIER]) ?? byEmpty.get(step[MBARRIER]), one = slot && now[slot.index];
    const isFull = slot && step[MBARRIER] == slot.full;
    if (step[KIND] == BEGINS && isFull) {
      copies.set(step[WHAT], slot);
      if (one.state == "filling") return;  // the second box of a tile
      Object.assign(one, {state: "filling", tile: filled++, left: 0});
      one.users.clear();
      producer = {text: `loads tile ${one.tile}`, waits: false};
      most = Math.max(most, now.filter(each => each.state != "empty").length);
      say(place, `The producer starts the copy of tile ${one.tile} into slot ${slot.index}.`);
    } else if (step[KIND] == PHASE_ENDS && isFull) {
      one.state = "full";
      say(place, `Tile ${one.tile} has landed: slot ${slot.index} is full.`);
    } else if (step[KIND] == PASSES && isFull) {
      const group = groupOf(step[WARP]);
      one.users.add(step[WARP]);
      one.state = "used";
      const before = groups.get(group);
      if (before?.tile == one.tile && !before.waits) return;
      groups.set(group, {tile: one.tile, waits: false});
      say(place, `Consumer ${group} has waited for tile ${one.tile}, and uses slot ${slot.index}.`);
    } else if (step[KIND] == FAILS && isFull) {
      const group = groupOf(step[WARP]), before = groups.get(group);
      if (before?.waits) return;
      groups.set(group, {tile: before?.tile ?? null, waits: true});
      say(place, `Consumer ${group} waits for slot ${slot.index} to be full.`);
    } else if (step[KIND] == MBARRIER_CHANGES && slot && !isFull) {
      one.left = run.names.get(slot.empty).arrivals - step[PENDING];
      say(place, `Warp ${step[WARP]} releases slot ${slot.index}: ${one.left} of ${run.names.get(slot.empty).arrivals} warps have.`);
    } else if (step[KIND] == PHASE_ENDS && slot) {
      one.state = "empty";
      say(place, `All warps have released slot ${slot.index}: it is empty.`);
    } else if (step[KIND] == FAILS && slot) {
      if (waiting == slot.index) return;
      waiting = slot.index;
      waits++;
      producer = {text: `waits for slot ${slot.index}`, waits: true};
      say(place, `The producer waits for slot ${slot.index} to be empty: tile ${filled} has no place yet.`);
    } else if (step[KIND] == PASSES && slot) {
      waiting = null;
      producer = {text: "loads", waits: false};
    }
  });
  return {slots, moments, words, states, waits, most, tiles: filled};
}

// Segments of what `valueOf` says of each state: {kind, text}, or null for nothing.
function runsOf(states, valueOf) {
  const segments = [];
  states.forEach((state, at) => {
    const value = valueOf(state), last = segments.at(-1);
    if (!value) segments.push({none: true});
    else if (last && !last.none && last.kind == value.kind && last.text == value.text) last.to = at + 1;
    else segments.push({...value, from: at, to: at + 1});
  });
  return segments.filter(one => !one.none);
}

const RING = {
  choices: [{name: "slots", label: "Slots", values: ["4", "3", "2"]},
    {name: "ring", label: "Ring of", values: [["k", "K"], ["v", "V"]]}],
  async load({slots, ring}, stage) {
    const run = await record(stage, slots == "4" ? stage : `${stage}-slots-${slots}`, ["--heads=1", "--seqlen=512"]);
    const told = ringOf(run, ring), {moments, states, words} = told;
    const groups = [...new Set(states.flatMap(state => [...state.groups.keys()]))].sort();
    return {
      run, moments, told, start: Math.max(0, states.findIndex(state => state.producer.waits)),
      draw(width, choose) {
        const rows = [{label: "producer", segments: runsOf(states, ({producer}) => ({kind: producer.waits ? "waits"
          : "copy", text: producer.text}))}];
        told.slots.forEach(({index}) => rows.push({label: `slot ${index}`, segments: runsOf(states, state => {
          const {state: kind, tile} = state.slots[index];
          return kind == "empty" ? null : {kind: {filling: "copy", full: "full", used: "used"}[kind],
            text: `${ring.toUpperCase()}${tile}`};
        })}));
        for (const group of groups) rows.push({label: `consumer ${group}`, segments: runsOf(states, state => {
          const one = state.groups.get(group);
          return one && {kind: one.waits ? "waits" : "used", text: one.waits ? "waits" : `tile ${one.tile}`};
        })});
        return timeline(width, moments.length,
          rows, `A ring of ${slots} slots: what is in each slot, and what producer and consumers do`, choose);
      },
      keys: [["copy", "a copy is in flight"], ["full", "full, not used yet"], ["used", "consumers use it"],
        ["waits", "waits"]],
      below: at => table(["slot", "tile", "state", "released by"], states[at].slots.map((one, index) =>
        [index, one.state == "empty" ? "none" : one.tile, {filling: "being filled", full: "full", used: "in use",
          empty: "empty"}[one.state],
          one.state == "empty" ? "–" : `${one.left} of ${run.names.get(told.slots[index].empty).arrivals}`]),
        `The ring now; the producer ${states[at].producer.text}`),
      say: at => words[at].text,
      summary: `${plural(told.tiles, "tile")} through ${slots} slots: the producer waited ${plural(told.waits, "time")} for a slot, and at most ${told.most} slots were not empty.`,
      spot: at => words[at].step[KIND] == PHASE_ENDS ? null : run.spot(words[at].step),
    };
  },
};

// ---- ping-pong: (lesson 08b) ----

function turnsOf(run) {
  const consumers = Math.floor(run.warps.at(-1) / 4), found = [];
  for (let consumer = 0; consumer < consumers; consumer++) {
    const warp = 4 * (consumer + 1), operations = new Map(), segments = {QK: [], PV: [], softmax: [], turn: []};
    let asked = false, tiles = {QK: 0, PV: 0};
    run.steps.forEach((step, place) => {
      if (step[WARP] != warp) return;
      if (step[KIND] == BEGINS && /^wgmma/.test(run.opcode(step))) {
        const kind = /wgmma<KEYS>\(s,/.test(run.source(step)) ? "QK" : "PV";
        let last = segments[kind].at(-1);
        if (!last || last.closed) segments[kind].push(last = {from: place, to: place, issued: place, left: 0, kind,
          text: `${kind} ${tiles[kind]++}`});
        last.left++;
        last.issued = last.to = place;
        operations.set(step[WHAT], last);
      } else if (step[KIND] == ENDS && operations.has(step[WHAT])) {
        const one = operations.get(step[WHAT]);
        one.to = place;
        one.closed = --one.left == 0;
      } else if (step[KIND] == INSTRUCTION) {
        const words = run.source(step);
        if (asked) {
          asked = false;
          segments.turn.push({from: place, to: place, kind: "has-turn", text: "turn", open: true});
        }
        if (/ take_turn\(\) \{/.test(words) && /^bar/.test(run.opcode(step))) asked = true;
        if (/ pass_turn\(\) \{/.test(words) && segments.turn.at(-1)?.open) Object.assign(segments.turn.at(-1),
          {to: place, open: false});
        if (/^ex2/.test(run.opcode(step))) {
          const last = segments.softmax.at(-1), began = Math.max(-1, ...segments.QK.map(one => one.from));
          if (last && last.from > began) last.to = place;
          else segments.softmax.push({from: place, to: place, kind: "softmax",
            text: `softmax ${segments.softmax.length}`});
        }
      }
    });
    found.push(segments);
  }
  // The wgmma of other consumers between the first and the last of a consumer's pair of products.
  let between = 0;
  found.forEach(({QK, PV}, consumer) => QK.forEach((first, i) => {
    const second = PV.find(one => one.from > first.from && !(QK[i + 1]?.from < one.from));
    if (!second) return;
    run.steps.slice(first.from, second.issued).forEach(step => {
      const group = Math.floor(step[WARP] / 4) - 1;
      if (step[KIND] == BEGINS && group != consumer && step[WARP] % 4 == 0
        && /^wgmma/.test(run.opcode(step))) between++;
    });
  }));
  return {found, between};
}

const PING_PONG = {
  choices: [{name: "kernel", label: "Kernel", values: [["", "as the lesson has it"], ["6", "mistake 6: no turns"],
    ["7", "mistake 7: half a turn"]]},
    {name: "wide", label: "Head dimension", values: [["128", "128, two consumers"], ["64", "64, three consumers"]]}],
  async load({kernel, wide}, stage) {
    const run = await record(stage, kernel ? `${stage}-${kernel}` : stage,
      ["--heads=1", "--seqlen=512", `--head-dim=${wide}`]);
    const {found, between: others} = turnsOf(run);
    const all = found.flatMap((segments, consumer) => Object.values(segments).flat().map(one => ({...one, consumer})));
    const events = all.flatMap(one => [[one.from, one, true], [one.to, one, false]]).sort((a, b) => a[0] - b[0]);
    const moments = [...new Set(events.map(([place]) => place))];
    const words = moments.map(place => events.filter(([when]) => when == place)
      .map(([, {consumer, kind, text}, begins]) => {
      const name = `Consumer ${consumer}`;
      if (kind == "has-turn") return `${name} ${begins ? "takes its turn" : "passes the turn on"}.`;
      if (kind == "softmax") return `${name} ${begins ? "begins" : "ends"} the exponentials of ${text}.`;
      return `${name} ${begins ? `issues ${text}` : `has waited for ${text}`}.`;
    }).join(" "));
    return {
      run, moments, others, start: Math.floor(moments.length / 2),
      draw(width, choose) {
        const rows = found.flatMap((segments, consumer) => [["turn", "turn"], ["QK", "QK"], ["PV", "PV"],
          ["softmax", "softmax"]].map(([kind, label], place) =>
          ({label: place ? `   ${label}` : `consumer ${consumer}`,
            segments: between(moments, segments[kind].map(one => ({...one, kind: one.kind.toLowerCase()})))})));
        return timeline(width, moments.length, rows, "Turns, products in flight and softmax of each consumer", choose);
      },
      keys: [["has-turn", "has the turn"], ["qk", "QK in flight"], ["pv", "PV in flight"], ["softmax", "exponentials"]],
      below: at => table(["consumer", "turn", "QK", "PV", "exponentials"], found.map((segments, consumer) => [consumer,
        ...["turn", "QK", "PV", "softmax"].map(kind => segments[kind].find(one => one.from <= moments[at]
          && moments[at] < one.to)?.text ?? "–")]),
        "What each consumer has now"),
      say: at => words[at],
      summary: others ? `Between the first and the last wgmma of a consumer's two products, other consumers issued ${many(others)} wgmma.` :
        "Between the first and the last wgmma of a consumer's two products, no other consumer issued any.",
      spot: at => run.spot(run.steps[moments[at]]),
    };
  },
};

// ---- the running numbers of a softmax: (lessons 02 and 10) ----

const floats = new DataView(new ArrayBuffer(4));
function float(bits) {
  floats.setInt32(0, bits);
  return floats.getFloat32(0);
}
const rounded = value => !Number.isFinite(value) ? String(value).replace("-Infinity", "−∞").replace("Infinity", "∞") :
  value != 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3) ? value.toExponential(2).replace("e+", "e")
    : String(+value.toPrecision(4));

// The values at the lines with these words: [{place, value, opcode}], in order.
function valuesAt(run, words) {
  const found = [];
  run.steps.forEach((step, place) => {
    if (step[KIND] == VALUE && run.source(step).includes(words)) found.push({place, value: float(step[WHAT]),
      opcode: run.opcode(step)});
  });
  return found;
}

// Round numbers between two others.
function ticksOf(low, high) {
  const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough)), step =
    power * [1, 2, 5, 10].find(times => times * power >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(+tick.toPrecision(6));
  return ticks;
}

// A chart of scores: dots, the level before (dashed) and after.
function chart(width, {dots, before, after, low, high, unit}) {
  const height = 150, left = 44, y = value => 8 + (height - 24) * (1 - (Math.min(high, Math.max(low,
    value)) - low) / (high - low));
  const picture = drawn("svg", {width, height, viewBox: `0 0 ${width} ${height}`,
    role: "img", "aria-label": `${dots.length} numbers: ${unit}`});
  for (const tick of ticksOf(low, high)) {
    picture.append(drawn("line", {x1: left, x2: width, y1: y(tick), y2: y(tick), class: "grid"}));
    picture.append(drawn("text", {x: left - 5, y: y(tick) + 4, class: "tick"}, rounded(tick)));
  }
  dots.forEach((value, i) => picture.append(drawn("circle", {cx: left + (width - left) * (i + .5) / dots.length,
    cy: y(value), r: 3.2,
    class: value > high || value == after ? "dot top" : "dot"})));
  for (const [value, kind] of [[before, "level before"], [after, "level after"]]) {
    if (value != null && value >= low) picture.append(drawn("line",
      {x1: left, x2: width, y1: y(value), y2: y(value), class: kind}));
  }
  return {picture, move() {}};
}

// The sum after each tile: what is left of the older one, and the new weights. Before the factor is known, the old sum.
function sumBars(width, tiles, at) {
  const height = 96, left = 44, most = Math.max(...tiles.map(tile => Math.max(tile.old, tile.sum))), wide =
    (width - left) / tiles.length;
  const y = value => 6 + (height - 24) * (1 - value / most);
  const picture = drawn("svg", {width, height, viewBox: `0 0 ${width} ${height}`,
    role: "img", "aria-label": "The running sum, tile by tile"});
  for (const tick of ticksOf(0, most)) {
    picture.append(drawn("line", {x1: left, x2: width, y1: y(tick), y2: y(tick), class: "grid"}));
    if (y(tick) > 8) picture.append(drawn("text", {x: left - 5, y: y(tick) + 4, class: "tick"}, rounded(tick)));
  }
  tiles.forEach((tile, t) => {
    const part = t < at >> 2 ? 3 : t > at >> 2 ? -1 : at & 3, x = left + t * wide + wide * .2;
    picture.append(drawn("text", {x: left + (t + .5) * wide, y: height - 5, class: "tick middle"}, width > 420
      ? `tile ${t}` : t));
    if (part < 0) return;
    const older = part < 2 ? tile.old : tile.old * tile.factor;
    picture.append(drawn("rect", {x, y: y(older), width: wide * .6, height: y(0) - y(older), class: "used"}));
    if (part == 3) picture.append(drawn("rect", {x, y: y(tile.sum), width: wide * .6, height: Math.max(0,
      y(older) - y(tile.sum)), class: "copy"}));
  });
  return picture;
}

const SOFTMAX = {
  choices: [{name: "input", label: "Input", values: ["normal", "large", "waves", "cliff", "ones"]},
    {name: "row", label: "Query", values: ["0", "1", "5", "15"]}],
  async load({input, row}, stage) {
    const run = await record(stage, stage, ["--heads=1", "--seqlen=512", `--input=${input}`, `--values=${2 * row}`]);
    const scores = valuesAt(run, "score[e] = s[column(e)]"), largest =
      valuesAt(run, "row->max = fmaxf(row->max, __shfl_xor_sync").filter(one => /^max/.test(one.opcode));
    const factors = valuesAt(run, "float factor = exp2f").filter(one => /^ex2/.test(one.opcode));
    const scale = valuesAt(run, "scale *= 1.44269504f").find(one => /^mul/.test(one.opcode)).value;
    const sums = valuesAt(run, "row->sum += score[e]").filter(one => !/^mov/.test(one.opcode));
    const each = scores.length / largest.length, tiles = largest.map((one, t) => ({
      scores: scores.slice(t * each, (t + 1) * each).map(score => score.value), max: one.value,
        factor: factors[t].value,
      before: t ? largest[t - 1].value : null, sum: sums.filter(sum =>
        sum.place < (largest[t + 1]?.place ?? Infinity)).at(-1).value,
      places: [scores[t * each].place, one.place, factors[t].place,
        sums.filter(sum => sum.place < (largest[t + 1]?.place ?? Infinity)).at(-1).place],
    }));
    tiles.forEach((tile, t) => { tile.old = t ? tiles[t - 1].sum : 0; });
    const moments = tiles.flatMap(tile => tile.places);
    const values = scores.map(one => one.value), low = Math.min(...values), high = Math.max(...values);
    const margin = (high - low || 1) * .08;
    const model = {
      run, moments, tiles, scale, start: 4 * Math.max(0, tiles.findIndex((tile, t) => t && tile.max > tile.before)) + 3,
      draw(width) {
        const box = element("div", {className: "charts"});
        return {picture: box, move(at) {
          const tile = tiles[at >> 2], part = at & 3;
          box.replaceChildren(chart(width, {dots: tile.scores, before: tile.before, after: part ? tile.max : null,
            low: low - margin, high: high + margin,
            unit: "the scores of one tile that this thread has"}).picture, sumBars(width, tiles, at));
        }};
      },
      keys: [["dot", "a score"], ["level before", "maximum before"], ["level after", "maximum now"],
        ["used", "the sum's older part, times the factor"], ["copy", "weights of this tile"]],
      below(at) {
        return table(["tile", "maximum", "factor", "sum before", "sum after"], tiles.slice(0, (at >> 2) + 1)
          .map((tile, t) => {
          const part = t < at >> 2 ? 3 : at & 3;
          return [t, part > 0 ? rounded(tile.max) : "", part > 1 ? rounded(tile.factor) : "", part > 1
            ? rounded(tile.old) : "", part > 2 ? rounded(tile.sum) : ""];
        }), `Query ${row}: the numbers of thread ${2 * row}, which has half of the row's scores`);
      },
      say(at) {
        const t = at >> 2, tile = tiles[t];
        return [`Tile ${t}: ${tile.scores.length} scores come in. ${t ? `The maximum so far is ${rounded(tile.before)}.` : ""}`,
          tile.max == tile.before ? `The maximum stays ${rounded(tile.max)}.` :
            `The new maximum is ${rounded(tile.max)}${tile.scores.includes(tile.max) ? "" : ", among the scores of the neighbouring lane"}.`,
          `The factor for everything older is 2^((${t ? rounded(tile.before) : "lowest number"} − ${rounded(tile.max)}) · ${rounded(scale)}) = ${rounded(tile.factor)}.`,
          `The sum was ${rounded(tile.old)}. Times the factor, and with the weights of this tile, it is ${rounded(tile.sum)}.`][at & 3].trim();
      },
      spot: at => run.spot(run.steps[moments[at]]),
      summary: `${plural(tiles.filter((tile, t) => t && tile.max > tile.before).length, "tile")} of ${tiles.length} brought a larger maximum after the first.`,
    };
    return model;
  },
};

// In stage 10 a thread has scores of two rows, and takes them in turn.
const STALE = {
  choices: [{name: "input", label: "Input", values: ["waves", "normal", "cliff"]},
    {name: "row", label: "Query", values: ["0", "1", "7"]}],
  async load({input, row}, stage) {
    const thread = 128 + 4 * row;
    const run = await record(stage, stage, ["--heads=1", "--seqlen=556", `--input=${input}`, `--values=${thread}`]);
    const weights = [];  // of the first of the two rows
    let even = 0, odd = 0;
    run.steps.forEach((step, place) => {
      if (step[KIND] != VALUE || !/^ex2/.test(run.opcode(step))) return;
      const words = run.source(step);
      if (!/power_of_two\(s\[i \+ 2 \* h( \+ 1)?\] \* problem\.scale/.test(words)) return;
      if (/h \+ 1\]/.test(words) ? odd++ % 2 == 0 : even++ % 2 == 0) weights.push({place, value: float(step[WHAT])});
    });
    const each = 32, tiles = [];
    // What the older numbers of the row are multiplied by; and where its warp computes lost scores again.
    const shrunk = [], again = [];
    run.steps.forEach((step, place) => {
      if (step[WARP] != thread >> 5) return;
      if (step[KIND] == INSTRUCTION && /scores_again</.test(run.source(step))) again.push(place);
      if (step[KIND] == VALUE && /factor\[h\] = __int_as_float/.test(run.source(step))
        && /^sub/.test(run.opcode(step))) shrunk.push({place, factor: float(step[WHAT])});
    });
    for (let w = 0; w < weights.length; w += each) {
      const some = weights.slice(w, w + each), values = some.map(one => one.value), first = some[0].place, end =
        weights[w + each]?.place ?? run.steps.length;
      const act = shrunk.find(one => one.place > some.at(-1).place && one.place < end);  // of its two rows the first
      const isAgain = w > 0 && again.some(place => place > weights[w - 1].place && place < first);
      tiles.push({weights: values, largest: Math.max(...values), sum: values.reduce((sum, value) => sum + value, 0),
        isAgain,
        number: w ? tiles.at(-1).number + !isAgain : 0, factor: act?.factor ?? null,
          places: [first, act?.place ?? some.at(-1).place]});
    }
    let risen = 0;
    for (const tile of tiles) {
      tile.reference = risen;
      if (tile.factor) risen -= Math.round(Math.log2(tile.factor));
    }
    const moments = tiles.flatMap(tile => tile.places);
    const finite = tiles.flatMap(tile => tile.weights).filter(value => value > 0 && value < Infinity);
    const top = tiles.some(tile => tile.largest == Infinity) ? 132 : Math.max(20, 4 + Math.log2(Math.max(...finite)));
    const power = value => value == 0 ? "0" : value == Infinity ? "∞"
      : `2^${Math.log2(value).toFixed(1).replace(".0", "").replace("-", "−")}`;
    return {
      run, moments, tiles, start: 2 * Math.max(0, tiles.findIndex(tile => tile.factor != null)) + 1,
      draw(width) {
        const box = element("div", {className: "charts"});
        return {picture: box, move(at) {
          const tile = tiles[at >> 1];
          box.replaceChildren(chart(width, {dots: tile.weights.map(value => Math.log2(value)), before: 0, after: 15,
            low: -40, high: top,
            unit: "the powers of two of this tile's weights"}).picture);
        }};
      },
      keys: [["dot", "a weight's power of two"], ["level before", "2^0: the stale maximum"],
        ["level after", "2^15 = 32768: the limit of the check"]],
      below: at => table(["tile", "largest weight", "sum of weights", "fits", "factor", "reference has risen by"],
        tiles.slice(0, (at >> 1) + 1).map((tile, t) => {
        const done = t < at >> 1 || at & 1;
        return [tile.isAgain ? `${tile.number}, again` : tile.number, power(tile.largest), rounded(tile.sum), done
          ? tile.factor == null ? "yes" : "no" : "", done && tile.factor != null ? power(tile.factor) : done ? "–" : "",
          `${tile.reference + (done && tile.factor ? -Math.round(Math.log2(tile.factor)) : 0)} powers of two`];
      }), `Query ${row}: the numbers of thread ${thread}`),
      say(at) {
        const t = at >> 1, tile = tiles[t];
        if (!(at & 1) && tile.isAgain) return `Tile ${tile.number} again: some weights were infinite, so the warp has computed its scores anew, and takes their exact maximum. The largest weight is ${power(tile.largest)}.`;
        if (!(at & 1)) return t
          ? `Tile ${tile.number}: its weights are computed with the stale maximum. The largest that this thread has is ${power(tile.largest)}.` :
          `Tile 0: its exact maximum is searched for, so no weight is larger than 1. The largest that this thread has is ${power(tile.largest)}.`;
        if (tile.factor == 1) return "Some sum of the warp is larger than 32768, but this row fits: it stays as it is.";
        if (tile.factor != null) return `Some sum of the warp is larger than 32768, so its weights do not fit into fp16: this row is multiplied by ${power(tile.factor)}.`;
        if (tile.largest == Infinity) return "Some weights are infinite: the scores are lost, and the warp computes them once more.";
        return t ? "The check passes: all weights fit, and the maximum stays stale."
          : "Every later tile takes this maximum as it is.";
      },
      spot: at => run.spot(run.steps[moments[at]]),
      summary: `${tiles.at(-1).number + 1} tiles: ${tiles.filter(tile => tile.factor != null || tile.largest == Infinity).length || "none"} did not fit.`,
    };
  },
};

// ---- swizzle and bank conflicts: (lesson 02d) ----

const CHUNK = 16, LINE_BYTES = 128, ROWS = 8;
const DESCRIPTOR = 0x4000004000000000n | 1n << 16n;  // start 0, stride 1024, swizzle of 128 bytes

// Shared memory from byte `base` on, 128 bytes a line: which chunk lies where. `marked`: by address, from there on.
function memoryMap(width, chunks, marked, name, base = 0) {
  const last = Math.max(...chunks.keys()), lines = Math.floor(last / LINE_BYTES) + 1;
  const left = 42, cell = (width - left) / (LINE_BYTES / CHUNK), high = 20, top = 16;
  const picture = drawn("svg", {width, height: top + lines * high + 2,
    viewBox: `0 0 ${width} ${top + lines * high + 2}`, role: "img", "aria-label": name});
  for (let c = 0; c < LINE_BYTES / CHUNK; c++) {
    picture.append(drawn("text", {x: left + (c + .5) * cell, y: 11, class: "tick middle"}, cell > 66
      ? `banks ${4 * c}–${4 * c + 3}` : `${4 * c}–${4 * c + 3}`));
  }
  for (let l = 0; l < lines; l++) {
    picture.append(drawn("text", {x: 0, y: top + l * high + 14, class: "label"}, `${base + l * LINE_BYTES}`));
    for (let c = 0; c < LINE_BYTES / CHUNK; c++) {
      const address = l * LINE_BYTES + c * CHUNK, text = chunks.get(address), isMarked = marked.has(address);
      picture.append(drawn("rect", {x: left + c * cell + .5, y: top + l * high + .5, width: cell - 1, height: high - 1,
        class: isMarked ? "cell marked" : text ? "cell" : "cell unused"}));
      if (text) picture.append(drawn("text", {x: left + (c + .5) * cell, y: top + l * high + 14, class: isMarked
        ? "tick middle marked" : "tick middle"}, text));
    }
  }
  return picture;
}

const SWIZZLE = {
  choices: [{name: "pitch", label: "Bytes from row to row",
    values: ["128", "144", "160", "176", "192", "208", "224", "240", "256"]}],
  async load({pitch}) {
    const distance = Number(pitch), columns = LINE_BYTES / CHUNK;
    const {chunks} = await layout("descriptor", `0x${DESCRIPTOR.toString(16)}`, "k", ROWS, LINE_BYTES / 2);
    const layouts = [
      {name: distance == LINE_BYTES ? "Plain rows"
        : `Rows of 128 bytes and ${distance - LINE_BYTES} of padding`, place: (row, chunk) =>
          row * distance + chunk * CHUNK},
      {name: "Swizzled", place: (row, chunk) => chunks[row * columns + chunk]},
    ];
    const loads = [];
    for (let chunk = 0; chunk < columns; chunk++) {
      loads.push(await Promise.all(layouts.map(async ({place}) => {
        const addresses = [...Array(ROWS).keys()].map(row => place(row, chunk));
        return {addresses, wavefronts: (await layout("wavefronts", ...addresses)).wavefronts};
      })));
    }
    return {
      moments: [...Array(columns).keys()], start: 2, loads,
      draw(width) {
        const box = element("div", {className: "pair"}), beside = width > 620;
        return {picture: box, move(at) {
          box.replaceChildren(...layouts.map(({name, place}, i) => {
            const all = new Map();
            for (let row = 0; row < ROWS; row++) for (let c = 0; c < columns;
              c++) all.set(place(row, c), `r${row} c${c}`);
            const {addresses, wavefronts} = loads[at][i];
            const words = `${name}: ${plural(wavefronts, "wavefront")}`;
            return element("figure", {}, element("figcaption", {textContent: words}),
              memoryMap(beside ? (width - 24) / 2 : width, all,
                new Set(addresses), `${words}. Shared memory, 128 bytes a line, with the chunks of the load marked.`));
          }));
        }};
      },
      below: at => table(["row", ...["plain", "swizzled"].flatMap(name => [`${name}: byte`, "banks"])],
        [...Array(ROWS).keys()].map(row => [row, ...loads[at].flatMap(({addresses}) =>
          [addresses[row], `${addresses[row] / 4 % 32}–${addresses[row] / 4 % 32 + 3}`])]), `Where chunk ${at} of each row lies`),
      say: at => `Eight lanes load chunk ${at} of rows 0 to 7. ${layouts[0].name}: ${plural(loads[at][0].wavefronts, "wavefront")}, ${plural(loads[at][0].wavefronts - 1, "bank conflict")}. ` +
        `Swizzled: ${plural(loads[at][1].wavefronts, "wavefront")}, ${plural(loads[at][1].wavefronts - 1, "bank conflict")}.`,
      spot: () => null,
    };
  },
};

// ---- descriptor, core matrices and accumulator: (lesson 04) ----

const TILE = 64, SLICE = 16;

// The descriptors of an operand's slices, as stage 04's own program explains them: what its kernel computes.
async function descriptorsOf(stage, heading, swizzle) {
  const ptx = await ptxOf(stage);
  answers.explain ??= ask({stage, ptx, options: ["--explain"]});
  const lines = (await answers.explain).report.split("\n"), at =
    lines.findIndex(line => line.startsWith(`  ${heading} `));
  const column = lines[at]?.trim().split(/ {2,}/).indexOf(swizzle == "0" ? "none" : `${swizzle}B`);
  if (!(column > 0)) throw new Error(`the program explains no ${heading} with this swizzle`);
  const numbers = row => row.match(/0x[0-9a-f]+/g).map(BigInt)[column - 1], found = [numbers(lines[at + 1])];
  for (const row of lines.slice(at + 1)) {
    if (!row.trim()) return found;
    if (/^ +slice \d/.test(row)) found.push(found[0] & ~0x3fffn | numbers(row) >> 4n);
  }
  return found;
}

const FIELDS_OF = [["swizzle", 62, 2], ["base offset", 49, 3], ["stride", 32, 14], ["leading", 16, 14],
  ["start", 0, 14]];

const DESCRIBE = {
  choices: [{name: "operand", label: "Operand", values: [["a", "A, K-major"], ["b", "B, K-major"],
    ["t", "B, N-major"]]},
    {name: "swizzle", label: "Swizzle", values: [["128", "128 bytes"], ["64", "64 bytes"], ["32", "32 bytes"],
      ["0", "none"]]},
    {name: "m", label: "Row m, or column n of B", type: "number", value: 3, most: TILE - 1},
    {name: "k", label: "k in the slice", type: "number", value: 9, most: SLICE - 1},
    {name: "n", label: "Column n of D", type: "number", value: 10, most: TILE - 1}],
  async load({operand, swizzle, m, k, n}, stage, watch) {
    const mnMajor = operand == "t", letter = operand == "a" ? "m" : "n", line = Number(m), depth = Number(k),
      column = Number(n);
    const slices = [];
    const heading = {a: "A, K-major", b: "B, K-major", t: "B, N-major"}[operand];
    for (const bits of await descriptorsOf(stage, heading, swizzle)) {
      slices.push({bits, ...await layout("descriptor", `0x${bits.toString(16)}`, mnMajor ? "mn" : "k", TILE, SLICE)});
    }
    const {places} = await layout("accumulator", TILE);
    const chunkOf = (slice, mn, kk) => slice.chunks[mnMajor ? kk * TILE / 8 + (mn >> 3) : mn * SLICE / 8 + (kk >> 3)];
    const addressOf = (slice, mn, kk) => chunkOf(slice, mn, kk) + 2 * (mnMajor ? mn % 8 : kk % 8);
    // Of D: warp, lane and register of row `line` (of A) and column n.
    const inWarp = line % 16, held = Array.from({length: places.length / 2}, (_, i) => i)
      .find(i => places[2 * i] == inWarp && places[2 * i + 1] == column);
    const registers = TILE / 2, holder = {warp: line >> 4, lane: Math.floor(held / registers),
      register: held % registers};
    const choose = (row, kk) => watch.set({m: String(row), k: String(kk)}, watch.at);
    return {
      moments: slices.map((_, i) => i), slices, holder, addressOf: at => addressOf(slices[at], line, depth),
      draw(width) {
        const box = element("div", {className: "pair"});
        return {picture: box, move(at) {
          const slice = slices[at], all = new Map(), base = slice.start - slice.start % 1024;
          for (let mn = 0; mn < TILE; mn += mnMajor ? 8 : 1) for (let kk = 0; kk < SLICE; kk += mnMajor ? 1 : 8) {
            all.set(chunkOf(slice, mn, kk) - base, mnMajor ? `k${kk} n${mn}` : `${letter}${mn} k${kk}`);
          }
          // Around the element: eight lines of memory.
          const mine = chunkOf(slice, line, depth) - base, from = mine - mine % 1024, near = new Map();
          for (const [address, text] of all) if (address >= from && address < from + 1024) near.set(address - from,
            text);
          near.set(1023 - 15, near.get(1008) ?? "");
          const mapped = memoryMap(Math.min(width, 640), near,
            new Set([mine - from]), `Eight lines of shared memory from byte ${base + from} on: ${near.get(mine - from)} is marked`, base + from);
          box.replaceChildren(
            element("figure", {}, element("figcaption",
              {textContent: `Slice ${at} of ${operand == "a" ? "A" : "B"}`}),
                sliceMap(190, line, depth, choose, letter)),
            element("figure", {}, element("figcaption", {textContent: "D, and all that its lane holds"}),
              accumulatorMap(Math.min(width - 10, 300), line, column, places, holder, (row, col) =>
                watch.set({m: String(row), n: String(col)}, watch.at))),
            element("figure", {}, element("figcaption", {textContent: `Its chunk in shared memory`}), mapped));
        }};
      },
      below: at => element("div", {className: "pair"},
        table(["field", "bits", "value", "bytes"], FIELDS_OF.map(([name, shift, size]) => {
          const value = Number(slices[at].bits >> BigInt(shift) & (1n << BigInt(size)) - 1n);
          return [name, `${shift}–${shift + size - 1}`, value,
            {"swizzle": slices[at].swizzle || "none", "base offset": "–"}[name] ?? 16 * value];
        }), `The descriptor of slice ${at}: 0x${slices[at].bits.toString(16).padStart(16, "0")}`),
        table(["question", "answer"], [
          [`${letter}${line}, k${SLICE * at + depth}: address`, `0x${addressOf(slices[at], line, depth).toString(16).padStart(4, "0")}`],
          ["its chunk begins at", `0x${chunkOf(slices[at], line, depth).toString(16).padStart(4, "0")}`],
          ["its core matrix", `${letter}${line & ~7}–${(line & ~7) + 7}, k${SLICE * at + (depth & ~7)}–${SLICE * at + (depth & ~7) + 7}`],
          [`D's row ${line}, column ${column}`, `warp ${holder.warp}, lane ${holder.lane}, register d${holder.register}`]], "Where they are")),
      say: at => `Slice ${at}: ${letter}${line}, k${SLICE * at + depth} is at byte ${addressOf(slices[at], line, depth)} of shared memory; the descriptor starts at ${slices[at].start}. ` +
        `D's row ${line}, column ${column} is in warp ${holder.warp}, lane ${holder.lane}, register d${holder.register}.`,
      spot: () => null,
    };
  },
};

// A slice: 64 lines, 16 along k, in core matrices of 8 x 8. A click chooses an element.
function sliceMap(width, line, depth, choose, letter) {
  const left = 26, cell = Math.min(12, (width - left) / SLICE), high = 5, top = 14, height = top + TILE * high;
  const picture = drawn("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "choose",
    "aria-label": `A slice in core matrices: ${letter}${line}, k${depth} is chosen; the fields above choose another one`});
  for (let r = 0; r < TILE; r += 8) {
    picture.append(drawn("text", {x: 0, y: top + r * high + 11, class: "label"}, `${letter}${r}`));
    for (let c = 0; c < SLICE; c += 8) {
      const isCore = r == (line & ~7) && c == (depth & ~7);
      picture.append(drawn("rect", {x: left + c * cell, y: top + r * high, width: 8 * cell - 1, height: 8 * high - 1,
        class: isCore ? "core chosen" : "core"}));
    }
  }
  for (const c of [0, 8]) picture.append(drawn("text", {x: left + c * cell, y: 10, class: "label"}, `k${c}`));
  picture.append(drawn("rect", {x: left + (depth & ~7) * cell, y: top + line * high, width: 8 * cell - 1,
    height: high, class: "chunk"}));
  picture.append(drawn("rect", {x: left + depth * cell, y: top + line * high, width: cell, height: high,
    class: "element"}));
  picture.addEventListener("click", event => {
    const box = picture.getBoundingClientRect(), c = Math.floor((event.clientX - box.left - left) / cell), r =
      Math.floor((event.clientY - box.top - top) / high);
    if (c >= 0 && c < SLICE && r >= 0 && r < TILE) choose(r, c);
  });
  return picture;
}

// D: the warps' rows, the elements of the lane that holds the chosen one, and that one.
function accumulatorMap(width, row, column, places, holder, choose) {
  const left = 46, cell = (width - left) / TILE, height = TILE * cell + 2;
  const picture = drawn("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "choose",
    "aria-label": `D: row ${row}, column ${column} is register d${holder.register} of lane ${holder.lane}, warp ${holder.warp}; all elements of that lane are marked`});
  for (let w = 0; w < 4; w++) {
    picture.append(drawn("rect", {x: left, y: w * 16 * cell, width: TILE * cell, height: 16 * cell - 1,
      class: "core"}));
    picture.append(drawn("text", {x: 0, y: (w * 16 + 9) * cell, class: "label"}, `warp ${w}`));
  }
  const registers = TILE / 2;
  for (let r = 0; r < registers; r++) {
    const place = 2 * (holder.lane * registers + r), y = (holder.warp * 16 + places[place]) * cell, x =
      left + places[place + 1] * cell;
    picture.append(drawn("rect", {x, y, width: cell, height: cell, class: r == holder.register ? "element" : "chunk"}));
  }
  picture.addEventListener("click", event => {
    const box = picture.getBoundingClientRect(), c = Math.floor((event.clientX - box.left - left) / cell), r =
      Math.floor((event.clientY - box.top) / cell);
    if (c >= 0 && c < TILE && r >= 0 && r < TILE) choose(r, c);
  });
  return picture;
}

const KINDS = {"swizzle": SWIZZLE, "phases": PHASES, "ring": RING, "descriptor": DESCRIBE, "ping-pong": PING_PONG,
  "online-softmax": SOFTMAX, "stale-max": STALE};

// ---- the engine ----

class Watch {
  constructor(section) {
    this.section = section;
    this.name = section.dataset.watch;
    this.kind = KINDS[this.name];
    this.at = 0;
    this.loading = 0;  // the number of the last load: one that ends later than a newer one is dropped
    this.make();
  }

  make() {
    const box = this.section.querySelector(".stage-of-watch");
    this.choices = element("form", {className: "choices"});
    for (const {name, label, values, type, value, most} of this.kind.choices) {
      const field = type == "number" ? element("input", {name, type, min: 0, max: most, value}) :
        element("select", {name}, ...values.map(one => Array.isArray(one) ? element("option", {value: one[0],
          textContent: one[1]}) : element("option", {textContent: one})));
      this.choices.append(element("label", {}, `${label} `, field));
    }
    const button = (words, act) => {
      const made = element("button", {type: "button", textContent: words});
      made.addEventListener("click", act);
      return made;
    };
    this.slider = element("input", {type: "range", min: 0, max: 0, value: 0});
    this.slider.setAttribute("aria-label", `${this.section.querySelector(".title").textContent}: step`);
    this.playing = button("Play", () => this.timer ? this.stop() : this.play());
    this.count = element("output", {className: "count"});
    const player = element("div", {className: "player"}, button("First", () => this.go(0)),
      button("Back", () => this.go(this.at - 1)), button("Next", () => this.go(this.at + 1)), this.playing, this.slider,
      this.count);
    player.setAttribute("role", "group");
    player.setAttribute("aria-label", "Player");
    this.now = box.querySelector(".now");
    this.scene = element("div", {className: "scene"});
    this.keys = element("div");
    this.source = element("pre", {className: "lines", hidden: true}, element("code"));
    this.below = element("div", {className: "below"});
    this.summary = element("p", {className: "summary"});
    this.lanes = element("details", {className: "lanes", hidden: true},
      element("summary", {textContent: "All warps, each in a lane"}), element("div"));
    box.replaceChildren(this.choices, this.scene, this.keys, player, this.now, this.source, this.below, this.summary,
      this.lanes);
    this.choices.addEventListener("change", () => this.load(this.kind == DESCRIBE ? this.at : undefined));
    this.choices.addEventListener("submit", event => event.preventDefault());
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.lanes.addEventListener("toggle", () => this.showLanes());
    this.section.addEventListener("keydown", event => {
      if (event.target.closest("input, select, summary, pre") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key == "ArrowRight" || event.key == "ArrowLeft") {
        this.go(this.at + (event.key == "ArrowRight" ? 1 : -1));
        event.preventDefault();
      }
    });
    let before = 0;
    new ResizeObserver(() => {
      const width = this.scene.clientWidth;
      if (this.model && width && width != before) this.draw();
      before = width;
    }).observe(this.scene);
  }

  chosen() { return Object.fromEntries(this.kind.choices.map(({name}) => [name, this.choices.elements[name].value])); }

  // Sets choices, as an address or a click in the picture has them.
  set(values, at) {
    for (const [name, value] of Object.entries(values)) {
      const field = this.choices.elements[name];
      if (field && (field.type == "number" ? Number(value) >= 0 && Number(value) <= Number(field.max)
        : [...field.options].some(option => option.value == value))) field.value = value;
    }
    return this.load(at);
  }

  async load(at, isReaders = true) {
    const number = ++this.loading;
    this.stop();
    this.section.setAttribute("aria-busy", "true");
    this.now.textContent = "The emulator is running ...";
    try {
      const model = await this.kind.load(this.chosen(), this.section.dataset.stage, this);
      if (number != this.loading) return;
      this.model = model;
      this.slider.max = model.moments.length - 1;
      this.at = Math.min(Number.isInteger(at) ? at : model.start ?? 0, model.moments.length - 1);
      this.keys.replaceChildren(...(model.keys ? [legend(model.keys)] : []));
      this.summary.textContent = model.summary ?? "";
      this.lanes.hidden = !model.run;
      this.section.setAttribute("aria-busy", "false");
      this.draw();
      if (isReaders) this.keepInAddress();
    } catch (error) {
      if (number != this.loading) return;
      this.section.setAttribute("aria-busy", "false");
      this.now.textContent = `This cannot be shown: ${error.message}`;
    }
  }

  draw() {
    const width = Math.max(240, Math.floor(this.scene.clientWidth));
    this.picture = this.model.draw(width, at => this.go(at));
    this.scene.replaceChildren(this.picture.picture);
    this.showLanes();
    this.show();
  }

  showLanes() {
    if (!this.lanes.open || !this.model?.run) return;
    const {run, moments} = this.model, width = Math.max(240, Math.floor(this.scene.clientWidth) - 30);
    this.lanePicture = timeline(width, moments.length, warpRows(run,
      moments), "Each warp: where it executes, and where it waits", at => this.go(at));
    this.lanes.lastElementChild.replaceChildren(this.lanePicture.picture,
      legend([["works", "executes"], ["waits", "waits"]]), element("div"));
    this.showWarps();
  }

  showWarps() {
    if (!this.lanes.open || !this.lanePicture) return;
    this.lanePicture.move(this.at);
    this.lanes.lastElementChild.lastElementChild.replaceChildren(warpTable(this.model.run,
      this.model.moments[this.at]));
    markWide();
  }

  // Everything that depends on the moment.
  show() {
    const {model, at} = this, words = `${at + 1} of ${model.moments.length}`;
    this.slider.value = at;
    this.slider.setAttribute("aria-valuetext", `${words}: ${model.say(at)}`);
    this.count.textContent = words;
    this.now.setAttribute("aria-live", this.timer ? "off" : "polite");
    this.now.textContent = model.say(at);
    this.picture.move(at);
    this.below.replaceChildren(model.below(at));
    markWide();
    this.showSource(model.spot(at));
    this.showWarps();
  }

  showSource(spot) {
    if (!spot?.file) return;
    const {file, line} = spot, from = Math.max(1, line - 2), rows = [];
    for (let number = from; number <= Math.min(file.lines.length, line + 2); number++) {
      const row = element("span", {className: number == line ? "chosen" : ""});
      row.innerHTML = file.lines[number - 1].html || " ";
      row.prepend(element("b", {textContent: number}));
      rows.push(row);
    }
    const name = file.path.split("/").slice(-2).join("/");
    this.source.hidden = false;
    this.source.setAttribute("role", "region");
    this.source.setAttribute("aria-label", `${name}, line ${line}`);
    this.source.querySelector("code").replaceChildren(element("span", {className: "file",
      textContent: `${name}:${line}`}), ...rows);
  }

  go(at) {
    if (!this.model) return;
    this.at = Math.max(0, Math.min(this.model.moments.length - 1, at));
    this.show();
    if (!this.timer) this.keepInAddress();
  }

  play() {
    if (!this.model) return;
    if (this.at == this.model.moments.length - 1) this.at = 0;
    const pause = Math.max(150, Math.min(1200, 30000 / this.model.moments.length));
    this.timer = setInterval(() => this.at == this.model.moments.length - 1 ? this.stop() : this.go(this.at + 1),
      pause);
    this.playing.textContent = "Pause";
    this.show();
  }

  stop() {
    if (!this.timer) return;
    clearInterval(this.timer);
    this.timer = undefined;
    this.playing.textContent = "Play";
    if (this.model) this.show();
    this.keepInAddress();
  }

  keepInAddress() {
    history.replaceState(null, "", `#watch&${new URLSearchParams({name: this.name, ...this.chosen(), at: this.at})}`);
  }
}

// ---- the page ----

const watches = new Map([...document.querySelectorAll("section.watch")].map(section => [section.dataset.watch,
  new Watch(section)]));

// An explorable runs when it comes into sight.
const seen = new IntersectionObserver(entries => {
  for (const {isIntersecting, target} of entries) {
    const watch = watches.get(target.dataset.watch);
    if (isIntersecting && !watch.loading) watch.load(undefined, false);
  }
}, {rootMargin: "200px"});
for (const {section} of watches.values()) seen.observe(section);

function watchFromAddress() {
  if (!location.hash.startsWith("#watch&")) return;
  const state = Object.fromEntries(new URLSearchParams(location.hash.slice(7))), watch = watches.get(state.name);
  watch?.section.scrollIntoView({block: "start", behavior: "instant"});
  watch?.set(state, state.at ? parseInt(state.at) : undefined);
}
watchFromAddress();
addEventListener("hashchange", watchFromAddress);
globalThis.watches = watches;  // for tests
}
