// A chart of lines: SVG at the width of its place, axes that show what matters, marks that say their values.
const FAR = 1.6; // times the worst last score: a score is shown up to there, for a run may begin far off
const LINK = "http://www.w3.org/2000/svg";

const drawn = (tag, attributes, text) => {
  const made = document.createElementNS(LINK, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

const short = (value, most = 1e5) => Math.abs(value) >= most || (value && Math.abs(value) < 1e-3) ? value.toExponential(1).replace(".0e", "e").replace("e+", "e")
  : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(4));

/** Round numbers from low to high, about `count` of them, at least `least` apart. */
const rounded = (low, high, count, log, least = 0) => {
  const found = [];
  if (low === high) return [low];
  if (log && high / low > 8) {
    const steps = high / low > 300 ? [1] : [1, 2, 5];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const step of steps) found.push(step * 10 ** power);
  } else {
    const raw = Math.max((high - low) / count || 1, least), power = 10 ** Math.floor(Math.log10(raw));
    const step = power * ([1, 2, 5].find(factor => factor * power >= raw) ?? 10);
    for (let n = Math.ceil(low / step); n <= high / step + 1e-9; n++) found.push(n * step);
  }
  return found.filter(value => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
};

/**
 * Draw `lines` into `place`: [{ name, colour, symbol, series, points: [[x, y], ..] }].
 * A line has at least two points. x: { label, says, least }, `least` the distance of two numbers along it; y.score: it is cut off where a run is far from its last value. Says what was left out.
 */
const drawChart = (place, name, lines, x, y) => {
  place.querySelector("svg")?.remove();
  lines = lines.map(line => ({ ...line, points: line.points.filter(([a, b]) => a != null && b != null) })).filter(line => line.points.length > 1);
  if (!lines.length) return "";
  const all = lines.flatMap(line => line.points), ys = all.map(point => point[1]);
  const ends = lines.map(line => line.points.at(-1)[1]);
  const falls = y.score && lines.every(line => line.points.at(-1)[1] <= line.points[0][1]);
  const low = Math.min(...ys), cut = falls ? FAR * Math.max(...ends) : Infinity, high = Math.min(Math.max(...ys), cut);
  const log = low > 0 && (high / low > 10 || falls);
  const scale = log ? Math.log : value => value;
  const room = (scale(high) - scale(low) || Math.abs(scale(low)) || 1) * 0.04;
  const bottom = scale(low) - room, top = scale(high) + room;
  const first = Math.min(0, ...all.map(point => point[0])), last = Math.max(...all.map(point => point[0])) || 1;
  const width = Math.max(place.clientWidth, 260), height = Math.round(Math.min(380, Math.max(230, width * 0.5)));
  const left = 52, right = width - 10, foot = height - 40, head = 10;
  const atX = value => left + (right - left) * (value - first) / (last - first);
  const atY = value => foot - (foot - head) * (scale(value) - bottom) / (top - bottom);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: 0, "aria-label": name, fill: "currentColor" });
  const ticks = rounded(low, high, 5, log);
  for (const value of ticks) {
    svg.append(drawn("line", { x1: left, x2: right, y1: atY(value), y2: atY(value), stroke: "currentColor", "stroke-opacity": 0.15 }));
    svg.append(drawn("text", { x: left - 6, y: atY(value) + 4, "text-anchor": "end", "font-size": 12 }, short(value)));
  }
  for (const value of rounded(first, last, Math.max(3, width / 90), false, x.least))
    svg.append(drawn("text", { x: atX(value), y: foot + 16, "text-anchor": "middle", "font-size": 12 }, short(value, 1e7)));
  svg.append(drawn("line", { x1: left, x2: right, y1: foot, y2: foot, stroke: "currentColor", "stroke-opacity": 0.5 }));
  svg.append(drawn("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle", "font-size": 12 }, x.label));
  const frame = drawn("svg", { x: left - 5, y: 0, width: right - left + 15, height: foot, overflow: "hidden" });
  svg.append(frame);
  for (const line of lines) {
    const group = drawn("g", { "data-series": line.series });
    const path = line.points.map(([a, b]) => `${(atX(a) - left + 5).toFixed(1)},${atY(b).toFixed(1)}`).join(" ");
    group.append(drawn("polyline", { points: path, fill: "none", stroke: line.colour, "stroke-width": 1.5 }));
    const shown = line.points.filter(point => point[1] <= high), step = Math.ceil(shown.length / 60);
    shown.forEach(([a, b], index) => {
      const tip = `${line.name}: ${short(b)}, ${x.says(a)}`, large = (shown.length - 1 - index) % Math.ceil(shown.length / 8) === 0;
      if ((shown.length - 1 - index) % step) return;
      const spot = { transform: `translate(${(atX(a) - left + 5).toFixed(1)} ${atY(b).toFixed(1)})`, fill: line.colour, "data-series": line.series, "data-tip": tip };
      group.append(drawn("path", { d: large ? data.shapes[line.symbol] : "M-1.5 0a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0 -3 0", ...spot }));
    });
    frame.append(group);
  }
  place.prepend(svg);
  return `${log ? "Logarithmic axis. " : ""}${Math.max(...ys) > high ? `Values above ${short(cut)} are left out.` : ""}`;
};
