/** The look of a report: light or dark as the reader's system says, or as they choose. */
import { PALETTES, type Theme } from '../core/chart/palette.ts'

function variables(theme: Theme): string {
  const palette = PALETTES[theme]
  const series = palette.series.map((color, index) => `--s${index}:${color}`).join(';')
  return `--bg:${palette.background};--text:${palette.text};--faint:${palette.faintText};--grid:${palette.grid};--axis:${palette.axis};--limit:${palette.limit};--mark:${palette.mark};${series}`
}

export const SERIES_COLORS = PALETTES.light.series.length

export const REPORT_STYLE = `
:root{${variables('light')};color-scheme:light}
@media (prefers-color-scheme:dark){:root:not([data-theme=light]){${variables('dark')};color-scheme:dark}}
:root[data-theme=dark]{${variables('dark')};color-scheme:dark}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1180px;margin:0 auto;padding:20px}
header{display:flex;gap:12px;align-items:baseline;flex-wrap:wrap}
h1{font-size:22px;margin:0}h2{font-size:16px;margin:28px 0 8px}h2 .faint{font-weight:400;font-size:13px}h3{font-size:14px;margin:18px 0 8px}
.faint{color:var(--faint)}
.badge{border-radius:4px;padding:1px 8px;border:1px solid var(--axis)}
.badge.bad{color:var(--limit);border-color:var(--limit)}
button{margin-left:auto;font:inherit;color:var(--text);background:none;border:1px solid var(--axis);border-radius:4px;padding:2px 10px;cursor:pointer}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:10px;margin:16px 0}
.tile{border:1px solid var(--grid);border-radius:6px;padding:8px 12px}
.tile b{display:block;font-size:18px;font-weight:600}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--grid);vertical-align:top}
th{color:var(--faint);font-weight:500}
.scroll{overflow-x:auto}
td{font-variant-numeric:tabular-nums}
.figures th,.figures td{white-space:nowrap}
.findings td:nth-child(-n+4){white-space:nowrap}.findings td:first-child{white-space:normal;min-width:11ch}
.findings td:last-child{overflow-wrap:anywhere}.findings ul{margin:2px 0 0;padding-left:18px}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:13px;overflow-wrap:anywhere}
.oom{border:1px solid var(--limit);border-radius:6px;padding:14px 16px;margin:20px 0}.oom h2{margin-top:0}
.cause{margin:0;font-size:16px;overflow-wrap:anywhere}.cause b{color:var(--limit);margin-right:6px}
.oom dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:3px 16px;margin:12px 0}.oom dt{color:var(--faint)}.oom dd{margin:0;overflow-wrap:anywhere}
.bar{display:flex;height:20px;border-radius:4px;overflow:hidden;background:var(--grid);margin-bottom:6px}.bar span{flex:0 1 0;min-width:2px}
.parts i{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:7px;vertical-align:-1px}
.parts td:nth-child(-n+3),.holders td:nth-child(-n+2){white-space:nowrap}.parts td:nth-child(2),.parts td:nth-child(3),.parts th:nth-child(2),.parts th:nth-child(3),.holders td:nth-child(-n+2),.holders th:nth-child(-n+2){text-align:right;padding-right:18px}
.parts td:nth-child(2),.parts td:nth-child(3),.holders td:nth-child(-n+2){width:1%}.parts td:first-child{width:1%;padding-right:24px}
.sum td{font-weight:600;border-bottom:0}
details{margin-top:10px}summary{cursor:pointer;color:var(--faint)}details pre{margin:8px 0 0;max-height:420px;overflow:auto;font-size:12px}
.note{margin:10px 0 0;padding:4px 12px;border-left:4px solid var(--mark)}
tr[data-at]{cursor:pointer}tr[data-at]:hover{background:var(--grid)}
.critical{color:var(--limit)}.warning{color:var(--mark)}
figure{margin:18px 0 0}figcaption{font-weight:600;display:flex;gap:10px;flex-wrap:wrap;align-items:baseline}
.legend{display:flex;gap:4px 12px;flex-wrap:wrap;font-weight:400;font-size:12px;color:var(--faint)}
.legend label{cursor:pointer;user-select:none}.legend input{position:absolute;opacity:0}
.legend input:focus-visible+i{outline:2px solid var(--text)}
.legend i{display:inline-block;width:12px;height:4px;margin-right:5px;vertical-align:middle;border-radius:2px}
.legend input:not(:checked)~span{text-decoration:line-through}
canvas{display:block;width:100%;height:210px;touch-action:pan-y}
#tip{position:fixed;pointer-events:none;background:var(--bg);border:1px solid var(--axis);border-radius:4px;padding:4px 8px;font-size:12px;white-space:pre;display:none;z-index:2;max-width:90vw;overflow:hidden}
pre{white-space:pre-wrap;border:1px solid var(--grid);border-radius:6px;padding:10px;overflow-x:auto}
@media (max-width:640px){
main{padding:14px}.oom{padding:12px}.oom dl{grid-template-columns:minmax(0,1fr);gap:0}.oom dd{margin-bottom:6px}
.findings,.findings tbody{display:block}.findings tr{display:flex;flex-wrap:wrap;gap:0 12px;padding:8px 0;border-bottom:1px solid var(--grid)}
.findings tr:first-child{display:none}.findings td{border:0;padding:0}.findings td:first-child,.findings td:last-child{flex:1 1 100%}.findings td:empty{display:none}
.parts,.parts tbody{display:block}.parts tr{display:grid;grid-template-columns:minmax(0,1fr) auto 7ch;gap:0 10px;padding:6px 0;border-bottom:1px solid var(--grid)}
.parts tr:first-child{display:none}.parts td{border:0;padding:0!important;width:auto!important}.parts td:last-child{grid-column:1/-1}
}
@media print{button,#tip{display:none}figure{break-inside:avoid}}
`
