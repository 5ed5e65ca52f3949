// npm run fuzz -- --seconds 60 [--reader NAME]: the readers of foreign bytes, for so long each and with another seed every time.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '30' }, reader: { type: 'string' }, seed: { type: 'string' } },
})
const env = {
  ...process.env,
  GPUWARDEN_FUZZ_SECONDS: values.seconds,
  GPUWARDEN_TEST_SEED: values.seed ?? 'random',
  ...(values.reader === undefined ? {} : { GPUWARDEN_FUZZ_READER: values.reader }),
}
process.exit(spawnSync('npx', ['vitest', 'run', '--project', 'program', 'test/fuzz'], { env, stdio: 'inherit' }).status ?? 1)
