// node byte_code.mjs PYODIDE VERSION FOLDER PLACE OPTION...: runs `python -m compileall OPTION...` of Python VERSION over
// FOLDER, which that Python sees as PLACE.
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, version, folder, place, ...options] = process.argv.slice(2);

async function compile() {
  const pinned = JSON.parse(readFileSync(path.join(pyodide, "pyodide-lock.json"), "utf8")).info.python;
  if (!pinned.startsWith(`${version}.`)) { // before it starts, which takes seconds
    throw new Error(`package.json pins a Pyodide of Python ${pinned}; the functions run on ${version}`);
  }
  const { loadPyodide } = await import(pathToFileURL(path.join(pyodide, "pyodide.mjs")).href);
  const python = await loadPyodide({ indexURL: pyodide, env: { PYTHONHASHSEED: "0" } });
  python.FS.mkdirTree(place);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, place);
  python.globals.set("options", python.toPy([...options, place]));
  return python.runPython(`
import compileall, sys
sys.argv = ["compileall", *options]
compileall.main()
`);
}

try {
  process.exit((await compile()) ? 0 : 1);
} catch (error) {
  console.error(error.message); // Node itself would show the line of a file that is one line of a megabyte
  process.exit(1);
}
