/** The script inside a report: draws the charts, with a crosshair over all of them and zoom by dragging. Plain JavaScript, no imports. */
export const REPORT_SCRIPT = String.raw`
(function () {
  'use strict';
  var data = JSON.parse(document.getElementById('data').textContent);
  var times = data.times, charts = [], view = { from: data.from, to: data.to }, hover = null, drag = null, queued = false;
  var PAD = { left: 62, right: 12, top: 10, bottom: 22 };
  var tip = document.getElementById('tip');
  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function two(n) { return (n < 10 ? '0' : '') + n; }
  function clock(at, withDate) {
    var d = new Date(at), t = two(d.getHours()) + ':' + two(d.getMinutes()) + ':' + two(d.getSeconds());
    return withDate ? d.getFullYear() + '-' + two(d.getMonth() + 1) + '-' + two(d.getDate()) + ' ' + t : t;
  }
  function trim(n, d) { return String(Number(n.toFixed(d))); }
  function show(value, unit) {
    if (value === null || value === undefined) return 'N/A';
    var a = Math.abs(value);
    if (unit === 'bytes') return a >= 1073741824 ? trim(value / 1073741824, 2) + ' GiB' : trim(value / 1048576, 1) + ' MiB';
    if (unit === 'percent') return trim(value, 1) + '%';
    if (unit === 'celsius') return trim(value, 1) + '°C';
    if (unit === 'watts') return trim(value, 1) + ' W';
    if (unit === 'seconds') return a < 1 ? trim(value * 1000, 2) + ' ms' : trim(value, 3) + ' s';
    return a !== 0 && (a < 0.001 || a >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  }
  function niceStep(rough) {
    var p = Math.pow(10, Math.floor(Math.log10(rough))), l = rough / p;
    return (l <= 1 ? 1 : l <= 2 ? 2 : l <= 5 ? 5 : 10) * p;
  }
  var SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800].map(function (s) { return s * 1000; });
  function firstFrom(at) { var lo = 0, hi = times.length; while (lo < hi) { var m = (lo + hi) >> 1; if (times[m] < at) lo = m + 1; else hi = m; } return lo; }
  function visible(chart) { return chart.spec.series.filter(function (s, i) { return chart.on[i]; }); }
  /** A line is broken where nothing came for much longer than usual. */
  function usualGap(values) {
    var gaps = [], last = -1;
    for (var i = 0; i < values.length; i++) if (values[i] !== null) { if (last >= 0) gaps.push(times[i] - times[last]); last = i; }
    gaps.sort(function (a, b) { return a - b; });
    return gaps.length ? gaps[gaps.length >> 1] * 4 + data.width : Infinity;
  }
  function stackOf(chart) {
    var sums = new Array(times.length).fill(null), out = [];
    chart.spec.series.forEach(function (s, n) {
      if (!chart.on[n]) { out.push(null); return; }
      var low = sums.slice();
      s.values.forEach(function (v, i) { if (v !== null) sums[i] = (sums[i] || 0) + v; });
      out.push({ low: low, high: sums.slice() });
    });
    return out;
  }
  function extent(chart) {
    var a = Math.max(0, firstFrom(view.from) - 1), b = Math.min(times.length, firstFrom(view.to) + 1), lo = Infinity, hi = -Infinity, least = Infinity;
    function see(v) { if (v === null || v === undefined) return; if (v < lo) lo = v; if (v > hi) hi = v; if (v > 0 && v < least) least = v; }
    if (chart.stack) chart.stack.forEach(function (l) { if (l) for (var i = a; i < b; i++) see(l.high[i]); });
    else visible(chart).forEach(function (s) { for (var i = a; i < b; i++) { see((s.min || s.values)[i]); see((s.max || s.values)[i]); } });
    if (lo === Infinity) { lo = 0; hi = 1; }
    var log = chart.spec.log && lo > 0 && hi / lo > 50;
    if (log) { var edge = 0.05 * Math.log10(hi / lo); return { lo: Math.log10(lo) - edge, hi: Math.log10(hi) + edge, log: true }; }
    if (chart.spec.unit === 'percent') { lo = 0; hi = Math.max(100, hi); }
    else if (chart.stack || chart.spec.unit === 'bytes' || chart.spec.unit === 'watts' || chart.spec.unit === 'seconds') lo = Math.min(0, lo);
    // A limit that is far away would press everything to the ground.
    if (chart.spec.limit && chart.stack && hi > chart.spec.limit.value / 5) hi = Math.max(hi, chart.spec.limit.value);
    if (hi - lo < 1e-12) { var around = Math.max(1e-9, Math.abs(lo) * 0.05); hi += around; if (lo !== 0) lo -= around; }
    var room = (hi - lo) * 0.05;
    return { lo: lo === 0 ? 0 : lo - room, hi: chart.spec.unit === 'percent' ? hi : hi + room, log: false };
  }
  function draw(chart) {
    var canvas = chart.canvas, ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    if (!w) return;
    if (canvas.width !== Math.round(w * ratio)) { canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); }
    var g = canvas.getContext('2d');
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, w, h);
    if (chart.spec.stacked) chart.stack = stackOf(chart);
    var e = extent(chart), left = PAD.left, right = w - PAD.right, top = PAD.top, bottom = h - PAD.bottom;
    function x(at) { return left + (at - view.from) / (view.to - view.from) * (right - left); }
    function y(v) { var u = e.log ? Math.log10(v) : v; return bottom - (u - e.lo) / (e.hi - e.lo) * (bottom - top); }
    g.font = '11px system-ui, sans-serif'; g.textBaseline = 'middle'; g.lineWidth = 1;
    var tickStep = niceStep(Math.max((e.hi - e.lo) / 5, 1e-300)), i;
    if (e.log) tickStep = Math.max(1, Math.round((e.hi - e.lo) / 6));
    var byteUnit = null;
    if (chart.spec.unit === 'bytes' && !e.log) { byteUnit = e.hi >= 2147483648 ? 1073741824 : 1048576; tickStep = niceStep((e.hi - e.lo) / 5 / byteUnit) * byteUnit; }
    g.textAlign = 'right';
    for (var tick = Math.ceil(e.lo / tickStep) * tickStep, n = 0; tick <= e.hi + 1e-9 * tickStep && n < 20; tick += tickStep, n++) {
      var value = e.log ? Math.pow(10, tick) : tick, ty = y(value);
      g.strokeStyle = css('--grid'); g.beginPath(); g.moveTo(left, ty); g.lineTo(right, ty); g.stroke();
      if (Math.abs(value) < tickStep * 1e-6 && !e.log) value = 0;
      g.fillStyle = css('--faint'); g.fillText(byteUnit ? trim(value / byteUnit, 2) + (byteUnit > 1048576 ? ' GiB' : ' MiB') : show(value, chart.spec.unit), left - 6, ty);
    }
    g.textAlign = 'center';
    var span = view.to - view.from, step = SPANS.find(function (s) { return span / s <= (right - left) / 80; }) || SPANS[SPANS.length - 1];
    var offset = new Date(view.from).getTimezoneOffset() * 60000;
    for (var at = Math.ceil((view.from - offset) / step) * step + offset; at <= view.to; at += step) {
      var d = new Date(at), isDay = d.getHours() === 0 && d.getMinutes() === 0 && d.getSeconds() === 0;
      g.fillStyle = css('--faint');
      g.fillText(isDay ? two(d.getMonth() + 1) + '-' + two(d.getDate()) : step < 60000 ? clock(at) : clock(at).slice(0, 5), x(at), bottom + 12);
    }
    g.strokeStyle = css('--axis'); g.beginPath(); g.moveTo(left, bottom); g.lineTo(right, bottom); g.stroke();
    g.save(); g.beginPath(); g.rect(left, top - 2, right - left, bottom - top + 4); g.clip();
    var a = Math.max(0, firstFrom(view.from) - 1), b = Math.min(times.length, firstFrom(view.to) + 1);
    chart.spec.series.forEach(function (s, index) {
      if (!chart.on[index]) return;
      var color = css(s.color || '--s' + index % data.colors);
      g.strokeStyle = g.fillStyle = color;
      if (chart.stack) {
        var layer = chart.stack[index]; g.globalAlpha = 0.75;
        forRuns(layer.high, a, b, Infinity, function (from, to) {
          g.beginPath();
          for (i = from; i < to; i++) if (layer.high[i] !== null) g.lineTo(x(times[i]), y(layer.high[i]));
          for (i = to - 1; i >= from; i--) if (layer.high[i] !== null) g.lineTo(x(times[i]), y(layer.low[i] || 0));
          g.closePath(); g.fill();
        });
        g.globalAlpha = 1; return;
      }
      s.gap = s.gap || usualGap(s.values);
      if (s.min) {
        g.globalAlpha = 0.36 / Math.max(2, visible(chart).length);
        forRuns(s.values, a, b, s.gap, function (from, to) {
          g.beginPath();
          for (i = from; i < to; i++) if (s.values[i] !== null) g.lineTo(x(times[i]), y(s.max[i]));
          for (i = to - 1; i >= from; i--) if (s.values[i] !== null) g.lineTo(x(times[i]), y(s.min[i]));
          g.closePath(); g.fill();
        });
        g.globalAlpha = 1;
      }
      g.lineWidth = 1.5; g.lineJoin = 'round';
      forRuns(s.values, a, b, s.gap, function (from, to) {
        g.beginPath(); var count = 0, px = 0, py = 0;
        for (i = from; i < to; i++) if (s.values[i] !== null) { px = x(times[i]); py = y(s.values[i]); g.lineTo(px, py); count++; }
        if (count === 1) { g.arc(px, py, 1.5, 0, 7); g.fill(); } else g.stroke();
      });
      (s.odd || []).forEach(function (n) {
        var ox = x(times[n]); g.strokeStyle = css('--limit'); g.beginPath();
        g.moveTo(ox - 4, top + 2); g.lineTo(ox + 4, top + 10); g.moveTo(ox + 4, top + 2); g.lineTo(ox - 4, top + 10); g.stroke(); g.strokeStyle = color;
      });
    });
    if (chart.spec.limit) {
      g.strokeStyle = css('--limit'); g.setLineDash([6, 3]); g.lineWidth = 1;
      var ly = y(chart.spec.limit.value), isFar = ly < top - 2, words = chart.spec.limit.label + ' ' + show(chart.spec.limit.value, chart.spec.unit);
      if (!isFar) { g.beginPath(); g.moveTo(left, ly); g.lineTo(right, ly); g.stroke(); } g.setLineDash([]);
      g.fillStyle = css('--limit'); g.textAlign = 'right'; g.fillText(isFar ? words + ' \u2191' : words, right - 4, isFar ? top + 8 : ly - 7 < top ? ly + 8 : ly - 7);
    }
    data.findings.forEach(function (f) {
      if (f.at < view.from || f.at > view.to) return;
      g.strokeStyle = g.fillStyle = css(f.severity === 'critical' ? '--limit' : f.severity === 'warning' ? '--mark' : '--faint');
      g.setLineDash([2, 3]); g.beginPath(); g.moveTo(x(f.at), top); g.lineTo(x(f.at), bottom); g.stroke(); g.setLineDash([]);
      g.beginPath(); g.moveTo(x(f.at) - 4, top - 2); g.lineTo(x(f.at) + 4, top - 2); g.lineTo(x(f.at), top + 5); g.fill();
    });
    if (drag && drag.to !== drag.from) {
      g.globalAlpha = 0.15; g.fillStyle = css('--text'); g.fillRect(x(Math.min(drag.from, drag.to)), top, Math.abs(x(drag.to) - x(drag.from)), bottom - top); g.globalAlpha = 1;
    }
    if (hover !== null) { g.strokeStyle = css('--text'); g.globalAlpha = 0.5; g.beginPath(); g.moveTo(x(hover), top); g.lineTo(x(hover), bottom); g.stroke(); g.globalAlpha = 1; }
    g.restore();
  }
  /** Stretches without a gap: [from, to). */
  function forRuns(values, a, b, gap, use) {
    var from = -1, last = -1;
    for (var k = a; k < b; k++) {
      if (values[k] === null) continue;
      if (from >= 0 && times[k] - times[last] > gap) { use(from, last + 1); from = -1; }
      if (from < 0) from = k;
      last = k;
    }
    if (from >= 0) use(from, last + 1);
  }
  function redraw() { if (queued) return; queued = true; requestAnimationFrame(function () { queued = false; charts.forEach(function (c) { if (c.near) draw(c); }); }); }
  function atOf(chart, event) {
    var box = chart.canvas.getBoundingClientRect(), share = (event.clientX - box.left - PAD.left) / (box.width - PAD.left - PAD.right);
    return view.from + Math.max(0, Math.min(1, share)) * (view.to - view.from);
  }
  function nearest(at) { var i = firstFrom(at); return i > 0 && (i >= times.length || at - times[i - 1] < times[i] - at) ? i - 1 : i; }
  function describe(chart, event) {
    var index = nearest(hover), lines = [clock(times[index] || hover, true)];
    chart.spec.series.forEach(function (s, n) {
      if (!chart.on[n]) return;
      var v = null, j = index, odd = false;
      for (var k = 0; v === null && !odd && k < 8; k++) [index - k, index + k].forEach(function (n) {
        if ((s.odd || []).indexOf(n) >= 0) odd = true;
        else if (v === null && s.values[n] != null) { v = s.values[n]; j = n; }
      });
      if (v === null && !odd) return;
      lines.push(s.name + '  ' + (odd ? 'NaN or infinite' : show(v, chart.spec.unit) + (s.min && s.min[j] !== s.max[j] ? '  (' + show(s.min[j], chart.spec.unit) + ' – ' + show(s.max[j], chart.spec.unit) + ')' : '')));
    });
    var reach = (view.to - view.from) / 120;
    data.findings.forEach(function (f) { if (Math.abs(f.at - hover) < reach) lines.push((f.severity + ' ' + f.detector + ': ' + f.message).slice(0, 110)); });
    tip.textContent = lines.slice(0, 24).join('\n');
    tip.style.display = 'block';
    var box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(window.innerWidth - box.width - 4, event.clientX + 14)) + 'px';
    tip.style.top = Math.max(4, Math.min(window.innerHeight - box.height - 4, event.clientY + 14)) + 'px';
  }
  function zoom(from, to) {
    if (to - from < 50) return;
    view.from = Math.max(data.from, from); view.to = Math.min(data.to, to);
    document.getElementById('zoomed').textContent = view.from > data.from || view.to < data.to ? clock(view.from, true) + ' – ' + clock(view.to, true) + ' (double-click shows all)' : 'drag to zoom';
    redraw();
  }
  var home = document.getElementById('charts');
  var watcher = window.IntersectionObserver ? new IntersectionObserver(function (entries) {
    entries.forEach(function (en) { charts.forEach(function (c) { if (c.canvas === en.target) c.near = en.isIntersecting; }); }); redraw();
  }, { rootMargin: '300px' }) : null;
  data.charts.forEach(function (spec) {
    var figure = document.createElement('figure'), caption = document.createElement('figcaption'), legend = document.createElement('span'), canvas = document.createElement('canvas');
    caption.textContent = spec.title + ' '; legend.className = 'legend'; caption.appendChild(legend);
    canvas.setAttribute('role', 'img'); canvas.setAttribute('aria-label', spec.title);
    figure.appendChild(caption); figure.appendChild(canvas); home.appendChild(figure);
    var chart = { spec: spec, canvas: canvas, on: spec.series.map(function () { return true; }), near: !watcher };
    charts.push(chart);
    spec.series.forEach(function (s, index) {
      var label = document.createElement('label'), box = document.createElement('input'), swatch = document.createElement('i'), name = document.createElement('span');
      box.type = 'checkbox'; box.checked = true; swatch.style.background = 'var(' + (s.color || '--s' + index % data.colors) + ')'; name.textContent = s.name;
      label.appendChild(box); label.appendChild(swatch); label.appendChild(name); legend.appendChild(label);
      box.addEventListener('change', function () { chart.on[index] = box.checked; redraw(); });
    });
    canvas.addEventListener('pointermove', function (event) { hover = atOf(chart, event); if (drag) drag.to = hover; describe(chart, event); redraw(); });
    canvas.addEventListener('pointerleave', function () { hover = null; tip.style.display = 'none'; redraw(); });
    canvas.addEventListener('pointerdown', function (event) { if (event.button === 0 && event.pointerType === 'mouse') { var at = atOf(chart, event); drag = { from: at, to: at }; canvas.setPointerCapture(event.pointerId); } });
    canvas.addEventListener('pointerup', function () { if (drag) { var d = drag; drag = null; if (Math.abs(d.to - d.from) > (view.to - view.from) / 200) zoom(Math.min(d.from, d.to), Math.max(d.from, d.to)); else redraw(); } });
    canvas.addEventListener('dblclick', function () { zoom(data.from, data.to); });
    canvas.addEventListener('wheel', function (event) {
      if (!event.ctrlKey) return;
      event.preventDefault(); var at = atOf(chart, event), k = event.deltaY > 0 ? 1.25 : 0.8;
      zoom(at - (at - view.from) * k, at + (view.to - at) * k);
    }, { passive: false });
    if (watcher) watcher.observe(canvas);
  });
  document.querySelectorAll('tr[data-at]').forEach(function (row) {
    row.addEventListener('click', function () { var at = Number(row.dataset.at), half = (data.to - data.from) / 20; zoom(at - half, at + half); home.scrollIntoView({ behavior: 'smooth' }); });
  });
  document.getElementById('theme').addEventListener('click', function () {
    var root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark'; redraw();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  window.addEventListener('resize', redraw);
  window.addEventListener('beforeprint', function () { charts.forEach(draw); });
  zoom(data.from, data.to); redraw();
})();
`
