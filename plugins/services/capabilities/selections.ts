import { isDeepStrictEqual } from 'node:util'
import type { ConfigDraft, ConfigSnapshot } from 'svc-gateway/plugin'
import { FILE } from './file-name.js'
import { withSelection } from './read-selections.js'
import type { CapabilitySelection, CapabilitySelections } from './schema.js'
import { capabilityGroupOf, type CapabilityChild } from './words.js'

const none: CapabilitySelections = {}

/** Of a snapshot or a draft; empty while the plugin is away. */
export function selectionsOf ({ files }: Pick<ConfigSnapshot, 'files'>): CapabilitySelections {
  return (files.get(FILE) ?? none) as CapabilitySelections
}

/** Chooses on a draft; null is no choice any more. One that is as it was leaves the file alone. */
export async function putSelection (
  draft: ConfigDraft, child: CapabilityChild, selection: CapabilitySelection | null
): Promise<void> {
  if (isDeepStrictEqual(selectionsOf(draft)[child] ?? null, selection)) return
  await draft.editFile(FILE, (data, words) => withSelection(data, capabilityGroupOf(child), child, selection, words))
}
