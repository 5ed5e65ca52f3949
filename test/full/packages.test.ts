/** What people install, made by `npm run package` and used on machines that have only what each needs. */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openMailbox } from '../mailbox.ts'
import { temporaryFolder } from '../program.ts'
import { BareMachine, whyNoBareMachine } from './bare-machine.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
const missing = await whyNoBareMachine()
const note = missing === null ? '' : ` (skipped: ${missing})`
/** A training that knows nothing of Node.js. */
const TRAINING =
  'import gpuwarden\nwith gpuwarden.run("tiny") as run:\n    for step in range(20):\n        run.log(step=step, loss=1 / (step + 1))\n'

let out = ''
let runtimeWheel = ''
let unmade: string | null = null
const artifact = (name: string) => join(out, name)

beforeAll(() => {
  out = temporaryFolder()
  chmodSync(out, 0o755)
  const { status, stdout, stderr } = spawnSync(process.execPath, ['tools/package/main.js', '--out', out], { cwd: ROOT, encoding: 'utf8' })
  console.log(stdout)
  // Node.js and the parts for other machines come from the registries.
  if (status !== 0 && /(pip download|npm pack) .* failed/.test(stderr)) unmade = `the registries do not answer: ${stderr.slice(0, 300)}`
  else if (status !== 0) throw new Error(`npm run package: ${stderr}`)
  if (unmade !== null) return
  const wheels = join(ROOT, '.cache/package/wheels')
  runtimeWheel = join(wheels, readdirSync(wheels).find((name) => name.endsWith('.whl')) ?? '')
}, 600_000)

beforeEach(({ skip }) => {
  if (unmade !== null) skip(unmade)
})

describe('what is made', () => {
  it('has checksums of everything, a bill of materials, and the commit', () => {
    const sums = readFileSync(artifact('SHA256SUMS'), 'utf8').trim().split('\n')
    expect(sums).toHaveLength(5)
    expect(execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: out, encoding: 'utf8' })).toBe('')
    const bill = JSON.parse(readFileSync(artifact(`gpuwarden-${version}.cdx.json`), 'utf8')) as { components: { name: string }[] }
    expect(bill.components.map(({ name }) => name)).toContain('koffi')
  })

  it('is the same every time', { timeout: 300_000 }, () => {
    const again = temporaryFolder()
    execFileSync(process.execPath, ['tools/package/main.js', '--only', 'wheel,npm,one-file', '--out', again], { cwd: ROOT })
    const digest = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')
    for (const name of [`gpuwarden-${version}-py3-none-any.whl`, `gpuwarden-${version}.tgz`, `gpuwarden-${version}-linux-x64`])
      expect(digest(join(again, name)), name).toBe(digest(artifact(name)))
  })

  it('says what is possible where the name of a kind is wrong', () => {
    const { status, stderr } = spawnSync(process.execPath, ['tools/package/main.js', '--only', 'rpm'], { cwd: ROOT, encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 1, stderr: 'package: --only rpm: expected some of npm, wheel, one-file, debian\n' })
  })
})

/** From the first look to a training that logs, as another user, with nothing of the package writable for them. */
function use(command: string, python: string): string {
  const asUser = 'setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp/home'
  return `
mkdir -p /tmp/home && chown 65534:65534 /tmp/home && cd /tmp/home
cat > /tmp/train.py <<'END'
${TRAINING}END
! command -v node || exit 9
${asUser} ${command} --version --json
COLUMNS=100 LINES=30 ${asUser} ${command} top --once --source demo --demo-scenario healthy
${asUser} ${command} doctor | grep -E 'koffi|node '
${asUser} ${command} run --source demo --port 0 -- ${python} /tmp/train.py 2>&1
`
}

function expectUsed(output: string): void {
  expect(output).toContain(`"version":"${version}","commit":"`)
  expect(output).toContain('Simulated')
  expect(output).toMatch(/ok +koffi/)
  expect(output).toMatch(/tiny: succeeded|train.py: succeeded/)
  expect(output).toContain('20 steps')
}

describe.skipIf(missing !== null)(`on a machine without Node.js${note}`, () => {
  it('the wheel works with the runtime wheel beside it, installed from files alone', { timeout: 300_000 }, async () => {
    const files = {
      [`gpuwarden-${version}-py3-none-any.whl`]: artifact(`gpuwarden-${version}-py3-none-any.whl`),
      [runtimeWheel.split('/').at(-1) ?? '']: runtimeWheel,
    }
    const script = `
python3 -m venv '/opt/my tools'
'/opt/my tools/bin/pip' install --quiet --no-index --find-links /given 'gpuwarden[agent]' 2>&1
chmod -R a-w '/opt/my tools'
${use("'/opt/my tools/bin/gpuwarden'", "'/opt/my tools/bin/python'")}`
    const { status, output } = await new BareMachine().run(script, { without: ['node', 'npm', 'gpuwarden'], files })
    expect(status, output).toBe(0)
    expectUsed(output)
  })

  it('the wheel alone says what to do', { timeout: 120_000 }, async () => {
    const files = { [`gpuwarden-${version}-py3-none-any.whl`]: artifact(`gpuwarden-${version}-py3-none-any.whl`) }
    const script =
      'python3 -m venv /opt/v; /opt/v/bin/pip install --quiet --no-index /given/*.whl 2>&1; /opt/v/bin/gpuwarden top && exit 9; echo "status $?"; /opt/v/bin/python -W error -c "import gpuwarden; print(gpuwarden.__version__)"'
    const { output } = await new BareMachine().run(script, { without: ['node', 'npm', 'gpuwarden'], files })
    expect(output).toContain('gpuwarden: Node.js 20.19 or newer is needed: run `pip install "gpuwarden[agent]"`, or install Node.js.\n')
    expect(output).toContain(`status 127\n${version}`)
  })

  it('the one file works, also beside folders that do not allow programs', { timeout: 300_000 }, async () => {
    const files = { gpuwarden: artifact(`gpuwarden-${version}-linux-x64`) }
    const script = `
chmod 755 /given/gpuwarden
mount -t tmpfs -o noexec,mode=1777 tmpfs /tmp
mkdir -p /tmp/home && chown 65534:65534 /tmp/home
setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp/home TMPDIR=/tmp/home GPUWARDEN_UNPACK_DIR=/tmp/home/x /given/gpuwarden --version && exit 9
echo "refused $?"
mkdir '/opt/a b' && cp /given/gpuwarden '/opt/a b/'
${use("'/opt/a b/gpuwarden'", 'python3')}
gpuwarden() { '/opt/a b/gpuwarden' "$@"; }
gpuwarden service install --dry-run --system | grep ExecStart
`
    const { status, output } = await new BareMachine().run(script, { without: ['node', 'npm', 'gpuwarden'], files })
    expect(status, output).toBe(0)
    expect(output).toContain('refused 2')
    expect(output).toContain('not mounted noexec')
    expect(output).toContain('ExecStart="/opt/a b/gpuwarden" service run')
    expectUsed(output)
  })

  it('the Debian package brings unit, user, configuration, manual and completion, and leaves nothing but what was recorded', {
    timeout: 300_000,
  }, async () => {
    const files = { 'gpuwarden.deb': artifact(`gpuwarden_${version}_amd64.deb`) }
    const script = `
dpkg -i /given/gpuwarden.deb 2>&1
getent passwd gpuwarden
stat -c '%a %U:%G %n' /etc/gpuwarden /etc/gpuwarden/gpuwarden.yaml
grep -E 'ExecStart|^User' /usr/lib/systemd/system/gpuwarden.service
if command -v systemd-analyze >/dev/null; then systemd-analyze verify /usr/lib/systemd/system/gpuwarden.service 2>&1; fi
zcat /usr/share/man/man1/gpuwarden.1.gz | head -1
bash -c 'source /usr/share/bash-completion/completions/gpuwarden; COMP_WORDS=(gpuwarden do); COMP_CWORD=1; _gpuwarden; echo "offers \${COMPREPLY[*]}"'
${use('gpuwarden', 'python3')}
mkdir -p /var/lib/gpuwarden/.cache && echo kept > /var/lib/gpuwarden/gpu_monitor.log && chown -R gpuwarden /var/lib/gpuwarden
dpkg --purge gpuwarden 2>&1
getent passwd gpuwarden && exit 9
find /etc/gpuwarden /usr/lib/gpuwarden /usr/bin/gpuwarden /usr/share/man/man1/gpuwarden.1.gz 2>/dev/null && exit 9
find /var/lib/gpuwarden -type f
`
    const { status, output } = await new BareMachine().run(script, { without: ['node', 'npm', 'gpuwarden'], files })
    expect(status, output).toBe(0)
    expect(output).toContain('640 root:gpuwarden /etc/gpuwarden/gpuwarden.yaml')
    expect(output).toContain('ExecStart=/usr/bin/gpuwarden service run --log-dir %S/gpuwarden')
    expect(output).toContain('User=gpuwarden')
    expect(output).toContain('.TH GPUWARDEN 1')
    expect(output).toContain('offers doctor')
    expectUsed(output)
    expect(output.trim().split('\n').at(-1)).toBe('/var/lib/gpuwarden/gpu_monitor.log')
  })

  it('an alert reaches a mailbox', { timeout: 180_000 }, async () => {
    const mailbox = await openMailbox()
    const files = { gpuwarden: artifact(`gpuwarden-${version}-linux-x64`) }
    const script = `
chmod 755 /given/gpuwarden
cat > /tmp/gpuwarden.yaml <<'END'
alerts: { group_seconds: 0, simulated: true }
email: { server: 127.0.0.1, port: ${mailbox.port}, tls: none, from: gpu@example.org, to: [ada@example.org] }
END
/given/gpuwarden monitor --quiet --source demo --demo-scenario lost --duration 30 --port 0 --log-dir /tmp/logs --config /tmp/gpuwarden.yaml 2>&1
`
    const { output } = await new BareMachine().run(script, { without: ['node', 'npm', 'gpuwarden'], files })
    expect(mailbox.mails.map(({ subject }) => subject).join('\n'), output).toMatch(/lost|no longer/i)
    await mailbox.close()
  })
})

describe.skipIf(missing !== null)(`on a machine with Node.js${note}`, () => {
  it('the tarball works through npx, without the registry where its dependencies are in the cache', { timeout: 240_000 }, () => {
    const folder = temporaryFolder()
    copyFileSync(artifact(`gpuwarden-${version}.tgz`), join(folder, 'gpuwarden.tgz'))
    const { status, stdout, stderr } = spawnSync('npx', ['--yes', '--prefer-offline', './gpuwarden.tgz', '--version', '--json'], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ version, commit: expect.stringMatching(/^[0-9a-f]{40}/), platform: expect.any(String) })
  })
})
