"use strict";
(() => {
  const PAGE = 100;
  const byId = (name) => document.getElementById(name);
  const index = JSON.parse(byId("index").textContent);
  const series = index.series, claims = index.claims;
  const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\u{e0000}-\u{e007f}\ud800-\udfff]/gu;

  // Every text enters the page through this function, as text.
  const el = (tag, attributes, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    for (const child of children) made.append(child instanceof Node ? child : document.createTextNode(String(child)));
    return made;
  };
  const foreign = (text, tag, attributes) => {
    const made = el(tag || "span", attributes);
    let end = 0;
    for (const found of text.matchAll(hidden)) {
      made.append(text.slice(end, found.index));
      const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      made.append(el("span", { class: "code-point" }, `U+${code}`));
      end = found.index + found[0].length;
    }
    made.append(text.slice(end));
    return made;
  };

  const side = (p, label) => (p === null || p === 0.5 ? null : (p > 0.5) === label);
  const flip = (claim, arm) => {
    const base = index.baseline[arm];
    if (base < 0 || base === arm) return "undecided";
    const before = side(claim.p[base][0], claim.label), after = side(claim.p[arm][0], claim.label);
    if (before === null || after === null) return "undecided";
    if (before === after) return after ? "both right" : "both wrong";
    return after ? "fixed" : "broken";
  };
  const gain = (claim, arm) => {
    const base = index.baseline[arm] < 0 ? null : claim.p[index.baseline[arm]][0], here = claim.p[arm][0];
    return base === null || here === null ? null : (here - base) * (claim.label ? 1 : -1);
  };
  const error = (claim, arm) => (claim.p[arm][0] === null ? null : Math.abs(claim.p[arm][0] - (claim.label ? 1 : 0)));

  const form = byId("filters"), list = byId("list"), more = byId("more"), count = byId("count");
  const field = (name) => form.elements.namedItem(name);
  series.forEach((one, number) => field("arm").append(el("option", { value: number }, one.name)));
  index.outcomes.forEach((name, number) => field("kind").append(el("option", { value: number }, name)));
  const start = series.findIndex((one, number) => index.baseline[number] >= 0 && index.baseline[number] !== number);
  const firstArm = String(Math.max(0, start));
  field("arm").value = firstArm;

  let chosen = [], shown = 0;
  const choose = () => {
    const arm = Number(field("arm").value), label = field("label").value, kind = field("kind").value;
    const words = field("text").value.toLowerCase().split(/\s+/).filter(Boolean), way = field("flip").value;
    chosen = claims.filter((claim) => (label === "" || claim.label === (label === "1"))
      && (kind === "" || claim.o[arm].includes(Number(kind)))
      && (way === "" || flip(claim, arm) === way)
      && words.every((word) => claim.text.includes(word)));
    const by = { gain: (c) => gain(c, arm), loss: (c) => (gain(c, arm) === null ? null : -gain(c, arm)), sure: (c) => error(c, arm) }[field("order").value];
    if (by) chosen = chosen.map((c) => [by(c), c]).sort((a, b) => (b[0] === null ? -9 : b[0]) - (a[0] === null ? -9 : a[0]) || a[1].n - b[1].n).map((pair) => pair[1]);
    list.replaceChildren();
    shown = 0;
    showMore();
  };
  const showMore = () => {
    const next = chosen.slice(shown, shown + PAGE);
    list.append(...next.map(item));
    shown += next.length;
    more.hidden = shown >= chosen.length;
    count.textContent = `${chosen.length} of ${claims.length} claims${shown < chosen.length ? `, the first ${shown} listed` : ""}`;
  };

  const number = (p) => (p === null ? "–" : p.toFixed(2));
  const answers = (claim) => el("span", { class: "answers" }, ...series.map((one, k) => {
    const known = side(claim.p[k][0], claim.label);
    const made = el("span", { class: known === null ? "" : known ? "right" : "wrong" }, `${one.name} ${claim.p[k].map(number).join(" ")}`);
    made.append(known === null ? (claim.p[k][0] === null && claim.o[k].length ? ` ${index.outcomes[claim.o[k][0]]}` : "") : known ? " ✓" : " ✗");
    if (known !== null) made.append(el("span", { class: "unseen" }, known ? " right" : " wrong"));
    return made;
  }));
  const heading = (claim) => [
    el("span", { class: `chip ${claim.label}` }, claim.label ? "true" : "false"),
    el("span", { class: "what" }, foreign(claim.title), " ", foreign(claim.id, "span", { class: "soft" })),
    answers(claim),
  ];
  const item = (claim) => {
    if (claim.shard) return el("li", { class: "claim" }, el("a", { class: "row", href: `report/${claim.shard}#claim-${claim.n}` }, ...heading(claim)));
    const details = el("details", { class: "claim", id: `claim-${claim.n}` }, el("summary", {}, ...heading(claim)));
    details.addEventListener("toggle", () => { if (details.open && details.childElementCount === 1) fill(claim, details); });
    return el("li", {}, details);
  };

  let packed = null;
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  const fill = async (claim, details) => {
    const open = el("div", { class: "open" }, el("p", { class: "soft" }, "Unpacking…"));
    details.append(open);
    try {
      packed = packed || JSON.parse(byId("packed").textContent);
      const [said, transcript] = await Promise.all([unpack(packed.claims[claim.n]), unpack(packed.transcripts[claim.t])]);
      open.replaceChildren(...detail(claim, said, transcript));
    } catch (problem) {
      open.replaceChildren(el("p", {}, `This browser cannot unpack the claim (${problem}). Use one from 2023 or later, or Inspect's viewer.`));
    }
  };

  const detail = (claim, said, transcript) => {
    const read = new Map();
    said.told.forEach((told) => told.turns.forEach((turn) => turn.positions.forEach((position) => {
      read.set(position, (read.get(position) || new Set()).add(index.names[key(told)] || told.series.arm));
    })));
    const ids = el("p", { class: "soft" }, "Claim ", foreign(claim.id), ", investigation ", foreign(claim.investigation), ", cluster ", foreign(claim.cluster), ".");
    return [
      ids,
      el("h3", {}, "Claim"), foreign(said.claim, "div", { class: "foreign box" }),
      el("h3", {}, "Transcript"), ...transcriptOf(transcript, read),
      el("h3", {}, "Answers"), ...said.told.map((told) => armOf(claim, told)),
    ];
  };
  const key = (told) => [told.series.predictor, told.series.arm, told.series.calls, told.series.positions].join("\n");

  const transcriptOf = (transcript, read) => {
    const box = el("div", { class: "box" });
    for (const [name, body] of transcript.parts) box.append(foreign(name, "p", { class: "role" }), foreign(body, "div", { class: "foreign" }));
    if (!transcript.tokens.length) return [box];
    const tokens = el("div", { class: "foreign box" });
    for (const [at, text, role] of transcript.tokens) {
      const by = read.get(at);
      const title = by ? `token ${at}, ${role}, read by ${[...by].join(", ")}` : `token ${at}, ${role}`;
      tokens.append(foreign(text, by ? "mark" : "span", { title, class: `token-${role === "template" ? "template" : "text"}` }));
      if (by) tokens.append(el("span", { class: "unseen" }, ` [token ${at}, read by ${[...by].join(", ")}] `));
      if (text.endsWith("\\n")) tokens.append("\n");
    }
    const note = read.size
      ? `As the target's ${transcript.tokens.length} tokens, the ${read.size} that a tool read marked; line breaks are written \\n.`
      : `As the target's ${transcript.tokens.length} tokens; no tool read any.`;
    const whole = el("details", {}, el("summary", {}, "As text"), box);
    return [el("p", { class: "soft" }, note), tokens, whole];
  };

  const WHO = { predictor: "The predictor said", reasoning: "The predictor thought", tool: "The tool answered", harness: "The harness said" };
  const turnOf = (turn) => {
    const who = turn.who === "call" ? el("p", { class: "who" }, "The predictor called ", foreign(turn.name)) : el("p", { class: "who" }, WHO[turn.who]);
    const attributes = turn.who === "tool" ? { class: "foreign", tabindex: "0", role: "region", "aria-label": "Output of the tool" } : { class: "foreign" };
    return el("div", { class: `turn turn-${turn.who}` }, who, foreign(turn.text || "(nothing)", "div", attributes));
  };
  const armOf = (claim, told) => {
    const k = index.order[key(told)], name = k === undefined ? told.series.arm : series[k].name;
    const p = k === undefined ? null : claim.p[k][told.epoch] ?? null, known = side(p, claim.label);
    const verdict = p === null ? "no probability" : `${p.toFixed(3)}${known === null ? "" : known ? ", right" : ", wrong"}`;
    const title = el("h4", {}, foreign(name), told.epoch ? ` (repetition ${told.epoch + 1})` : "", ": ", el("span", { class: known === null ? "soft" : known ? "true" : "false" }, verdict));
    const how = [told.how, told.detail].filter(Boolean).join(": ");
    const box = el("div", { class: "box" }, title, foreign(how, "p", { class: "soft" }));
    if (told.shown.length) {
      const seen = el("details", {}, el("summary", {}, `What this arm was shown besides (${told.shown.length})`));
      for (const [name, body] of told.shown) seen.append(foreign(name, "p", { class: "role" }), foreign(body, "div", { class: "foreign" }));
      box.append(seen);
    }
    box.append(...told.turns.map(turnOf));
    const parts = [told.log, "samples", "sample", told.sample_id, told.sample_epoch].map((part) => encodeURIComponent(part));
    const link = el("a", { href: `http://127.0.0.1:7575/#/logs/${parts.join("/")}/`, rel: "noreferrer", target: "_blank" }, "Open in Inspect's viewer");
    box.append(el("p", { class: "screen-only" }, link, " ", el("span", { class: "soft" }, "while this runs: "), el("code", {}, index.view)));
    return box;
  };

  claims.forEach((claim, n) => {
    claim.n = claim.n ?? n;
    claim.label = Boolean(claim.label);
    claim.text = [claim.id, claim.title, claim.investigation, claim.cluster].join(" ").toLowerCase();
  });
  form.addEventListener("input", choose);
  form.addEventListener("reset", () => setTimeout(() => { field("arm").value = firstArm; choose(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { const first = shown; showMore(); list.children[first].querySelector("summary, a").focus(); });
  const goTo = () => {
    const found = /^#claim-(\d+)$/.exec(location.hash);
    const claim = found && claims.find((one) => one.n === Number(found[1]));
    if (!claim) return;
    while (!byId(`claim-${claim.n}`) && shown < chosen.length) showMore();
    const details = byId(`claim-${claim.n}`);
    if (details) { details.open = true; details.scrollIntoView(); }
  };
  choose();
  goTo();
  addEventListener("hashchange", goTo);
})();
