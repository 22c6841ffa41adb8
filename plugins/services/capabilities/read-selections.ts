import { backendDevices, devices, type ConfigReading, type ProviderWords } from 'svc-gateway/plugin'
import { capabilitySelectionSchema, type CapabilitySelection, type CapabilitySelections } from './schema.js'
import { capabilityGroups, type CapabilityChild, type CapabilityGroup } from './words.js'

type Table = Readonly<Record<string, unknown>>

/** The format of the file; version 1 called the device `backend`. */
const VERSION = 2

export function isOldFormat ({ schema_version: version }: Table): boolean {
  return version === 1
}

/** Selections that are broken keep their last good value; empty text means unset. Pure. */
export function readSelections (data: Table, reading: ConfigReading<CapabilitySelections>): CapabilitySelections {
  const { lastGood, words, known, report, check } = reading
  known('schema_version', 'selections')
  const { schema_version: version = VERSION, selections: groups = {} } = data
  if (version !== 1 && version !== VERSION) {
    report(['schema_version'], `must be 1 or ${VERSION}`)
    return lastGood
  }
  if (!isTable(groups)) {
    report(['selections'], 'must hold tables')
    return lastGood
  }
  const selections: Partial<Record<CapabilityChild, CapabilitySelection>> = {}
  for (const [group, children] of Object.entries(groups)) {
    for (const [child, table] of isTable(children) ? Object.entries(children) : []) {
      const path = ['selections', group, child]
      if (!isPlace(group, child)) {
        report(path, 'is not a capability; see [selections.<group>.<child>] in the documentation')
        continue
      }
      const selection = check(capabilitySelectionSchema, folded(table, words), path)
      const said = selection === null ? lastGood[child] : inPresentWords(selection, words)
      if (said !== undefined) selections[child] = said
    }
    if (!isTable(children)) report(['selections', group], 'must hold tables')
  }
  return selections
}

/** The file with one selection in it, or out of it, and in the present format. Pure. */
export function withSelection (
  data: Table, group: CapabilityGroup, child: CapabilityChild, selection: CapabilitySelection | null,
  words: Pick<ProviderWords, 'deviceWords'>
): Table {
  const today = (children: Table): Table => mapTables(children, table => renamed(table, words))
  const groups = isTable(data.selections) ? mapTables(data.selections, today) : {}
  const { [child]: _, ...siblings } = isTable(groups[group]) ? groups[group] : {}
  const { [group]: __, ...others } = groups
  const children = selection === null ? siblings : { ...siblings, [child]: setFields(selection) }
  return {
    ...data,
    schema_version: VERSION,
    selections: Object.keys(children).length === 0 ? others : { ...others, [group]: children }
  }
}

function inPresentWords (selection: CapabilitySelection, words: ProviderWords): CapabilitySelection {
  return selection.provider === null ? selection : { ...selection, provider: words.canonical(selection.provider) }
}

/** Old names in today's words, and nothing for empty text. */
function folded (table: unknown, words: ProviderWords): unknown {
  if (!isTable(table)) return table
  return renamed(Object.fromEntries(Object.entries(table).filter(([, value]) => value !== '')), words)
}

function renamed (table: Table, { deviceWords }: Pick<ProviderWords, 'deviceWords'>): Table {
  const { backend, ...rest } = table
  if (backend === undefined) return table
  if (typeof backend !== 'string') return { device: backend, ...rest }
  const own = Object.hasOwn(backendDevices, backend) ? backendDevices[backend] : deviceWords.get(backend)
  return { device: own ?? devices.find(id => id === backend) ?? backend, ...rest }
}

function isPlace (group: string, child: string): child is CapabilityChild {
  const children: readonly string[] = Object.hasOwn(capabilityGroups, group) ? capabilityGroups[group as CapabilityGroup] : []
  return children.includes(child)
}

function mapTables (table: Table, map: (inner: Table) => Table): Table {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [key, isTable(value) ? map(value) : value]))
}

function setFields (selection: CapabilitySelection): Table {
  return Object.fromEntries(Object.entries(selection).filter(([, value]) => value !== null))
}

function isTable (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}
