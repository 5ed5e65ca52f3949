/** Remote write into real receivers: what is pushed is what is scraped, down to the last label, and ends when it ends. */
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Log, Sink } from '../../src/core/kinds.ts'
import { createExporter } from '../../src/exporter/exporter.ts'
import { FIXED_STATE, fixedTraining, naming } from '../../src/exporter/fixed-state.contract.ts'
import { createPush } from '../../src/push/push.ts'
import { until } from '../program.ts'
import { settingsWith } from '../push-stand.ts'
import { prometheus, query, type Sample, type Server, victoriaMetrics, whyMissing } from './servers.ts'

const quiet = () => undefined
const LOG: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet, child: () => LOG }
const INSTANCE = 'node-7'

/** It takes a different time on every page. */
const CHANGING = /^(gpuwarden_scrape_duration_seconds|gpuwarden_process_)/

const exporter = createExporter({
  naming,
  state: FIXED_STATE,
  sets: ['native', 'dcgm', 'nvidia_smi'],
  maxProcesses: 8,
  training: fixedTraining(),
})

function pushTo(url: string): Required<Sink> {
  const settings = settingsWith({ 'push.remote_write.url': url, 'push.interval': 1, 'push.instance': INSTANCE })
  const [sink] = createPush({ state: FIXED_STATE, settings, families: () => exporter.families(), log: LOG, version: '1' })
  if (sink === undefined) throw new Error('no sink was made')
  return sink
}

/** Series of one job as comparable lines; what only a scrape adds is left out. */
function lines(samples: readonly Sample[]): string[] {
  return samples
    .filter(({ metric }) => !/^(up|scrape_.*)$/.test(metric.__name__ ?? '') && !CHANGING.test(metric.__name__ ?? ''))
    .map(({ metric: { job: _job, ...labels }, value }) => `${JSON.stringify(Object.entries(labels).sort())} ${value[1]}`)
    .sort()
}

const missing = whyMissing('prometheus', 'victoria-metrics')

describe.skipIf(missing !== '')(`remote write${missing}`, () => {
  let page: HttpServer
  let scraper: Server
  let victoria: Server
  const sinks: Required<Sink>[] = []
  let scraped: string[] = []

  beforeAll(async () => {
    page = createServer((_request, response) => response.setHeader('content-type', 'text/plain; version=0.0.4').end(exporter.render()))
    await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve))
    const target = `127.0.0.1:${(page.address() as AddressInfo).port}`
    scraper = await prometheus({ targets: [{ target, job: 'scraped', instance: INSTANCE }] })
    victoria = await victoriaMetrics()
    await until('a page was scraped', async () => (await query(scraper, 'scrape_samples_scraped{job="scraped"} > 0')).length > 0)
    scraped = lines(await query(scraper, '{job="scraped"}'))
  }, 120_000)

  afterAll(async () => {
    for (const sink of sinks) await sink.close()
    await scraper?.stop()
    await victoria?.stop()
    page?.close()
  })

  it('scraped a page worth comparing', () => {
    expect(scraped.length).toBeGreaterThan(250)
  })

  it('into Prometheus gives the same series with the same values', async () => {
    sinks.push(pushTo(`${scraper.url}/api/v1/write`))
    await until('something was pushed', async () => (await query(scraper, 'gpuwarden_build_info{job="gpuwarden"}')).length > 0)
    expect(lines(await query(scraper, '{job="gpuwarden"}'))).toEqual(scraped)
  })

  it('into VictoriaMetrics gives the same series with the same values', async () => {
    sinks.push(pushTo(`${victoria.url}/api/v1/write`))
    const pushed = await until('something was pushed', async () => {
      const found = lines(await query(victoria, '{job="gpuwarden"}'))
      return found.length >= scraped.filter((line) => !line.endsWith(' NaN')).length ? found : null
    })
    // VictoriaMetrics keeps no NaN: there, a loss that is not a number is one that is absent.
    const kept = scraped.filter((line) => !line.endsWith(' NaN')).map(rounded)
    expect(pushed.map(rounded)).toEqual(kept)
  })

  it('ends a series in both when gpuwarden is stopped', async () => {
    for (const sink of sinks.splice(0)) await sink.close()
    await until('they have ended', async () => {
      const left = [...(await query(scraper, '{job="gpuwarden"}')), ...(await query(victoria, '{job="gpuwarden"}'))]
      return left.length === 0
    })
  })
})

/** The two print numbers differently; a double has no more than these digits in common after VictoriaMetrics' own rounding. */
function rounded(line: string): string {
  const at = line.lastIndexOf(' ')
  const value = line.slice(at + 1)
  return `${line.slice(0, at)} ${/Inf/.test(value) ? value : Number(value).toPrecision(12)}`
}
