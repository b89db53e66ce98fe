// node workflows.mjs FILE...: prints what AWS's own validator of Amazon States Language reports, as JSON by file.
import fs from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { getLanguageService } = require("amazon-states-language-service");
const { TextDocument } = require("vscode-languageserver-textdocument");

const reports = {};
for (const file of process.argv.slice(2)) {
  const document = TextDocument.create(`file://${file}`, "asl", 1, fs.readFileSync(file, "utf8"));
  const service = getLanguageService({});
  const problems = await service.doValidation(document, service.parseJSONDocument(document));
  reports[file] = problems.map((problem) => `${problem.range.start.line + 1}: ${problem.message}`);
}
console.log(JSON.stringify(reports));
