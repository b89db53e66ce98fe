// Questions before a change: what will happen, and a way out. Nothing is sent twice.

import { fill, h } from "./dom.js";
import { sentence } from "./format.js";

let asking = false;

/** Prepares a question and asks it, unless another is being prepared or asked: a double click asks once. */
export async function once(question) {
  if (asking) return;
  asking = true;
  try {
    await question();
  } finally {
    asking = false;
  }
}

/**
 * Asks, and acts on a yes.
 * @param {object} asked
 * @param {string} asked.title
 * @param {Array} asked.content what will happen; fields
 * @param {string} asked.yes what the button says that does it
 * @param {boolean} [asked.danger]
 * @param {function} asked.act does it; what it raises is shown, and the dialog stays
 * @param {function} [asked.conflict] after somebody else's change: gives the content anew
 * @returns {Promise<boolean>} whether it was done
 */
export function ask({ title, content, yes, danger = false, act, conflict }) {
  return new Promise((resolve) => {
    let busy = false;
    let done = false;
    const place = h("div", {}, content);
    const wrong = h("div", { role: "alert" });
    const no = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
    const go = h("button", { type: "submit", class: danger ? "danger" : "primary" }, yes);
    const form = h(
      "form",
      { method: "dialog", onsubmit: submit },
      h("h2", { id: "asked" }, title),
      place,
      wrong,
      h("div", { class: "buttons" }, no, go),
    );
    const dialog = h("dialog", { "aria-labelledby": "asked", oncancel: keep, onclose: closed }, form);

    async function submit(event) {
      event.preventDefault();
      if (busy || done) return;
      busy = true;
      go.disabled = no.disabled = true;
      form.setAttribute("aria-busy", "true");
      fill(wrong);
      try {
        await act();
        done = true;
        dialog.close();
      } catch (error) {
        const again = error.status === 409 && conflict ? await conflict().catch(() => null) : null;
        if (again) fill(place, again);
        fill(wrong, h("p", { class: "problem" }, again ? `${sentence(error.message)} This is how it is now: look, and decide again.` : error.message));
      } finally {
        busy = false;
        go.disabled = no.disabled = false;
        form.removeAttribute("aria-busy");
      }
    }
    function keep(event) {
      if (busy) event.preventDefault(); // it is under way: what comes of it is to be seen
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
