// A stage under node, as its program is in the terminal: node common/web/node.js NUMBER KERNELS.ptx [options]. The
// options --ptx, --json and --steps name files of this machine, and --variant=6b is run.js's variant.
'use strict';

const fs = require('fs');
const path = require('path');
const {runStage} = require('./run.js');

// The value of an option that this program handles itself; null when it was not given.
function take(options, name) {
  const found = options.findIndex(option => option.startsWith(`--${name}=`));
  return found < 0 ? null : options.splice(found, 1)[0].slice(name.length + 3);
}

// The source files that a PTX text names and that are here.
function sourcesOf(ptx) {
  const paths = [...ptx.toString('latin1').matchAll(/^\s*\.file\s+\d+ "([^"]+)"/gm)].map(match => match[1]);
  return Object.fromEntries(paths.filter(fs.existsSync).map(name => [name, fs.readFileSync(name)]));
}

async function main([stage, kernels, ...options]) {
  const built = path.resolve(process.env.WEB || 'build/web');
  globalThis.fetch = undefined;  // stages.js asks whether there is one, and node's reads no files
  const module = await WebAssembly.compile(fs.readFileSync(path.join(built, 'stages.wasm')));
  const createStages = require(path.join(built, 'stages.js'));
  const json = take(options, 'json'), ptx = take(options, 'ptx'), steps = take(options, 'steps');
  const variant = take(options, 'variant');
  const text = fs.readFileSync(ptx ?? kernels);
  const result = await runStage(createStages, module, {
    stage, variant, options, ptx: text, edited: ptx !== null, sources: sourcesOf(text), steps: steps !== null,
  });
  fs.writeSync(1, result.report);
  fs.writeSync(2, result.errors);
  if (json !== null) fs.writeFileSync(json, JSON.stringify({...result, steps: null}));
  if (steps !== null && result.steps) fs.writeFileSync(steps, result.steps);
  process.exitCode = result.code;
}

main(process.argv.slice(2)).catch(error => {
  fs.writeSync(2, `${error.message}\n`);
  process.exitCode = 70;
});
