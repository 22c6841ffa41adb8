import type { BodyEdits, ForwardOptions, NamedSlotConfig } from '../../contract/index.js'
import { spliceBody, withValue } from './body-splice.js'
import type { BodyView } from './body-view.js'

const NO_EDITS: BodyEdits = {}

/** The body as the target gets it: `model` replaced, the route's edits made; everything else byte for byte. */
export function rewrittenBody (view: BodyView, options: ForwardOptions, modelId: string, slot: NamedSlotConfig | null): Buffer {
  const isNamedSo = modelId === view.string('model') && view.count('model') === 1
  const { set, add, drop } = options.edit?.(view, slot) ?? NO_EDITS
  if (set === undefined && add === undefined && drop === undefined) {
    if (isNamedSo) return spliceBody(view, options)
    if (changesNameAlone(view, options)) return withValue(view, 'model', modelId)
  }
  return spliceBody(view, {
    ...(isNamedSo && set === undefined ? {} : { set: isNamedSo ? set! : { ...set, model: modelId } }),
    ...(add === undefined ? {} : { add }),
    drop: drop === undefined ? options.drop ?? [] : [...options.drop ?? [], ...drop]
  })
}

function changesNameAlone (view: BodyView, { drop = [] }: ForwardOptions): boolean {
  return view.count('model') === 1 && !drop.some(key => view.member(key) !== undefined)
}
