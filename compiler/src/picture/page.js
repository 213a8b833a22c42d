"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const view = document.getElementById("view");
const told = document.getElementById("told");
const select = document.getElementById("part");
const drawings = [...document.querySelectorAll(".drawing")];
let drawing = null, pinned = null, shift = { x: 0, y: 0, scale: 1 };

function element(name, text, parent, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  parent.append(made);
  return made;
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0, value = bytes;
  while (value >= 1024 && unit + 1 < units.length) { value /= 1024; unit += 1; }
  return unit === 0 ? `${bytes} B` : `${value.toFixed(1)} ${units[unit]}`;
}

function move() {
  drawing.querySelector(".moved").setAttribute("transform", `translate(${shift.x} ${shift.y}) scale(${shift.scale})`);
}

function fit() {
  const box = view.getBoundingClientRect();
  const scale = Math.min(1, (box.width - 24) / drawing.dataset.width);
  shift = { x: 12, y: 12, scale: Math.max(scale, 0.2) };
  move();
}

function choose(index) {
  const part = data.parts[index];
  const found = drawings.find((one) => one.dataset.kind === String(part.kind));
  document.querySelectorAll(".part").forEach((cell, i) => {
    cell.classList.toggle("chosen", i === index);
    cell.classList.toggle("alike", data.parts[i].kind === part.kind);
  });
  select.value = String(index);
  const said = document.getElementById("said");
  if (!found) { said.textContent = `${part.name} is not drawn`; return; }
  const alike = part.drawn === part.name ? "" : `${part.name} looks like ${part.drawn}, which is drawn. `;
  said.textContent = alike + part.said[2];
  if (found === drawing) return;
  drawings.forEach((one) => { one.hidden = one !== found; one.toggleAttribute("hidden", one !== found); });
  drawing = found;
  pin(null);
  fit();
}

function rows(title, list) {
  if (list.length === 0) return;
  const sum = list.reduce((all, row) => all + row[2], 0);
  element("h3", `${title} ${size(sum)}`, told);
  const table = element("table", undefined, told);
  for (const [kind, name, bytes] of list) {
    const row = element("tr", undefined, table);
    element("td", kind, row);
    element("td", name, row);
    element("td", size(bytes), row, "bytes");
  }
}

function tell(group) {
  told.replaceChildren();
  if (!group) {
    element("h2", "Point at a room", told);
    element("p", "Its values, formulas and bytes appear here; click to keep them. Drag to move, turn the wheel to enlarge.", told);
    return;
  }
  const room = data.rooms[group.dataset.room];
  element("h2", room.title, told);
  const last = room.regions.length > 1 ? ` to ${room.regions[room.regions.length - 1]}` : "";
  element("div", `region ${room.regions[0]}${last}` + (room.beside ? `, side by side with ${room.beside} more` : ""), told);
  element("div", `${room.before} launches before, ${room.before - room.regions.length} saved; ${size(room.saved)} no longer stored`, told);
  if (room.kernels.length) {
    element("div", `kernel ${room.kernels[0]}` + (room.kernels.length > 1 ? ` and ${room.kernels.length - 1} more` : "") + ": text unproved", told, "warn");
  }
  rows("reads", room.reads);
  rows("writes", room.writes);
  element("h3", `${room.values.length} values`, told);
  const list = element("ol", undefined, told);
  const boxes = [...group.querySelectorAll(".v")];
  room.values.forEach(([line, marks, body], i) => {
    const item = element("li", line, list);
    if (body) element("pre", body, item);
    if (marks) { item.append(" "); element("em", marks, item); }
    item.addEventListener("mouseenter", () => boxes[i].classList.add("lit"));
    item.addEventListener("mouseleave", () => boxes[i].classList.remove("lit"));
  });
}

function light(group) {
  if (!drawing) return;
  drawing.classList.toggle("dimmed", Boolean(group));
  const key = group && group.dataset.room;
  for (const way of drawing.querySelectorAll(".way")) {
    way.classList.toggle("lit", Boolean(group) && (way.dataset.from === key || way.dataset.to === key));
  }
}

function pin(group) {
  if (pinned) pinned.classList.remove("chosen");
  pinned = group;
  if (pinned) pinned.classList.add("chosen");
  tell(group);
  light(group);
}

data.parts.forEach((part, i) => { element("option", part.name, select).value = String(i); });
select.addEventListener("change", () => choose(Number(select.value)));
document.querySelectorAll(".part").forEach((cell) => cell.addEventListener("click", () => choose(Number(cell.dataset.part))));
document.getElementById("fit").addEventListener("click", fit);
addEventListener("keydown", (event) => { if (event.key === "Escape") pin(null); });

view.addEventListener("mouseover", (event) => {
  const group = event.target.closest(".room");
  if (!pinned) { tell(group); light(group); }
  const box = event.target.closest(".v");
  if (box && group && (!pinned || pinned === group)) {
    const item = told.querySelectorAll("li")[[...group.querySelectorAll(".v")].indexOf(box)];
    told.querySelectorAll("li.lit").forEach((one) => one.classList.remove("lit"));
    if (item) { item.classList.add("lit"); item.scrollIntoView({ block: "nearest" }); }
  }
});

let held = null;
view.addEventListener("pointerdown", (event) => { held = { x: event.clientX, y: event.clientY, moved: false }; });
addEventListener("pointermove", (event) => {
  if (!held) return;
  const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
  if (!held.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
  held = { x: event.clientX, y: event.clientY, moved: true };
  view.classList.add("moving");
  shift.x += dx;
  shift.y += dy;
  move();
});
addEventListener("pointerup", (event) => {
  const clicked = held && !held.moved;
  held = null;
  view.classList.remove("moving");
  if (clicked && view.contains(event.target)) {
    const group = event.target.closest(".room");
    pin(group === pinned ? null : group);
  }
});
view.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = view.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const scale = Math.min(6, Math.max(0.08, shift.scale * Math.exp(-event.deltaY / 500)));
  shift.x = x - (x - shift.x) * scale / shift.scale;
  shift.y = y - (y - shift.y) * scale / shift.scale;
  shift.scale = scale;
  move();
}, { passive: false });

// What most of the step looks like comes first.
const alike = (part) => data.parts.filter((other) => other.kind === part.kind).length;
const drawn = data.parts.filter((part) => part.drawn !== null);
const most = Math.max(...drawn.map(alike));
choose(data.parts.indexOf(drawn.find((part) => alike(part) === most)));
