{
  const map = document.querySelector(".topic-map");
  const reader = document.querySelector(".reader");
  const search = document.getElementById("documents-table-search");
  const rowOf = (number) => document.getElementById(`document-${number}`);
  const clean = (element) => element.textContent.replace(/\s+/g, " ").trim();

  const find = (words) => {
    search.value = words;
    search.dispatchEvent(new Event("input"));
    document.getElementById("documents").scrollIntoView();
    search.focus({ preventScroll: true });
  };

  const select = (point) => {
    for (const before of document.querySelectorAll(".selected")) before.classList.remove("selected");
    const row = rowOf(point.dataset.row);
    point.classList.add("selected");
    row.classList.add("selected");
    const cells = Array.from(row.cells);
    const topic = clean(cells[1]);
    reader.hidden = false;
    reader.querySelector("h3 bdi").textContent = clean(cells[0]);
    reader.querySelector(".about").textContent = cells.slice(1, -1).map(clean).join(" · ");
    reader.querySelector(".text").textContent = clean(cells[cells.length - 1]);
    reader.querySelector("button").onclick = () => find(topic);
  };

  map.addEventListener("click", (event) => {
    const point = event.target.closest("[data-row]");
    if (point) select(point);
  });
}
