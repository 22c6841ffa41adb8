import { createServiceRef } from 'svc-gateway/plugin'
import { putSelection, selectionsOf } from './selections.js'

export { selectionError } from './errors.js'
export { capabilitySelectionSchema, type CapabilitySelection, type CapabilitySelections } from './schema.js'
export {
  capabilityChildren, capabilityGroupOf, capabilityGroups, type CapabilityChild, type CapabilityGroup
} from './words.js'

/** What capabilities.toml says, of a snapshot or a draft, and how a choice is put into it. */
export const capabilityChoices = { of: selectionsOf, put: putSelection } as const

/** Plugins that choose require it: while its plugin is away there is no file to choose in. */
export const capabilityChoicesRef = createServiceRef<typeof capabilityChoices>('capabilities.choices')
