// The page of licenses, from package-lock.json: `npm run docs` writes it, test/supply-chain.test.ts checks it.
import { readFileSync } from 'node:fs'

const read = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'))

/** Dev dependencies that the build puts into the web UI and the HTML report. */
export const BUNDLED = ['preact', '@preact/signals', '@preact/signals-core', 'uplot']

/** Every package that is installed anywhere: { name, version, license, isShipped, hasInstallScript, integrity }. */
export function packages() {
  return Object.entries(read('package-lock.json').packages)
    .filter(([path]) => path !== '')
    .map(([path, { version, license, dev, hasInstallScript, integrity }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
      return { name, version, license: license ?? null, isShipped: dev !== true || BUNDLED.includes(name), hasInstallScript, integrity }
    })
}

/** Builds of one package for different platforms are one row. */
function rows(list) {
  const names = new Set(list.map(({ name }) => name))
  const found = new Map()
  for (const { name, version, license } of list) {
    const family = name.replace(
      /-(?:android|darwin|freebsd|linux|linuxmusl|openbsd|openharmony|sunos|netbsd|aix|wasm32|win32|cli-\w+)(?:-.*)?$/,
      '',
    )
    const key =
      family !== name && (names.has(family) || list.some((one) => one.name !== name && one.name.startsWith(`${family}-`)))
        ? `${family}-*`
        : name
    const row = found.get(`${key} ${version}`) ?? { key, version, license, count: 0 }
    found.set(`${key} ${version}`, { ...row, count: row.count + 1 })
  }
  return [...found.values()]
    .sort((a, b) => a.key.localeCompare(b.key))
    .map(({ key, version, license, count }) => `| \`${key}\`${count > 1 ? ` (${count})` : ''} | ${version} | ${license} |`)
}

export function licensesPage() {
  const all = packages()
  const table = (list) => ['| package | version | license |', '|---|---|---|', ...rows(list)].join('\n')
  return `# Licenses of dependencies

gpuwarden is under the [MIT license](../LICENSE). This page lists every package in \`package-lock.json\`; \`npm run docs\` writes it. A name with \`*\` stands for
builds of one package for different platforms, of which at most one is installed. \`npm run sbom\` prints the same as a CycloneDX bill of materials, with checksums.

No dependency runs a script at installation, except \`koffi\`, which looks for its prebuilt library and compiles it where there is none.

## In what you install

Dependencies, and what the build puts into the program, the web UI and the HTML report. The MPL-2.0 of resvg covers its own files, which are used unchanged.

${table(all.filter(({ isShipped }) => isShipped))}

## For building and testing only

${table(all.filter(({ isShipped }) => !isShipped))}
`
}
