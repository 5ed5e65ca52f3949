import type { Vendor } from '../../core/vendor.ts'

export const amdVendor: Vendor = {
  name: 'amd',
  title: 'AMD',
  load: async () => (await import('./index.ts')).amd,
  pciVendor: '0x1002',
  driver: {
    names: ['amdgpu'],
    displayOnly: ['radeon'],
    classes: ['0x03', '0x1200'],
    deviceFile: null,
    signs: ['sys/module/amdgpu', 'dev/kfd'],
  },
  models: /\b(AMD|Radeon|Instinct)\b/i,
  deviceFiles: /^\/dev\/(?:kfd$|dri\/)/,
  metricSets: { dcgm: 'shared' },
  deviceNode: 'card',
  help: {
    install: 'Load the amdgpu kernel module ("modprobe amdgpu"); in a container, mount /sys and pass /dev/dri and /dev/kfd.',
    container: '/dev/dri and /dev/kfd',
    tool: 'rocm-smi',
    kernelLog: null,
    computeFile: 'dev/kfd',
    nativePackage: null,
  },
  unit: { after: [], devices: [], note: 'AMD cards are read through /sys and need no device.' },
}
