// Runs a stage in a fresh instance of the module, so that no run leaves anything behind and its memory is returned. For
// worker.js in a browser, and for node.js.
//
// A request has
//   stage     the stage's number, "06"
//   variant   the key of a mistake, "6b", whose host code the stage is to have (variants.py); or nothing
//   ptx       the text of its PTX
//   options   those of its program, ["--seqlen=256", "--causal"]
//   edited    whether the text is the reader's own: then all of it is checked, and a fault in it is the reader's
//   sources   texts of source files by their paths, for --counters, which prints their lines; or nothing
//   steps     whether to record steps
// or, instead of all these,
//   layout    the arguments of a question where things lie (common/web/layout.h); the answer is the result's report
// and a result
//   code      the exit code of the program
//   report, errors, terminal   what it printed: to standard output, to standard error, and both as they came
//   error, outputs, hazards, counters, lines   as in the file of --json (common/harness/json.c)
//   steps     the record of steps, twelve numbers each (EmulatorStep in common/emulator/emulator.h), or null
'use strict';

// Of a run that ended at its options.
const NOTHING = {error: null, outputs: null, hazards: [], counters: {}, lines: []};

// The program prints a line at a time, and a line without an end at last.
function withEnds(lines) {
  return lines.map(line => `${line}\n`).join('');
}

function writeSources(files, sources) {
  for (const [path, text] of Object.entries(sources)) {
    files.mkdirTree(`/${path.slice(0, path.lastIndexOf('/'))}`);
    files.writeFile(`/${path}`, text);
  }
}

function readIfThere(files, path) {
  return files.analyzePath(path).exists ? files.readFile(path) : null;
}

// createStages is what stages.js defines, module the compiled stages.wasm.
async function runStage(createStages, module, request) {
  const output = [], errors = [], terminal = [];
  let code = null;
  const instance = await createStages({
    thisProgram: request.layout ? 'layout' : `${request.variant ? `${request.variant}/` : ''}stage-${request.stage}`,
    print(line) { output.push(line); terminal.push(line); },
    printErr(line) { errors.push(line); terminal.push(line); },
    quit(status, exit) { code = status; throw exit; },
    instantiateWasm(imports, receive) {
      WebAssembly.instantiate(module, imports).then(receive);
      return {};
    },
  });
  const files = instance.FS;
  if (!request.layout) files.writeFile(request.edited ? '/edited.ptx' : `/stage-${request.stage}.ptx`, request.ptx);
  writeSources(files, request.sources || {});
  const options = request.layout ?? ['--device=emulator', '--threads=1', '--json=/record.json',
    ...(request.edited ? ['--ptx=edited.ptx'] : []), ...(request.steps ? ['--steps=/steps'] : []), ...request.options];
  try {
    const returned = instance.callMain(options);
    if (code === null) code = returned;
  } catch (error) {
    if (code === null) throw new Error(`the emulator itself failed: ${error.message || error}`);
  }
  const json = readIfThere(files, '/record.json'), steps = request.steps ? readIfThere(files, '/steps') : null;
  const record = json ? JSON.parse(new TextDecoder().decode(json)) : NOTHING;
  return {...record, code, report: withEnds(output), errors: withEnds(errors), terminal: withEnds(terminal),
    steps: steps && new Int32Array(steps.buffer, steps.byteOffset, steps.length / 4)};
}

if (typeof exports !== 'undefined') exports.runStage = runStage;
