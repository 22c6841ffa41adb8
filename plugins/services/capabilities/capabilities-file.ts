import type { ConfigFileDefinition } from 'svc-gateway/plugin'
import { z } from 'zod'
import { dependents } from './dependents.js'
import { FILE } from './file-name.js'
import { findings } from './findings.js'
import { isOldFormat, readSelections } from './read-selections.js'
import { capabilitySelectionSchema } from './schema.js'
import { capabilityChildren } from './words.js'

/** `[selections.<group>.<child>]`. */
export const capabilitiesFile = {
  file: FILE,
  schema: z.partialRecord(z.enum(capabilityChildren), capabilitySelectionSchema),
  format: { read: readSelections, backup: data => isOldFormat(data) ? '.v1.bak' : null },
  findings,
  dependents
} as const satisfies ConfigFileDefinition
