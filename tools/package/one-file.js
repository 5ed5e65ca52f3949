// The single file for linux x64: a shell script, with Node.js and the program behind it.
import { createHash } from 'node:crypto'
import { chmodSync, closeSync, cpSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { PACKAGE, run } from './application.js'

const HEAD = readFileSync(new URL('./one-file.sh', import.meta.url), 'utf8')

export function makeOneFile({ application, runtime, out, epoch, work }) {
  const folder = join(work, 'one-file')
  rmSync(folder, { recursive: true, force: true })
  cpSync(application, folder, { recursive: true })
  cpSync(runtime, folder, { recursive: true })
  const archive = join(work, 'one-file.tar.gz')
  makeArchive(folder, archive, epoch)
  const bytes = readFileSync(archive)
  const target = join(out, `gpuwarden-${PACKAGE.version}-linux-x64`)
  const body = HEAD.slice(0, HEAD.indexOf('@END@'))
  const filled = body
    .replaceAll('@VERSION@', PACKAGE.version)
    .replaceAll('@DIGEST@', createHash('sha256').update(bytes).digest('hex').slice(0, 12))
    .replaceAll('@LINES@', String(body.split('\n').length))
  writeFileSync(target, filled)
  const file = openSync(target, 'a')
  writeSync(file, bytes)
  closeSync(file)
  chmodSync(target, 0o755)
  return target
}

/** The same bytes for the same files, whoever makes it and when. */
export function makeArchive(folder, target, epoch) {
  const tar = join(folder, '..', 'plain.tar')
  const same = ['--sort=name', `--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner', '--format=gnu', '--mode=u+rwX,go+rX,go-w']
  run('tar', [...same, '-cf', tar, '-C', folder, '.'])
  run('gzip', ['-n', '-f', tar])
  run('mv', [`${tar}.gz`, target])
}
