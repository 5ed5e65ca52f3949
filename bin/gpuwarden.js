#!/usr/bin/env node
// Thin on purpose: the version is asked for by scripts and must not cost the loading of the program.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`gpuwarden needs Node.js 20.19 or newer; this is ${process.versions.node}\n`)
  process.exit(2)
}
if (process.argv.length === 3 && (process.argv[2] === '--version' || process.argv[2] === '-V')) {
  const { readFileSync } = await import('node:fs')
  process.stdout.write(`${JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version}\n`)
} else {
  const { statSync } = await import('node:fs')
  const modifiedAt = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0
  // Among the sources the compiler may have run without the bundler and left an older bundle behind: then its modules are the program.
  const isOld = modifiedAt('../src/cli.ts') > 0 && modifiedAt('../dist/program/cli.js') < modifiedAt('../dist/cli.js')
  const { main } = await import(isOld ? '../dist/cli.js' : '../dist/program/cli.js')
  process.exitCode = await main(process.argv.slice(2))
}
