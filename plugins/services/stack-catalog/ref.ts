import { createServiceRef, type ConfigSnapshot } from 'svc-gateway/plugin'
import type { Stack, NamedStack } from './schema.js'
import { seedStacks } from './seeds.js'
import { stacksFile } from './stacks-file.js'

export {
  STACK_VERSION, stackCapabilitySchema, stackModelSchema, stackSchema, stackSlotSchema,
  type NamedStack, type Stack, type StackCapability, type StackModel, type StackSlot
} from './schema.js'

/** The name of the file, and the stacks that it and the release have. */
export interface StackCatalog {
  readonly file: string
  /** Of a snapshot or a draft, by slug: seeds first, then the operator's own. The same map for the same file. Pure. */
  of (config: Pick<ConfigSnapshot, 'files'>): ReadonlyMap<string, NamedStack>
}

export const stackCatalogRef = createServiceRef<StackCatalog>('stacks.catalog')

const known = new WeakMap<object, ReadonlyMap<string, NamedStack>>()

export const stackCatalog: StackCatalog = {
  file: stacksFile.file,
  of ({ files }) {
    const held = files.get(stacksFile.file) as { readonly stack: Readonly<Record<string, Stack>> } | undefined
    if (held === undefined) return seedStacks
    const before = known.get(held)
    if (before !== undefined) return before
    const own = Object.entries(held.stack).filter(([slug]) => !seedStacks.has(slug))
    const named = own.map(([slug, stack]) => [slug, Object.freeze({ ...stack, slug, seed: false })] as const)
    const all = new Map([...seedStacks, ...named])
    known.set(held, all)
    return all
  }
}
