"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const ROLES = {
    variable: ["Variable", "A node of the network: it has two values."],
    covariates: ["Covariate", "Known of each row, such as age or site: it may shift how often the variables are up, and is no node. Numbers or categories."],
    row_groups: ["Groups of rows", "The same label for rows that belong together: of one person, one school, one recording."],
    weights: ["Weights of rows", "How much a row matters, as in a survey."],
    counts: ["Counts of rows", "How many equal rows this row stands for."],
    id: ["Name of the row", "An id: it says which row this is, and is left out."],
    drop: ["Left out", "Not used at all."],
  };
  const TAKEN = {
    covariates: "taken as known of each row (covariate)", row_groups: "taken as the groups of rows", weights: "taken as the weights of rows",
    counts: "taken as the counts of rows", id: "taken as the name of the row", drop: "left out",
  };
  const OF_ONE = ["row_groups", "weights", "counts", "id"]; // roles that one column can have
  const MOST_ROWS = 200; // of the table of columns; others are found by name
  const POLL = 400; // milliseconds
  let token = "";
  let about = null;
  let table = null; // as the app tells it
  let choices = null;
  let plan = null;
  let shownFit = null; // address of the report that is shown

  // Asking the app

  async function ask(method, path, body, headers = {}) {
    let answer;
    try {
      answer = await fetch(path, { method, body, headers: { Authorization: `Bearer ${token}`, ...headers } });
    } catch {
      throw new Error("isingkit app does not answer: it has been stopped, or the file changed on the way. Start it again with: isingkit app");
    }
    const content = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(content.message || `The app has refused this (${answer.status}).`);
    return content;
  }
  const send = (path, content) => ask("POST", path, JSON.stringify(content), { "Content-Type": "application/json" });

  function complain(error) {
    at("problem").textContent = error ? error.message || String(error) : "";
    at("problem").hidden = !error;
    if (error) at("problem").scrollIntoView({ block: "nearest" });
  }
  const guarded = (work) => async (...things) => {
    try { await work(...things); } catch (error) { complain(error); }
  };

  function show(...parts) {
    for (const id of ["file-part", "busy-part", "choices-part", "result-part", "again"]) at(id).hidden = !parts.includes(id);
  }
  const focusOn = (id) => { at(id).focus(); at(id).scrollIntoView({ block: "start" }); };
  const counted = (n, word, words = `${word}s`) => `${n.toLocaleString("en")} ${n === 1 ? word : words}`;
  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  // A file comes

  async function bring(file) {
    complain(null);
    if (file.size > about.largest) {
      throw new Error(`The file is larger than ${about.largest / 1e6} MB: start 'isingkit app --largest-file MEGABYTES', or use 'isingkit fit' in a terminal.`);
    }
    if (table && !(table.fit && table.fit.report)) ask("DELETE", `/api/tables/${table.id}`).catch(() => {});
    forget();
    busy(`Reading ${file.name}`, "reading the file", false);
    try {
      const { id } = await ask("POST", "/api/tables", file, { "X-File-Name": encodeURIComponent(file.name) });
      sessionStorage.setItem("table", id);
      await follow(id, true);
    } catch (error) {
      show("file-part");
      throw error;
    }
  }

  function forget() {
    table = choices = plan = shownFit = null;
    sessionStorage.removeItem("table");
    at("file").value = "";
    at("filter").value = "";
    at("report").removeAttribute("src");
  }

  function busy(title, step, canCancel) {
    at("busy-title").textContent = title;
    at("step").textContent = step;
    at("seconds").textContent = "";
    at("bar").removeAttribute("value");
    at("cancel").hidden = !canCancel;
    show("busy-part");
    focusOn("busy-title");
  }

  function showProgress(job) {
    const step = job.state === "waiting" ? "waiting for others to finish" : job.step || "starting";
    if (at("step").textContent !== step) at("step").textContent = step;
    at("seconds").textContent = job.seconds >= 1 ? `${Math.round(job.seconds)} s` : "";
    if (job.fraction === null) at("bar").removeAttribute("value");
    else at("bar").value = job.fraction;
  }

  const isUnderWay = (job) => job.state === "waiting" || job.state === "running";
  const pause = () => new Promise((done) => setTimeout(done, POLL));

  // Ask again and again until a file is looked through, or its network learnt.
  async function follow(id, isNew) {
    for (;;) {
      const current = await ask("GET", `/api/tables/${id}`);
      if (sessionStorage.getItem("table") !== id) return; // another file has come
      table = current;
      const job = current.fit && isUnderWay(current.fit) ? current.fit : current.check;
      if (current.check.state === "failed") {
        forget();
        show("file-part");
        throw new Error(`${current.name}: ${current.check.message}`);
      }
      const isWriting = current.fit && current.fit.state === "done" && !current.fit.report;
      if (!isUnderWay(job) && !isWriting && current.columns) break;
      showProgress(isWriting ? { ...current.fit, step: "writing the zip" } : job);
      await pause();
    }
    if (!choices) choices = structuredClone(table.fit ? table.fit.choices : table.proposed);
    if (table.fit && table.fit.report) showResult();
    else showChoices(isNew);
    if (table.fit && table.fit.state === "failed") complain(new Error(table.fit.message));
    if (table.fit && table.fit.state === "cancelled" && !isNew) at("open").textContent = "Cancelled.";
  }

  // What columns are

  const columnNamed = (name) => table.columns.find((column) => column.name === name);
  const roleOf = (name) => choices.roles[name] || "variable";
  function importance(column) {
    if (column.is_asked) return 0;
    return column.is_outcome || column.is_constant ? 1 : 2;
  }

  function showChoices(isNew) {
    at("choices-title").textContent = table.name;
    at("shape").textContent = `${counted(table.n_rows, "row")} and ${counted(table.columns.length, "column")}.`;
    at("tools").hidden = table.columns.length < 12;
    at("missing-part").hidden = !table.columns.some((column) => column.n_missing || column.is_asked) && !choices.missing_codes.length;
    at("ticked-part").hidden = !table.proposed.ticked.length;
    at("ticked").checked = choices.ticked.length > 0;
    at("codes").value = choices.missing_codes.join(", ");
    const hasScale = table.columns.some((column) => column.is_asked && column.is_number);
    at("binarize-part").hidden = !hasScale && choices.binarize === null;
    at("binarize").value = choices.binarize ?? "";
    cutProblem = "";
    at("method").value = choices.method;
    at("hidden").value = choices.hidden;
    at("rows").value = choices.rows;
    showMethod();
    fillColumns();
    show("choices-part", "again");
    replan();
    if (isNew) focusOn("choices-title");
  }

  function found() {
    const words = at("filter").value.toLowerCase();
    const matching = table.columns.filter((column) => column.name.toLowerCase().includes(words));
    return matching.sort((one, other) => importance(one) - importance(other));
  }

  function fillColumns() {
    const columns = found();
    const shown = columns.slice(0, MOST_ROWS);
    at("columns").tBodies[0].replaceChildren(...shown.map(columnRow));
    const n_more = columns.length - shown.length;
    at("more").textContent = n_more ? `${counted(n_more, "more column")}: find them by name.` : columns.length ? "" : "No column has such a name.";
    showPlan();
  }

  function columnRow(column, place) {
    const row = element("tr");
    row.dataset.name = column.name;
    const name = element("th", column.name, { scope: "row" });
    const remark = element("span", remarkOn(column), { class: "remark", id: `remark-${place}` });
    name.append(remark);
    const role = element("td", null, { class: "role" });
    const select = element("select", null, { "aria-label": `${column.name} is`, "aria-describedby": `remark-${place} question-${place}` });
    for (const [value, [word]] of Object.entries(ROLES)) select.append(element("option", word, { value }));
    select.value = roleOf(column.name);
    select.addEventListener("change", () => { setRole(column.name, select.value); replan(); });
    role.append(select, element("p", "", { class: "asks", id: `question-${place}` }));
    row.append(name, element("td", column.seen, { class: "values" }), element("td", column.n_missing || "", { class: "number" }),
      element("td", "", { class: "coding" }), role);
    return row;
  }

  function remarkOn(column) {
    if (column.is_constant) return "the same in all rows: it can have no edges";
    if (column.is_outcome) return "looks like an outcome or a group: perhaps a covariate, or left out";
    if (column.is_asked) return roleOf(column.name) === "variable" && choices.binarize === null ? "" : "this is proposed: look at it";
    return "";
  }

  const NUMBER = "\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)(e[-+]?\\d+)?\\s*";
  const ONE_CUT = `("[^"]+=${NUMBER}"|[^",]+=${NUMBER})`;
  const CUT = new RegExp(`^(${NUMBER}|${ONE_CUT}(\\s*,\\s*${ONE_CUT})*)$`, "i");
  let cutProblem = ""; // with what is typed as thresholds

  function setRole(name, role) {
    if (OF_ONE.includes(role)) {
      for (const [other, had] of Object.entries(choices.roles)) {
        if (had === role && other !== name) choices.roles[other] = "drop";
      }
    }
    if (role === "variable") delete choices.roles[name];
    else choices.roles[name] = role;
  }

  // What is open

  let asked = 0;
  let isStale = false; // what is shown belongs to choices of before
  function setStale(value) {
    isStale = value;
    at("choices-part").setAttribute("aria-busy", value);
  }
  async function plans() {
    const turn = ++asked;
    const answer = await send(`/api/tables/${table.id}/plan`, choices);
    if (turn !== asked) return;
    plan = answer;
    setStale(false);
    showPlan();
  }
  let timer = 0;
  function replan() {
    showMissing();
    setStale(true);
    clearTimeout(timer);
    timer = setTimeout(guarded(plans), 60);
  }

  function coded(pair) {
    if (!pair) return "";
    const texts = pair.map((value) => (value === "" ? "(another)" : String(value)));
    return `${texts[0]} is \u22121, ${texts[1]} is +1`;
  }

  function showPlan() {
    if (!plan) return;
    const questions = new Map(plan.questions.filter((one) => one.column !== null).map((one) => [one.column, one.text]));
    for (const row of at("columns").tBodies[0].rows) {
      const name = row.dataset.name;
      const role = roleOf(name);
      const select = row.querySelector("select");
      if (select.value !== role) select.value = role;
      row.className = questions.has(name) ? "asked" : role === "drop" || role === "id" ? "dropped" : "";
      select.setAttribute("aria-invalid", questions.has(name));
      row.querySelector(".asks").textContent = questions.get(name) || "";
      const isCutAway = plan.constant.includes(name);
      row.querySelector(".remark").textContent = isCutAway ? "cut there, it is the same in all rows" : remarkOn(columnNamed(name));
      row.querySelector(".coding").textContent = role === "variable" ? coded(plan.codings[name]) : "";
    }
    for (const about of ["missing", "method", "binarize"]) {
      const texts = plan.questions.filter((one) => one.column === null && one.about === about).map((one) => one.text);
      if (about === "binarize" && cutProblem) texts.push(cutProblem);
      at(`${about}-problem`).textContent = texts.join(" ");
      at(`${about}-problem`).hidden = !texts.length;
      if (about === "method" && texts.length) at("more-choices").open = true;
      if (about === "missing" && texts.length) at("missing-part").hidden = false;
    }
    at("command").textContent = plan.command;
    const n_open = plan.questions.length;
    at("learn").setAttribute("aria-disabled", n_open > 0);
    at("open").textContent = n_open ? `${counted(n_open, "thing is", "things are")} still open.` : `${counted(plan.n_variables, "variable")}: nothing is open.`;
    showSummary();
  }

  function showSummary() {
    const lines = [];
    const open = plan.questions.filter((one) => one.column === null).map((one) => one.text);
    const wrong = table.columns.filter((column) => column.is_asked);
    const byRole = {};
    for (const column of wrong) (byRole[roleOf(column.name)] ||= []).push(column.name);
    const isCut = (name) => String((plan.codings[name] || [])[0]).startsWith("<= ");
    if (byRole.variable) byRole.variable = byRole.variable.filter(isCut);
    for (const [role, names] of Object.entries(byRole)) {
      const some = names.slice(0, 6).join(", ") + (names.length > 6 ? ` and ${names.length - 6} more` : "");
      if (role !== "variable") lines.push(`${some}: ${TAKEN[role]}`);
      else if (names.length) lines.push(`${some}: made two values, ${choices.binarize.includes("=") ? "each at its own threshold" : `cut at ${choices.binarize}`}`);
    }
    const outcomes = table.columns.filter((column) => column.is_outcome && roleOf(column.name) === "variable");
    if (outcomes.length) lines.push(`${outcomes.map((column) => column.name).join(", ")}: looks like an outcome or a group of rows, and is taken as a variable`);
    const ticked = choices.ticked.filter((name) => roleOf(name) === "variable");
    if (ticked.length) lines.push(`${ticked.slice(0, 6).join(", ")}${ticked.length > 6 ? ` and ${ticked.length - 6} more` : ""}: an empty cell means no`);
    if (choices.missing_codes.length) lines.push(`${choices.missing_codes.join(", ")}: missing values`);
    const n_missing = table.columns.reduce((sum, column) => sum + (roleOf(column.name) === "variable" && !choices.ticked.includes(column.name) ? column.n_missing : 0), 0);
    if (n_missing && choices.missing !== "error") lines.push(`${counted(n_missing, "missing value")}: ${about.missing[choices.missing].replace(" (recommended)", "")}`);
    const n_open = plan.questions.length;
    const heading = n_open ? `${counted(n_open, "thing")} to decide below.` : lines.length ? "Ready, if this is what you mean:" : "Ready: every column has two values, and none is missing.";
    const list = element("ul");
    for (const line of [...open, ...lines]) list.append(element("li", line));
    at("summary").replaceChildren(element("p", heading), ...(list.children.length ? [list] : []));
    at("summary").classList.toggle("asking", n_open > 0);
  }

  function showMissing() {
    const method = about.methods.find((one) => one.name === choices.method);
    const boxes = Object.entries(about.missing).map(([policy, words]) => {
      const label = element("label");
      const box = element("input", null, { type: "radio", name: "missing", value: policy });
      box.checked = policy === choices.missing;
      box.disabled = !method.policies.includes(policy);
      box.addEventListener("change", () => { choices.missing = policy; replan(); });
      label.append(box, element("span", words));
      return label;
    });
    const focused = document.activeElement.name === "missing";
    at("missing").replaceChildren(...boxes);
    if (focused) at("missing").querySelector("input:checked").focus();
  }

  function showMethod() {
    const method = about.methods.find((one) => one.name === choices.method);
    at("method-help").textContent = method.description;
    at("auto-part").hidden = !method.looks_for_causes;
  }

  async function learn() {
    if (isStale) {
      clearTimeout(timer);
      await plans();
    }
    if (!plan || plan.questions.length) {
      const place = document.querySelector("tr.asked select") || document.querySelector("#missing-part:not([hidden]) input") || at("method");
      const [first] = plan ? plan.questions : [];
      if (first && first.column !== null && !document.querySelector("tr.asked")) { at("filter").value = first.column; fillColumns(); }
      (document.querySelector("tr.asked select") || place).focus();
      return;
    }
    complain(null);
    await send(`/api/tables/${table.id}/fit`, choices);
    busy("Learning the network", "starting", true);
    await follow(table.id, false);
  }

  // What was found

  function showResult() {
    const { fit } = table;
    at("result-title").textContent = table.name;
    const rows = fit.n_samples === Math.round(fit.n_samples) ? counted(fit.n_samples, "row") : `rows worth ${Math.round(fit.n_samples)} (by their weights)`;
    const doubts = fit.warnings.length ? ` The report begins with ${counted(fit.warnings.length, "thing")} to know before you trust it.` : "";
    at("found").textContent = `${counted(fit.n_edges, "edge")} among ${counted(fit.n_spins, "variable")}, learnt from ${rows} in ${Math.max(1, Math.round(fit.seconds))} s.${doubts}`;
    at("options-note").hidden = !fit.warnings.some((text) => text.includes(" --"));
    at("archive").href = fit.archive;
    at("report-link").href = fit.report;
    if (shownFit !== fit.report) at("report").src = shownFit = fit.report;
    show("result-part", "again");
    focusOn("result-title");
  }

  // An example, drawn here: ten answers of 400 people

  function example() {
    const names = ["sad", "tired", "slow", "sleeps badly", "worried", "nervous", "tense", "restless", "afraid", "alone"];
    const edges = [[0, 1], [1, 3], [1, 2], [3, 7], [4, 5], [5, 6], [6, 7], [4, 8], [0, 9], [0, 4]];
    let seed = 20260101;
    const random = () => { // mulberry32
      seed = (seed + 0x6d2b79f5) | 0;
      let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
    const lines = [["person", ...names].join(",")];
    for (let person = 1; person <= 400; person += 1) {
      const answers = names.map(() => (random() < 0.5 ? -1 : 1));
      for (let sweep = 0; sweep < 60; sweep += 1) {
        answers.forEach((_, k) => {
          let push = -0.1;
          for (const [i, j] of edges) push += i === k ? 0.45 * answers[j] : j === k ? 0.45 * answers[i] : 0;
          answers[k] = random() < 1 / (1 + Math.exp(-2 * push)) ? 1 : -1;
        });
      }
      lines.push([person, ...answers.map((answer) => (answer > 0 ? "yes" : "no"))].join(","));
    }
    return new File([lines.join("\n")], "example survey.csv");
  }

  // Everything that can be clicked

  function listen() {
    addEventListener("hashchange", () => { if (location.hash.slice(1) !== token) location.reload(); });
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault(); // the fragment is the token's
      at("main").focus();
    });
    at("file").addEventListener("change", guarded(async () => { if (at("file").files.length) await bring(at("file").files[0]); }));
    at("example").addEventListener("click", guarded(() => bring(example())));
    for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
    document.addEventListener("dragover", () => at("drop").classList.add("over"));
    document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) at("drop").classList.remove("over"); });
    document.addEventListener("drop", guarded(async (event) => {
      at("drop").classList.remove("over");
      if (!at("busy-part").hidden) throw new Error("One thing at a time: wait, or cancel first.");
      const dropped = event.dataTransfer.files;
      if (dropped.length > 1) throw new Error("One file at a time; a second tab takes another.");
      if (dropped.length) await bring(dropped[0]);
    }));
    at("cancel").addEventListener("click", guarded(async () => {
      await ask("POST", `/api/tables/${table.id}/cancel`);
    }));
    at("filter").addEventListener("input", fillColumns);
    at("bulk").addEventListener("click", () => {
      const role = at("bulk-role").value;
      for (const column of found()) setRole(column.name, role);
      replan();
    });
    at("binarize").addEventListener("input", () => {
      const text = at("binarize").value.trim();
      cutProblem = !text || CUT.test(text) ? "" : "Write a number, or NAME=NUMBER for some columns, separated by commas.";
      choices.binarize = text && !cutProblem ? text : null;
      replan();
    });
    at("ticked").addEventListener("change", () => {
      choices.ticked = at("ticked").checked ? table.proposed.ticked : [];
      replan();
    });
    at("codes").addEventListener("input", () => {
      choices.missing_codes = at("codes").value.split(",").map((code) => code.trim()).filter(Boolean);
      replan();
    });
    for (const name of ["method", "hidden", "rows"]) {
      at(name).addEventListener("change", () => {
        choices[name] = at(name).value;
        showMethod();
        replan();
      });
    }
    at("learn").addEventListener("click", guarded(learn));
    at("change").addEventListener("click", () => showChoices(true));
    at("another").addEventListener("click", () => {
      complain(null);
      forget();
      show("file-part");
      at("file").focus();
    });
    at("stop").addEventListener("click", guarded(async () => {
      if (!confirm("Stop the app? Files that it was given, and results that you have not downloaded, are deleted.")) return;
      await ask("POST", "/api/stop");
      sessionStorage.clear();
      show();
      at("stop").hidden = true;
      at("main").replaceChildren(element("p", "The app has stopped, and everything it was given is deleted. You can close this page.", { class: "card", role: "status" }));
    }));
  }

  function fill() {
    at("version").textContent = about.version;
    at("largest").textContent = `${(about.largest / 1e6).toLocaleString("en")} MB`;
    at("file").accept = about.endings.join(",");
    for (const [value, [word, meaning]] of Object.entries(ROLES)) {
      at("glossary").append(element("dt", word), element("dd", meaning));
      if (!OF_ONE.includes(value)) at("bulk-role").append(element("option", word, { value }));
    }
    for (const method of about.methods) at("method").append(element("option", method.name, { value: method.name }));
    at("stop").hidden = false;
  }

  async function enter() {
    const key = location.hash.slice(1);
    const once = key.startsWith("once=") ? key.slice(5) : null;
    token = key;
    if (once !== null) {
      ({ token } = await send("/api/enter", { code: once }));
      history.replaceState(null, "", `#${token}`);
    }
    if (!token) throw new Error("Open the address that 'isingkit app' has printed in the terminal, whole: what follows # opens the page.");
    about = await ask("GET", "/api/about");
    fill();
    listen();
    at("starting").hidden = true;
    const id = sessionStorage.getItem("table");
    const known = id && (await ask("GET", `/api/tables/${id}`).catch(() => null));
    if (!known) {
      forget();
      show("file-part");
      return;
    }
    const isLearning = known.fit && isUnderWay(known.fit);
    busy(isLearning ? "Learning the network" : `Reading ${known.name}`, "", isLearning);
    await follow(id, true);
  }

  guarded(enter)().finally(() => {
    at("starting").hidden = true;
    document.documentElement.dataset.ready = "";
  });
})();
