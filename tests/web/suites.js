// Runs the C suites that were compiled to WebAssembly, in the repository's root: node tests/web/suites.js SUITES.js
// [pattern...]. A pattern is a part of a test's name, "float/". Prints what failed, then how many passed; exit code 1
// when a test failed.
'use strict';

const fs = require('fs');
const path = require('path');

const SKIPPED = 77;

globalThis.fetch = undefined;  // Emscripten's script asks whether there is one, and node's reads no files

// The program sees this folder, and the variables.
function prepare({ENV, FS}) {
  Object.assign(ENV, process.env);
  FS.mkdir('/repository');
  FS.mount(FS.filesystems.NODEFS, {root: process.cwd()}, '/repository');
  FS.chdir('/repository');
}

// The exit code of the program with these arguments, in an instance of its own, and what it prints.
async function run(createSuites, module, words) {
  const lines = [];
  let code = null;
  try {
    const instance = await createSuites({
      print(line) { lines.push(line); },
      printErr(line) { lines.push(line); },
      quit(status, exit) { code = status; throw exit; },
      preRun: [own => prepare(own)],
      instantiateWasm(imports, receive) {
        WebAssembly.instantiate(module, imports).then(receive);
        return {};
      },
    });
    const returned = instance.callMain(words);
    code ??= returned;
  } catch (error) {
    if (code === null) lines.push(`${error.stack || error}`);
  }
  return {code: code ?? 'crashed', lines};
}

async function main([script, ...patterns]) {
  const module = await WebAssembly.compile(fs.readFileSync(script.replace(/js$/, 'wasm')));
  const createSuites = require(path.resolve(script));
  const names = (await run(createSuites, module, [])).lines.filter(name => name.includes('/'));
  const chosen = names.filter(name => !patterns.length || patterns.some(pattern => name.includes(pattern)));
  const count = {passed: 0, failed: 0, skipped: 0};
  for (const name of chosen) {
    const {code, lines} = await run(createSuites, module, [name]);
    const verdict = code === 0 ? 'passed' : code === SKIPPED ? 'skipped' : 'failed';
    count[verdict]++;
    if (verdict !== 'passed') console.log(`${verdict}: ${name}\n  ${lines.slice(0, 12).join('\n  ')}`);
  }
  console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  process.exit(count.failed || !count.passed ? 1 : 0);
}

main(process.argv.slice(2));
