import { messageOf, type Logger, type ModelRegistry } from 'svc-gateway/plugin'
import type { z } from 'zod'
import { bundledTemplates } from './bundled.js'
import type { LintResult } from './lint.js'
import type { LintProcess } from './lint-process.js'
import type { templateEntrySchema } from './schemas.js'
import {
  listTemplates, MAX_TEMPLATE_BYTES, readTemplate, removeTemplate, TEMPLATE_ID, templateFolder, writeTemplate, type TemplateFile
} from './template-files.js'

export type TemplateEntry = z.output<typeof templateEntrySchema>

const AUTO: TemplateEntry = { id: 'auto', label: 'The one in the model file', bundled: true, valid: true, error: null, line: null, warnings: [] }

/** The templates in `<model store>/chat-templates`. The store may move: the folder is asked for every time. */
export class TemplateCatalog {
  readonly #models: Pick<ModelRegistry, 'store' | 'writeFile'>
  readonly #lints: LintProcess
  readonly #log: Logger
  /** By id, as long as the file stays the same. */
  readonly #known = new Map<string, { readonly stamp: string, readonly result: Promise<LintResult> }>()
  #seeded: string | null = null

  constructor (models: Pick<ModelRegistry, 'store' | 'writeFile'>, lints: LintProcess, log: Logger) {
    this.#models = models
    this.#lints = lints
    this.#log = log
  }

  async list (): Promise<readonly TemplateEntry[]> {
    await this.seed()
    const files = await listTemplates(this.#folder)
    for (const id of this.#known.keys()) if (files.every(file => file.id !== id)) this.#known.delete(id)
    return [AUTO, ...await Promise.all(files.map(file => this.#entry(file)))]
  }

  /** With its text; null when there is none. */
  async find (id: string): Promise<(TemplateEntry & { readonly content: string }) | null> {
    await this.seed()
    const content = await readTemplate(this.#folder, id)
    const file = (await listTemplates(this.#folder)).find(other => other.id === id)
    return content === null || file === undefined ? null : { ...await this.#entry(file), content }
  }

  /** Written also when the lint finds fault: an edit in progress is worth keeping. */
  async put (id: string, content: string): Promise<TemplateEntry> {
    this.#lints.requireRoom()
    await writeTemplate(this.#models, id, content, false)
    return entryOf(id, await this.#lints.lint(content))
  }

  /** A bundled one goes back to what it was. Whether there was one. */
  async remove (id: string): Promise<boolean> {
    const bundled = bundledTemplates.get(id)
    if (bundled === undefined) return TEMPLATE_ID.test(id) && await removeTemplate(this.#folder, id)
    await writeTemplate(this.#models, id, bundled.content, false)
    return true
  }

  lint (content: string): Promise<LintResult> {
    this.#lints.requireRoom()
    return this.#lints.lint(content)
  }

  /** Puts the bundled templates into the store; what is there already stays as it is. */
  async seed (): Promise<void> {
    const folder = this.#folder
    if (this.#seeded === folder) return
    this.#seeded = folder
    try {
      for (const [id, { content }] of bundledTemplates) await writeTemplate(this.#models, id, content, true)
    } catch (error) {
      this.#log.warn({ folder, error: messageOf(error) }, 'the bundled chat templates cannot be written; slots cannot use them')
    }
  }

  get #folder (): string {
    return templateFolder(this.#models.store)
  }

  async #entry ({ id, stamp, sizeBytes }: TemplateFile): Promise<TemplateEntry> {
    const known = this.#known.get(id)
    if (known?.stamp === stamp) return entryOf(id, await known.result)
    // also who asks while it is being checked gets that one result
    const result = sizeBytes > MAX_TEMPLATE_BYTES ? Promise.resolve(tooLarge(sizeBytes)) : this.#checked(id)
    this.#known.set(id, { stamp, result })
    return entryOf(id, await result)
  }

  async #checked (id: string): Promise<LintResult> {
    return await this.#lints.lint(await readTemplate(this.#folder, id) ?? '')
  }
}

function entryOf (id: string, { valid, error, line, warnings }: LintResult): TemplateEntry {
  const bundled = bundledTemplates.get(id)
  return { id, label: bundled?.label ?? id, bundled: bundled !== undefined, valid, error, line, warnings: [...warnings] }
}

function tooLarge (bytes: number): LintResult {
  return { valid: false, error: `has ${bytes} bytes; a template has at most ${MAX_TEMPLATE_BYTES}`, line: null, warnings: [] }
}
