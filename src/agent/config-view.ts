import { maskSecrets } from '../channels/settings.ts'
import type { Setting } from '../core/setting.ts'
import type { ConfigView } from '../server/config-route.ts'
import { type Config, describeOrigin, KEYS, SETTINGS, variableOf } from './config.ts'

const MASK = '********'
/** `https://user:password@host`: the setting is no secret, but a part of it is. */
const CREDENTIALS_IN_URL = /(?<=\/\/)[^/?#@\s]+(?=@)/g

export function configView(config: Config): ConfigView {
  const settings = KEYS.map((key) => {
    const setting: Setting = SETTINGS[key]
    const value: unknown = config.values[key]
    return {
      key,
      value: setting.secret ? masked(value) : withoutCredentials(value),
      from: describeOrigin(config.origins[key]),
      variable: variableOf(key),
      help: setting.help,
    }
  })
  return { file: config.file, warnings: config.warnings, settings }
}

/** Of what is made of parts only the secret ones are hidden. */
function masked(value: unknown): unknown {
  if (value === null || value === '') return value
  return typeof value === 'object' ? maskSecrets(value) : MASK
}

function withoutCredentials(value: unknown): unknown {
  return typeof value === 'string' ? value.replace(CREDENTIALS_IN_URL, MASK) : value
}
