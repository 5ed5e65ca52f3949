/** The look of a report: light or dark as the reader's system says, or as they choose. */
import { PALETTES, type Theme } from '../chart/palette.ts'

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
h1{font-size:22px;margin:0}h2{font-size:16px;margin:28px 0 8px}
.faint{color:var(--faint)}
.badge{border-radius:4px;padding:1px 8px;border:1px solid var(--axis)}
.badge.bad{color:var(--limit);border-color:var(--limit)}
button{margin-left:auto;font:inherit;color:var(--text);background:none;border:1px solid var(--axis);border-radius:4px;padding:2px 10px;cursor:pointer}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:10px;margin:16px 0}
.tile{border:1px solid var(--grid);border-radius:6px;padding:8px 12px}
.tile b{display:block;font-size:18px;font-weight:600}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--grid);vertical-align:top}
th{color:var(--faint);font-weight:500}
.scroll{overflow-x:auto}
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
@media print{button,#tip{display:none}figure{break-inside:avoid}}
`
