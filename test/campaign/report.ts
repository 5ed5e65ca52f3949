/** Runs one campaign and prints what it found. */
import { type CampaignResult, runCampaign } from './campaign.ts'
import { scheduleOf } from './schedule.ts'

/** True: everything that was promised is there. */
export async function campaign(seed: number, minutes: number, without: readonly string[]): Promise<boolean> {
  const say = (line: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`)
  say(`campaign with seed ${seed}, ${minutes} min${without.length === 0 ? '' : `, without ${without}`}`)
  const result = await runCampaign(scheduleOf(seed, minutes * 60_000, without), say)
  console.log(textOf(result, seed, minutes))
  return result.faults.every(({ isExcused }) => isExcused)
}

export function textOf({ faults, figures, counts, skipped, lastWords, folder }: CampaignResult, seed: number, minutes: number): string {
  const isRight = faults.every(({ isExcused }) => isExcused)
  return [
    ...[...counts].sort().map(([name, count]) => `  ${name}: ${count}`),
    ...Object.entries(figures).map(([name, count]) => `  ${name}: ${count}`),
    ...skipped.map((one) => `  SKIPPED ${one}`),
    ...faults.map(({ kind, what, isExcused }) => `${isExcused ? 'excused' : 'FAULT'} ${kind}: ${what}`),
    ...lastWords.map((words) => `the agent: ${words}`),
    isRight
      ? 'nothing lost, nothing doubled, nothing falsely resolved'
      : `evidence: ${folder}\nto replay: npm run campaign -- --minutes ${minutes} --seed ${seed}`,
  ].join('\n')
}
