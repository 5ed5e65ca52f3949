/** Whether simulated GPUs may stand in for those that are not there. */
import type { ConfigValues } from './config.ts'

/** Somebody relies on what is shown, or it goes further: then a simulation would be a lie. */
export function mayStandIn(values: ConfigValues): boolean {
  const goesFurther = [
    values['server.token'],
    values['server.token_file'],
    values['email.server'],
    values['alerts.heartbeat_url'],
    values['push.remote_write.url'],
    values['push.otlp.url'],
    values['push.mlflow.url'],
  ]
  return goesFurther.every((one) => one === null) && Object.keys(values.channels).length === 0
}
