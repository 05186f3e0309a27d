// The worker of a page: each message that it gets is a request of run.js, and its answer a result. `ptxUrl` may be there
// instead of `ptx`: a file, which may be compressed with gzip. While it works it tells its progress: "compiling", then
// "running". A run is stopped by ending the worker.
'use strict';

importScripts('run.js', 'stages.js');

let compiling = null;  // the promise of the module

// Some hosts serve .wasm as something else, and the browser then refuses to compile while it loads.
async function compile() {
  const response = await fetch('stages.wasm');
  if (!response.ok) throw new Error(`stages.wasm: ${response.status} ${response.statusText}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

function compiled() {
  compiling ??= compile();
  compiling.catch(() => { compiling = null; });  // the next run tries again
  return compiling;
}

async function load(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

async function answer(request) {
  const began = performance.now();
  try {
    postMessage({progress: 'compiling'});
    const [module, ptx] = await Promise.all([compiled(), request.ptx ?? (request.layout ? '' : load(request.ptxUrl))]);
    postMessage({progress: 'running'});
    const result = await runStage(createStages, module, {...request, ptx});
    postMessage({...result, ms: performance.now() - began});
  } catch (error) {
    const errors = `${error.message || error}\n`;
    const ms = performance.now() - began;
    postMessage({...NOTHING, code: -1, report: '', errors, terminal: errors, steps: null, ms});
  }
}

let last = Promise.resolve();
onmessage = ({data}) => { last = last.then(() => answer(data)); };  // one after another
