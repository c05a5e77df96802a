"use strict";
(() => {
  const groups = [...document.querySelectorAll(".pair")];
  const rows = [...document.querySelectorAll("details.row")];
  const filter = document.getElementById("filter");
  const sort = document.getElementById("sort");
  const buttons = [...document.querySelectorAll("button[data-word]")];
  const count = document.getElementById("count");
  document.body.classList.add("scripted");

  const orders = {
    change: (a, b) => b.dataset.ratio - a.dataset.ratio,
    test: (a, b) => a.id.localeCompare(b.id),
    time: (a, b) => b.dataset.time - a.dataset.time,
  };
  const chosen = () => buttons.filter((each) => each.ariaPressed === "true").map((each) => each.dataset.word);

  function show() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = chosen();
    let shown = 0;
    for (const row of rows) {
      const text = `${row.textContent} ${row.dataset.sides} ${row.dataset.cell}`.toLowerCase();
      const verdict = row.dataset.word.replace("probably ", "").replace(/^same median.*/, "same");
      row.hidden = !(words.every((word) => text.includes(word)) && (!verdicts.length || verdicts.includes(verdict)));
      shown += !row.hidden;
    }
    for (const group of groups) group.hidden = !group.querySelector("details.row:not([hidden])");
    count.textContent = `${shown} of ${rows.length}`;
  }

  function order() {
    for (const group of groups) {
      const list = group.querySelector(".rows");
      list.append(...[...list.children].sort(orders[sort.value]));
    }
  }

  function save() {
    const state = new URLSearchParams();
    if (filter.value) state.set("q", filter.value);
    if (chosen().length) state.set("verdict", chosen().join(","));
    if (sort.value !== "change") state.set("sort", sort.value);
    history.replaceState(null, "", state.size ? `#?${state}` : location.pathname + location.search);
  }

  function restore() {
    if (filter && location.hash.startsWith("#?")) {
      const state = new URLSearchParams(location.hash.slice(2));
      const verdicts = (state.get("verdict") || "").split(",");
      filter.value = state.get("q") || "";
      for (const button of buttons) button.ariaPressed = String(verdicts.includes(button.dataset.word));
      sort.value = state.get("sort") in orders ? state.get("sort") : "change";
      order();
    }
    if (filter) show();
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    target.hidden = false;
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    if (target.closest(".pair")) target.closest(".pair").hidden = false;
    target.scrollIntoView();
  }

  const text = (row, part) => row.querySelector(part).innerText.replace(/\s+/g, " ").trim();
  const parts = (row) => [
    text(row, ".name"), row.dataset.cell, row.dataset.sides, text(row, ".times"), text(row, ".change b"),
    text(row, ".ends"), [...row.querySelectorAll(".change .mark, .change .advice")].map((each) => each.innerText).join(", "),
  ];

  function markdown() {
    const heads = ["test", "id", "from → to", "time", "change", "95 % interval", "notes"];
    const lines = [heads, heads.map(() => "---"), ...rows.filter((each) => !each.hidden).map(parts)];
    return lines.map((line) => `| ${line.map((cell) => cell.replace(/\|/g, "\\|")).join(" | ")} |`).join("\n");
  }

  function sentence(row) {
    const [name, id, sides, times, change, ends, notes] = parts(row);
    const more = [ends && `95 % interval ${ends}`, times, notes].filter(Boolean).join("; ");
    const measured = document.getElementById("measured").innerText.replaceAll(" · ", ", ");
    return `${sides}: ${name}: ${change} (${more}); ${measured} [${id}]`;
  }

  async function copy(content, say) {
    try {
      await navigator.clipboard.writeText(content);
      say("copied");
    } catch (error) {
      say(`not copied: ${error.message}`);
    }
  }

  if (filter) {
    filter.addEventListener("input", () => { show(); save(); });
    sort.addEventListener("change", () => { order(); save(); });
    for (const button of buttons) {
      button.addEventListener("click", () => {
        button.ariaPressed = String(button.ariaPressed !== "true");
        show();
        save();
      });
    }
    document.getElementById("copy").addEventListener("click", () => copy(markdown(), (said) => { count.textContent = said; }));
  }
  for (const button of document.querySelectorAll(".copy-row")) {
    button.addEventListener("click", () => copy(sentence(button.closest("details")), (said) => { button.textContent = said; }));
  }
  addEventListener("hashchange", restore);
  restore();
})();
