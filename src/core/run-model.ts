/** As the SDK counted it, once per run. */
export interface RunModel {
  readonly parameters: number | null
  /** That work on a token: without embeddings that are only looked up, of experts the chosen ones. */
  readonly activeParameters: number | null
  /** Forward and backward, without what is computed again. */
  readonly flopsPerToken: number | null
  readonly flopsPerSample: number | null
  /** What most of it is computed in: `bfloat16`, `tf32` …; null: not known. */
  readonly computeType: string | null
}
