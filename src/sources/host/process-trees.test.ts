import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { MemoryGroups } from './memory-groups.ts'
import { ProcessTrees } from './process-trees.ts'

const MIB = 1024 ** 2
const cleanups: (() => void)[] = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

function machine(): { root: string; write(path: string, text: string): void } {
  const root = mkdtempSync(join(tmpdir(), 'gpuwarden-trees-'))
  cleanups.push(() => rmSync(root, { recursive: true, force: true }))
  return {
    root,
    write(path, text) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    },
  }
}

type Machine = ReturnType<typeof machine>

/** `anonymous` and `shared` in MiB. */
function put({ write }: Machine, pid: number, anonymous: number, { shared = 0, children = [] as number[], start = pid } = {}): void {
  const pages = (mib: number) => (mib * MIB) / 4096
  write(`proc/${pid}/stat`, `${pid} (python) S 1 0 0 0 -1 0 0 0 0 0 1 1 0 0 20 0 8 0 ${start} 0 0 ${'0 '.repeat(28)}\n`)
  write(`proc/${pid}/statm`, `99999 ${pages(anonymous + shared)} ${pages(shared)} 1 0 1 0\n`)
  write(`proc/${pid}/task/${pid}/children`, children.map((child) => `${child} `).join(''))
}

const tick = (second: number) => ({ at: second * 1000, monotonicMs: second * 1000, tick: second })

describe('the memory of a process tree', () => {
  it('is its own, and what its children added', () => {
    const one = machine()
    const trees = new ProcessTrees(one.root, 4096)
    trees.watch([{ pid: 10, run: 'r' }])
    put(one, 10, 1000, { shared: 5000, children: [11, 12] })
    // Forked workers start with the pages of their parent.
    put(one, 11, 1000)
    put(one, 12, 1000)
    const read = (second: number) => trees.read(tick(second), [], 1e12)?.map(({ bytes, processes }) => [bytes / MIB, processes])
    expect(read(0)).toEqual([[1000, 3]])
    expect(read(1)).toBeUndefined()
    put(one, 11, 1300)
    expect(read(2)).toEqual([[1300, 3]])
    rmSync(join(one.root, 'proc/12'), { recursive: true })
    expect(read(4)).toEqual([[1300, 2]])
    put(one, 10, 1000, { shared: 5000, children: [11, 13] })
    put(one, 13, 1000)
    expect(read(6)).toEqual([[1300, 3]])
    rmSync(join(one.root, 'proc/10'), { recursive: true })
    expect(read(8)).toEqual([])
  })

  it('is told once for ranks below their launcher, and for processes on GPUs inside a run', () => {
    const one = machine()
    const trees = new ProcessTrees(one.root, 4096)
    trees.watch([
      { pid: 11, run: 'r' },
      { pid: 10, run: 'r' },
    ])
    put(one, 10, 100, { children: [11] })
    put(one, 11, 200)
    put(one, 20, 300)
    expect(trees.read(tick(0), [11, 20], 1e12)?.map(({ pid, run }) => [pid, run])).toEqual([
      [10, 'r'],
      [20, null],
    ])
  })

  it('begins again with another process of the same number', () => {
    const one = machine()
    const trees = new ProcessTrees(one.root, 4096)
    trees.watch([{ pid: 10, run: 'r' }])
    put(one, 10, 100, { children: [11] })
    put(one, 11, 500)
    trees.read(tick(0), [], 1e12)
    put(one, 11, 900, { start: 77 })
    expect(trees.read(tick(31), [], 1e12)?.[0]?.bytes).toBe(100 * MIB)
  })

  it.skipIf(process.platform !== 'linux')('grows with a real process and its child, not with files in the cache', async () => {
    const code = 'import os,time\nkept=[]\nif os.fork()==0:\n  kept.append(bytearray(64<<20))\n  time.sleep(60)\ntime.sleep(60)\n'
    const child: ChildProcess = spawn('python3', ['-c', code], { detached: true, stdio: 'ignore' })
    cleanups.push(() => void process.kill(-(child.pid ?? 0), 'SIGKILL'))
    const trees = new ProcessTrees('/', 4096)
    trees.watch([{ pid: child.pid ?? 0, run: 'r' }])
    let looks = 0
    const look = () => {
      looks++
      return trees.read(tick(40 * looks), [], 1e12)?.[0]
    }
    await expect.poll(() => look()?.processes, { timeout: 20_000 }).toBe(2)
    expect(look()?.bytes).toBeLessThan(200 * MIB)
  })
})

describe('the limit on memory', () => {
  const limitOf = ({ root }: Machine, total = 64 * 1024 * MIB) => new MemoryGroups(root).limitOf(10, total, 0)

  it('is the tightest of the groups around a process, without files in the cache (v2)', () => {
    const one = machine()
    one.write('proc/10/cgroup', '0::/kubepods/pod1/c1\n')
    one.write('sys/fs/cgroup/kubepods/memory.max', 'max\n')
    one.write('sys/fs/cgroup/kubepods/pod1/memory.max', `${16 * 1024 * MIB}\n`)
    one.write('sys/fs/cgroup/kubepods/pod1/memory.swap.max', '0\n')
    one.write('sys/fs/cgroup/kubepods/pod1/memory.current', `${10 * 1024 * MIB}\n`)
    one.write('sys/fs/cgroup/kubepods/pod1/memory.stat', `anon 5\ninactive_file ${2 * 1024 * MIB}\nactive_file ${1024 * MIB}\n`)
    one.write('sys/fs/cgroup/kubepods/pod1/c1/memory.max', 'max\n')
    expect(limitOf(one)).toEqual({ usedBytes: 7 * 1024 * MIB, limitBytes: 16 * 1024 * MIB })
    expect(limitOf(one, 8 * 1024 * MIB)).toBe(null)
  })

  it('counts swap', () => {
    const one = machine()
    one.write('proc/10/cgroup', '0::/\n')
    for (const [name, value] of Object.entries({ max: 1000, 'swap.max': 500, current: 700, 'swap.current': 100 }))
      one.write(`sys/fs/cgroup/memory.${name}`, `${value}\n`)
    one.write('sys/fs/cgroup/memory.stat', 'inactive_file 50\nactive_file 0\n')
    expect(limitOf(one)).toEqual({ usedBytes: 750, limitBytes: 1500 })
  })

  it('is read from v1', () => {
    const one = machine()
    one.write('proc/10/cgroup', '5:cpu:/a\n4:memory:/slurm/job_1\n0::/a\n')
    one.write('sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes', '2000\n')
    one.write('sys/fs/cgroup/memory/slurm/job_1/memory.usage_in_bytes', '1500\n')
    one.write(
      'sys/fs/cgroup/memory/slurm/job_1/memory.stat',
      'inactive_file 1\ntotal_inactive_file 300\ntotal_active_file 100\ntotal_swap 0\n',
    )
    expect(limitOf(one)).toEqual({ usedBytes: 1100, limitBytes: 2000 })
  })

  it('is none where there is none, or nothing can be read', () => {
    const one = machine()
    expect(limitOf(one)).toBe(null)
    one.write('proc/10/cgroup', '0::/../../etc\n')
    expect(limitOf(one)).toBe(null)
    one.write('proc/10/cgroup', '0::/user.slice\n')
    one.write('sys/fs/cgroup/user.slice/memory.max', 'max\n')
    expect(limitOf(one)).toBe(null)
  })
})
