import { describe, expect, it } from 'vitest'
import type { DetectorInput } from '../core/detector-contract.ts'
import type { GpuProcess, ProcessInfo } from '../core/model.ts'
import { detectorContract, feed } from './detector.contract.ts'
import { alarms, device, GIB, gpu, process, processInfo, run as runInput, START } from './inputs.fixture.ts'
import { type IntruderOptions, intruder } from './intruder.ts'

const MIB = 1024 * 1024
type Who = [second: number, until: number, process: GpuProcess, info?: ProcessInfo]

/** A GPU through `seconds`, with each process from its second until its end. */
function scene(seconds: number, who: Who[], from = 0): DetectorInput[] {
  return Array.from({ length: seconds }, (_, index) => {
    const present = who.filter(([start, until]) => from + index >= start && from + index < until)
    const infos = present.flatMap(([, , , info]) => (info ? [info] : []))
    return gpu(START + (from + index) * 1000, { processes: present.map(([, , one]) => one) }, infos)
  })
}
const always = (pid: number, info?: ProcessInfo): Who => (info ? [1, 1e9, process(pid), info] : [1, 1e9, process(pid)])
const small = (pid: number) => process(pid, { memoryUsedBytes: 14 * MIB })
const bob = (pid: number, overrides = {}) => processInfo(pid, { user: 'bob', parentPid: 77, ...overrides })

detectorContract({ kind: intruder, trouble: () => [device(), ...scene(120, [always(1001), [40, 70, small(1002)]])] })

describe('intruder', () => {
  const start = (options: Partial<IntruderOptions> = {}) => intruder.create({ ...intruder.defaults, ...options })
  const run = (inputs: DetectorInput[], options: Partial<IntruderOptions> = {}) => feed(start(options), [device(), ...inputs])

  it('finds a stranger on a held GPU in its first sample, and ends when it leaves', () => {
    const found = run(scene(60, [always(1001), [30, 40, small(1002)]]))
    expect(found.map((finding) => [finding.state, finding.at])).toEqual([
      ['active', START + 30_000],
      ['resolved', START + 40_000],
    ])
    expect(found[0]).toMatchObject({ severity: 'warning', subject: { pid: 1002, gpu: 'GPU-0' }, evidence: { holder_pid: 1001 } })
    expect(found[0]?.message).toContain('GPU 0')
  })

  it('lets anybody have an empty GPU, or one that was given back', () => {
    expect(run(scene(60, [[10, 60, process(1001)]]))).toEqual([])
    expect(
      run(
        scene(90, [
          [10, 40, process(1001)],
          [45, 90, process(1002)],
        ]),
      ),
    ).toEqual([])
  })

  it('takes what starts together for one program', () => {
    expect(
      run(
        scene(60, [
          [10, 60, process(1001)],
          [14, 60, process(1002)],
          [18, 60, process(1003)],
        ]),
      ),
    ).toEqual([])
  })

  it('asks nothing of those who were there first', () => {
    expect(
      run(
        scene(60, [
          [0, 60, process(1001)],
          [0, 60, process(1002)],
        ]),
      ),
    ).toEqual([])
  })

  it('takes a GPU that several share already for shared', () => {
    expect(
      run(
        scene(60, [
          [0, 60, process(1001)],
          [0, 60, process(1002)],
          [30, 60, process(1003)],
        ]),
      ),
    ).toEqual([])
  })

  it('leaves the desktop alone', () => {
    expect(run(scene(60, [always(1001), [30, 60, process(1002, { type: 'graphics' })]]))).toEqual([])
  })

  it('knows a second process of the same user', () => {
    expect(alarms(run(scene(60, [always(1001, processInfo(1001)), [30, 60, process(1002), processInfo(1002)]])))).toEqual([])
  })

  it('knows it also when nobody was learned', () => {
    const two = scene(60, [always(1001, processInfo(1001)), [30, 60, process(1002), processInfo(1002, { parentPid: 99 })]])
    expect(alarms(run(two, { learnMinutes: 0 }))).toEqual([])
  })

  it('finds another user, by name', () => {
    const [found] = alarms(run(scene(60, [always(1001, processInfo(1001)), [30, 60, small(1002), bob(1002)]])))
    expect(found?.message).toContain('bob')
    expect(found?.message).toContain('alice')
    expect(found?.subject.user).toBe('bob')
  })

  it('waits a little to learn who it is where that can be learned', () => {
    const late = (second: number): Who[] => [
      always(1001, processInfo(1001)),
      second < 32 ? [30, 60, process(1002)] : [30, 60, process(1002), processInfo(1002)],
    ]
    const inputs = Array.from({ length: 60 }, (_, second) => scene(1, late(second), second)[0]).filter(
      (input): input is DetectorInput => input !== undefined,
    )
    expect(alarms(run(inputs))).toEqual([])
  })

  it('finds a second intruder beside the first', () => {
    const found = alarms(run(scene(90, [always(1001), [30, 90, process(1002)], [50, 90, process(1003)]])))
    expect(found.map((finding) => finding.subject.pid)).toEqual([1002, 1003])
  })

  it('ends when the one it came upon has left', () => {
    const found = run(
      scene(90, [
        [1, 60, process(1001)],
        [30, 90, process(1002)],
      ]),
    )
    expect(found.map((finding) => finding.state)).toEqual(['active', 'resolved'])
  })

  it('takes a reused PID for another process', () => {
    const early = processInfo(1002, { startedAt: START + 1 })
    const reused = bob(1002, { startedAt: START + 50_000 })
    const found = alarms(run(scene(90, [always(1001, processInfo(1001)), [20, 50, process(1002), early], [50, 90, process(1002), reused]])))
    expect(found.map((finding) => finding.subject.user)).toEqual(['bob'])
  })

  it('learns who shares a GPU in the first minutes, and expects them there from then on', () => {
    const first = scene(100, [
      [0, 100, process(1001), processInfo(1001)],
      [0, 100, process(1002), bob(1002)],
    ])
    const later = scene(
      100,
      [
        [400, 500, process(1003), processInfo(1003)],
        [450, 500, process(1004), bob(1004)],
      ],
      400,
    )
    expect(alarms(run([...first, ...later]))).toEqual([])
    const carol = scene(
      100,
      [
        [400, 500, process(1003), processInfo(1003)],
        [450, 500, process(1004), processInfo(1004, { user: 'carol' })],
      ],
      400,
    )
    expect(alarms(run([...first, ...carol])).map((finding) => finding.subject.user)).toEqual(['carol'])
  })

  it('mentions a newcomer on an empty GPU once, as information', () => {
    const first = scene(350, [[0, 100, process(1001), processInfo(1001)]])
    const later = scene(
      100,
      [
        [400, 430, process(1003), bob(1003)],
        [450, 480, process(1004), bob(1004)],
      ],
      400,
    )
    const found = run([...first, ...later]).filter((finding) => finding.state === 'active')
    expect(found.map((finding) => [finding.severity, finding.subject.pid])).toEqual([['info', 1003]])
  })

  describe('with a written policy', () => {
    it('is critical of what it forbids, even on an empty GPU and from the start', () => {
      const [found] = run(scene(10, [[0, 10, process(1001), bob(1001)]]), { allowedUsers: ['alice'] })
      expect(found).toMatchObject({ severity: 'critical', confidence: 1, subject: { user: 'bob' } })
    })

    it('lets pass what any of its lists allows', () => {
      const options = { allowedUsers: ['alice'], allowedCommands: ['/opt/*/serve', 'Xorg'], allowedContainers: ['docker:4f1c*'] }
      const allowed: ProcessInfo[] = [
        processInfo(1001),
        bob(1001, { executable: '/opt/llm/serve', name: 'serve' }),
        bob(1001, { executable: '/usr/lib/xorg/Xorg', name: 'Xorg' }),
        bob(1001, { container: 'docker:4f1cabc' }),
        bob(1001, { name: 'nvidia-cuda-mps-server' }),
      ]
      for (const info of allowed) expect(run(scene(10, [[0, 10, process(1001), info]]), options)).toEqual([])
      expect(run(scene(10, [[0, 10, process(1001), bob(1001, { executable: '/opt/llm/server' })]]), options)[0]?.severity).toBe('critical')
    })

    it('keeps a claimed GPU for those who claimed it', () => {
      const claims = ['0=alice', '0=carol', 'GPU-9=bob']
      expect(run(scene(10, [[0, 10, process(1001), bob(1001)]]), { claims })[0]?.severity).toBe('critical')
      expect(run(scene(10, [[0, 10, process(1001), processInfo(1001, { user: 'carol' })]]), { claims })).toEqual([])
    })

    it('cannot hold against a process what it cannot read', () => {
      expect(run(scene(10, [[0, 10, process(1001)]]), { allowedUsers: ['alice'] })).toEqual([])
    })
  })

  it('keeps the GPUs of a run for its user', () => {
    const claim = runInput({ gpus: ['GPU-0'], user: 'alice', pid: 1001 })
    const found = alarms(run([claim, ...scene(20, [[5, 20, process(1002, { memoryUsedBytes: 2 * GIB }), bob(1002)]])]))
    expect(found).toMatchObject([{ severity: 'warning', evidence: { reason: 'run' } }])
    const ended = runInput({ gpus: ['GPU-0'], user: 'alice', endedAt: START })
    expect(alarms(run([claim, ended, ...scene(20, [[5, 20, process(1002), bob(1002)]])]))).toEqual([])
  })
})
