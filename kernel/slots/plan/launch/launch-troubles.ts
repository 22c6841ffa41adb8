import { stat } from 'node:fs/promises'
import { isSvcError, memoryFit, type HardwareInfo, type LaunchTrouble } from '../../../contract/index.js'
import type { MissingFile } from './missing-files.js'
import type { EffectiveSlot } from '../effective-slot.js'

/** What a launch needs, each a question that throws the refusal. */
export interface LaunchQuestions {
  readonly device: () => unknown
  readonly model: (effective: EffectiveSlot) => Promise<readonly MissingFile[]>
  readonly image: (effective: EffectiveSlot) => unknown
  /** Everything else, asked when the device and the image are there. */
  readonly launch: (effective: EffectiveSlot) => Promise<void>
  /** Null where it is not this host that runs the engine. */
  readonly hardware: HardwareInfo | null
}

/** Asks all that can be asked before a start, and collects the refusals: one does not hide the others. */
export async function launchTroubles (
  effectiveOf: () => EffectiveSlot, questions: LaunchQuestions
): Promise<readonly LaunchTrouble[]> {
  const troubles: LaunchTrouble[] = []
  const ask = async <T> (what: LaunchTrouble['what'], work: () => T | Promise<T>): Promise<T | null> => {
    try {
      return await work()
    } catch (error) {
      if (!isSvcError(error)) throw error
      troubles.push({ what: error.param === 'model.default' ? 'model' : what, message: error.message })
      return null
    }
  }
  const effective = await ask('config', effectiveOf)
  if (effective === null) {
    // a model that is not known says nothing of the device, and no model helps where the device is not
    if (troubles.some(({ what }) => what === 'model')) await ask('device', questions.device)
    return troubles.toReversed()
  }
  await ask('device', questions.device)
  await ask('image', () => questions.image(effective))
  if (troubles.length === 0) await ask('program', () => questions.launch(effective))
  for (const { what, path } of await ask('model', () => questions.model(effective)) ?? []) {
    troubles.push({ what: 'model', message: `${what} cannot be read at ${path}` })
  }
  if (!troubles.some(({ what }) => what === 'device' || what === 'model')) troubles.push(...await unfit(effective, questions.hardware))
  return troubles
}

/** A model that all the memory together cannot hold. What is only tight is the operator's to judge. */
async function unfit ({ model, device }: EffectiveSlot, hardware: HardwareInfo | null): Promise<LaunchTrouble[]> {
  if (model === null || hardware === null) return []
  const size = model.size_bytes > 0 ? model.size_bytes : await stat(model.path).then(stats => stats.size, () => 0)
  const { status, reasons } = memoryFit(size, device, hardware)
  return status === 'too_large' ? [{ what: 'fit', message: `model '${model.id}' does not fit ${device}: ${reasons.join('; ')}` }] : []
}
