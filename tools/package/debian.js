// The Debian package: program with its own Node.js, unit, user, configuration, man page and completion.
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { PACKAGE, run } from './application.js'

const COMMAND = '/usr/bin/gpuwarden'
const HOME = '/usr/lib/gpuwarden'
const USER = 'gpuwarden'
const WRAPPER = `#!/bin/sh
GPUWARDEN_LAUNCHER=${COMMAND} exec ${HOME}/node ${HOME}/bin/gpuwarden.js "$@"
`
const CONFIGURATION = `# gpuwarden reads this file at its start. "gpuwarden config" shows every key, its value and where it comes from.
# Passwords and tokens belong into /etc/gpuwarden/environment, which only root reads.
#
# interval: 1            # seconds between two looks
# server:
#   port: 4780           # the web UI: http://127.0.0.1:4780
# alerts:
#   owners:
#     alice: alice@example.org
`
const POSTINST = `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  if ! getent passwd ${USER} >/dev/null; then
    adduser --system --group --quiet --no-create-home --home /var/lib/gpuwarden --gecos 'gpuwarden' ${USER}
  fi
  chown root:${USER} /etc/gpuwarden /etc/gpuwarden/gpuwarden.yaml
  chmod 750 /etc/gpuwarden
  chmod 640 /etc/gpuwarden/gpuwarden.yaml
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl enable gpuwarden.service >/dev/null 2>&1 || true
    systemctl restart gpuwarden.service || true
  fi
fi
`
const PRERM = `#!/bin/sh
set -e
if [ -d /run/systemd/system ] && [ "$1" = remove ]; then
  systemctl disable --now gpuwarden.service >/dev/null 2>&1 || true
fi
`
// What was recorded belongs to the owner of the machine: it stays, and belongs to root then.
const POSTRM = `#!/bin/sh
set -e
if [ "$1" = purge ]; then
  if [ -d /var/lib/gpuwarden ]; then
    rm -rf /var/lib/gpuwarden/.cache
    chown -R root:root /var/lib/gpuwarden
  fi
  rm -rf /etc/gpuwarden
  if getent passwd ${USER} >/dev/null; then deluser --quiet --system ${USER} >/dev/null 2>&1 || true; fi
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
`

export function makeDebian({ application, runtime, out, epoch, work }) {
  const folder = join(work, 'debian')
  rmSync(folder, { recursive: true, force: true })
  const put = (path, text, mode = 0o644) => {
    const target = join(folder, path)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, text)
    chmodSync(target, mode)
  }
  cpSync(application, join(folder, HOME), { recursive: true })
  cpSync(runtime, join(folder, HOME), { recursive: true })
  const say = (...args) =>
    run(process.execPath, [join(application, 'bin/gpuwarden.js'), ...args], { env: { ...process.env, GPUWARDEN_LAUNCHER: COMMAND } })
  put(COMMAND, WRAPPER, 0o755)
  put('/etc/gpuwarden/gpuwarden.yaml', CONFIGURATION, 0o640)
  put('/usr/lib/systemd/system/gpuwarden.service', say('service', 'install', '--system', '--run-as', USER, '--dry-run'))
  put('/usr/share/man/man1/gpuwarden.1.gz', gzipSync(say('man'), { level: 9 }))
  put('/usr/share/bash-completion/completions/gpuwarden', say('completion', 'bash'))
  put('/usr/share/zsh/vendor-completions/_gpuwarden', say('completion', 'zsh'))
  put('/usr/share/fish/vendor_completions.d/gpuwarden.fish', say('completion', 'fish'))
  put('/usr/share/doc/gpuwarden/copyright', readFileSync(join(application, 'LICENSE')))
  put('/DEBIAN/conffiles', '/etc/gpuwarden/gpuwarden.yaml\n')
  put('/DEBIAN/postinst', POSTINST, 0o755)
  put('/DEBIAN/prerm', PRERM, 0o755)
  put('/DEBIAN/postrm', POSTRM, 0o755)
  put('/DEBIAN/control', control(folder))
  run('chmod', ['-R', 'u+rwX,go+rX,go-w', join(folder, 'usr')])
  const target = join(out, `gpuwarden_${PACKAGE.version}_amd64.deb`)
  run('dpkg-deb', ['--root-owner-group', '-Zxz', '-z2', '--build', folder, target], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) },
  })
  return target
}

function control(folder) {
  const kilobytes = run('du', ['-sk', '--apparent-size', folder]).split('\t')[0]
  return `Package: gpuwarden
Version: ${PACKAGE.version}
Architecture: amd64
Maintainer: gpuwarden <gpuwarden@localhost>
Section: admin
Priority: optional
Installed-Size: ${kilobytes}
Depends: adduser, libc6 (>= 2.28), libstdc++6
Suggests: bash-completion
Description: watches GPUs and the training on them
 ${PACKAGE.description}
 .
 The package brings its own Node.js. The web UI listens on 127.0.0.1:4780.
`
}
