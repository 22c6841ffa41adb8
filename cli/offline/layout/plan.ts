import { basename, dirname, join } from 'node:path'
import type { Model } from '../../../kernel/contract/index.js'
import type { ModelLayout } from './model-layout.js'

export const actions = ['create', 'skip-exists', 'would-overwrite', 'overwrite', 'unclassified'] as const
export type Action = typeof actions[number]

export interface Step {
  readonly action: Action
  /** Below the canonical root; empty for what is not classified. */
  readonly link: string
  /** What it will lead to, absolute. */
  readonly target: string
  /** Below the old root. */
  readonly source: string
  readonly reason: string
  readonly leaf: string | null
}

/** What is at the place of a link: where a symbolic link leads, `file` for anything else, null for nothing. */
export type Present = string | 'file' | null

export interface LayoutInput {
  readonly layout: ModelLayout
  readonly sources: readonly string[]
  readonly mountRoot: string
  readonly models: readonly Model[]
  readonly present: (link: string) => Present
  readonly force: boolean
}

/** One link for each model, in the folder of what runs it and what for. Two of one name carry their folder's too. Pure. */
export function planLayout ({ layout, sources, mountRoot, models, present, force }: LayoutInput): readonly Step[] {
  const byPath = new Map(models.flatMap(model => [[model.path, model] as const]))
  const taken = new Set<string>()
  return sources.map(source => {
    const target = join(mountRoot, source)
    const { leaf, reason } = layout.classify(source, byPath.get(target) ?? modelAround(models, target))
    if (leaf === null) return { action: 'unclassified', link: '', target, source, reason, leaf }
    const link = freeName(leaf, source, taken)
    taken.add(link)
    return { ...decided(present(link), target, force, reason), link, target, source, leaf }
  })
}

/** A folder that is a model is registered by a file in it. */
function modelAround (models: readonly Model[], target: string): Model | undefined {
  return models.find(model => model.path.startsWith(`${target}/`))
}

function freeName (leaf: string, source: string, taken: ReadonlySet<string>): string {
  const folder = basename(dirname(source))
  const plain = /^model\.[a-z]+$/i.test(basename(source)) && folder !== '.' ? `${folder}-${basename(source)}` : basename(source)
  const names = [plain, `${folder}-${plain}`, source.replaceAll('/', '-')].map(name => `${leaf}/${name}`)
  const free = names.find(name => !taken.has(name))
  if (free !== undefined) return free
  for (let n = 2; ; n++) if (!taken.has(`${names[2]!}-${n}`)) return `${names[2]!}-${n}`
}

/** Only a link that leads elsewhere is ever replaced, and only by force; a real file never is. */
function decided (present: Present, target: string, force: boolean, reason: string): Pick<Step, 'action' | 'reason'> {
  if (present === null) return { action: 'create', reason }
  if (present === target) return { action: 'skip-exists', reason: 'it already exists' }
  if (present === 'file') return { action: 'would-overwrite', reason: 'a regular file has its name' }
  return force ? { action: 'overwrite', reason: `it points to ${present}` } : { action: 'would-overwrite', reason: `it points to ${present}; --force replaces it` }
}
