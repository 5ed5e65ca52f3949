import { expect, it } from 'vitest'
import { type ClockJump, WallClock } from './wall-clock.ts'

function clockAt(wallMs: number) {
  const time = { wall: wallMs, monotonic: 0 }
  const jumps: ClockJump[] = []
  const clock = new WallClock(
    (jump) => jumps.push(jump),
    () => time.wall,
    () => time.monotonic,
  )
  const pass = (wall: number, monotonic = wall) => {
    time.wall += wall
    time.monotonic += monotonic
    return clock.now()
  }
  return { clock, jumps, pass }
}

it('reports a jump ahead and back, once each, and how long ago it was', () => {
  const { clock, jumps, pass } = clockAt(1_000_000)
  expect(clock.sinceJumpMs()).toBe(Number.POSITIVE_INFINITY)
  pass(5000)
  expect(pass(3_600_000 + 1000, 1000)).toBe(4_606_000)
  pass(6000)
  expect(clock.sinceJumpMs()).toBe(6000)
  pass(-3_600_000 + 1000, 1000)
  pass(2000)
  expect(jumps).toEqual([
    { from: 1_006_000, at: 4_606_000 },
    { from: 4_613_000, at: 1_013_000 },
  ])
  expect(clock.sinceJumpMs()).toBe(2000)
})

it('takes a clock that is corrected slowly, or a machine that was busy, for what it is', () => {
  const { jumps, pass } = clockAt(0)
  for (let i = 0; i < 100; i++) pass(1500, 1000)
  pass(600_000)
  expect(jumps).toEqual([])
})
