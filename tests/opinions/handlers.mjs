// node handlers.mjs PYODIDE HANDLER... -- FOLDER... -- PACKAGE...: imports each handler with Pyodide, a CPython of the
// functions' version, from folders and single packages. Prints JSON: the Python, and the traceback of each failure.
import path from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, ...rest] = process.argv.slice(2);
const [first, second] = [rest.indexOf("--"), rest.lastIndexOf("--")];
const [handlers, folders, packages] = [rest.slice(0, first), rest.slice(first + 1, second), rest.slice(second + 1)];
const { loadPyodide } = await import(pathToFileURL(path.join(pyodide, "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: pyodide, stdout: () => {} });

function mount(root, place) {
  python.FS.mkdirTree(place);
  python.FS.mount(python.FS.filesystems.NODEFS, { root }, place);
}

folders.forEach((folder, n) => mount(folder, `/path/${n}`));
packages.forEach((folder) => mount(folder, `/runtime/${path.basename(folder)}`));
python.globals.set("handlers", python.toPy(handlers));
python.globals.set("paths", python.toPy([...folders.map((_, n) => `/path/${n}`), "/runtime"]));
console.log(python.runPython(`
import importlib, json, sys, traceback
sys.path[:0] = paths
failures = {}
for name in handlers:
    try:
        importlib.import_module(f"handlers.{name}").handler
    except BaseException:
        failures[name] = traceback.format_exc()
json.dumps({"python": "%d.%d" % sys.version_info[:2], "failures": failures})
`));
