// Confirmation dialogs: they say what a change does, and can be cancelled. Nothing is sent twice.

import { fill, h } from "./dom.js";
import { sentence } from "./format.js";

let open = false;

/** Prepares and shows a dialog, unless another one is being prepared or shown: a double click opens one dialog. */
export async function once(question) {
  if (open) return;
  open = true;
  try {
    await question();
  } finally {
    open = false;
  }
}

/**
 * Asks for confirmation, and then acts.
 * @param {object} options
 * @param {string} options.title
 * @param {Array} options.content the effects of the change; fields
 * @param {string} options.yes label of the button that confirms
 * @param {boolean} [options.danger]
 * @param {function} options.act makes the change; if it throws, the dialog shows the error and stays open
 * @param {function} [options.conflict] returns the updated content after somebody else's change
 * @returns {Promise<boolean>} whether the change was made
 */
export function ask({ title, content, yes, danger = false, act, conflict }) {
  return new Promise((resolve) => {
    let busy = false;
    let done = false;
    const place = h("div", {}, content);
    const alert = h("div", { role: "alert" });
    const no = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
    const go = h("button", { type: "submit", class: danger ? "danger" : "primary" }, yes);
    const form = h(
      "form",
      { method: "dialog", onsubmit: submit },
      h("h2", { id: "dialog-title" }, title),
      place,
      alert,
      h("div", { class: "buttons" }, no, go),
    );
    const dialog = h("dialog", { "aria-labelledby": "dialog-title", oncancel: cancel, onclose: closed }, form);

    async function submit(event) {
      event.preventDefault();
      if (busy || done) return;
      busy = true;
      go.disabled = no.disabled = true;
      form.setAttribute("aria-busy", "true");
      fill(alert);
      try {
        await act();
        done = true;
        dialog.close();
      } catch (error) {
        const updated = error.status === 409 && conflict ? await conflict().catch(() => null) : null;
        if (updated) fill(place, updated);
        fill(alert, h("p", { class: "problem" }, updated ? `${sentence(error.message)} This dialog now shows the current state. Check it, then confirm or cancel.` : error.message));
      } finally {
        busy = false;
        go.disabled = no.disabled = false;
        form.removeAttribute("aria-busy");
      }
    }
    function cancel(event) {
      if (busy) event.preventDefault(); // the request is in progress: its outcome must be visible
    }
    function closed() {
      dialog.remove();
      resolve(done);
    }
    document.body.append(dialog);
    dialog.showModal();
    (form.querySelector("input, textarea") ?? go).focus();
  });
}
