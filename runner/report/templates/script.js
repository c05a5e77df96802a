"use strict";
(() => {
  const tables = [...document.querySelectorAll("table.compared")];
  const rows = tables.flatMap((table) => [...table.tBodies]);
  const filter = document.getElementById("filter");
  const sort = document.getElementById("sort");
  const buttons = [...document.querySelectorAll("[data-word]")].filter((each) => each.tagName === "BUTTON");
  const count = document.getElementById("count");
  document.body.classList.add("scripted");

  const orders = {
    change: (a, b) => b.dataset.size - a.dataset.size,
    test: (a, b) => a.id.localeCompare(b.id),
    time: (a, b) => b.dataset.time - a.dataset.time,
  };
  const chosen = () => buttons.filter((each) => each.ariaPressed === "true").map((each) => each.dataset.word);

  function show() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = chosen();
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const verdict = row.dataset.word.replace("probably ", "").replace(/^same median.*/, "same");
      row.hidden = !(words.every((word) => text.includes(word)) && (!verdicts.length || verdicts.includes(verdict)));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length}`;
  }

  function order() {
    for (const table of tables) table.append(...[...table.tBodies].sort(orders[sort.value]));
  }

  function save() {
    const state = new URLSearchParams();
    if (filter.value) state.set("q", filter.value);
    if (chosen().length) state.set("verdict", chosen().join(","));
    if (sort.value !== "change") state.set("sort", sort.value);
    history.replaceState(null, "", state.size ? `#?${state}` : location.pathname + location.search);
  }

  function restore() {
    if (location.hash.startsWith("#?")) {
      const state = new URLSearchParams(location.hash.slice(2));
      const verdicts = (state.get("verdict") || "").split(",");
      filter.value = state.get("q") || "";
      for (const button of buttons) button.ariaPressed = String(verdicts.includes(button.dataset.word));
      sort.value = state.get("sort") in orders ? state.get("sort") : "change";
      order();
    }
    show();
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    target.hidden = false;
    target.closest("details")?.setAttribute("open", "");
    if (rows.includes(target)) target.querySelector("details").open = true;
    target.scrollIntoView();
  }

  function markdown() {
    const lines = ["| test | from → to | time | change | verdict |", "|---|---|---|---|---|"];
    for (const row of tables.flatMap((table) => [...table.tBodies]).filter((each) => !each.hidden)) {
      const cells = [...row.rows[0].cells].map((cell) => cell.innerText.replace(/^# /, "").replace(/\s+/g, " ").trim());
      lines.push(`| ${[cells[0], cells[1], cells[2], cells[4], cells[5]].map((text) => text.replace(/\|/g, "\\|")).join(" | ")} |`);
    }
    return lines.join("\n");
  }

  filter.addEventListener("input", () => { show(); save(); });
  sort.addEventListener("change", () => { order(); save(); });
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.ariaPressed = String(button.ariaPressed !== "true");
      show();
      save();
    });
  }
  document.getElementById("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(markdown());
      count.textContent = "copied";
    } catch (error) {
      count.textContent = `not copied: ${error.message}`;
    }
  });
  addEventListener("hashchange", restore);
  restore();
})();
