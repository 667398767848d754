// Runs beside one another: their curves, their numbers, and where their configs differ; one run alone is its own view.
let data = { rows: {}, runs: [], tables: {}, measures: {} };
const readData = async (page = document) => {
  const bytes = Uint8Array.from(atob(page.getElementById("runs").textContent), letter => letter.charCodeAt(0));
  const columns = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  const { address = [], ...rows } = columns.rows, { seed = [] } = columns.runs;
  const runs = seed.map((_, n) => nthOf(columns.runs, n));
  for (const { curves } of runs) for (const key in curves) curves[key] = curveOf(curves[key]);
  data = { ...columns, runs, rows: Object.fromEntries(address.map((each, n) => [each, nthOf(rows, n)])) };
};
/** A curve of the differences between its values, which count its last decimal; of the values where it has no decimals. */
const curveOf = ([decimals, ...values]) => {
  let sum = 0;
  return decimals === null ? values : values.map(value => value === null ? null : (sum += value) / 10 ** decimals);
};
/** One of the mappings that are held by column; it has no key whose value is null. */
const nthOf = (columns, n) => Object.fromEntries(Object.entries(columns)
  .map(([key, column]) => [key, Array.isArray(column) ? column[n] : nthOf(column, n)]).filter(([, value]) => value !== null));

/** An element with its attributes and what it holds; texts are texts, never markup. */
const element = (tag, attributes = {}, ...inside) => {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...inside.flat(Infinity).filter(child => child !== null && child !== undefined));
  return made;
};

/** Part of an address; as it stands where someone typed what decodes to nothing. */
const decoded = text => { try { return decodeURIComponent(text); } catch { return text; } };
const addressOf = (...parts) => parts.map(encodeURIComponent).join("/");

/** What an address names, `table/row` or `table/row/seed`; null for nothing that is here. */
const itemOf = address => {
  const [table, name, seed] = address.split("/").map(decoded), row = data.rows[`${table}/${name}`];
  if (!row) return null;
  const runs = row.runs.map(number => data.runs[number]), alone = runs.length === 1 && runs[0].state === "done";
  const same = seed === undefined ? runs : runs.filter(run => String(run.seed) === seed), one = seed !== undefined && same.length === 1 ? same[0] : null;
  if (!same.length && seed !== undefined) return null;
  return { address, table, name, row, runs: same, one, seed,
    label: seed !== undefined ? `${row.label}, seed ${seed}` : row.label, numbers: same.length > 1 && seed !== undefined ? {} : (one ?? (alone ? runs[0] : row)).numbers };
};

/** A row alone is shown as its seeds. */
const spread = items => items.length === 1 && items[0].runs.length > 1
  ? items[0].runs.map(run => ({ ...items[0], address: addressOf(items[0].table, items[0].name, run.seed), runs: [run], one: run, seed: String(run.seed),
    label: `seed ${run.seed}`, numbers: run.numbers })) : items;

const measureName = key => data.measures[key]?.[0] ?? key;
/** What the tables of items call a number, where all say it alike; else its name everywhere. */
const nameIn = (items, key) => {
  const names = distinct(items.map(item => data.tables[item.table].names[key] ?? measureName(key)));
  return names.length === 1 ? names[0] : measureName(key);
};

const choice = (label, options) => {
  const made = element("select", {}, options.map(([value, text]) => element("option", { value }, text)));
  return [made, element("label", {}, `${label} `, made)];
};

/** What a curve may run over: [key, words, size of its unit, a value in words]. */
const oversOf = runs => {
  const longest = Math.max(...runs.map(run => run.curves.seconds?.at(-1) ?? 0));
  const [unit, size] = [["hours", 3600], ["minutes", 60], ["seconds", 1]].find(each => longest >= 2 * each[1]) ?? ["seconds", 1];
  return [["epoch", "epochs", 1, value => `epoch ${short(value)}`], ["step", "updates", 1, value => `${value.toLocaleString("en")} updates`],
    ["seconds", `training time (${unit})`, size, value => `${short(value)} ${unit}`]].filter(([key]) => runs.some(run => run.curves[key]?.length > 1));
};
const axisOf = ([key, label, , says]) => ({ label, says, least: key === "seconds" ? 0 : 1 });
const along = (run, key, over) => (run.curves[over[0]] ?? []).map((value, n) => [value / over[2], run.curves[key]?.[n]]);
const isScore = key => /^(train|valid)_/.test(key) && data.measures[key][1] < 0;

/** Fill a place with curves: of one run all of its quantities, of several one that someone chooses. */
const curvesOf = (place, items, title) => {
  const runs = items.flatMap(item => item.runs), drawnKeys = Object.keys(data.measures).filter(key => runs.some(run => run.curves[key]?.length > 1));
  if (!drawnKeys.length) return;
  const overs = oversOf(runs), [over, overLabel] = choice("over", overs.map(([key, text]) => [key, text]));
  const chosen = () => overs.find(each => each[0] === over.value);
  place.redraw = runs.length === 1 ? drawOne(place, runs[0], drawnKeys, chosen, overLabel, title) : drawSeveral(place, items, drawnKeys, chosen, overLabel, title);
  over.onchange = place.redraw;
  place.redraw();
};

const drawOne = (place, run, keys, chosen, overLabel, title) => {
  const groups = {};
  for (const key of keys) (groups[/^(train|valid)_/.test(key) ? key.replace(/^[^_]*_/, "") : key.replace(/^max_/, "")] ??= []).push(key);
  const figures = Object.values(groups).map(group => [group.sort((a, b) => /^(train|max)_/.test(a) - /^(train|max)_/.test(b)), element("figure", { class: "chart" }, element("figcaption"))]);
  place.replaceChildren(element("div", { class: "filters" }, overLabel), element("div", { class: "plots" }, figures.map(each => each[1])));
  return () => figures.forEach(([group, figure], index) => {
    const lines = group.map((key, n) => ({ name: measureName(key), colour: data.palette[n][0], symbol: data.palette[n][1], series: `${index}.${n}`, points: along(run, key, chosen()) }));
    const names = group.map(measureName), said = drawChart(figure, `${title}: ${names.join(" and ")} over ${chosen()[1]}`, lines, axisOf(chosen()), { score: group.every(isScore) });
    figure.querySelector("figcaption").replaceChildren(...lines.flatMap(line => [element("span", { style: `color: ${line.colour}`, "aria-hidden": "true" }, line.symbol), ` ${line.name}. `]), said);
  });
};

const drawSeveral = (place, items, keys, chosen, overLabel, title) => {
  const [what, whatLabel] = choice("Curve", keys.map(key => [key, measureName(key)]));
  const having = key => items.filter(item => item.runs.some(run => run.curves[key]?.length > 1)).length;
  const scores = keys.filter(isScore), first = scores.length ? scores : keys;
  what.value = first.reduce((most, key) => having(key) > having(most) ? key : most);
  const every = element("input", { type: "checkbox" }), several = items.some(item => item.runs.length > 1);
  const figure = element("figure", { class: "chart" }), caption = element("figcaption");
  const draw = () => {
    const key = what.value, over = chosen();
    const lines = items.flatMap(item => item.runs.filter(run => every.checked || item.seed !== undefined || run.seed === item.row.best)
      .map(run => ({ name: item.one || item.runs.length === 1 ? item.label : `${item.label}, seed ${run.seed}`,
        colour: item.style[0], symbol: item.style[1], series: item.series, points: along(run, key, over) })));
    const name = `${title}: ${measureName(key)} over ${over[1]}, ${lines.length} ${lines.length === 1 ? "run" : "runs"}`;
    const said = drawChart(figure, name, lines, axisOf(over), { score: isScore(key) });
    const which = several ? every.checked ? "Every seed. " : "The best seed of each row by validation. " : "";
    const words = measureName(key);
    const bare = distinct(lines.filter(line => line.points.filter(([, value]) => value !== undefined && value !== null).length < 2).map(line => line.name));
    caption.textContent = `${words[0].toUpperCase()}${words.slice(1)}, after each epoch. ${which}${over[0] === "seconds" ? "Times compare only on one device. " : ""}${bare.length ? `Without this curve: ${bare.join(", ")}. ` : ""}${said}`;
  };
  what.onchange = every.onchange = draw;
  figure.append(caption);
  place.replaceChildren(element("div", { class: "filters" }, whatLabel, overLabel, several ? element("label", {}, every, " every seed") : null),
    element("div", { class: "beside" }, figure, element("ul", { class: "legend" }, items.map(item => element("li", {}, legendButton(item.style[0], item.style[1], item.label, item.series))))));
  return draw;
};

const legendButton = (colour, symbol, label, series) => element("button", { type: "button", "data-lights": series, "aria-pressed": "false" },
  element("span", { style: `color: ${colour}`, "aria-hidden": "true" }, symbol), ` ${label}`);

const distinct = values => [...new Set(values)];

/** What packed mappings say of the runs of an item: key -> text. */
const valuesOf = (packed, item, key) => {
  const column = packed.keys.indexOf(key);
  const values = distinct(item.runs.map(run => String(packed.values[run[packed === data.configs ? "config" : "origin"]][column])));
  return (values.length > 1 ? values.filter(Boolean) : values).join(" / "); // an earlier run may lack a key
};

/** A word of a config, which may break after its dots and underscores. */
const breakable = word => word.split(/(?<=[._])(?!\d)/).flatMap((part, n) => n ? [element("wbr"), part] : [part]);

/** The lines of a table: a name and a cell for each item. */
const linesOf = (title, lines, columns) => lines.length ? element("tbody", {},
  title ? element("tr", {}, element("th", { scope: "rowgroup", colspan: columns + 1 }, title)) : null,
  lines.map(([name, ...cells]) => element("tr", {}, element("th", { scope: "row" }, breakable(name)), cells.map(cell => element("td", {}, typeof cell === "string" ? breakable(cell) : cell))))) : null;

/** Whether the times of items compare: all ran on one device. */
const onOneDevice = items => distinct(items.map(item => valuesOf(data.origins, item, "device"))).length < 2;
/** Whether the scores of items compare: all are of one corpus, which is known. */
const alike = items => {
  const found = items.map(item => distinct(item.runs.map(run => run.corpus).filter(Boolean)).join());
  return found.every(Boolean) && distinct(found).length < 2;
};

const numberLines = items => {
  const keys = Object.keys(data.measures).filter(key => items.some(item => item.numbers[key]));
  const lines = [];
  for (const key of keys) {
    const having = items.filter(item => item.numbers[key]), compare = having.length === items.length && alike(having) && (!data.times.includes(key) || onOneDevice(having));
    const name = nameIn(having, key), direction = compare ? data.measures[key][1] : 0, values = items.map(item => item.numbers[key]?.[0]);
    const best = direction && items.length > 1 ? Math[direction < 0 ? "min" : "max"](...values) : null;
    const published = items.map(item => item.row.published[key] ?? "");
    if (published.some(Boolean)) lines.push([`${name}, published`, ...published]);
    lines.push([name, ...items.map((item, n) => {
      if (!item.numbers[key]) return "";
      const text = element(values[n] === best ? "b" : "span", {}, item.numbers[key][1]);
      const share = n && values[0] && direction ? +(100 * (values[n] - values[0]) / values[0]).toFixed(1) : null;
      return [text, share === null ? "" : element("span", { class: "soft" }, ` ${share >= 0 ? "+" : "-"}${Math.abs(share).toFixed(1)}\u00a0%`)];
    })]);
  }
  return lines;
};

const packedLines = (packed, items, differing) => packed.keys
  .map(key => [key, ...items.map(item => valuesOf(packed, item, key))])
  .filter(([, ...values]) => values.some(value => value !== "") && (distinct(values).length > 1) === differing);

const sidesOf = (items, parts) => element("div", { class: "scroll" }, element("table", { class: "sides" },
  element("thead", {}, element("tr", {}, element("td"), items.map(item => element("th", { scope: "col", "data-series": item.series },
    element("span", { style: `color: ${item.style[0]}`, "aria-hidden": "true" }, item.style[1]), " ", element("a", { href: `#run=${item.address}` }, item.label))))), parts));

const commandsOf = item => {
  const table = data.tables[item.table], only = `hydra.sweeper.only=[${item.name}]`;
  const own = table.command.match(/ --config-dir=\S+/)?.[0] ?? "";
  const seeds = ` sweep.seeds=[${distinct(item.runs.map(run => run.seed)).join(",")}]`;
  return [table.command ? `${table.command} ${only}${seeds}` : null,
    ...item.runs.filter(run => run.folder).slice(0, 1).map(run => `python src/evaluate.py${own} checkpoint=${run.folder}/best.ckpt split=test ${run.asks ?? ""}`.trim())].filter(Boolean);
};

/** A run or a row in one line: its score beside the published one, and how far it is. */
const headlineOf = item => {
  const { numbers, row, one, table } = item, scores = Object.keys(numbers).filter(each => /^(test|valid)_/.test(each));
  const own = data.tables[table].metrics.filter(each => scores.includes(each)), test = each => each.startsWith("test_");
  const key = own.find(each => row.published[each]) ?? own.find(test) ?? own[0] ?? scores.find(test) ?? scores[0];
  const score = key ? [`${nameIn([item], key)} `, element("b", {}, numbers[key][1]), row.published[key] ? ` (published ${row.published[key]})` : ""] : null;
  const cost = [["epochs", "epochs"], ["wall_seconds", ""]].filter(([each]) => numbers[each]).map(([each, word]) => `${numbers[each][1]} ${numbers[each][1] === "1" ? word.replace(/s$/, "") : word}`.trim());
  const state = one && one.state !== "done" ? element("span", { class: "state bad" }, one.state, one.progress ? `: ${one.progress}` : "") : null;
  const file = one && one.file ? element("a", { href: one.file }, "result file (JSON)") : null;
  return [score, ...cost, state, file].filter(Boolean).flatMap((each, n) => n ? [" · ", each] : [each]).flat();
};

/** The config of a row: how it departs from the recipe of its table, and how its runs depart from that. */
const configOf = ({ row, table, runs }) => {
  const words = list => list.flatMap(text => [element("code", {}, text), " "]), departed = distinct(runs.flatMap(run => run.departures));
  const { command, title } = data.tables[table];
  return [element("p", {}, `${command ? "The recipe" : "The words"} of “${title}”`, row.asks.length ? [" with ", words(row.asks)] : "."),
    departed.length ? element("p", {}, "The run departs from it: ", words(departed)) : null,
    ...distinct(runs.flatMap(run => run.notes)).map(note => element("p", {}, note))];
};

/** The texts that runs wrote at their best epochs, side by side; null where none did. */
const samplesOf = items => {
  const kept = items.map(item => item.runs.map(run => run.samples).find(samples => samples.texts) ?? {});
  const count = Math.max(...kept.map(samples => samples.texts?.length ?? 0));
  if (!count) return null;
  const about = ["epoch", "temperature"].map(key => [key, ...kept.map(samples => String(samples[key] ?? ""))]);
  const texts = Array.from({ length: count }, (_, n) => [`text ${n + 1}`, ...kept.map(samples => element("p", { class: "sample" }, samples.texts?.[n] ?? ""))]);
  return sidesOf(items, linesOf("", [...about, ...texts], items.length));
};

/** What runs heard in a few utterances, a word that is wrong beside the one that was said; null where none is kept. */
const heardOf = items => {
  const kept = items.map(item => item.runs.map(run => run.heard).find(list => list.length) ?? []);
  const all = kept.flat().filter((one, n, list) => list.findIndex(other => other.id === one.id && other.said === one.said) === n);
  const words = pairs => (pairs ?? []).flatMap(([said, heard]) => said === heard ? [said, " "]
    : [said ? [element("del", {}, said), " "] : "", heard ? [element("ins", {}, heard), " "] : ""]);
  const parts = all.map(({ id, said, recording: [address, licence], by_grammar }) => linesOf(
    [said, " ", address ? [element("audio", { controls: true, preload: "none", src: encodeURI(address), "aria-label": `The recording of ${said}` }), " ",
      licence ? element("a", { class: "soft", href: encodeURI(licence) }, "licence") : ""] : ""],
    Object.keys(by_grammar).map(grammar => [grammar, ...kept.map(list => element("p", { class: "heard" },
      words(list.find(other => other.id === id && other.said === said)?.by_grammar[grammar])))]), items.length));
  return parts.length ? sidesOf(items, parts) : null;
};

/** Fill the view for the items of an address, and say what it is called. */
const renderRuns = (view, addresses) => {
  const asked = distinct(addresses), named = asked.map(itemOf).filter(Boolean), items = spread(named);
  const inOneTable = distinct(named.map(item => item.table)).length === 1;
  for (const item of items.filter(item => items.some(other => other.table !== item.table && other.label === item.label))) item.twin = true;
  items.forEach((item, n) => Object.assign(item, { series: n, style: data.palette[n % data.palette.length], label: item.twin ? `${item.label} (${data.tables[item.table].title})` : item.label }));
  const lone = named.length === 1 ? named[0] : null;
  if (lone?.one) items[0] = { ...lone, label: `seed ${lone.seed}` };
  const back = table => element("a", { href: `#table-${table}` }, data.tables[table].title);
  const missing = asked.filter(address => !itemOf(address)).map(decoded);
  const parts = [element("h1", {}, lone ? lone.label : named.length ? `Compare ${named.length} rows` : "Compare")];
  if (missing.length) parts.push(element("p", { class: "warning" }, `Not among the results: ${missing.join(", ")}.`));
  if (!named.length) {
    parts.push(element("p", {}, "Tick rows in any table, or seeds on a run's page; then their curves, numbers and configs stand here side by side. The address can be sent to someone."));
    view.replaceChildren(...parts);
    return;
  }
  if (lone) {
    const seeds = lone.row.runs.map(number => data.runs[number]);
    parts.push(element("p", { class: "soft" }, back(lone.table), " · ", lone.one ? [element("a", { href: `#run=${addressOf(lone.table, lone.name)}` }, "all seeds"), " "] : null,
      seeds.flatMap(run => [lone.seed === String(run.seed) ? element("b", {}, `seed ${run.seed}`) : element("a", { href: `#run=${addressOf(lone.table, lone.name, run.seed)}` }, `seed ${run.seed}`), " "]),
      "· ", element("label", { class: "pick" }, element("input", { type: "checkbox", "data-item": lone.address, checked: ticked.has(lone.address) }), " compare")));
    parts.push(element("p", { class: "headline" }, headlineOf(lone)));
  } else {
    parts.push(element("ul", { class: "chips" }, named.map(item => {
      const others = named.filter(other => other !== item).map(other => other.address);
      return element("li", {}, element("span", { style: `color: ${item.style[0]}`, "aria-hidden": "true" }, item.style[1]), " ", element("a", { href: `#run=${item.address}` }, item.label),
        inOneTable || item.twin ? null : [" ", element("span", { class: "soft" }, data.tables[item.table].title)], " ",
        element("a", { href: `#compare=${others.join(",")}`, "aria-label": `Leave out ${item.label}`, class: "leave", "data-leaves": item.address }, "×"));
    })));
    if (inOneTable) parts.push(element("p", { class: "soft" }, "Rows of ", back(named[0].table), "."));
  }
  const place = element("div", { class: "curves" });
  parts.push(place);
  const differing = packedLines(data.configs, items, true), common = packedLines(data.configs, items, false);
  const several = items.length > 1;
  const part = (title, ...inside) => element("section", {}, element("h2", {}, title), inside);
  const folded = (title, ...inside) => element("details", {}, element("summary", {}, element("h2", {}, title)), inside);
  const origin = [...packedLines(data.origins, items, true), ...packedLines(data.origins, items, false)];
  const origins = origin.length ? sidesOf(items, linesOf("", origin, items.length)) : null;
  const published = items.flatMap(item => Object.values(item.row.published)).join();
  const signs = Object.entries(data.signs).filter(([sign]) => published.includes(sign)).map(([sign, text]) => `${sign}: ${text}. `);
  const left = [part("Numbers", sidesOf(items, linesOf("", numberLines(items), items.length)), signs.length ? element("p", { class: "soft" }, signs) : null,
    several ? element("p", { class: "soft" }, "Bold: the best of the line. Percentages: beside the first column. Empty: no table of this row has the number, or its seeds' times do not compare.",
      alike(items) ? null : " Scores of different data are not ranked.") : null)];
  const differences = several ? part("Where the configs differ", differing.length ? sidesOf(items, linesOf("", differing, items.length)) : element("p", {}, "In nothing but the seed.")) : null;
  const right = [lone ? part("Its config", configOf(lone)) : null, differences, lone?.one && origins ? part("Where it comes from", origins) : null];
  parts.push(element("div", { class: "columns" }, element("div", {}, left), element("div", {}, right)));
  const written = samplesOf(items), heard = heardOf(items);
  if (heard) parts.push(part("What was heard", heard, element("p", { class: "soft" }, element("del", {}, "Struck out"), ": said and not heard. ",
    element("ins", {}, "Underlined"), ": heard and not said.")));
  if (written) parts.push(part("What it writes", written));
  parts.push(folded(several ? "What their configs share" : "The whole config", sidesOf(items, linesOf("", common, items.length))));
  if (origins && !lone?.one) parts.push(folded("Where they come from", origins));
  parts.push(element("h2", {}, "Do it again"), ...named.flatMap(item => commandsOf(item).map(text => element("p", {}, element("code", {}, text)))));
  view.replaceChildren(...parts);
  curvesOf(place, items, lone ? lone.label : "Compared");
};
