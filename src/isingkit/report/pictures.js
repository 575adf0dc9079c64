"use strict";
// Pictures to download, as SVG and as PNG, always in light colours on white. Texts stay texts, in
// families that every program has.
const pictures = (() => {
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const FAMILY = "Helvetica, Arial, sans-serif";
  const WIDTH = 7; // inches
  const DOTS = 300; // an inch
  const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity",
    "stroke-dasharray", "opacity", "font-size", "text-anchor", "paint-order"];

  function inLight(work) {
    const { dataset } = document.documentElement;
    const before = dataset.theme;
    dataset.theme = "light";
    try {
      return work();
    } finally {
      if (before === undefined) delete dataset.theme;
      else dataset.theme = before;
    }
  }
  function made(tag, attributes, text = "") {
    const element = document.createElementNS(NAMESPACE, tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    element.textContent = text;
    return element;
  }
  // Element by element: what the page's style makes of it becomes its own.
  function copied(element) {
    const style = getComputedStyle(element);
    if (style.display === "none") return null;
    const copy = document.createElementNS(NAMESPACE, element.localName);
    for (const { name, value } of element.attributes) {
      if (/^(x|y|x1|y1|x2|y2|cx|cy|r|d|transform)$/.test(name)) copy.setAttribute(name, value);
    }
    for (const name of LOOKS) copy.setAttribute(name, style.getPropertyValue(name));
    if (element.localName === "text") copy.textContent = element.textContent;
    for (const child of element.children) {
      const inside = copied(child);
      if (inside !== null) copy.append(inside);
    }
    return copy;
  }
  function textWidth(text, size) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${size}px ${FAMILY}`;
    return pen.measureText(text).width;
  }
  function legendOf(items, box, unit) {
    const group = made("g", { "font-size": 12 * unit, "font-family": FAMILY });
    const ink = getComputedStyle(document.body).color;
    let x = box.x + 12 * unit;
    let y = box.y + box.height + 14 * unit;
    for (const item of items) {
      const label = item.textContent.trim();
      const sign = item.querySelector("svg");
      const across = sign.width.baseVal.value * unit;
      const whole = across + textWidth(label, 12 * unit) + 24 * unit;
      if (x + whole > box.x + box.width && x > box.x + 12 * unit) {
        x = box.x + 12 * unit;
        y += 18 * unit;
      }
      const down = (sign.height.baseVal.value / 2) * unit;
      const place = `translate(${x} ${y - down}) scale(${unit})`;
      const mark = made("g", { transform: place });
      for (const child of sign.children) mark.append(copied(child));
      group.append(mark);
      group.append(made("text", { x: x + across + 5 * unit, y: y + 4 * unit, fill: ink }, label));
      x += whole;
    }
    return { group, bottom: y + 14 * unit };
  }
  function finished(svg, box) {
    const { x, y, width, height } = box;
    svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
    svg.setAttribute("width", `${WIDTH}in`);
    svg.setAttribute("height", `${((WIDTH * height) / width).toFixed(4)}in`);
    svg.prepend(made("rect", { x, y, width, height, fill: "#ffffff" }));
    const text = new XMLSerializer().serializeToString(svg);
    return { text, ratio: height / width };
  }
  // The network as it is seen, and its legend below.
  function ofNetwork(network, items) {
    return inLight(() => {
      const { x, y, width, height } = network.viewBox.baseVal;
      const unit = width / (network.clientWidth || 900);
      const svg = made("svg", { "font-family": FAMILY });
      const name = network.querySelector("title").textContent;
      svg.append(made("title", {}, name));
      const clip = made("clipPath", { id: "view" });
      clip.append(made("rect", { x, y, width, height }));
      const inside = made("g", { "clip-path": "url(#view)" });
      for (const part of network.querySelectorAll(":scope > g")) inside.append(copied(part));
      const legend = legendOf(items, { x, y, width, height }, unit);
      svg.append(clip, inside, legend.group);
      return finished(svg, { x, y, width, height: legend.bottom - y });
    });
  }
  function ofChart(chart) {
    return inLight(() => {
      const style = getComputedStyle(document.documentElement);
      const ink = style.getPropertyValue("--ink").trim();
      const whole = new XMLSerializer().serializeToString(chart);
      const text = whole
        .replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim())
        .replaceAll("currentColor", ink)
        .replace(/(font(?:-family)?:[^;"]*?)(?:'|&quot;|DejaVu)[^;"]*/g, `$1${FAMILY}`);
      const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
      return finished(svg, chart.viewBox.baseVal);
    });
  }

  function checksum(bytes) { // as PNG wants it
    let sum = 0xffffffff;
    for (const byte of bytes) {
      sum ^= byte;
      for (let k = 0; k < 8; k += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
    }
    return (sum ^ 0xffffffff) >>> 0;
  }
  // Browsers write no resolution: a chunk after the header says how many dots a metre has.
  function withResolution(png) {
    const chunk = new Uint8Array(21);
    const view = new DataView(chunk.buffer);
    const perMetre = Math.round(DOTS / 0.0254);
    view.setUint32(0, 9);
    chunk.set([..."pHYs"].map((letter) => letter.charCodeAt(0)), 4);
    view.setUint32(8, perMetre);
    view.setUint32(12, perMetre);
    chunk[16] = 1;
    view.setUint32(17, checksum(chunk.subarray(4, 17)));
    return new Blob([png.subarray(0, 33), chunk, png.subarray(33)], { type: "image/png" });
  }
  function painted({ text, ratio }) {
    return new Promise((resolve, reject) => {
      const image = new Image();
      image.addEventListener("error", () => reject(new Error("the picture cannot be painted")));
      image.addEventListener("load", () => {
        const canvas = document.createElement("canvas");
        canvas.width = WIDTH * DOTS;
        canvas.height = Math.round(WIDTH * DOTS * ratio);
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob(async (blob) => resolve(new Uint8Array(await blob.arrayBuffer())));
      });
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  }
  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  async function saveAs(kind, picture, name) {
    if (kind === "svg") {
      const head = '<?xml version="1.0" encoding="UTF-8"?>\n';
      save(new Blob([head, picture.text], { type: "image/svg+xml" }), `${name}.svg`);
    } else {
      save(withResolution(await painted(picture)), `${name}.png`);
    }
  }
  return { ofNetwork, ofChart, save, saveAs };
})();
