import { stackSchema, type NamedStack } from '../../contract/index.js'
import { parseToml, type Table } from '../toml-file.js'
import { stackSeedsToml } from './seeds-toml.js'

/** Built in and immutable: the code wins over a table of the same slug in stacks.toml. */
export const seedStacks: ReadonlyMap<string, NamedStack> = readSeeds()

function readSeeds (): ReadonlyMap<string, NamedStack> {
  const tables = parseToml(stackSeedsToml).stack as Table
  return new Map(Object.entries(tables).map(([slug, table]) =>
    [slug, Object.freeze({ ...stackSchema.parse(table), slug, seed: true })]))
}

/** Seeds first, then the operator's own. */
export function layStacks (own: readonly NamedStack[]): ReadonlyMap<string, NamedStack> {
  const others = own.filter(stack => !seedStacks.has(stack.slug))
  return new Map([...seedStacks, ...others.map(stack => [stack.slug, stack] as const)])
}
