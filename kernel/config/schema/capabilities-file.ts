import {
  backendDevices, CAPABILITIES_VERSION, capabilityGroups, capabilitySelectionSchema, devices,
  type CapabilityChild, type CapabilityGroup, type CapabilitySelection, type CapabilitySelections
} from '../../contract/index.js'
import type { LaidProviders } from '../laid-providers.js'
import { checkShape, type Problem } from '../shape-check.js'
import { isTable, type Table } from '../toml-file.js'
import { unknownTopKeys } from './rows.js'

type Words = Pick<LaidProviders, 'deviceWords' | 'known'>

/** What capabilities.toml says; selections that are broken keep their last good value. */
export interface CapabilitiesFile {
  readonly selections: CapabilitySelections
  readonly problems: readonly Problem[]
}

/**
 * capabilities.toml: `[selections.<group>.<child>]`. Version 1 said `backend` for the device; empty text means
 * unset. Pure.
 */
export function readCapabilities (data: unknown, previous: CapabilitySelections, words: Words): CapabilitiesFile {
  const problems: Problem[] = unknownTopKeys(data, 'schema_version', 'selections')
  if (!isTable(data)) return { selections: previous, problems }
  const { schema_version: version = CAPABILITIES_VERSION, selections: groups = {} } = data
  if (version !== 1 && version !== CAPABILITIES_VERSION) {
    return { selections: previous, problems: [...problems, problem(['schema_version'], `must be 1 or ${CAPABILITIES_VERSION}`)] }
  }
  if (!isTable(groups)) return { selections: previous, problems: [...problems, problem(['selections'], 'must hold tables')] }
  const selections: Partial<Record<CapabilityChild, CapabilitySelection>> = {}
  for (const [group, children] of Object.entries(groups)) {
    for (const [child, table] of isTable(children) ? Object.entries(children) : []) {
      const path = ['selections', group, child]
      if (!isPlace(group, child)) {
        problems.push({ ...problem(path, 'is not a capability; see [selections.<group>.<child>] in the documentation'), unknown: true })
        continue
      }
      const checked = checkShape(capabilitySelectionSchema, folded(table, words), { audience: 'file', userPath: key => [...path, ...key] })
      problems.push(...checked.problems)
      const selection = checked.value ?? previous[child]
      if (selection !== undefined) selections[child] = selection
    }
    if (!isTable(children)) problems.push(problem(['selections', group], 'must hold tables'))
  }
  return { selections, problems }
}

/** Old names in today's words, and nothing for empty text. */
function folded (table: unknown, words: Words): unknown {
  if (!isTable(table)) return table
  return renamed(Object.fromEntries(Object.entries(table).filter(([, value]) => value !== '')), words)
}

function renamed (table: Table, { deviceWords, known }: Words): Table {
  const { backend, ...rest } = table
  if (backend === undefined) return table
  if (typeof backend !== 'string') return { device: backend, ...rest }
  const own = Object.hasOwn(backendDevices, backend) ? backendDevices[backend] : deviceWords.get(backend)
  const isForeign = !devices.some(device => device === backend)
  return own === undefined && isForeign && !known ? rest : { device: own ?? backend, ...rest }
}

function isPlace (group: string, child: string): child is CapabilityChild {
  const children: readonly string[] = Object.hasOwn(capabilityGroups, group) ? capabilityGroups[group as CapabilityGroup] : []
  return children.includes(child)
}

function problem (path: readonly string[], message: string): Problem {
  return { path, message, unknown: false }
}

/** The file with one selection in it, or out of it, and in the present format. Pure. */
export function withSelection (
  data: Table, group: CapabilityGroup, child: CapabilityChild, selection: CapabilitySelection | null,
  words: Words
): Table {
  const today = (children: Table): Table => mapTables(children, table => renamed(table, words))
  const groups = isTable(data.selections) ? mapTables(data.selections, today) : {}
  const { [child]: _, ...siblings } = isTable(groups[group]) ? groups[group] : {}
  const { [group]: __, ...others } = groups
  const children = selection === null ? siblings : { ...siblings, [child]: setFields(selection) }
  return {
    ...data,
    schema_version: CAPABILITIES_VERSION,
    selections: Object.keys(children).length === 0 ? others : { ...others, [group]: children }
  }
}

function mapTables (table: Table, map: (inner: Table) => Table): Table {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [key, isTable(value) ? map(value) : value]))
}

function setFields (selection: CapabilitySelection): Table {
  return Object.fromEntries(Object.entries(selection).filter(([, value]) => value !== null))
}
