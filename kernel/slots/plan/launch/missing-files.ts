import { access, constants } from 'node:fs/promises'
import type { Model, NamedSlotConfig } from '../../../contract/index.js'

export interface MissingFile {
  readonly what: string
  readonly path: string
  /** The key of the slot's file that asks for it. */
  readonly param: string
  readonly cause: unknown
}

/** Files that a launch reads and cannot. Never rejects. */
export async function missingFiles (
  slot: NamedSlotConfig, model: Model, chatTemplate: string | null
): Promise<readonly MissingFile[]> {
  const files: ReadonlyArray<readonly [what: string, path: string | null, param: string]> = [
    [`the file of model '${model.id}'`, model.path, 'model.default'],
    [`the projector of model '${model.id}' (\`vision = false\` runs without it)`, projectorOf(slot, model), 'vision'],
    ['the chat template', chatTemplate, 'chat_template']
  ]
  const looked = await Promise.all(files.map(async ([what, path, param]): Promise<MissingFile | null> => path === null
    ? null
    : await access(path, constants.R_OK).then(() => null, (cause: unknown) => ({ what, path, param, cause }))))
  return looked.filter(file => file !== null)
}

/** The projector that goes with the model, unless the slot or the model does without. Pure. */
export function projectorOf (slot: NamedSlotConfig, model: Model | null): string | null {
  return slot.vision && model?.defaults.vision !== false ? model?.mmproj ?? null : null
}
