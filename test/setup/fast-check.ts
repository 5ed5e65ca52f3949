/** Property tests take the same path every time, so that a red run can be repeated; GPUWARDEN_TEST_SEED=random (or a number) looks elsewhere. */
import fc from 'fast-check'

const asked = process.env.GPUWARDEN_TEST_SEED
if (asked !== 'random') fc.configureGlobal({ seed: asked === undefined ? 20_261_115 : Number(asked) })
