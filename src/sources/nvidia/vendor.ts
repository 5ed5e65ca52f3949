import type { Vendor } from '../../core/vendor.ts'

export const nvidiaVendor: Vendor = {
  name: 'nvidia',
  title: 'NVIDIA',
  load: async () => (await import('./index.ts')).nvidia,
  pciVendor: '0x10de',
  models: /\b(NVIDIA|GeForce|Quadro|Tesla)\b/i,
  deviceFiles: /^\/dev\/nvidia/,
  metricSets: ['dcgm', 'nvidia_smi'],
  help: {
    install:
      'Install the NVIDIA driver of your distribution (Debian: nvidia-driver, Ubuntu: "ubuntu-drivers install"), reboot, and see that nvidia-smi works.',
    container: '"--gpus all"',
    tool: 'nvidia-smi',
    kernelLog: 'XIDs that NVML does not report are not seen',
    nativePackage: 'koffi',
  },
  unit: { after: ['nvidia-persistenced.service'], devices: ['char-nvidia* rw'], note: null },
}
