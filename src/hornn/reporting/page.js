// The page: one view at a time by its address, search, filters, sorting, ticks, tips; it renews itself while it is served.
const root = document.documentElement, find = (query, from = document) => [...from.querySelectorAll(query)];
const byId = id => document.getElementById(id);
const kept = { get: key => { try { return sessionStorage.getItem(key); } catch { return null; } }, set: (key, value) => { try { sessionStorage.setItem(key, value); } catch { /* not kept */ } } };
const tickedBefore = () => { try { return new Set(JSON.parse(kept.get("ticked") ?? "[]")); } catch { return new Set(); } };
const ticked = tickedBefore();
root.classList.add("js");

try { if (localStorage.getItem("theme")) root.dataset.theme = localStorage.getItem("theme"); } catch { /* as the system has it */ }
const changeTheme = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* for this page alone */ }
};

const narrow = matchMedia("(max-width: 56rem)");
narrow.addEventListener("change", () => { byId("menu").open = !narrow.matches; });
let noting;
addEventListener("scroll", () => { clearTimeout(noting); noting = setTimeout(() => history.replaceState({ y: scrollY }, ""), 100); });
const show = (keep = false) => {
  const [, kind, list] = location.hash.match(/^#(run|compare)(?:=(.*))?$/) ?? [];
  const [, filters] = location.hash.match(/^#claims=(.*)$/) ?? [];
  if (filters !== undefined) setFilters(new URLSearchParams(filters));
  const name = filters === undefined ? decoded(location.hash.slice(1)) : "claims", named = [kind ? "compare" : name, `table-${name}`].map(byId).find(each => each?.closest(".view"));
  const target = named ?? byId("home"), view = target.closest(".view");
  for (const other of find(".view")) other.classList.toggle("shown", other === view);
  if (kind) renderRuns(view, (list ?? "").split(",").filter(Boolean));
  const here = kind === "run" ? "table-" + decoded((list ?? "").split("/")[0]) : target.matches("li") ? view.id : target.id;
  if (target.matches("li")) target.querySelector("details").open = true;
  for (const link of find("nav a")) (link.classList.contains("chosen") ? "compare" : decoded(link.hash.slice(1))) === here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  const place = view.querySelector(".curves[data-table]");
  if (place?.redraw) place.redraw(); // it may have another width than when it was seen last
  else if (place) {
    const rows = Object.entries(data.rows).filter(([key]) => key.startsWith(`${place.dataset.table}/`));
    const items = rows.map(([key, row]) => ({ ...itemOf(addressOf(place.dataset.table, key.slice(place.dataset.table.length + 1))), style: row.style, series: row.series }));
    curvesOf(place, items, view.querySelector("h1").textContent);
  }
  if (location.hash === "#claims") keepFilters();
  document.title = `hornn: ${view.querySelector("h1").textContent}`;
  for (const svg of find("figure > svg", view)) if (svg.querySelector("[data-tip]")) {
    svg.setAttribute("tabindex", 0);
    svg.setAttribute("aria-description", "Arrow keys go from mark to mark");
  }
  const heads = find("h1, h2, h3", view);
  for (const table of find("table", view)) table.setAttribute("aria-label", heads.findLast(head => head.compareDocumentPosition(table) & Node.DOCUMENT_POSITION_FOLLOWING).textContent);
  light(view, []);
  hideTip();
  if (keep) return target;
  if (narrow.matches) byId("menu").open = false;
  const y = history.state?.y;
  const go = () => y !== undefined ? scrollTo(0, y) : target === view ? scrollTo(0, 0) : target.scrollIntoView();
  document.readyState === "complete" ? requestAnimationFrame(go) : addEventListener("load", () => requestAnimationFrame(go), { once: true });
  return target;
};

// Each claim is written once, in its table; here all of them are listed
const listClaims = () => {
  const list = document.querySelector("#claims .claims");
  if (list && !list.children.length) list.append(...find(".view:not(#home) .claims > li:not([data-again])").map(claim => {
    const copy = claim.cloneNode(true), table = `#${claim.closest(".view").id}`;
    copy.removeAttribute("id");
    Object.assign(copy.dataset, { paper: claim.parentElement.dataset.paper, outcome: plain(claim.querySelector(".outcome")) });
    copy.querySelector(".evidence").append(" ", element("a", { href: table }, plain(document.querySelector(`nav a[href="${table}"]`))));
    return copy;
  }));
};
// What only those need who hear the page or press its buttons
const addRoles = () => {
  for (const sign of find("i, .bars svg")) sign.setAttribute("aria-hidden", true);
  // 1,300 addresses that need not be written
  for (const link of find(".runs a:not([href])")) link.href = `#run=${link.closest("tr").querySelector(".pick").dataset.pick}/${link.textContent}`;
  for (const button of find("[data-lights]:not([aria-pressed])")) button.setAttribute("aria-pressed", false);
  for (const spot of find("a [data-tip]")) spot.closest("a").setAttribute("aria-label", spot.dataset.tip); // its label may be cut off
};

// Search and filters
const search = () => {
  const words = byId("search").value.toLowerCase().split(/\s+/);
  for (const item of find("nav [data-words]")) {
    const view = byId(item.querySelector("a").getAttribute("href").slice(1)), texts = find("h1, tbody .label", view).map(each => each.textContent);
    const known = [item.dataset.words, ...texts].join(" ").toLowerCase();
    item.hidden = !words.every(word => known.includes(word));
  }
  for (const group of find("nav .group")) group.hidden = !find("li:not([hidden])", group).length;
  byId("nothing").hidden = find("nav .group:not([hidden])").length > 0;
};
const filter = () => {
  const items = find("#claims .claims > li"), choices = find(".filters select[data-key]");
  for (const item of items) item.hidden = !choices.every(choice => !choice.value || item.dataset[choice.dataset.key].split("|").includes(choice.value));
  if (byId("count")) byId("count").textContent = `${items.filter(item => !item.hidden).length} of ${items.length}`;
};
const setFilters = given => {
  for (const choice of find(".filters select[data-key]")) {
    choice.value = given.get(choice.dataset.key) ?? "";
    if (choice.selectedIndex < 0) choice.value = ""; // there is no such choice
  }
  filter();
};
/** The filters stand in the address, so that it can be sent to someone. */
const keepFilters = () => {
  const set = find(".filters select[data-key]").filter(choice => choice.value).map(choice => [choice.dataset.key, choice.value]);
  history.replaceState(history.state, "", `#claims=${new URLSearchParams(set)}`);
};
const plain = cell => [...cell.childNodes].filter(node => node.nodeType === Node.TEXT_NODE).map(node => node.data).join("").trim();
const sort = button => {
  const head = button.parentElement, column = head.cellIndex, body = head.closest("table").tBodies[0];
  const before = head.getAttribute("aria-sort"), up = before !== "ascending", rows = [...body.rows];
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  if (before === "descending" && rows[0]?.dataset.series) { // the third time the table is as it was
    body.append(...rows.sort((a, b) => a.dataset.series - b.dataset.series));
    return;
  }
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  // A label that goes on from the row above says all of itself once the order is another
  for (const cell of find("[data-whole]", body)) [...cell.childNodes].find(node => node.nodeType === Node.TEXT_NODE && node.data.trim()).data = cell.dataset.whole;
  const value = row => row.cells[column].dataset.value ?? plain(row.cells[column]);
  const number = text => head.matches(".label, .device") ? NaN : parseFloat(text.replaceAll(",", ""));
  // Numbers before words, so that one order holds for all of a column; nothing is last in both directions
  const compare = (a, b) => isNaN(number(a)) - isNaN(number(b)) || number(a) - number(b) || a.localeCompare(b, undefined, { numeric: true });
  body.append(...rows.sort((a, b) => {
    const x = value(a), y = value(b);
    return x === "" || y === "" ? (x === "") - (y === "") : up ? compare(x, y) : compare(y, x);
  }));
};

// Ticks: the rows and runs that are to be compared
const offerTicks = () => {
  for (const cell of find("td[data-pick]:empty")) cell.append(element("input", { type: "checkbox", "data-item": cell.dataset.pick, "aria-label": `Compare ${cell.nextElementSibling.dataset.whole ?? plain(cell.nextElementSibling)}` }));
};
const showTicks = () => {
  for (const box of find("input[data-item]")) box.checked = ticked.has(box.dataset.item);
  const here = [...ticked].filter(itemOf);
  byId("tray").hidden = !here.length;
  byId("ticked").textContent = `${here.length} chosen`;
  for (const link of find("a.chosen")) link.href = `#compare=${here.join(",")}`;
  kept.set("ticked", JSON.stringify([...ticked]));
};

// Tips and lights: the marks of a row in all figures of its view, and its line in the table
const light = (view, series) => {
  const on = new Set(series.flatMap(one => find(`[data-series~="${one}"]`, view)));
  view.classList.toggle("lit", on.size > 0);
  for (const each of find(".on", view)) if (!on.has(each)) each.classList.remove("on");
  for (const each of on) each.classList.add("on");
};
const hideTip = () => { byId("tip").hidden = true; };
const pinnedIn = view => view.querySelector("[data-lights][aria-pressed=true]")?.dataset.lights.split(" ") ?? [];
const rest = view => { hideTip(); light(view, pinnedIn(view)); };
const nameOf = spot => {
  const row = spot.closest(".view").querySelector(`tr[data-series="${spot.dataset.series}"] .label`);
  return row.dataset.whole ?? plain(row);
};
const point = (spot, x, y) => {
  const tip = byId("tip");
  const told = spot.dataset.tip;
  tip.textContent = told.startsWith(":") ? nameOf(spot) + (told === ":" ? "" : told) : told;
  tip.hidden = false;
  tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${y + 14 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 8 : y + 14}px`;
  if (spot.dataset.series !== undefined) light(spot.closest(".view"), spot.dataset.series.split(" "));
};
const middle = spot => { const box = spot.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; };
const NEAR = 28;
const nearest = (svg, x, y) => find("[data-tip]", svg).map(spot => [spot, ...middle(spot)])
  .map(([spot, a, b]) => [spot, Math.hypot(a - x, b - y), a, b]).filter(each => each[1] < NEAR).sort((a, b) => a[1] - b[1])[0];
const look = event => {
  const svg = event.target.closest?.("figure > svg, .columns > svg"), view = event.target.closest?.(".view");
  if (!svg) {
    if (!byId("tip").hidden) hideTip();
    const over = event.target.closest?.("[data-lights], tr[data-series]");
    if (view) light(view, over ? (over.dataset.lights ?? over.dataset.series).split(" ") : pinnedIn(view));
    return;
  }
  const under = event.target.closest("[data-tip]"), found = under ? [under] : nearest(svg, event.clientX, event.clientY);
  if (found) point(found[0], event.clientX, event.clientY);
  else if (!byId("tip").hidden) rest(view);
};
const step = (svg, forward) => {
  const spots = find("[data-tip]", svg), next = (spots.findIndex(spot => spot.classList.contains("here")) + forward + spots.length) % spots.length;
  for (const spot of spots) spot.classList.toggle("here", spot === spots[next]);
  spots[next].scrollIntoView({ block: "nearest", inline: "nearest" });
  point(spots[next], ...middle(spots[next]));
};

/** So that a screen reader says where one is. */
const focusOn = title => {
  if (!title.matches("summary")) title.tabIndex = -1;
  title.focus({ preventScroll: true });
};

addEventListener("pointermove", look);
addEventListener("pointerdown", look);
addEventListener("hashchange", () => {
  const target = show();
  focusOn(target.querySelector("h1, h2, summary") ?? target.closest(".view").querySelector("h1"));
});
let waiting;
addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => { for (const place of find(".view.shown .curves")) place.redraw?.(); }, 150); });
addEventListener("click", event => {
  const at = query => event.target.closest(query);
  if (at("#theme")) changeTheme();
  else if (narrow.matches && at("nav a")) byId("menu").open = false;
  else if (at("#skip")) document.querySelector("main").focus();
  else if (at("th button")) sort(at("th button"));
  else if (at(".unfold")) {
    const folded = at(".view").querySelector("table").classList.toggle("folded"), words = at(".unfold").textContent.replace(/^\w+/, folded ? "Show" : "Hide");
    at(".unfold").textContent = words;
    at(".unfold").setAttribute("aria-expanded", !folded);
  } else if (at("#clear")) { ticked.clear(); showTicks(); focusOn(document.querySelector(".view.shown h1")); }
  else if (at(".leave")) { ticked.delete(at(".leave").dataset.leaves); showTicks(); }
  else if (at("[data-lights]")) {
    const button = at("[data-lights]"), pressed = button.getAttribute("aria-pressed") === "true";
    for (const other of find("[data-lights]", button.closest(".view"))) other.setAttribute("aria-pressed", other === button && !pressed);
    light(button.closest(".view"), pressed ? [] : button.dataset.lights.split(" "));
  }
});
addEventListener("input", event => { if (event.target.id === "search") search(); });
addEventListener("change", event => {
  if (event.target.matches("select[data-key]")) { filter(); keepFilters(); }
  if (event.target.matches("input[data-item]")) { ticked[event.target.checked ? "add" : "delete"](event.target.dataset.item); showTicks(); }
});
addEventListener("focusin", event => { if (event.target.matches("[data-lights]")) light(event.target.closest(".view"), event.target.dataset.lights.split(" ")); });
addEventListener("focusout", event => {
  const view = event.target.closest?.("figure > svg, [data-lights]")?.closest(".view");
  if (!view) return;
  for (const spot of find(".here", view)) spot.classList.remove("here");
  rest(view);
});
addEventListener("keydown", event => {
  const svg = event.target.closest?.("figure > svg");
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.matches("input:not([type=checkbox]), select")) { event.preventDefault(); byId("menu").open = true; byId("search").focus(); }
  if (event.key === "Escape") {
    for (const button of find("[data-lights][aria-pressed=true]")) button.setAttribute("aria-pressed", false);
    rest(document.querySelector(".view.shown"));
  }
  if (svg && /^Arrow(Left|Right)$/.test(event.key)) { event.preventDefault(); step(svg, event.key === "ArrowRight" ? 1 : -1); }
});

// While it is served: what changed takes the place of what was, without a jump; what a reader has set stays
const BOXES = "input[type=checkbox]:not([data-item])", CHOOSING = CSS.supports("selector(select:open)") ? "select:open" : "select:focus";
/** Which claim or other part a reader has opened: its outcome may change. */
const openedAs = part => `${part.closest(".view").id} ${(part.querySelector(".says") ?? part.querySelector("summary")).textContent}`;
/** What a control is of, whatever came before it meanwhile. */
const markOf = control => [control.tagName, control.id, control.getAttribute("href"), ...["item", "key", "lights"].map(key => control.dataset[key]),
  control.closest("li")?.querySelector(".says")?.textContent, /^(H1|H2|BUTTON)$/.test(control.tagName) ? control.textContent : ""].join("|");
const called = button => button.matches(".unfold") ? "unfold" : button.textContent;
const settingsOf = view => [find("select", view).map(each => each.value), find(BOXES, view).map(each => each.checked), find("table", view).map(table => {
  const head = table.querySelector("[aria-sort]");
  return head ? [head.parentElement.rowIndex, head.cellIndex, head.getAttribute("aria-sort")] : [];
}), find(".unfold[aria-expanded=true], [data-lights][aria-pressed=true]", view).map(called)];
const setAgain = (view, [values, boxes, sorted, pressed]) => {
  find("select", view).forEach((each, n) => { if ([...each.options].some(option => option.value === values[n])) each.value = values[n]; });
  find(BOXES, view).forEach((each, n) => { each.checked = boxes[n] ?? each.checked; });
  for (const place of find(".curves", view)) place.redraw?.();
  find("table", view).forEach((table, n) => {
    const [row, column, order] = sorted[n] ?? [], button = table.rows[row]?.cells[column]?.querySelector("button");
    if (button) sort(button);
    if (button && order === "descending") sort(button);
  });
  for (const name of pressed) find(".unfold, [data-lights]", view).find(button => called(button) === name)?.click();
};
let later;
const renew = async () => {
  clearTimeout(later);
  if (document.querySelector(CHOOSING) || find("audio").some(each => !each.paused)) { later = setTimeout(renew, 1000); return; }
  const answer = await fetch(location.pathname, { cache: "no-store" });
  if (!answer.ok) return; // the page was moved away: this one stays
  const text = await answer.text();
  const next = new DOMParser().parseFromString(text, "text/html"), chosen = find(".filters select[data-key]").map(choice => choice.value);
  const settings = new Map(find(".view").map(view => [view.id, settingsOf(view)])), open = find("main details[open]").map(openedAs), words = byId("search").value, menu = byId("menu").open;
  const FOCUS = "h1, h2, a, button, input, select, summary, [tabindex='0']", shown = document.querySelector(".view.shown"), held = document.activeElement;
  const part = held.closest("nav") ? () => document.querySelector("nav") : held.closest("main") ? () => byId(shown.id) : null;
  const alike = () => find(FOCUS, part()).filter(each => markOf(each) === mark);
  const mark = markOf(held), place = part ? find(FOCUS, part()).indexOf(held) : -1, among = part ? alike().indexOf(held) : -1, cursor = held.selectionStart;
  const along = find(".scroll", shown).map(each => each.scrollLeft), down = document.querySelector("nav").scrollTop;
  await readData(next); // before anything changes, so that nothing jumps
  for (const query of ["style", "main", "nav"]) document.querySelector(query).replaceWith(next.querySelector(query));
  listClaims();
  root.dataset.live = next.documentElement.dataset.live ?? "";
  byId("live").textContent = "live";
  byId("search").value = words;
  byId("menu").open = menu;
  find(".filters select[data-key]").forEach((choice, n) => { choice.value = chosen[n] ?? ""; });
  start(true);
  for (const each of find("main details")) each.open = open.includes(openedAs(each));
  for (const view of find(".view")) if (settings.has(view.id)) setAgain(view, settings.get(view.id));
  find(".view.shown .scroll").forEach((each, n) => { each.scrollLeft = along[n] ?? 0; });
  document.querySelector("nav").scrollTop = down;
  const again = part ? alike()[among] ?? find(FOCUS, part())[place] : null;
  if (again?.matches("h1, h2")) again.tabIndex = -1;
  again?.focus({ preventScroll: true });
  if (again?.id === "search") again.setSelectionRange(cursor, cursor);
};
let source;
/** Only while someone looks: all pages of one address share six connections. */
const follow = () => {
  source?.close();
  if (document.hidden) return;
  source = new EventSource(`changes?since=${root.dataset.live}`);
  source.onmessage = () => renew();
  let lost = false;
  const say = text => { byId("live").textContent = text; };
  source.onerror = () => { lost = true; say("not served now"); };
  source.onopen = async () => { if (lost) await renew(); lost = false; say("live"); };
};

const start = keep => { listClaims(); addRoles(); search(); filter(); show(keep); offerTicks(); showTicks(); };
const ready = readData().then(() => start(false)).catch(error => { root.classList.remove("js"); throw error; }); // all views, one below the other
if (root.dataset.live !== undefined) { follow(); document.addEventListener("visibilitychange", follow); }
