/** `gpuwarden snapshot FILE --html OUT`: the pictures of a snapshot, or of two and what differs, as one file. */
import { writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { EXIT, Failure } from '../core/failure.ts'
import { printable } from '../core/format.ts'
import type { SnapshotPageData } from '../core/memory/snapshot-picture.ts'
import { VERSION } from '../core/version.ts'
import { framedPage } from '../report/html-page.ts'
import { escapeHtml } from '../report/html-text.ts'
import { DevicePictures } from '../snapshot/picture/device-pictures.ts'
import { diffPictures, snapshotPicture } from '../snapshot/picture/snapshot-pictures.ts'
import type { OpenedSnapshot } from './open-snapshot.ts'
import type { SnapshotRequest } from './snapshot-options.ts'

export async function writeSnapshotHtml(
  file: string,
  opened: OpenedSnapshot,
  other: OpenedSnapshot | null,
  request: SnapshotRequest,
): Promise<void> {
  const names = [opened, ...(other ? [other] : [])].map(({ path }) => printable(basename(path)))
  const data: SnapshotPageData = {
    pictures: [opened, ...(other ? [other] : [])].map((one) => pictureOf(one, request)),
    diffs: other ? diffPictures(opened.analyses, other.analyses, request.moment, request.minBytes) : [],
  }
  const page = framedPage(
    {
      title: names.join(' → '),
      head: '<span class="faint">memory snapshot</span>',
      body: `<div id="snapshot"></div><noscript>The pictures need JavaScript. In words: <code>gpuwarden snapshot ${escapeHtml(names.join(' '))}</code></noscript>`,
      notes: '',
      version: VERSION,
      generatedAt: Date.now(),
    },
    'snapshot',
    data,
  )
  try {
    await writeFile(file, page)
  } catch (cause) {
    throw new Failure(`the page cannot be written to ${file}: ${(cause as Error).message}`, { exitCode: EXIT.usage, cause })
  }
  process.stderr.write(`gpuwarden: wrote ${file}\n`)
}

function pictureOf({ path, snapshot, analyses }: OpenedSnapshot, { analysis }: SnapshotRequest): SnapshotPageData['pictures'][number] {
  const devices = analyses.map((one) => new DevicePictures(one, analysis.deviceBytes ?? one.limitBytes))
  return snapshotPicture(printable(basename(path)), snapshot, devices)
}
