import type { Model, ModelCapability, ModelFolder } from '../../../kernel/contract/index.js'

/** Models that several engines answer for together, by their tag. */
const OMNI = { tag: 'omni', folder: 'collections/omni' } as const

export interface Classified {
  /** Folder of the layout, below the models' root. */
  readonly leaf: string | null
  /** Where that is known from. */
  readonly reason: string
}

/** Strongest first: a model that can do several things is kept for the rarest. */
const order: readonly ModelCapability[] = ['rerank', 'embed', 'asr', 'tts', 'image', 'chat', 'vision']

/** The folders of the canonical layout, as providers tell of them, and what lies in which. */
export class ModelLayout {
  /** Below the models' root. */
  readonly leaves: readonly string[]
  /** Names of folders of older installations in which every entry is a model of its own, whatever it is made of. */
  readonly collections: ReadonlySet<string>
  readonly #folders: readonly ModelFolder[]
  /** What older installations called their folders. */
  readonly #former: ReadonlyMap<string, string>

  constructor (folders: readonly ModelFolder[]) {
    this.#folders = folders
    this.leaves = [...folders.map(({ folder }) => folder), OMNI.folder]
    this.collections = new Set(folders.flatMap(({ collections = [] }) => collections))
    this.#former = new Map(folders.flatMap(({ folder, formerly = [], collections = [] }) =>
      [...formerly, ...collections].map(name => [name, folder] as const)))
  }

  /** By the registry, else by the names of the folders that it lies in, outermost first. Pure. */
  classify (relativePath: string, model: Model | undefined): Classified {
    if (model !== undefined) {
      const leaf = this.#leafOf(model)
      return leaf === null ? { leaf, reason: 'the registry does not list its use' } : { leaf, reason: `registered as ${model.id}` }
    }
    const parts = relativePath.split('/').slice(0, -1)
    const folder = parts.find(part => this.#former.has(part))
    return folder === undefined ? { leaf: null, reason: 'neither registered nor in a known folder' }
      : { leaf: this.#former.get(folder)!, reason: `in folder ${folder}` }
  }

  /** The strongest capability says what it is for, the first backend that an engine knows as its own what runs it. */
  #leafOf ({ capabilities, backends, tags }: Model): string | null {
    if (tags.includes(OMNI.tag)) return OMNI.folder
    const strongest = order.find(capability => capabilities.includes(capability))
    if (strongest === undefined) return null
    const fitting = this.#folders.filter(folder => folder.for.includes(strongest))
    const named = backends.flatMap(backend => fitting.find(folder => folder.backends?.includes(backend)) ?? [])
    return (named[0] ?? fitting.find(({ usual }) => usual === true))?.folder ?? null
  }
}
