#!/usr/bin/env node
// Thin on purpose: the version is asked for by scripts and must not cost the loading of the program.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`gpuwarden needs Node.js 20.19 or newer; this is ${process.versions.node}\n`)
  process.exit(2)
}
const { existsSync, readFileSync } = process.getBuiltinModule('node:fs')
const place = (path) => new URL(`../${path}`, import.meta.url)
const given = process.argv.slice(2)
const isAsked = given.filter((word) => word !== '--json')
if (isAsked.length === 1 && (isAsked[0] === '--version' || isAsked[0] === '-V')) sayVersion(given.length > 1)
else {
  const command = given[0] ?? 'top'
  if (command === 'top' || command.startsWith('-')) keepSmall()
  const { main } = await import(isBundled() ? '../dist/program/cli.js' : '../dist/cli.js')
  process.exitCode = await main(given)
}

/** Commit and date are those that the package was made from; in a working copy nobody knows them. */
function sayVersion(asJson) {
  const { version } = JSON.parse(readFileSync(place('package.json'), 'utf8'))
  const made = existsSync(place('dist/build.json'))
    ? JSON.parse(readFileSync(place('dist/build.json'), 'utf8'))
    : { commit: null, built: null }
  const all = { version, ...made, node: process.versions.node, platform: `${process.platform}-${process.arch}` }
  process.stdout.write(`${asJson ? JSON.stringify(all) : version}\n`)
}

/** A screen a second pays back neither the optimising compilers of V8 nor its large young generation: 10 MB each on Node.js 24. */
function keepSmall() {
  const { setFlagsFromString } = process.getBuiltinModule('node:v8')
  for (const flag of ['--no-opt', '--no-maglev', '--semi-space-growth-factor=1']) setFlagsFromString(flag)
}

/** Whether the bundle is there, whole, and made from the modules beside it: the compiler, run by itself, takes the mark of build.js away. */
function isBundled() {
  const read = (path) => (existsSync(place(path)) ? readFileSync(place(path), 'utf8') : null)
  const digest = read('dist/program/MADE-FROM')
  if (digest === null) return false
  const modules = read('dist/cli.js')
  return modules === null || modules.endsWith(`// program/ is made from ${digest}`)
}
