import { describe, expect, it } from 'vitest'
import { detectorContract, feed } from './detector.contract.ts'
import { device, gpu, START } from './inputs.fixture.ts'
import { thermal } from './thermal.ts'

const heat = (celsius: number, seconds: number, from = 0, extra = {}) =>
  Array.from({ length: seconds }, (_, index) =>
    gpu(START + (from + index) * 1000, { temperatureCelsius: celsius, memoryTemperatureCelsius: null, ...extra }),
  )

detectorContract({
  kind: thermal,
  trouble: () => [device(), ...heat(60, 20), ...heat(89, 100, 20), ...heat(95, 60, 120), ...heat(60, 60, 180)],
})

describe('thermal', () => {
  const run = (inputs: Parameters<typeof feed>[1]) => feed(thermal.create(thermal.defaults), inputs)

  it('weighs against the slowdown temperature of this very card', () => {
    expect(run([device(), ...heat(88, 60)])[0]).toMatchObject({ severity: 'warning', evidence: { limit_celsius: 92, limit_known: true } })
    expect(run([device({ temperatureSlowdownCelsius: 105 }), ...heat(88, 60)])[0]).toMatchObject({ severity: 'info' })
  })

  it('says that it assumes a limit where the card reports none', () => {
    const [found] = run([device({ temperatureSlowdownCelsius: null, temperatureMaxCelsius: null }), ...heat(86, 60)])
    expect(found?.severity).toBe('warning')
    expect(found?.message).toContain('does not report its limit')
    expect(found?.confidence).toBeLessThan(0.7)
  })

  it('is critical at the slowdown temperature within seconds', () => {
    const found = run([device(), ...heat(93, 7)])
    expect(found.map((finding) => finding.severity)).toEqual(['critical'])
  })

  it('only mentions the 80 degrees at which older advice would alarm', () => {
    expect(run([device(), ...heat(82, 120)]).map((finding) => finding.severity)).toContain('info')
    expect(run([device(), ...heat(82, 120)]).every((finding) => finding.severity === 'info')).toBe(true)
  })

  it('ignores a moment of heat', () => {
    expect(run([device(), ...heat(60, 30), ...heat(91, 10, 30), ...heat(60, 30, 40)])).toEqual([])
  })

  it('does not flap around the margin', () => {
    const around = Array.from({ length: 300 }, (_, index) => gpu(START + (60 + index) * 1000, { temperatureCelsius: 86 + (index % 3) }))
    const found = run([device(), ...heat(88, 60), ...around])
    expect(found.filter((finding) => finding.state === 'resolved')).toEqual([])
  })

  it('looks at the hottest spot, against its own limit', () => {
    const hot = { junctionTemperatureCelsius: 111 }
    const found = run([device({ junctionTemperatureMaxCelsius: 110 }), ...heat(60, 60, 0, hot)])
    expect(found.at(-1)?.severity).toBe('critical')
    expect(found.at(-1)?.message).toContain('60 °C, its hottest spot at 111 °C; that spot is limited to 110 °C')
    expect(found.at(-1)?.evidence).toMatchObject({ junction_temperature_celsius: 111, junction_limit_celsius: 110 })
    expect(run([device(), ...heat(60, 60, 0, hot)])).toEqual([])
  })

  it('looks at the memory as well', () => {
    const found = run([device(), ...heat(60, 60, 0, { memoryTemperatureCelsius: 96 })])
    expect(found.at(-1)?.severity).toBe('critical')
    expect(found.at(-1)?.message).toContain('memory at 96')
  })
})
