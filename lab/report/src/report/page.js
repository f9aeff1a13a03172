// Tables are sorted by a click on a column's title. The page is whole without it.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const key = (row) => {
        const cell = row.cells[at];
        const text = cell.dataset.value ?? cell.textContent.replace(/,/g, "");
        const value = text.trim() === "" ? NaN : Number(text);
        return Number.isNaN(value) ? cell.textContent : value;
      };
      const low = (row) => Number(row.cells[at].dataset.low ?? 0);
      const order = (a, b) => {
        const x = key(a), y = key(b);
        if (typeof x === "number" && typeof y === "number") return x - y || low(a) - low(b);
        if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
        return x.localeCompare(y, "en", { numeric: true });
      };
      const rows = [...table.tBodies[0].rows].sort((a, b) => (down ? order(b, a) : order(a, b)));
      table.tBodies[0].append(...rows);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}
