import { constants } from 'node:fs'
import { access, stat, writeFile } from 'node:fs/promises'
import { dirname, extname } from 'node:path'
import type { Config } from '../agent/config.ts'
import { renderPng } from '../core/chart/png.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { MemoryProfile } from '../report/memory-profile.ts'
import { profilePlot } from '../report/profile-charts.ts'
import { profileHtml } from '../report/profile-html.ts'
import { profileText } from '../report/profile-text.ts'
import { writeOut } from './output.ts'
import { watchMemory } from './watch-memory.ts'

const DEFAULT_SECONDS = 60
const PLOT_PIXELS = 1800

export async function profile(config: Config, options: Record<string, unknown>): Promise<number> {
  const { output, html, plot } = options as { output?: string; html?: string; plot?: string }
  if (plot !== undefined && !['.svg', '.png'].includes(extname(plot).toLowerCase()))
    throw new Failure(`--plot: expected a file name that ends in .svg or .png; got "${plot}"`, { exitCode: EXIT.usage })
  for (const [flag, path] of Object.entries({ '--output': output, '--html': html, '--plot': plot }))
    if (path !== undefined) await checkWritable(flag, path)
  const memory = new MemoryProfile()
  const { watch } = await watchMemory({ config, options, defaultSeconds: DEFAULT_SECONDS, doing: 'profiling', observers: () => [memory] })
  const gpus = watch.gpus()
  const infos = gpus.map((view) => view.info)
  const report = memory.report(gpus, watch.processes(), watch.lastAt ?? Date.now())
  const json = `${JSON.stringify(report, null, 2)}\n`
  if (options.json === true) writeOut(json)
  else writeOut(`${profileText(report)}\n`)
  if (output !== undefined) await write('--output', output, json)
  if (html !== undefined) await write('--html', html, profileHtml(memory, report, infos))
  if (plot !== undefined) {
    const svg = profilePlot(memory, infos)
    await write('--plot', plot, extname(plot).toLowerCase() === '.png' ? await renderPng(svg, PLOT_PIXELS) : svg)
  }
  return EXIT.ok
}

/** Before an hour is spent on measuring what cannot be kept. */
async function checkWritable(flag: string, path: string): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw cannotWrite(flag, path, error)
  })
  if (found?.isDirectory()) throw cannotWrite(flag, path, { code: 'EISDIR', message: 'it is a folder' })
  try {
    await access(found === null ? dirname(path) : path, constants.W_OK)
  } catch (error) {
    throw cannotWrite(flag, path, error as NodeJS.ErrnoException)
  }
}

async function write(flag: string, path: string, content: string | Buffer): Promise<void> {
  try {
    await writeFile(path, content)
  } catch (error) {
    throw cannotWrite(flag, path, error as NodeJS.ErrnoException)
  }
  process.stderr.write(`gpuwarden: wrote ${path}\n`)
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  EACCES: 'permission denied',
  EISDIR: 'it is a folder',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'a part of its path is not a folder',
  ENOSPC: 'the disk is full',
}

function cannotWrite(flag: string, path: string, error: { readonly code?: string | undefined; readonly message: string }): Failure {
  return new Failure(`${flag}: cannot write ${path}: ${REASONS[error.code ?? ''] ?? error.message}`, { exitCode: EXIT.usage })
}
