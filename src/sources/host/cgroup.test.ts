import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NO_MEMBERSHIP, parseCgroup } from './cgroup.ts'

const hash = '4f1c0d3e5b7a99826170f4e2d1c3b5a7968877665544332211ffeeddccbbaa00'
const uid = '0f2d7a31-6c1b-4e0a-9d5e-2b8c4d6e8f10'
const slice = uid.replaceAll('-', '_')

describe('containers', () => {
  it.each([
    [`0::/system.slice/docker-${hash}.scope`, `docker:${hash}`],
    [`9:memory:/docker/${hash}`, `docker:${hash}`],
    [`0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-${hash}.scope/container`, `podman:${hash}`],
    [`5:cpu:/libpod_parent/libpod-${hash}`, `podman:${hash}`],
    [`0::/system.slice/containerd.service/k8s.io/${hash}`, `containerd:${hash}`],
    [`0::/kubepods/burstable/pod${uid}/${hash}`, `containerd:${hash}`],
    [`0::/kubepods.slice/kubepods-pod${slice}.slice/cri-containerd-${hash}.scope`, `containerd:${hash}`],
    [`0::/system.slice:cri-containerd:${hash}`, `containerd:${hash}`],
    [`0::/kubepods.slice/kubepods-pod${slice}.slice/crio-${hash}.scope`, `crio:${hash}`],
    [`0::/kubepods.slice/kubepods-pod${slice}.slice/docker-${hash}.scope`, `docker:${hash}`],
    ['0::/lxc.payload.web1/init.scope', 'lxc:web1'],
    ['4:devices:/lxc/web1', 'lxc:web1'],
    [`0::/lxc.payload.outer/system.slice/docker-${hash}.scope`, `docker:${hash}`],
  ])('%s', (line, container) => {
    expect(parseCgroup(`${line}\n`).container).toBe(container)
  })

  it.each([
    '0::/',
    '0::/user.slice/user-1000.slice/session-3.scope',
    `0::/system.slice/docker.service`,
    `0::/kubepods.slice/crio-conmon-${hash}.scope`,
    `0::/system.slice/${hash}`,
    '0::/lxc.monitor.web1',
    `0::/constructor/${hash}`,
  ])('%s is none', (line) => {
    expect(parseCgroup(line).container).toBe(null)
  })
})

describe('pods', () => {
  it.each([
    `11:memory:/kubepods/besteffort/pod${uid}/${hash}`,
    `0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${slice}.slice/cri-containerd-${hash}.scope`,
    `0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod${slice}.slice/cri-containerd-${hash}.scope`,
    `0::/kubepods-burstable-pod${slice}.slice:cri-containerd:${hash}`,
  ])('%s', (line) => {
    expect(parseCgroup(line)).toEqual({ container: `containerd:${hash}`, pod: uid, slurmJob: null })
  })

  it('knows pods that are not from the API server', () => {
    expect(parseCgroup(`0::/kubepods/burstable/pod${'ab'.repeat(16)}/${hash}`).pod).toBe('ab'.repeat(16))
    expect(parseCgroup(`0::/user.slice/pod${uid}`).pod).toBe(null)
  })
})

describe('Slurm jobs', () => {
  it.each([
    '4:memory:/slurm/uid_1000/job_8812/step_0/task_0',
    '4:memory:/slurm_node1/uid_1000/job_8812/step_batch',
    '0::/system.slice/slurmstepd.scope/job_8812/step_0/user/task_0',
    '0::/system.slice/node1_slurmstepd.scope/job_8812/step_extern/user',
  ])('%s', (line) => {
    expect(parseCgroup(line)).toEqual({ container: null, pod: null, slurmJob: '8812' })
  })

  it('needs Slurm in the path', () => {
    expect(parseCgroup('0::/user.slice/job_8812')).toEqual(NO_MEMBERSHIP)
  })
})

describe('any text', () => {
  it('is survived, and what is found stands in it', () => {
    const part = fc.oneof(
      fc.constantFrom('kubepods', 'docker', 'slurm', 'lxc', hash, `pod${uid}`, `docker-${hash}.scope`, 'job_1', 'system.slice'),
      fc.string({ maxLength: 12 }),
    )
    const line = fc.tuple(fc.nat(20), fc.constantFrom('', 'memory', 'name=systemd'), fc.array(part, { maxLength: 6 }))
    fc.assert(
      fc.property(fc.array(line, { maxLength: 5 }), (lines) => {
        const text = lines.map(([number, name, parts]) => `${number}:${name}:/${parts.join('/')}`).join('\n')
        const { container, pod, slurmJob } = parseCgroup(text)
        if (container !== null) expect(text).toContain(container.slice(container.indexOf(':') + 1))
        if (pod !== null) expect(text).toContain(pod)
        if (slurmJob !== null) expect(text).toContain(`job_${slurmJob}`)
      }),
    )
  })
})
