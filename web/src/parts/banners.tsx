/** What nobody may overlook: that figures are simulated or recorded, that the agent is away, that a driver does not answer. */
import { now } from '../live/agent-clock.ts'
import { health, isReplay, isSimulated, link } from '../live/store.ts'
import { clockTime, formatAge } from '../words.ts'

export function Banners() {
  const { state, since } = link.value
  const sick = health.value.filter((one) => one.state === 'not_responding' || one.state === 'crashed' || one.state === 'failed')
  return (
    <section class="banners" aria-label="Notices">
      {state === 'lost' && (
        <p class="banner critical" role="alert">
          <strong>No connection to the agent</strong> since {clockTime(since, now.value)}. Figures below are its last readings.
        </p>
      )}
      {sick.map((one) => (
        <p class="banner critical" role="alert" key={one.source}>
          <strong>
            {one.source}: {one.state === 'not_responding' ? 'driver not responding' : one.state}
          </strong>
          <span>
            since {clockTime(one.since, now.value)} ({formatAge(now.value - one.since)}).{' '}
            {one.state === 'not_responding' ? 'gpuwarden keeps trying.' : one.message}
          </span>
        </p>
      ))}
      {isSimulated.value && (
        <p class="banner simulated">
          <strong>SIMULATED</strong> These GPUs do not exist:{' '}
          {isReplay.value ? 'the recording was made with the demo source.' : 'no GPU was found, or the demo source was chosen.'}
        </p>
      )}
      {isReplay.value && (
        <p class="banner info">
          <strong>REPLAY</strong> This is a recording, and times are those of the recording.
        </p>
      )}
    </section>
  )
}
