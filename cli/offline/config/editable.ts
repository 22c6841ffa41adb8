import { join } from 'node:path'
import type { z } from 'zod'
import {
  AGENT_NAME_PATTERN, agentFileSchema, externalProviderSchema, NAME_PATTERN, profileSchema, slotConfigSchema,
  upstreamSchema, type Paths
} from '../../../kernel/contract/index.js'
import { loadPart } from '../../../kernel/config/load/config-table.js'
import { noProviders } from '../../../kernel/config/parts/laid-providers.js'
import { loadSvc, type LoadOptions } from '../../../kernel/config/load/load-parts.js'
import { loadAgents } from '../../../kernel/config/load/load-agents.js'
import { loadSlot } from '../../../kernel/config/load/load-slots.js'
import { agentFile, configFiles, slotFile, type ConfigParts } from '../../../kernel/config/parts/config-parts.js'
import { loadOwned } from '../../../kernel/config/load/owned-files.js'
import { capabilitiesFile } from '../../../plugins/services/capabilities/capabilities-file.js'
import { capabilitySelectionSchema } from '../../../plugins/services/capabilities/schema.js'
import { stacksFile } from '../../../plugins/services/stack-catalog/stacks-file.js'
import { usageFailure } from '../../failure.js'
import { editableNames } from '../../config-files.js'
import { svcSchema } from '../svc-schema.js'

/** A file that operators write. */
export interface EditableFile {
  /** Below the configuration root. */
  readonly file: string
  readonly about: string
  /** What one of its tables may say, and how such a table is written; null where the file is that table. */
  readonly schema: z.ZodType
  readonly table: string | null
  /** An empty table says something too: `[image]` makes an image slot. */
  readonly meaning: boolean
  /** The configuration, read with these options, with this file as it lies below another root. */
  readonly lay: (parts: ConfigParts, root: string, options: LoadOptions) => Promise<ConfigParts>
}

/** By the word of the command line, with or without `.toml`. Throws a failure of usage. */
export function editableFile (paths: Paths, word: string): EditableFile {
  const name = word.replace(/\.toml$/, '')
  const slot = /^slots\/(.+)$/.exec(name)?.[1]
  if (slot !== undefined && NAME_PATTERN.test(slot)) return slotEditable(paths, slot)
  const agent = /^agents\/(.+)$/.exec(name)?.[1]
  if (agent !== undefined && AGENT_NAME_PATTERN.test(agent)) return agentEditable(paths, agent)
  const found = (catalogs as Readonly<Record<string, Omit<EditableFile, 'lay'> & { readonly part: Loader }>>)[name]
  if (found === undefined || !Object.hasOwn(catalogs, name)) {
    throw usageFailure(`'${word}' is not a file that can be edited`, [`There are: ${editableNames.join(', ')}, slots/<name> and agents/<name>.`])
  }
  const { part, ...about } = found
  return { ...about, lay: async (parts, root, options) => ({ ...parts, ...await part({ ...paths, etc: root }, parts, options) }) }
}

type Loader = (paths: Paths, parts: ConfigParts, options: LoadOptions) => Promise<Partial<ConfigParts>>
type Catalog = Omit<EditableFile, 'lay'> & { readonly part: Loader }

/** A file of a plugin, beside those of others as they were read. */
function ownedPart (file: string): Loader {
  return async (paths, parts, { owned = [], providers = noProviders }) =>
    ({ owned: await loadOwned(paths, owned, parts, providers, [file]) })
}

const catalogs: Readonly<Record<typeof editableNames[number], Catalog>> = {
  svc: {
    file: configFiles.svc,
    about: 'Settings of the gateway.',
    schema: svcSchema,
    table: null,
    meaning: false,
    part: async paths => ({ svc: await loadSvc({ paths, schema: svcSchema }, null) })
  },
  upstreams: {
    file: configFiles.upstreams,
    about: 'Remote upstreams, one table for each.',
    schema: upstreamSchema,
    table: '[[upstream]]',
    meaning: false,
    part: paths => loadPart('upstreams', paths, null, noProviders)
  },
  providers: {
    file: configFiles.providers,
    about: 'Providers of the catalogue that are switched on, one table for each.',
    schema: externalProviderSchema,
    table: '[[provider]]',
    meaning: false,
    part: paths => loadPart('providers', paths, null, noProviders)
  },
  profiles: {
    file: configFiles.profiles,
    about: 'Profiles, one table for each.',
    schema: profileSchema,
    table: '[profile.my-profile]',
    meaning: false,
    part: (paths, _, { providers = noProviders }) => loadPart('profiles', paths, null, providers)
  },
  stacks: {
    file: stacksFile.file,
    about: 'Stacks, one table for each.',
    schema: stacksFile.rows.schema,
    table: '[stack.my-stack]',
    meaning: false,
    part: ownedPart(stacksFile.file)
  },
  capabilities: {
    file: capabilitiesFile.file,
    about: 'What serves each capability, one table for each.',
    schema: capabilitySelectionSchema,
    table: '[selections.embed.embed]',
    meaning: false,
    part: ownedPart(capabilitiesFile.file)
  }
}

function slotEditable (paths: Paths, name: string): EditableFile {
  return {
    file: slotFile(name),
    about: `Slot ${name}.`,
    schema: slotConfigSchema,
    table: null,
    meaning: true,
    async lay (parts, root, { providers = noProviders }) {
      const part = await loadSlot({ ...paths, slots: join(root, 'slots') }, name, null, providers)
      const others = [...parts.slots].filter(([other]) => other !== name)
      const slots = part === null ? others : [...others, [name, part] as const]
      return { ...parts, slots: new Map(slots.sort(([a], [b]) => a < b ? -1 : 1)) }
    }
  }
}

function agentEditable (paths: Paths, name: string): EditableFile {
  return {
    file: agentFile(name),
    about: `What agent ${name} may call.`,
    schema: agentFileSchema,
    table: null,
    meaning: false,
    async lay (parts, root) {
      const edited = (await loadAgents({ ...paths, etc: root }, null)).agents.get(name)
      const others = [...parts.agents].filter(([other]) => other !== name)
      return { ...parts, agents: new Map(edited === undefined ? others : [...others, [name, edited] as const]) }
    }
  }
}
