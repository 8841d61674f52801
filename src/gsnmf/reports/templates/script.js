"use strict";
for (const block of document.querySelectorAll(".sortable")) {
  const table = block.querySelector("table");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const headers = Array.from(table.tHead.rows[0].cells);
  const search = block.querySelector(".search");
  const input = search.querySelector("input");
  const output = search.querySelector("output");
  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const words = rows.map((row) => fold(row.textContent));

  const sortBy = (position, direction) => {
    const sign = direction === "ascending" ? 1 : -1;
    const key = (row) => {
      const cell = row.cells[position];
      return "value" in cell.dataset ? Number(cell.dataset.value.replace("inf", "Infinity")) : cell.textContent.trim();
    };
    const keyed = rows.map((row, order) => ({ row, order, key: key(row) }));
    keyed.sort((a, b) => {
      const difference = typeof a.key === "number"
        ? (a.key === b.key ? 0 : a.key < b.key ? -1 : 1)
        : a.key.localeCompare(b.key, undefined, { numeric: true, sensitivity: "base" });
      return sign * difference || a.order - b.order;
    });
    body.append(...keyed.map((entry) => entry.row));
  };

  headers.forEach((header, position) => {
    const button = header.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const first = header.classList.contains("number") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const direction = header.getAttribute("aria-sort") === first ? other : first;
      headers.forEach((one) => one.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", direction);
      sortBy(position, direction);
    });
  });

  const filter = () => {
    const wanted = fold(input.value).split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, at) => {
      row.hidden = !wanted.every((word) => words[at].includes(word));
      if (!row.hidden) count += 1;
    });
    output.textContent = wanted.length ? `${count} of ${rows.length}` : `${rows.length}`;
  };
  input.addEventListener("input", filter);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      input.value = "";
      filter();
    }
  });
  search.hidden = false;
  filter();
}
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
