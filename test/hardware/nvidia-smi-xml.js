// The part of `nvidia-smi -q -x` that gpuwarden also reads, by path: gpu[0]['temperature/gpu_temp'] = '42 C'.
export function parseNvidiaSmi(xml) {
  const gpus = []
  const system = {}
  const path = []
  let current = null
  let processes = null
  for (const [, close, name, , text] of xml.matchAll(/<(\/?)(\w+)([^>]*)>([^<]*)/g)) {
    if (close) {
      path.pop()
      continue
    }
    if (name === 'nvidia_smi_log') continue
    path.push(name)
    const value = text.trim()
    if (name === 'gpu') {
      current = {}
      processes = []
      gpus.push({ values: current, processes })
    } else if (name === 'process_info') processes.push({})
    else if (path.includes('process_info')) processes.at(-1)[name] = value
    else if (value !== '') (current ?? system)[path.filter((part) => part !== 'gpu').join('/')] ??= value
  }
  return { system, gpus }
}

/** '580.12 W' → 580.12; 'N/A' → null */
export function numberOf(text) {
  const match = /^-?\d+(\.\d+)?/.exec(text ?? '')
  return match ? Number(match[0]) : null
}
