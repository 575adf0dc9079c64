(() => {
  const contents = JSON.parse(document.getElementById("contents").textContent);
  const { spins, edges } = contents;
  const at = (id) => document.getElementById(id);
  const svg = at("network");
  const dots = [...svg.querySelectorAll("#dots > .spin")];
  const lines = [...svg.querySelectorAll("#lines > .edge")].reverse(); // the strongest are on top
  const table = at("edges");
  const rows = table ? [...table.tBodies[0].rows] : [];
  const places = dots.map((dot) => {
    const { e, f } = dot.transform.baseVal.consolidate().matrix;
    return [e, f].map((value) => Math.round(10 * value) / 10);
  });
  const isGrouped = spins.some((spin) => spin.group !== null);
  const meaning = (spin) => (isGrouped ? spin.group : spin.community) ?? null;
  // On a telephone the picture stands upright, and is half as large again.
  if (svg.clientWidth > 0 && svg.clientWidth < 560) {
    const { width, height } = svg.viewBox.baseVal;
    svg.setAttribute("viewBox", `0 0 ${height} ${width}`);
    places.forEach((place, k) => {
      place.reverse();
      dots[k].setAttribute("transform", `translate(${place[0]} ${place[1]})`);
    });
    edges.forEach(({ source, target }, k) => {
      const ends = { x1: places[source][0], y1: places[source][1],
        x2: places[target][0], y2: places[target][1] };
      for (const name in ends) lines[k].setAttribute(name, ends[name]);
    });
  }
  // There the choices are folded away, above the picture.
  const isNarrow = window.matchMedia("(max-width: 45rem)");
  const fold = () => { at("controls-part").open = !isNarrow.matches; };
  isNarrow.addEventListener("change", fold);
  fold();
  const around = spins.map(() => []);
  edges.forEach((edge, k) => { around[edge.source].push(k); around[edge.target].push(k); });
  for (const element of document.querySelectorAll(".scripted")) element.hidden = false;

  // Which edges are seen. Both measures are larger for better edges: |coupling|, or |z|.
  const visible = edges.map(() => true);
  const measures = {
    strength: edges.map((edge) => Math.abs(edge.coupling)),
    significance: edges.map((edge) => (edge.z === null ? 0 : Math.abs(edge.z))),
  };
  const sorted = {};
  for (const name in measures) sorted[name] = [...measures[name]].sort((a, b) => a - b);

  function filter() {
    const name = at("measure").value;
    const hidden = Number(at("slider").value);
    const least = hidden >= edges.length ? Infinity : sorted[name][hidden];
    const isFaint = at("weak").value === "faint";
    let count = 0;
    const strong = edges.map((_, k) => measures[name][k] >= least);
    edges.forEach((_, k) => {
      const seen = strong[k] || isFaint;
      count += strong[k];
      lines[k].classList.toggle("faint", !strong[k]);
      if (seen === visible[k]) return;
      visible[k] = seen;
      lines[k].classList.toggle("off", !seen);
      rows[k].hidden = !seen;
    });
    let limit = "";
    if (hidden > 0 && count > 0) {
      const seen = edges.filter((_, k) => strong[k]);
      const worst = Math.max(...seen.map((edge) => edge.q_value ?? 0));
      limit = name === "strength"
        ? ` with couplings of at least ${least.toPrecision(3)}`
        : ` with q of at most ${worst.toPrecision(2)}`;
    }
    const all = edges.length;
    const order = name === "strength" ? "strongest" : "surest";
    at("shown").textContent = isFaint && count < all
      ? `${all} edges; the ${count} ${order}${limit} stand out, and the others are faint.`
      : `${count} of ${all} edges${limit} are shown.`;
    if (chosen !== null) show(chosen);
  }

  // Names where there is room, first those of the spins with the most coupling; more as one comes
  // closer.
  const rank = spins.map((_, k) => k).sort((a, b) => spins[b].strength - spins[a].strength);
  const { width: wholeWidth, height: wholeHeight } = svg.viewBox.baseVal;
  const whole = { x: 0, y: 0, width: wholeWidth, height: wholeHeight };
  let view = { ...whole };
  function isInside(x, y) {
    const across = x > view.x && x < view.x + view.width;
    return across && y > view.y && y < view.y + view.height;
  }
  function look(next) {
    view = next;
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    const zoom = (svg.clientWidth || 900) / view.width; // pixels of the screen a unit
    svg.style.setProperty("--zoom", zoom);
    nameSpins(zoom);
  }
  // Beside its spin, or farther off with a line that leads there; boxes are in units of the picture.
  const sides = [[0, -1], [0, 1], [1, 0], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1]];
  const reaches = [0, 10, 22, 40, 60];
  const cover = (a, b) => Math.max(0, a.across + b.across - Math.abs(a.x - b.x))
    * Math.max(0, a.down + b.down - Math.abs(a.y - b.y));
  function nameSpins(zoom) {
    const radii = dots.map((dot) => dot.firstElementChild.r.baseVal.value);
    const seen = rank.filter((k) => isInside(...places[k]));
    const discs = seen.map((k) =>
      ({ x: places[k][0], y: places[k][1], across: radii[k], down: radii[k], k }));
    const taken = [];
    for (const dot of dots) dot.classList.add("quiet");
    const longest = Math.max(10, Math.floor((svg.clientWidth || 900) / 15)); // letters
    for (const k of seen.slice(0, 400)) {
      const { name } = spins[k];
      const shown = name.length > longest ? `${name.slice(0, longest - 1)}…` : name;
      const across = (3.3 * shown.length + 2) / zoom;
      const down = 6.5 / zoom;
      let best = null;
      for (const reach of reaches) {
        for (const [right, below] of sides) {
          const slant = right && below ? 0.7 : 1;
          const away = slant * (radii[k] + (2 + reach) / zoom);
          const x = places[k][0] + right * (away + across);
          const y = places[k][1] + below * (away + down);
          const box = { x, y, across, down, reach };
          if (!isInside(x - across, y - down) || !isInside(x + across, y + down)) continue;
          if (taken.some((one) => cover(one, box) > 0)) continue;
          if (discs.some((disc) => disc.k !== k && cover(disc, box) > 0)) continue;
          best = box;
          break;
        }
        if (best !== null) break;
      }
      const [, leader, text] = dots[k].children;
      const box = best ?? { x: places[k][0], y: places[k][1] - radii[k] - 8 / zoom, down, reach: 0 };
      text.textContent = shown;
      text.setAttribute("x", box.x - places[k][0]);
      text.setAttribute("y", box.y - places[k][1] + 4 / zoom);
      leader.toggleAttribute("hidden", box.reach === 0);
      leader.setAttribute("x2", box.x - places[k][0]);
      leader.setAttribute("y2", box.y - places[k][1] - Math.sign(box.y - places[k][1]) * down);
      if (best === null) continue;
      taken.push(best);
      dots[k].classList.remove("quiet");
    }
  }
  function zoom(factor, x = view.x + view.width / 2, y = view.y + view.height / 2) {
    const width = Math.min(whole.width, Math.max(whole.width / 40, view.width / factor));
    const ratio = width / view.width;
    if (width === whole.width) return look({ ...whole });
    const left = x - (x - view.x) * ratio;
    const top = y - (y - view.y) * ratio;
    look({ x: left, y: top, width, height: view.height * ratio });
  }
  function bringIn(k) {
    const [x, y] = places[k];
    const away = x < view.x || x > view.x + view.width || y < view.y || y > view.y + view.height;
    if (away) look({ ...view, x: x - view.width / 2, y: y - view.height / 2 });
  }

  // One spin can be chosen; the panel tells of it.
  let chosen = null;
  let tabbed = 0;
  const element = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    made.textContent = text;
    for (const name in attributes) made.setAttribute(name, attributes[name]);
    return made;
  };
  const signed = (value) => (value > 0 ? "+" : "") + value.toFixed(3);
  const other = (edge, k) => (edge.source === k ? edge.target : edge.source);

  function show(k) {
    const near = around[k].filter((e) => visible[e]);
    near.sort((a, b) => Math.abs(edges[b].coupling) - Math.abs(edges[a].coupling));
    dots.forEach((dot, j) => {
      dot.classList.toggle("chosen", j === k);
      dot.classList.remove("near");
      dot.setAttribute("aria-pressed", j === k);
    });
    lines.forEach((line) => line.classList.remove("near"));
    for (const e of near) {
      lines[e].classList.add("near");
      dots[other(edges[e], k)].classList.add("near");
    }
    svg.classList.add("choosing");
    const { name, strength, field } = spins[k];
    const group = meaning(spins[k]);
    const list = element("ul", "");
    for (const e of near) {
      const item = element("li", "");
      const neighbour = other(edges[e], k);
      const button = element("button", spins[neighbour].name, { type: "button" });
      button.addEventListener("click", () => { choose(neighbour); dots[neighbour].focus(); });
      item.append(button, element("span", signed(edges[e].coupling)));
      list.append(item);
    }
    const count = `${near.length} edge${near.length === 1 ? "" : "s"} shown`;
    const facts = `${count}; strength ${strength.toFixed(3)}, own tendency ${signed(field)}`;
    const close = element("button", "Deselect", { type: "button" });
    close.addEventListener("click", () => { choose(null); dots[k].focus(); });
    const summary = element("p", (group === null ? "" : `${group}; `) + facts);
    at("panel").replaceChildren(element("h3", name), summary, list, close);
  }
  const invitation = at("panel").firstElementChild;
  function choose(k) {
    chosen = k;
    if (k !== null) { tab(k); bringIn(k); return show(k); }
    svg.classList.remove("choosing");
    for (const one of [...dots, ...lines]) one.classList.remove("chosen", "near");
    for (const dot of dots) dot.setAttribute("aria-pressed", false);
    at("panel").replaceChildren(invitation);
  }
  function tab(k) {
    dots[tabbed]?.setAttribute("tabindex", "-1");
    tabbed = k;
    dots[k].setAttribute("tabindex", "0");
  }
  function walk(k, across, down) {
    let best = null, least = Infinity;
    places.forEach(([x, y], j) => {
      const along = (x - places[k][0]) * across + (y - places[k][1]) * down;
      const aside = Math.abs((x - places[k][0]) * down) + Math.abs((y - places[k][1]) * across);
      const distance = along + 2 * aside;
      if (j !== k && along > 0 && distance < least) { least = distance; best = j; }
    });
    if (best === null) return;
    tab(best);
    bringIn(best);
    dots[best].focus();
  }
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  dots.forEach((dot, k) => {
    dot.addEventListener("click", () => { if (!dragged) choose(chosen === k ? null : k); });
    dot.addEventListener("focus", () => tab(k));
    dot.addEventListener("keydown", (event) => {
      if (event.key in steps) walk(k, ...steps[event.key]);
      else if (event.key === "Enter" || event.key === " ") choose(chosen === k ? null : k);
      else return;
      event.preventDefault();
    });
  });
  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "0") look({ ...whole });
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") choose(null); });

  // Moving about with a pointer.
  let held = null, dragged = false;
  svg.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, y: event.clientY, view };
    dragged = false;
  });
  window.addEventListener("pointermove", (event) => {
    if (held === null) return;
    const scale = 1 / svg.getScreenCTM().a;
    const across = (event.clientX - held.x) * scale, down = (event.clientY - held.y) * scale;
    if (Math.hypot(event.clientX - held.x, event.clientY - held.y) > 4) dragged = true;
    if (dragged) look({ ...held.view, x: held.view.x - across, y: held.view.y - down });
  });
  window.addEventListener("pointerup", () => { held = null; });
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const onScreen = new DOMPoint(event.clientX, event.clientY);
    const point = onScreen.matrixTransform(svg.getScreenCTM().inverse());
    zoom(Math.exp(-event.deltaY / 300), point.x, point.y);
  }, { passive: false });
  at("closer").addEventListener("click", () => zoom(1.6));
  at("farther").addEventListener("click", () => zoom(1 / 1.6));
  at("whole").addEventListener("click", () => look({ ...whole }));

  // Finding a spin by its name.
  function found() {
    const query = at("search").value.trim().toLowerCase();
    const matches = query ? rank.filter((k) => spins[k].name.toLowerCase().includes(query)) : [];
    const same = matches.filter((k) => spins[k].name.toLowerCase() === query);
    return { query, matches, best: same[0] ?? matches[0] ?? null, exact: same.length === 1 };
  }
  at("search").addEventListener("input", () => {
    const { query, matches, best, exact } = found();
    dots.forEach((dot) => dot.classList.remove("match"));
    for (const k of matches) dots[k].classList.add("match");
    const count = `${matches.length} name${matches.length === 1 ? " matches" : "s match"}.`;
    at("matches").textContent = query ? count : "";
    if (exact || matches.length === 1) choose(best);
  });
  at("search").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const { best } = found();
    if (best !== null) choose(best);
  });

  // The table of edges.
  const sortKeys = { // what the heads of columns name in data-sort
    name: (edge, [end]) => spins[edge[end]].name,
    value: (edge, [column]) => edge[column],
    magnitude: (edge, [column]) => Math.abs(edge[column]),
    width: (edge, [low, high]) => edge[high] - edge[low],
  };
  const compare = (x, y) => {
    if (typeof x === "string") return x.localeCompare(y, undefined, { numeric: true });
    return (x ?? Infinity) - (y ?? Infinity);
  };
  for (const head of table ? table.tHead.rows[0].cells : []) {
    const button = element("button", head.textContent, { type: "button" });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const columns = head.dataset.of.split(" ");
      const keys = edges.map((edge) => sortKeys[head.dataset.sort](edge, columns));
      const sign = down ? -1 : 1;
      const order = edges.map((_, k) => k);
      order.sort((i, j) => sign * compare(keys[i], keys[j]) || i - j);
      table.tBodies[0].append(...order.map((k) => rows[k]));
    });
  }
  const columns = at("download").dataset.columns.split(" ");
  const cell = (value) => {
    const text = value === null ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  at("download").addEventListener("click", () => {
    const shown = edges.filter((_, k) => visible[k]);
    const body = shown.map((edge) => {
      const ends = { source: spins[edge.source].name, target: spins[edge.target].name };
      const row = { ...edge, ...ends };
      return columns.map((name) => row[name]);
    });
    const text = [columns, ...body].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
    pictures.save(new Blob([text], { type: "text/csv" }), "edges.csv");
  });

  // Pictures to download: the network as it is seen, and every chart.
  const legend = [...document.querySelectorAll(".legend li")];
  for (const kind of ["svg", "png"]) {
    at(`save-${kind}`).addEventListener("click", () =>
      pictures.saveAs(kind, pictures.ofNetwork(svg, legend), "network"));
  }
  for (const chart of document.querySelectorAll("figure > .chart")) {
    const name = chart.closest("section").id.replace("-part", "");
    const place = [...chart.closest("section").querySelectorAll(".chart")].indexOf(chart);
    const file = place > 0 ? `${name}-${place + 1}` : name;
    const buttons = element("span", "", { class: "saving" });
    for (const kind of ["svg", "png"]) {
      const label = `Download this chart as ${kind.toUpperCase()}`;
      const attributes = { type: "button", "aria-label": label, "data-kind": kind };
      const button = element("button", kind.toUpperCase(), attributes);
      button.addEventListener("click", () =>
        pictures.saveAs(kind, pictures.ofChart(chart.firstElementChild), file));
      buttons.append(button);
    }
    chart.parentElement.querySelector("figcaption").prepend(buttons);
  }

  at("controls").addEventListener("submit", (event) => event.preventDefault());
  at("measure").addEventListener("change", filter);
  at("weak").addEventListener("change", filter);
  at("slider").addEventListener("input", filter);
  at("size").addEventListener("change", () => {
    const size = at("size").value;
    for (const { firstElementChild: disc } of dots) disc.setAttribute("r", disc.dataset[size]);
    look(view);
  });
  at("theme").addEventListener("click", () => {
    const byDefault = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const { dataset } = document.documentElement;
    dataset.theme = (dataset.theme ?? byDefault) === "dark" ? "light" : "dark";
  });
  window.addEventListener("resize", () => look(view));
  look(view);
  filter(); // a browser that comes back remembers where the slider was
  document.documentElement.dataset.ready = "yes";
})();
